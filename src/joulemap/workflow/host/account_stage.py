"""The stage ``attribute_energy`` of a run on this machine: windows to energies, whole blocks to an account."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from joulemap.analysis.host.account import Measured, account_host
from joulemap.analysis.host.window_energy import WindowEnergy, measure_window
from joulemap.estimate import Provenance
from joulemap.records.finding import Finding, Severity, Validity
from joulemap.records.host.account import HostAccount
from joulemap.records.host.campaign import LoadKind
from joulemap.records.host.model import ExecutionAudit
from joulemap.trace import EnergyTrace
from joulemap.workflow.host.audit import audit_execution
from joulemap.workflow.host.context import Accounted, Recorded, grow, operator_shares
from joulemap.workflow.host.meter_access import declared_limits

__all__ = ["attribute_energy"]


def attribute_energy(context: Recorded) -> Accounted:
    """Returns the context with the account; without one when fewer than half of the blocks were seen whole."""
    measured = [measure_window(context.trace, window) for window in context.windows]
    energies, kept, doubts = _whole_blocks(context, measured)
    limits, assumed = declared_limits(context.access, context.domains)
    findings = [*doubts, *assumed]
    account: HostAccount | None = None
    reason = ""
    repeats = context.request.repeats
    audit = audit_execution(context.request.session, context.session.model, operator_shares(context.times))
    if kept < 2 or 2 * kept < repeats:
        reason = "captures_dropped"
        message = f"{kept} of {repeats} blocks of windows were seen whole, fewer than half: there is no headline"
        findings.append(Finding(slug=reason, severity=Severity.ERROR, message=message))
    elif any(e.power_w <= 0 for e in energies if e.window.load.kind is not LoadKind.IDLE):
        reason = "gate_unresolved"
        message = "a window of load shows no power at all: the meter stands still, or does not see this load"
        findings.append(Finding(slug=reason, severity=Severity.ERROR, message=message))
    else:
        account = account_host(
            Measured(
                windows=tuple(energies),
                times=context.times,
                limits=limits,
                in_place_error=context.runtime.traits.in_place_error,
                provenance=context.trace.channel.provenance,
                boundary=context.trace.channel.boundary,
                time_provenance=_time_provenance(context),
                ops_per_inference=2 * context.session.model.macs,
                sample_period_s=_sample_period_s(context.trace),
            )
        )
        findings += account.account.findings
    findings += _fallback(audit)
    return grow(
        context,
        Accounted,
        energies=tuple(energies),
        account=account,
        reason=reason,
        validity=Validity.VALID if account is not None else Validity.DEGRADED,
        audit=audit,
        findings=tuple(findings),
    )


def _time_provenance(context: Recorded) -> Provenance:
    return Provenance.SIMULATED if context.runtime.traits.simulated else Provenance.MEASURED_COUNTER


def _sample_period_s(trace: EnergyTrace) -> float:
    if trace.period_s is not None:
        return trace.period_s
    assert trace.edges_ns is not None  # exactly one of the two is given
    return float(np.median(np.diff(trace.edges_ns))) * 1e-9


def _whole_blocks(
    context: Recorded, measured: Sequence[WindowEnergy | None]
) -> tuple[list[WindowEnergy], int, tuple[Finding, ...]]:
    """Returns the windows of blocks in which every load was seen, how many blocks these are, and what was lost."""
    unseen = {
        window.block
        for window, energy in zip(context.windows, measured, strict=True)
        if energy is None and window.load.kind is not LoadKind.IDLE
    }
    energies = [
        energy
        for energy in measured
        if energy is not None and (energy.window.load.kind is LoadKind.IDLE or energy.window.block not in unseen)
    ]
    kept = context.request.repeats - len(unseen)
    if not unseen:
        return energies, kept, ()
    blocks = ", ".join(str(block + 1) for block in sorted(unseen))
    message = f"the meter did not see every window of {len(unseen)} blocks ({blocks}): left out"
    slug = "captures_dropped"
    severity = Severity.WARNING if 2 * kept >= context.request.repeats else Severity.ERROR
    return energies, kept, (Finding(slug=slug, severity=severity, message=message),)


def _fallback(audit: ExecutionAudit) -> list[Finding]:
    findings = []
    if audit.fallback_nodes:
        share = "" if audit.fallback_mac_share is None else f", {audit.fallback_mac_share:.1%} of the operations"
        message = f"{audit.fallback_nodes} operators did not run where asked{share}"
        findings.append(Finding(slug="provider_fallback", severity=Severity.WARNING, message=message))
    if audit.precision_share is not None and not math.isclose(audit.precision_share, 1.0):
        message = (
            f"{audit.precision_share:.1%} of the operations ran in {audit.requested_precision}, the rest did not:"
            " joulemap converts no model"
        )
        findings.append(Finding(slug="precision_fallback", severity=Severity.WARNING, message=message))
    return findings
