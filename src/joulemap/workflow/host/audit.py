"""Where and in what precision the operators really ran, against what was asked."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from joulemap.records.host.model import ExecutionAudit, HostModel, HostOperator, ProviderShare
from joulemap.records.host.request import SessionRequest

__all__ = ["audit_execution"]


def audit_execution(request: SessionRequest, model: HostModel, shares: NDArray[np.float64]) -> ExecutionAudit:
    """Returns nodes, multiply-accumulates and time by provider, and what fell back.

    Args:
        request: what was asked.
        model: what ran.
        shares: (operators,) of the time; NaN where not known.
    """
    named: dict[str, list[HostOperator]] = {}
    for operator in model.operators:
        named.setdefault(operator.provider, []).append(operator)
    known = bool(np.isfinite(shares).any()) and shares.size == len(model.operators)
    providers = tuple(
        ProviderShare(
            provider=provider or "unknown",
            nodes=len(members),
            macs=sum(o.macs for o in members),
            time_share=float(np.nansum(shares[[o.index for o in members]])) if known else None,
            dtypes=dict(Counter(o.dtype or "unknown" for o in members)),
        )
        for provider, members in named.items()
    )
    wanted = request.provider.lower()
    away = [o for o in model.operators if wanted and wanted not in o.provider.lower()]
    total = model.macs
    eligible = [o for o in model.operators if o.macs]
    kept = sum(o.macs for o in eligible if o.dtype == request.precision)
    return ExecutionAudit(
        requested_provider=request.provider,
        requested_precision=request.precision,
        providers=tuple(sorted(providers, key=lambda p: (-(p.time_share or 0.0), -p.macs, -p.nodes))),
        fallback_nodes=len(away) if wanted else None,
        fallback_mac_share=sum(o.macs for o in away) / total if wanted and total else None,
        precision_share=kept / total if request.precision and total else None,
        note="" if all(named) else "the runtime does not say where every operator ran",
    )
