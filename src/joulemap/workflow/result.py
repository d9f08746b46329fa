"""The result document of a profile: records to the JSON of the contract. Pure; unrounded; no path of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from joulemap import __version__
from joulemap.estimate import Estimate, Provenance, Quantity, Unavailable
from joulemap.records.energy import EnergyAccount, LayerEnergy
from joulemap.records.finding import Finding, Validity
from joulemap.records.firmware import DeploymentRecord, FirmwareArtifact
from joulemap.records.model import ModelSummary
from joulemap.records.power import GateWindow, PowerCapture, PowerObservation, PowerRun, PowerTerminalEnvelope
from joulemap.records.profile import ProfileRun
from joulemap.records.progress import ProgressUpdate
from joulemap.records.target import MemoryPlan, Target
from joulemap.workflow.plain import plain

__all__ = [
    "SCHEMA",
    "SCHEMA_VERSION",
    "ProfileFacts",
    "build_result",
    "describe_checkpoint",
    "describe_headlines",
    "time_provenance",
]

SCHEMA = "joulemap.profile"
SCHEMA_VERSION = 1
_OPS_DEFINITION = "one MAC is two operations"
NO_POWER = "power_not_run"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFacts:
    """Everything that a profile found out, before it becomes a document.

    Args:
        run_id: of this run.
        target: what it ran on.
        model: what ran.
        memory: the plan before the build.
        profile: the profile phase.
        power: the power phase; None without one.
        account: what the analysis says of it; None when no headline may be made of it.
        validity: of the run as a whole.
        reason: slug of why there is no account; empty when there is one.
        findings: of the run, its captures and its analysis, each once.
        checkpoints: durable milestones.
        oracle: name and version; None without one.
        oracle_crc32: of the reference output; None without an oracle.
        trace_statistics: labelled statistics of a degraded run; None otherwise.
    """

    run_id: str
    target: Target
    model: ModelSummary
    memory: MemoryPlan
    profile: ProfileRun
    power: PowerRun | None
    account: EnergyAccount | None
    validity: Validity
    reason: str
    findings: tuple[Finding, ...]
    checkpoints: tuple[ProgressUpdate, ...]
    oracle: str | None
    oracle_crc32: int | None
    trace_statistics: Mapping[str, object] | None


def build_result(facts: ProfileFacts, *, bundle: str) -> dict[str, object]:
    """Returns the document; ``bundle`` is how the reader of this copy finds the bundle."""
    captures = facts.power.captures if facts.power else ()
    shown = next((c for c in captures if c.observation.integrity is Validity.VALID), captures[0] if captures else None)
    document: dict[str, object] = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "joulemap", "version": __version__},
        "run_id": facts.run_id,
        "validity": str(facts.validity),
        "findings": [finding.to_json() for finding in facts.findings],
        "model": _model(facts.model),
        "target": _target(facts.target),
        **_headlines(facts),
        "layers": _layers(facts),
        "groups": _groups(facts.account),
        "gap": _gap(facts),
        "budget": [plain(line) for line in facts.account.budget] if facts.account else [],
        "plan": plain(facts.power.plan) if facts.power else None,
        "captures": [_capture(capture) for capture in captures],
        "observation": _observation(shown.observation) if shown else None,
        "terminal": _terminal(shown.terminal) if shown else None,
        "deployments": [_deployment(d) for d in _deployments(facts)],
        "checkpoints": [describe_checkpoint(update) for update in facts.checkpoints],
        "memory": _memory(facts),
        "operating_point": plain(facts.target.operating_point),
        "output_crc": _output_crc(facts, shown),
        "counter_source": facts.profile.result.counter_source,
        "time_provenance": str(time_provenance(facts.target)),
        "bundle": bundle,
    }
    if facts.trace_statistics is not None:
        document["trace_statistics"] = dict(facts.trace_statistics)
    return document


def time_provenance(target: Target) -> Provenance:
    """Returns what kind of number the cycles and times of a target are."""
    return Provenance.MODELLED if target.provenance is Provenance.SIMULATED else Provenance.MEASURED_COUNTER


def _model(model: ModelSummary) -> dict[str, object]:
    return {
        "name": model.name,
        "sha256": model.sha256,
        "size_b": model.size_b,
        "engine": model.engine,
        "inputs": [plain(tensor) for tensor in model.inputs],
        "outputs": [plain(tensor) for tensor in model.outputs],
    }


def _target(target: Target) -> dict[str, object]:
    return {
        "name": target.name,
        "core": target.cpu.core,
        "boundary": str(target.boundary),
        "provenance": str(target.provenance),
    }


def _headlines(facts: ProfileFacts) -> dict[str, object]:
    return describe_headlines(
        facts.account,
        missing=Unavailable(reason=facts.reason or NO_POWER),
        latency=_latency(facts),
        ops=facts.model.ops,
        cycles=round(float(np.median(facts.profile.result.clean_cycles))),
    )


def describe_headlines(
    account: EnergyAccount | None, *, missing: Unavailable, latency: Quantity, ops: int, cycles: int | None
) -> dict[str, object]:
    """Returns the headline figures as JSON.

    Args:
        account: None when there is none.
        missing: what stands then for each of its figures.
        latency: of one inference, s; known without an account.
        ops: of one inference.
        cycles: of one inference; None where nothing counts them.
    """
    quantities: dict[str, Quantity] = {
        "energy_per_inference_j": account.energy_per_inference_j if account else missing,
        "energy_above_idle_per_inference_j": account.energy_above_idle_per_inference_j if account else missing,
        "inferences_per_j": account.inferences_per_j if account else missing,
        "ops_per_j": account.ops_per_j if account else missing,
        "average_power_w": account.average_power_w if account else missing,
        "idle_power_w": account.idle_power_w if account else missing,
        "peak_power_w": account.peak_power_w if account else missing,
        "latency_s": latency,
    }
    return {
        **{key: quantity.to_json() for key, quantity in quantities.items()},
        "peak_bandwidth_hz": account.peak_bandwidth_hz if account else None,
        "ops_per_inference": ops,
        "ops_definition": _OPS_DEFINITION,
        "cycles_per_inference": cycles,
    }


def _latency(facts: ProfileFacts) -> Quantity:
    """Returns GATE over N; without a usable gate the clean latency of the profile, with the spread of its passes."""
    if facts.account is not None and isinstance(facts.account.latency_s, Estimate):
        return facts.account.latency_s
    result = facts.profile.result
    passes_s = np.asarray(result.clean_cycles, np.float64) / result.core_hz
    std = float(np.std(passes_s, ddof=1)) / passes_s.size**0.5 if passes_s.size > 1 else 0.0
    return Estimate(value=result.clean_latency_s, std=std, provenance=time_provenance(facts.target))


def _layers(facts: ProfileFacts) -> list[dict[str, object]]:
    result = facts.profile.result
    cycles = np.median(result.layer_cycles, axis=0)
    durations_s = result.layer_duration_s
    energies: dict[int, LayerEnergy] = {e.index: e for e in facts.account.layers} if facts.account else {}
    missing = Unavailable(reason=facts.reason or NO_POWER)
    rows: list[dict[str, object]] = []
    for layer in facts.model.layers:
        energy = energies.get(layer.index)
        instructions = result.layer_instructions
        rows.append(
            {
                "index": layer.index,
                "op": layer.op,
                "name": layer.name,
                "group": energy.group if energy else None,
                "macs": layer.macs,
                "bytes": layer.bytes,
                "cycles": round(float(cycles[layer.index])),
                "instructions": None if instructions is None else int(instructions[layer.index]),
                "duration_s": energy.duration_s if energy else float(durations_s[layer.index]),
                "energy_j": (energy.energy_j if energy else missing).to_json(),
                "share": energy.share if energy else None,
                "resolution": str(energy.resolution) if energy else None,
            }
        )
    return rows


def _groups(account: EnergyAccount | None) -> list[object]:
    return [plain(group) for group in account.groups] if account else []


def _gap(facts: ProfileFacts) -> dict[str, object]:
    if facts.account:
        gap = facts.account.gap
        return {"duration_s": gap.duration_s, "energy_j": gap.energy_j.to_json()}
    missing = Unavailable(reason=facts.reason or NO_POWER)
    result = facts.profile.result
    between_s = max(0.0, result.clean_latency_s - float(np.sum(result.layer_duration_s)))
    return {"duration_s": between_s, "energy_j": missing.to_json()}


def _capture(capture: PowerCapture) -> dict[str, object]:
    return {
        "index": capture.index,
        "observation": _observation(capture.observation),
        "terminal": _terminal(capture.terminal),
    }


def _observation(observation: PowerObservation) -> dict[str, object]:
    result = observation.result
    measured: dict[str, object] | None = None
    if result is not None:
        measured = {
            "instrument": result.recording.instrument.name,
            "energy_j": result.energy_j,
            "duration_s": result.duration_s,
            "idle_power_w": result.idle_power_w,
            "peak_power_w": result.peak_power_w,
            "lost_share": result.lost_share,
            "provenance": str(result.provenance),
            "gate": _window(result.gate),
            "idle": _window(result.idle),
        }
    return {
        "mode": str(observation.mode),
        "integrity": str(observation.integrity),
        "gate_rise_observed": observation.gate_rise_observed,
        "gate_fall_observed": observation.gate_fall_observed,
        "deadline_s": observation.deadline_s,
        "result": measured,
        "findings": [finding.to_json() for finding in observation.findings],
    }


def _window(window: GateWindow | None) -> object:
    return None if window is None else {"rise_ns": window.rise_ns, "fall_ns": window.fall_ns}


def _terminal(envelope: PowerTerminalEnvelope | None) -> object:
    if envelope is None:
        return None
    return {
        "record": plain(envelope.record),
        "output_crc32": _hex(envelope.output_crc32),
        "on_device_summary": plain(envelope.on_device_summary),
    }


def _deployments(facts: ProfileFacts) -> tuple[DeploymentRecord, ...]:
    return (facts.profile.deployment, *((facts.power.deployment,) if facts.power else ()))


def _deployment(deployment: DeploymentRecord) -> dict[str, object]:
    return {
        "role": str(deployment.firmware.role),
        "elf_sha256": deployment.firmware.sha256,
        "target_id": deployment.target_id,
        "deployed_at": deployment.deployed_at,
    }


def describe_checkpoint(update: ProgressUpdate) -> dict[str, object]:
    """Returns a checkpoint as JSON."""
    return {
        "phase": str(update.phase),
        "name": update.name,
        "message": update.message,
        "details": plain(update.details),
    }


def _memory(facts: ProfileFacts) -> dict[str, object]:
    images: list[FirmwareArtifact] = [facts.profile.firmware, *([facts.power.firmware] if facts.power else [])]
    clean = images[-1]  # the power image where there is one: it carries no instrumentation
    return {
        "flash_b": clean.flash_b,
        "ram_b": clean.ram_b,
        "arena_b": facts.model.arena_b,
        "constants_b": facts.model.constants_b,
        "regions": [
            {"name": use.region.name, "size_b": use.region.size_b, "planned_b": use.need_b} for use in facts.memory.uses
        ],
        "images": {str(image.role): {"flash_b": image.flash_b, "ram_b": image.ram_b} for image in images},
    }


def _output_crc(facts: ProfileFacts, shown: PowerCapture | None) -> dict[str, object]:
    seen = shown.terminal.output_crc32 if shown and shown.terminal else None
    document: dict[str, object] = {
        "profile_image": _hex(facts.profile.result.output_crc32),
        "power_image": _hex(seen),
    }
    if facts.oracle_crc32 is not None:
        document["oracle"] = _hex(facts.oracle_crc32)
        document["oracle_name"] = facts.oracle
    return document


def _hex(crc32: int | None) -> str | None:
    return None if crc32 is None else f"{crc32:08x}"
