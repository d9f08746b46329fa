"""A profile's bundle as a page: answer, tables, doubt and provenance from documents, the map from a waveform. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joulemap.estimate import Provenance
from joulemap.records.finding import Finding, Validity
from joulemap.report.view.colors import NEUTRAL, assign_colors
from joulemap.report.view.cures import CURES
from joulemap.report.view.flame import build_flame
from joulemap.report.view.host.facts import host_command, host_figures, host_instrument, host_machine, is_host
from joulemap.report.view.hotspots import build_tables
from joulemap.report.view.page import Badge, BudgetShare, FindingRow, PageView
from joulemap.report.view.profile import build_profile_view
from joulemap.report.view.profile_scene import Waveform, build_scenes
from joulemap.report.view.text import DASH, format_memory, format_quantity, format_time, printable
from joulemap.units import format_percent, format_si

__all__ = ["ProfileSections", "build_profile_page"]

Document = Mapping[str, Any]
_SHORT = 16  # digits of a digest that people compare


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProfileSections:
    """What a page is made from.

    Args:
        result: the document of the contract.
        run: ``run.json``.
        firmware: documents of the images.
        created: ISO 8601 UTC.
        digest: SHA-256 of the manifest, which holds the digest of everything else.
        waveform: of the capture that is shown; None when none was recorded.
    """

    result: Document
    run: Document
    firmware: Sequence[Document]
    created: str
    digest: str
    waveform: Waveform | None


def build_profile_page(sections: ProfileSections) -> PageView:
    """Returns the page; raises KeyError when a required key of a document is missing."""
    document = sections.result
    view = build_profile_view(document)
    ordered = sorted(document["layers"], key=lambda layer: -(layer["energy_j"]["value"] or layer["duration_s"]))
    colors = assign_colors(layer["op"] for layer in ordered)
    scene = fold = None
    names: dict[int, int] = {}
    more: tuple[Finding, ...] = ()
    if sections.waveform is not None:
        scene, fold, names, more = build_scenes(document, sections.run, sections.waveform, colors)
    headline = format_quantity(document["energy_per_inference_j"], "J") if view.headline is not None else None
    findings = [*view.findings, *((str(f.severity), f.slug, printable(f.message)) for f in more)]
    return PageView(
        subject=view.title,
        badges=_badges(document),
        headline=headline,
        headline_unit="per inference",
        no_headline=_explain(document, view.no_headline),
        next_step=_next_step(document, available=headline is not None),
        hotspot=f"{view.hotspot}." if view.hotspot else "",
        figures=_figures(document),
        figures_are=_figures_are(document),
        scene=scene,
        fold=fold,
        no_scene="" if scene is not None else _explain_no_scene(document),
        tables=build_tables(document, {**colors, "": NEUTRAL}, names, count=_count(document)),
        flame=build_flame(document, colors, names),
        budget=_budget(document),
        findings=tuple(
            FindingRow(severity=severity, slug=slug, message=message, cure=CURES.get(slug, ""))
            for severity, slug, message in findings
        ),
        refused=_refused(document),
        provenance=(*_run_facts(sections, view.figures), *_bundle_facts(sections)),
        command=host_command(sections.run) if is_host(document) else _command(sections.run),
    )


def _badges(document: Document) -> tuple[Badge, ...]:
    provenance = document["energy_per_inference_j"]["provenance"]
    if provenance == "unavailable":  # what can be seen is a waveform, or times alone
        provenance = document["target"]["provenance"] if document["plan"] is not None else document["time_provenance"]
    word = Provenance(provenance).value.replace("_", " ")
    patterns = {"measured_counter": "solid", "measured_sampled": "solid"}
    validity = Validity(document["validity"]).value
    return (
        Badge(word=word, pattern=patterns.get(provenance, "dashed")),
        Badge(word=validity, pattern="solid" if validity == "valid" else "double"),
    )


def _explain(document: Document, plain: str) -> str:
    """Returns why there is no headline, in whole sentences."""
    reason = document["energy_per_inference_j"].get("reason")
    seen = next((finding["message"] for finding in document["findings"] if finding["slug"] == reason), None)
    if not plain or seen is None:
        return plain
    return f"No energy per inference: the run is {document['validity']}. {printable(seen[:1].upper() + seen[1:])}."


def _next_step(document: Document, *, available: bool) -> str:
    if available:
        return ""
    if document["plan"] is None:
        return "Run it again with --power to measure the energy too."
    reason = document["energy_per_inference_j"]["reason"]
    return CURES.get(reason, "See the findings below.")


def _figures(document: Document) -> tuple[tuple[str, str], ...]:
    latency = ("Latency", format_quantity(document["latency_s"], "s"))
    if document["energy_per_inference_j"]["value"] is not None:
        return (
            ("Inferences per joule", format_quantity(document["inferences_per_j"], "")),
            ("Average power", format_quantity(document["average_power_w"], "W")),
            latency,
        )
    statistics = document.get("trace_statistics")
    if statistics is None:
        return (latency,)
    return (
        ("Energy", format_quantity(statistics["energy_j"], "J")),
        ("Average power", format_quantity(statistics["average_power_w"], "W")),
        ("Length", format_time(statistics["duration_s"])),
    )


def _figures_are(document: Document) -> str:
    statistics = document.get("trace_statistics")
    return "" if statistics is None else printable(statistics["label"])


def _explain_no_scene(document: Document) -> str:
    if document["plan"] is None:
        return "No waveform: the run had no power phase."
    return "No waveform: no capture delivered samples."


def _count(document: Document) -> str:
    if document["plan"] is None:
        return DASH
    valid = sum(capture["observation"]["integrity"] == "valid" for capture in document["captures"])
    return str(document["plan"]["requested_count"] * valid) if valid else DASH


def _budget(document: Document) -> tuple[BudgetShare, ...]:
    lines = [line for line in document["budget"] if line["std_j"] > 0]
    variance = sum(line["std_j"] ** 2 for line in lines)
    lines.sort(key=lambda line: -line["std_j"])
    return tuple(
        BudgetShare(
            name=printable(line["name"]),
            kind=printable(line["kind"]),
            std=format_si(line["std_j"], "J", digits=2),
            share=line["std_j"] ** 2 / variance,
            share_text=format_percent(line["std_j"] ** 2 / variance, digits=2)
            if line["std_j"] ** 2 >= 1e-3 * variance
            else "<0.1\u2009%",
        )
        for line in lines
    )


def _refused(document: Document) -> tuple[tuple[str, str], ...]:
    if document["energy_per_inference_j"]["value"] is None:
        return ()
    rows = []
    for layer in document["layers"]:
        if layer["energy_j"]["value"] is not None:
            continue
        why = f"only the sum of {layer['group']} can be told" if layer["group"] else layer["energy_j"]["reason"]
        rows.append((printable(f"{layer['op']} #{layer['index']}"), printable(why)))
    return tuple(rows)


def _run_facts(sections: ProfileSections, figures: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    result, run = sections.result, sections.run
    model, shown = result["model"], dict(figures)
    facts = [("Model", f"{model['name']}, {format_memory(model['size_b'])}, SHA-256 {model['sha256'][:_SHORT]}")]
    if is_host(result):
        facts += [*host_machine(result), ("Instrument", host_instrument(run["instrument"]))]
        facts += [(label.capitalize(), text) for label, text in host_figures(result)]
    else:
        facts += _board(sections, shown)
    facts += [
        (
            f"Firmware {image['role']}",
            ", ".join(
                (
                    f"SHA-256 {image['elf_sha256'][:_SHORT]}",
                    f"flash {format_memory(image['flash_b'])}",
                    f"RAM {format_memory(image['ram_b'])}",
                    image["toolchain"],
                )
            ),
        )
        for image in sections.firmware
    ]
    facts += [(label.capitalize(), shown[label]) for label in ("provenance", "integrity") if label in shown]
    if sections.waveform is not None:
        facts.append(("Waveform", f"capture {sections.waveform.capture} of {len(result['captures'])}"))
    facts.append(("Environment", _environment(run.get("environment"))))
    return [(label, printable(text)) for label, text in facts]


def _board(sections: ProfileSections, shown: Mapping[str, str]) -> list[tuple[str, str]]:
    result, run = sections.result, sections.run
    model, target, point = result["model"], result["target"], result["operating_point"]
    clock, supply = format_si(point["core_hz"], "Hz", digits=4), format_si(point["supply_v"], "V", digits=3)
    return [
        ("Engine", model["engine"]),
        ("Board", f"{target['name']} ({target['core']}), {clock}, {supply}, energies at the {target['boundary']}"),
        ("Instrument", _instrument(run.get("instrument"))),
        ("Memory", shown.get("memory", DASH)),
    ]


def _bundle_facts(sections: ProfileSections) -> list[tuple[str, str]]:
    tool = sections.result["tool"]
    facts = [
        ("Run", f"{sections.result['run_id']}, {sections.created}"),
        ("Tool", f"{tool['name']} {tool['version']}"),
        ("Bundle", f"manifest SHA-256 {sections.digest}"),
    ]
    return [(label, printable(text)) for label, text in facts]


def _instrument(spec: Document | None) -> str:
    if spec is None:
        return "none"
    limits = (
        f"gain {format_percent(spec['gain_std'], digits=2)}, offset {format_si(spec['offset_std_w'], 'W', digits=2)},"
        f" noise {format_si(spec['noise_std_w'], 'W', digits=2)} (1 sd, as declared, no calibration)"
    )
    return f"{spec['name']}, {format_si(spec['rate_hz'], 'S/s', digits=3)}, {limits}; {spec['source']}"


def _environment(environment: Document | None) -> str:
    if environment is None:
        return DASH
    packages = ", ".join(f"{name} {version}" for name, version in sorted(environment.get("packages", {}).items()))
    system = f"{environment.get('system')} {environment.get('machine')}"
    return f"Python {environment.get('python')} on {system}; {packages}"


def _command(run: Document) -> str:
    request = run["request"]
    words = ["joulemap", "profile", request["model"], "--target", request["target"], "--engine", request["engine"]]
    if not request["power"]:
        words.append("--no-power")
    options = {"count": "--count", "window_s": "--window-s", "input": "--input", "instrument": "--instrument"}
    for key, flag in options.items():
        if request.get(key) is not None:
            words += [flag, str(request[key])]
    if request["power"]:
        words += ["--repeats", str(request["repeats"])]
        words += [] if request["lockstep"] else ["--no-lockstep"]
        words += ["--contrast"] if request["contrast"] else []
    for fault in request["faults"]["faults"]:
        words += ["--fault", f"{fault['slug']}@{fault['repeat']}" if fault["repeat"] is not None else fault["slug"]]
    words += ["--transport", request["transport"], "--seed", str(request["seed"])]
    return printable(shlex.join(words))
