"""The result document of a run on this machine: the profile of the contract, with what only a host has beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from joulemap import __version__
from joulemap.analysis.host.window_energy import WindowEnergy
from joulemap.estimate import Estimate, Quantity, Unavailable
from joulemap.records.energy import EnergyAccount
from joulemap.records.finding import Validity
from joulemap.records.host.campaign import LoadKind
from joulemap.records.host.model import HostModel, HostTensor
from joulemap.records.progress import ProgressUpdate
from joulemap.workflow.host.context import Accounted
from joulemap.workflow.plain import plain
from joulemap.workflow.result import SCHEMA, SCHEMA_VERSION, describe_checkpoint, describe_headlines

__all__ = ["build_host_result", "shown_windows"]

_TARGET = "host"


def build_host_result(
    done: Accounted, *, run_id: str, checkpoints: Sequence[ProgressUpdate], bundle: str
) -> dict[str, object]:
    """Returns the document; what does not exist on a host (flash, deployments, a terminal record) is null or empty."""
    account = done.account.account if done.account else None
    model = done.session.model
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "joulemap", "version": __version__},
        "run_id": run_id,
        "validity": str(done.validity),
        "findings": [finding.to_json() for finding in dict.fromkeys(done.findings)],
        "model": _model(model),
        "target": {
            "name": _TARGET,
            "core": done.runtime.traits.name,
            "boundary": str(done.boundary),
            "provenance": str(done.trace.channel.provenance),
        },
        **_headlines(done, account, model),
        "layers": _layers(done, account, model),
        "groups": [plain(group) for group in account.groups] if account else [],
        "gap": _gap(done, account),
        "budget": [plain(line) for line in account.budget] if account else [],
        "plan": _plan(done),
        "captures": [_capture(done, energy) for energy in shown_windows(done)],
        "observation": None,
        "terminal": None,
        "deployments": [],
        "checkpoints": [describe_checkpoint(update) for update in checkpoints],
        "memory": {"flash_b": None, "ram_b": None, "arena_b": None, "constants_b": model.constants_b, "regions": []},
        "operating_point": {"core_hz": None, "supply_v": None},
        "output_crc": {"profile_image": None, "power_image": None},
        "counter_source": str(done.times.source),
        "time_provenance": str(done.time_provenance),
        "host": _host(done),
        "bundle": bundle,
    }


def shown_windows(done: Accounted) -> list[WindowEnergy]:
    """Returns the windows of the model as it is, in order of time: the captures of a host."""
    return [energy for energy in done.energies if energy.window.load.kind is LoadKind.BASE]


def _model(model: HostModel) -> dict[str, object]:
    return {
        "name": model.name,
        "sha256": model.sha256,
        "size_b": model.size_b,
        "engine": model.runtime,
        "inputs": [_described(tensor) for tensor in model.inputs],
        "outputs": [_described(tensor) for tensor in model.outputs],
    }


def _described(tensor: HostTensor) -> object:
    return plain(tensor)


def _headlines(done: Accounted, account: EnergyAccount | None, model: HostModel) -> dict[str, object]:
    missing = Unavailable(reason=done.reason)
    latency: Quantity = Estimate(value=done.latency_s, std=0.0, provenance=done.time_provenance)
    document = describe_headlines(
        account,
        missing=missing,
        latency=account.latency_s if account else latency,
        ops=2 * model.macs,
        cycles=None,
    )
    tokens = done.request.tokens
    if tokens is not None:
        energy: Quantity = account.energy_per_inference_j if account else missing
        per_token = energy.scaled(1.0 / tokens) if isinstance(energy, Estimate) else energy
        document |= {"energy_per_token_j": per_token.to_json(), "tokens_per_inference": tokens}
    return document


def _layers(done: Accounted, account: EnergyAccount | None, model: HostModel) -> list[dict[str, object]]:
    missing = Unavailable(reason=done.reason)
    energies = {e.index: e for e in account.layers} if account else {}
    modelled: Sequence[Quantity] = done.account.modelled_j if done.account else ()
    shares = done.shares
    rows: list[dict[str, object]] = []
    for operator in model.operators:
        energy = energies.get(operator.index)
        share = float(shares[operator.index]) if operator.index < shares.size else float("nan")
        rows.append(
            {
                "index": operator.index,
                "op": operator.op,
                "name": operator.name,
                "group": energy.group if energy else None,
                "macs": operator.macs,
                "bytes": operator.bytes,
                "cycles": None,
                "instructions": None,
                "duration_s": energy.duration_s if energy else 0.0,
                "energy_j": (energy.energy_j if energy else missing).to_json(),
                "share": energy.share if energy else None,
                "resolution": str(energy.resolution) if energy else None,
                "modelled_j": (modelled[operator.index] if modelled else missing).to_json(),
                "time_share": share if share == share else None,  # noqa: PLR0124  NaN is unlike itself
                "provider": operator.provider or None,
                "dtype": operator.dtype or None,
            }
        )
    return rows


def _gap(done: Accounted, account: EnergyAccount | None) -> dict[str, object]:
    if account is None:
        return {"duration_s": 0.0, "energy_j": Unavailable(reason=done.reason).to_json()}
    return {"duration_s": account.gap.duration_s, "energy_j": account.gap.energy_j.to_json()}


def _plan(done: Accounted) -> dict[str, object]:
    shown = shown_windows(done)
    return {
        "requested_count": shown[0].window.count if shown else 0,
        "repeats": done.request.repeats,
        "window_s": done.plan.window_s,
        "idle_window_s": done.plan.idle_s,
        "reason": done.plan.reason,
        "updates_per_window": done.plan.updates,
        "loads": [
            {"kind": str(load.kind), "operators": list(load.operators), "copies": load.copies} for load in done.loads
        ],
    }


def _capture(done: Accounted, energy: WindowEnergy) -> dict[str, object]:
    window = energy.window
    idle = [e.power_w for e in done.energies if e.window.load.kind is LoadKind.IDLE and e.window.block == window.block]
    return {
        "index": window.block + 1,
        "observation": {
            "mode": "clock_gated",
            "integrity": str(Validity.VALID),
            "gate_rise_observed": True,
            "gate_fall_observed": True,
            "deadline_s": None,
            "result": {
                "instrument": done.access.name,
                "energy_j": energy.power_w * window.duration_s,
                "duration_s": window.duration_s,
                "idle_power_w": idle[0] if idle else None,
                "peak_power_w": energy.peak_w,
                "lost_share": energy.lost_share,
                "provenance": str(done.trace.channel.provenance),
                "gate": {"rise_ns": window.start_ns, "fall_ns": window.end_ns},
                "idle": None,
            },
            "findings": [],
        },
        "terminal": None,
        "count": window.count,
    }


def _host(done: Accounted) -> Mapping[str, object]:
    account = done.account
    return {
        "runtime": {
            "name": done.runtime.traits.name,
            "version": done.runtime.version(),
            "simulated": done.runtime.traits.simulated,
        },
        "meter": {
            "name": done.access.name,
            "domains": [
                {
                    "name": name,
                    "update_period_s": domain.update_period_s,
                    "window_s": domain.window_s,
                    "latency_s": domain.latency_s,
                    "gain_std": domain.gain_std,
                    "source": domain.source or None,
                    "in_headline": name in done.domains,
                }
                for name, domain in done.access.domains.items()
            ],
        },
        "warm_up": {"cut": done.warm_up.cut, "steady": done.warm_up.steady, "drift": plain(done.warm_up.drift)},
        "latency_quantiles": [plain(quantile) for quantile in account.quantiles] if account else [],
        "closure": plain(account.closure) if account else None,
        "reconciliation": plain(account.reconciliation) if account else None,
        "audit": plain(done.audit),
        "threads": done.request.session.threads,
        "batch": done.request.session.batch,
    }
