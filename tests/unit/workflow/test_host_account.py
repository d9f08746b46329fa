"""What a host says of recordings with holes, silent meters and single blocks, on the simulated machine."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from host_coverage import run_host
from joulemap.analysis.intervals.uncertainty import limit_std
from joulemap.estimate import Boundary, Estimate, Provenance, Unavailable
from joulemap.records.finding import Validity
from joulemap.records.host.campaign import InPlaceError, LoadKind
from joulemap.records.host.model import HostModel
from joulemap.records.host.request import SessionRequest
from joulemap.records.recording import Recording
from joulemap.trace import Channel, EnergyTrace, KernelKind, SensorKernel
from joulemap.workflow.host.account_stage import attribute_energy
from joulemap.workflow.host.audit import audit_execution
from joulemap.workflow.host.context import Accounted, Recorded
from joulemap.workflow.host.domains import sum_domains
from joulemap.workflow.host.meter_access import declared_limits


@pytest.fixture(scope="module")
def sound() -> Accounted:
    return run_host(3)[0]


def again(done: Accounted, trace: EnergyTrace) -> Accounted:
    fields = {name: getattr(done, name) for name in Recorded.__dataclass_fields__}
    return attribute_energy(Recorded(**(fields | {"trace": trace, "findings": ()})))


def with_gaps(done: Accounted, blocks: range) -> EnergyTrace:
    """The trace without what was read in the middle of a window of each of these blocks."""
    gaps = []
    assert done.trace.edges_ns is not None
    for block in blocks:
        window = next(w for w in done.windows if w.block == block and w.load.kind is LoadKind.BASE)
        first, last = np.searchsorted(done.trace.edges_ns, [window.start_ns, window.end_ns])
        gaps.append([first + (last - first) // 4, last - (last - first) // 4])
    return replace(done.trace, gaps=np.array(sorted(gaps)))


def test_a_block_that_was_not_seen_is_left_out_and_the_headline_stands(sound: Accounted) -> None:
    done = again(sound, with_gaps(sound, range(1)))
    assert done.validity is Validity.VALID
    assert {f.slug for f in done.findings} >= {"captures_dropped"}
    assert done.account is not None
    assert sound.account is not None
    before, after = (a.account.account.energy_per_inference_j for a in (sound, done) if a.account)
    assert isinstance(before, Estimate)
    assert isinstance(after, Estimate)
    assert after.value == pytest.approx(before.value, rel=0.01)
    assert after.expanded > 0
    assert len({e.window.block for e in done.energies if e.window.load.kind is LoadKind.BASE}) == 4


def test_fewer_than_half_of_the_blocks_give_no_headline(sound: Accounted) -> None:
    done = again(sound, with_gaps(sound, range(3)))
    assert (done.account, done.reason, done.validity) == (None, "captures_dropped", Validity.DEGRADED)


def test_a_meter_that_stands_still_gives_no_headline(sound: Accounted) -> None:
    done = again(sound, replace(sound.trace, power_w=np.zeros(sound.trace.n)))
    assert (done.account, done.reason) == (None, "gate_unresolved")


def test_an_idle_machine_that_warms_up_is_told(sound: Accounted) -> None:
    assert sound.trace.edges_ns is not None
    rising = np.linspace(0.0, 8.0, sound.trace.n)
    done = again(sound, replace(sound.trace, power_w=sound.trace.power_w + rising))
    assert "idle_drifted" in {f.slug for f in done.findings}
    assert done.account is not None
    assert sound.account is not None
    wider, narrow = (a.account.account.energy_above_idle_per_inference_j for a in (done, sound) if a.account)
    assert isinstance(wider, Estimate)
    assert isinstance(narrow, Estimate)
    assert wider.expanded > 2 * narrow.expanded


def test_parts_gap_and_modelled_rows_say_what_they_are(sound: Accounted) -> None:
    assert sound.account is not None
    account = sound.account.account
    assert {str(row.resolution) for row in account.layers} == {"in_place"}
    assert all(isinstance(row.energy_j, Estimate | Unavailable) for row in account.layers)
    assert all(isinstance(m, Estimate) and m.provenance is Provenance.MODELLED for m in sound.account.modelled_j)
    assert isinstance(account.energy_per_inference_j, Estimate)
    total_j = account.energy_per_inference_j.value
    split_j = sum(m.value for m in sound.account.modelled_j if isinstance(m, Estimate))
    assert isinstance(account.gap.energy_j, Estimate)
    assert split_j + account.gap.energy_j.value == pytest.approx(total_j, rel=1e-9)
    assert sound.account.reconciliation.time_closure == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("with_gap", [True, False])
def test_an_operator_that_nothing_repeats_is_no_doubt_of_the_others(sound: Accounted, with_gap: bool) -> None:
    """What parts and gap leave is its energy, and not what they miss."""
    lone = next(load for load in sound.loads if len(load.operators) == 1)
    kept = tuple(w for w in sound.windows if w.load != lone and (with_gap or w.load.kind is not LoadKind.BARE))
    fields = {name: getattr(sound, name) for name in Recorded.__dataclass_fields__}
    done = attribute_energy(Recorded(**(fields | {"windows": kept, "findings": ()})))
    assert done.account is not None
    assert sound.account is not None
    assert done.account.closure is None
    assert done.account.reconciliation.time_closure is None
    assert not {"closure_failed"} & {f.slug for f in done.findings}
    (index,) = lone.operators
    rows, before = done.account.account.layers, sound.account.account.layers
    assert str(rows[index].resolution) == "time_share"
    for row, old in zip(rows, before, strict=True):
        if row.index != index and isinstance(row.energy_j, Estimate) and isinstance(old.energy_j, Estimate):
            assert row.energy_j.value == pytest.approx(old.energy_j.value, rel=1e-9)
            assert row.energy_j.expanded < 1.5 * old.energy_j.expanded
    gap, true_gap = done.account.account.gap.energy_j, sound.account.account.gap.energy_j
    assert isinstance(gap, Estimate)
    assert isinstance(true_gap, Estimate)
    assert gap.value < true_gap.value + rows[index].duration_s * 25.0 / 10


def test_what_a_copy_may_cost_more_is_in_the_intervals_of_what_was_repeated(sound: Accounted) -> None:
    """Relative, and so many seconds for each copied operator, at the power of the model."""
    error = InPlaceError(relative=0.04, absolute_s=2e-5)
    runtime = SimpleNamespace(traits=replace(sound.runtime.traits, in_place_error=error))
    fields = {name: getattr(sound, name) for name in Recorded.__dataclass_fields__}
    done = attribute_energy(Recorded(**(fields | {"runtime": runtime, "findings": ()})))
    assert done.account is not None
    assert sound.account is not None
    account, exact = done.account.account, sound.account.account
    power_w = account.average_power_w
    assert isinstance(power_w, Estimate)
    told = 0
    for row, old in zip(account.layers, exact.layers, strict=True):
        if isinstance(row.energy_j, Estimate) and isinstance(old.energy_j, Estimate):
            half_j = 0.04 * row.energy_j.value + 2e-5 * power_w.value
            assert row.energy_j.value == old.energy_j.value
            assert row.energy_j.std**2 - old.energy_j.std**2 == pytest.approx(limit_std(half_j) ** 2, rel=1e-6)
            told += 1
    assert told > 3
    assert account.energy_per_inference_j == exact.energy_per_inference_j
    assert account.gap.energy_j == exact.gap.energy_j
    closure, before = done.account.closure, sound.account.closure
    assert closure is not None
    assert before is not None
    assert closure.difference_j.value == before.difference_j.value
    assert isinstance(exact.gap.energy_j, Estimate)
    parts_j = closure.difference_j.value + closure.window_j - exact.gap.energy_j.value
    half_j = 0.04 * parts_j + 2e-5 * len(account.layers) * power_w.value
    more = closure.difference_j.std**2 - before.difference_j.std**2
    assert more == pytest.approx(limit_std(half_j) ** 2, rel=1e-6)


def trace(name: str, boundary: Boundary, power_w: float, *, start_ns: int = 0, n: int = 100) -> EnergyTrace:
    kernel = SensorKernel(kind=KernelKind.COUNTER, window_s=0.01)
    channel = Channel(name=name, boundary=boundary, provenance=Provenance.MEASURED_COUNTER, kernel=kernel)
    from joulemap.trace import Clock, ClockKind

    return EnergyTrace(clock=Clock(name="m", kind=ClockKind.MONOTONIC), channel=channel,
                       power_w=np.full(n, power_w), start_ns=start_ns, period_s=0.01)  # fmt: skip


def test_disjoint_domains_of_one_boundary_are_summed_and_no_other() -> None:
    recording = Recording(
        format="x",
        sources=(),
        traces=(
            trace("p0", Boundary.PACKAGE, 10.0),
            trace("p1", Boundary.PACKAGE, 5.0, start_ns=250_000_000),
            trace("core", Boundary.RAIL, 3.0),
            trace("dimm", Boundary.RAIL, 2.0),
        ),
        overlaps=(("core", "p0"),),
    )
    summed, names, findings = sum_domains(recording)
    assert names == ("p0", "p1")
    assert [f.slug for f in findings] == ["domains_chosen"]
    assert summed.power_w.tolist() == pytest.approx([15.0] * summed.n)
    assert summed.start_ns == 250_000_000


def test_gains_that_nobody_declares_are_assumed_and_said(sound: Accounted) -> None:
    limits, findings = declared_limits(sound.access, ("nobody knows it",))
    assert [f.slug for f in findings] == ["gain_assumed"]
    assert limits.rectangular
    assert limits.gain_std == pytest.approx(0.05 / 3**0.5)
    assert declared_limits(sound.access, ("package-0",))[1] == ()


def test_an_audit_tells_what_fell_back() -> None:
    done, _ = run_host(4)
    model: HostModel = done.session.model
    changed: Any = replace(
        model,
        operators=tuple(
            replace(o, provider="CUDAExecutionProvider" if o.index else "CPUExecutionProvider",
                    dtype="fp16" if o.index else "fp32") for o in model.operators
        ),
    )  # fmt: skip
    shares = np.full(len(model.operators), 1.0 / len(model.operators))
    request = SessionRequest(model=done.request.session.model, provider="cuda", precision="fp16")
    audit = audit_execution(request, changed, shares)
    assert audit.fallback_nodes == 1
    assert audit.fallback_mac_share == pytest.approx(model.operators[0].macs / model.macs)
    assert audit.precision_share == pytest.approx(1 - model.operators[0].macs / model.macs)
    assert [p.provider for p in audit.providers] == ["CUDAExecutionProvider", "CPUExecutionProvider"]
    plain = audit_execution(SessionRequest(model=request.model), changed, np.full(shares.size, np.nan))
    assert (plain.fallback_nodes, plain.precision_share) == (None, None)
    assert plain.providers[0].time_share is None
