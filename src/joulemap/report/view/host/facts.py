"""What only a run on this machine tells: latency quantiles, closure, where operators ran, how to repeat it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from joulemap.report.view.text import format_memory, format_quantity, format_share, format_time, printable
from joulemap.units import format_percent, format_si

__all__ = [
    "format_members",
    "host_command",
    "host_figures",
    "host_instrument",
    "host_machine",
    "is_host",
    "label_energy",
]

Document = Mapping[str, Any]


def is_host(document: Document) -> bool:
    """Returns whether a profile was made on the machine itself."""
    return document.get("host") is not None


def format_members(indices: Sequence[int]) -> str:
    """Returns layer numbers as ranges: ``3, 7-9``; of many ranges the first ones and how many layers they are."""
    ranges: list[list[int]] = []
    for index in sorted(int(k) for k in indices):
        if ranges and index == ranges[-1][1] + 1:
            ranges[-1][1] = index
        else:
            ranges.append([index, index])
    texts = [str(low) if low == high else f"{low}-{high}" for low, high in ranges]
    return ", ".join(texts) if len(texts) <= 3 else f"{', '.join(texts[:2])}, ... ({len(indices)} layers)"


def label_energy(layer: Document, text: str) -> str:
    """Returns a layer's energy, marked where it is only a share of the time."""
    return f"{text} (modelled)" if layer.get("resolution") == "time_share" else text


def host_figures(document: Document) -> tuple[tuple[str, str], ...]:
    """Returns label and text of what a board has no word for."""
    host = document["host"]
    quantiles = ", ".join(map(_quantile, host["latency_quantiles"]))
    figures = [("latency quantiles", quantiles)] if quantiles else []
    if document.get("energy_per_token_j") is not None:
        figures.append(("energy per token", format_quantity(document["energy_per_token_j"], "J")))
    closure = host["closure"]
    if closure is not None:
        figures.append(("closure", _closure(closure)))
    figures.append(("ran on", "; ".join(map(_provider, host["audit"]["providers"]))))
    return tuple((label, printable(text)) for label, text in figures)


def _quantile(quantile: Document) -> str:
    name = f"p{quantile['probability'] * 100:g}"
    if quantile["value_s"] is None:
        return f"{name} needs more executions than {quantile['executions']}"
    low, high = format_time(quantile["low_s"]), format_time(quantile["high_s"])
    return f"{name} {format_time(quantile['value_s'])} ({low} to {high})"


def _closure(closure: Document) -> str:
    if not closure["independent"]:
        return "the gap is what the operators leave: their sum tests nothing"
    off = format_quantity(closure["difference_j"], "J")
    words = "within" if closure["closed"] else "beyond"
    return f"operators, gap and idle differ from the window by {off} per inference: {words} its U"


def _provider(share: Document) -> str:
    types = ", ".join(f"{count} {dtype}" for dtype, count in sorted(share["dtypes"].items()))
    time = "" if share["time_share"] is None else f", {format_share(share['time_share'], None)} of the time"
    return f"{share['provider']}: {share['nodes']} operators ({types}){time}"


def host_machine(document: Document) -> tuple[tuple[str, str], ...]:
    """Returns label and text of runtime, meter and machine."""
    host = document["host"]
    runtime, meter = host["runtime"], host["meter"]
    domains = [d["name"] for d in meter["domains"] if d["in_headline"]]
    threads = "the runtime's own number of threads" if host["threads"] is None else f"{host['threads']} threads"
    return (
        ("Runtime", f"{runtime['name']} {runtime['version']}, {threads}"),
        ("Meter", f"{meter['name']}: {', '.join(domains)}, energies at the {document['target']['boundary']}"),
        ("Weights", format_memory(document["memory"]["constants_b"])),
    )


def host_instrument(spec: Document) -> str:
    """Returns what the meter declares."""
    gain = format_percent(spec["gain_std"], digits=2)
    return f"{spec['name']}, {format_si(spec['rate_hz'], 'S/s', digits=3)}, gain {gain} (1 sd); {spec['source']}"


def host_command(run: Document) -> str:
    """Returns the command that repeats the run."""
    request = run["request"]
    words = ["joulemap", "profile", request["model"], "--target", "host", "--runtime", request["runtime"]]
    for meter in request["meters"]:
        words += ["--meter", meter]
    options = {
        "batch": "--batch",
        "threads": "--threads",
        "precision": "--precision",
        "provider": "--provider",
        "input": "--input",
        "window_s": "--window-s",
        "tokens": "--tokens",
    }
    for key, flag in options.items():
        if request.get(key) is not None:
            words += [flag, str(request[key])]
    words += ["--repeats", str(request["repeats"]), "--operators", str(request["operators"])]
    return printable(shlex.join([*words, "--seed", str(request["seed"])]))
