"""A profile's facts as sections of a bundle. ``truth/`` apart, no section depends on what the virtual board knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from joulemap.estimate import Estimate, Provenance, Unavailable
from joulemap.formats.bundle_writer import BundleWriter
from joulemap.formats.registry import LAYERS, LOG, RESULT, RUN, add_table, add_timeline, add_trace
from joulemap.records.finding import Validity
from joulemap.records.firmware import FirmwareArtifact
from joulemap.records.instrument import InstrumentSpec
from joulemap.records.power import PowerCapture
from joulemap.records.rail import BoardTruth
from joulemap.records.run import ProfileRequest
from joulemap.workflow.environment import describe_environment
from joulemap.workflow.journal import StageTiming
from joulemap.workflow.plain import plain
from joulemap.workflow.result import SCHEMA, SCHEMA_VERSION, ProfileFacts, build_result
from joulemap.workflow.score import TRUTH_PATH, TRUTH_SCHEMA, build_truth
from joulemap.workflow.timeline import build_timeline

__all__ = ["write_sections"]

_LAYER_COLUMNS = {
    "index": "int64",
    "op": "string",
    "name": "string",
    "group": "string",
    "macs": "int64",
    "bytes": "int64",
    "cycles": "int64",
    "instructions": "int64",
    "duration_s": "float64",
    "share": "float64",
    "resolution": "string",
}


def write_sections(
    writer: BundleWriter,
    facts: ProfileFacts,
    request: ProfileRequest,
    *,
    truths: Mapping[int, BoardTruth],
    timings: Sequence[StageTiming],
    log: Sequence[str],
    name: str,
) -> None:
    """Writes every section of a profile.

    Args:
        writer: of the bundle in the making.
        facts: what the run found out.
        request: what was asked.
        truths: of a virtual board, by capture index; empty without.
        timings: of the stages so far.
        log: what was said so far.
        name: of the bundle.
    """
    result = build_result(facts, bundle=name)
    writer.write_json(RESULT, result, schema=SCHEMA, version=SCHEMA_VERSION)
    writer.write_json(RUN, _run(facts, request, result, timings), schema="joulemap.run")
    add_table(writer, LAYERS, _layer_columns(facts, result), schema="joulemap.layers")
    images = [facts.profile.firmware]
    if facts.power is not None:
        images.append(facts.power.firmware)
        _write_captures(writer, facts)
    for image in images:
        writer.write_json(f"firmware/{image.role}.json", _firmware(image), schema="joulemap.firmware")
    if truths and facts.power is not None:
        count = facts.power.plan.requested_count
        writer.write_json(TRUTH_PATH, build_truth(truths, count=count), schema=TRUTH_SCHEMA, optional=True)
    writer.write_text(LOG, "".join(f"{line}\n" for line in log), schema="joulemap.log")


def _write_captures(writer: BundleWriter, facts: ProfileFacts) -> None:
    assert facts.power is not None  # the caller asked for a power run
    for capture in facts.power.captures:
        if capture.observation.result is not None:
            recording = capture.observation.result.recording
            add_trace(
                writer, f"{recording.trace.channel.name}-{capture.index}", recording.trace, markers=recording.edges
            )
    shown = _first_gated(facts.power.captures)
    if shown is not None and shown.observation.result is not None:
        count = facts.power.plan.requested_count
        add_timeline(writer, build_timeline(facts.model, facts.profile.result, shown.observation.result, count=count))


def _first_gated(captures: Sequence[PowerCapture]) -> PowerCapture | None:
    """Returns the first valid capture: only there is N known to fill the gate."""
    return next((c for c in captures if c.observation.integrity is Validity.VALID), None)


def _run(
    facts: ProfileFacts, request: ProfileRequest, result: Mapping[str, object], timings: Sequence[StageTiming]
) -> dict[str, object]:
    asked = plain(request)
    assert isinstance(asked, dict)  # a record is an object
    for key in ("model", "input"):
        path = getattr(request, key)
        asked[key] = None if path is None else path.name  # never a path of the machine
    if request.instrument is not None:
        asked["instrument"] = request.instrument.replace("\\", "/").rsplit("/", 1)[-1]
    return {
        "schema": "joulemap.run",
        "schema_version": 1,
        "run_id": facts.run_id,
        "request": asked,
        "instrument": plain(_instrument(facts)),
        "operating_point": result["operating_point"],
        "plan": result["plan"],
        "deployments": result["deployments"],
        "checkpoints": result["checkpoints"],
        "stages": [plain(timing) for timing in timings],
        "environment": describe_environment(),
    }


def _instrument(facts: ProfileFacts) -> InstrumentSpec | None:
    for capture in facts.power.captures if facts.power else ():
        if capture.observation.result is not None:
            return capture.observation.result.recording.instrument
    return None


def _firmware(image: FirmwareArtifact) -> dict[str, object]:
    return {
        "schema": "joulemap.firmware",
        "schema_version": 1,
        "role": str(image.role),
        "elf_sha256": image.sha256,
        "source_sha256": image.source_sha256,
        "sections": dict(image.sections),
        "flash_b": image.flash_b,
        "ram_b": image.ram_b,
        "toolchain": image.toolchain,
        "command": list(image.command),
        "reused": image.reused,
    }


def _layer_columns(facts: ProfileFacts, result: Mapping[str, object]) -> dict[str, Any]:
    import pyarrow as pa  # noqa: PLC0415  only a column's type needs it here

    rows = result["layers"]
    assert isinstance(rows, list)  # build_result made it
    columns = {key: pa.array([row[key] for row in rows], kind) for key, kind in _LAYER_COLUMNS.items()}
    energies = {e.index: e.energy_j for e in facts.account.layers} if facts.account else {}
    quantities = [energies.get(layer.index, Unavailable(reason=facts.reason)) for layer in facts.model.layers]
    for key, attribute in (("energy_j", "value"), ("energy_std_j", "std"), ("energy_expanded_j", "expanded")):
        values = [getattr(q, attribute) if isinstance(q, Estimate) else None for q in quantities]
        columns[key] = pa.array(values, "float64")
    provenances = [q.provenance if isinstance(q, Estimate) else Provenance.UNAVAILABLE for q in quantities]
    columns["provenance"] = pa.array([str(provenance) for provenance in provenances], "string")
    return columns
