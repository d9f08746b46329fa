"""Whether the machine is hot, and whether heat has slowed it down since it was started."""

from __future__ import annotations

from joulemap.records.host.machine import FactState, MachineFact
from joulemap.workflow.machine.tree import MachineTree, unknown

__all__ = ["probe_heat"]

_ZONES = "sys/class/thermal"
_NEAR_DEGC = 10.0
_LIMITING = frozenset({"passive", "hot", "critical"})


def probe_heat(tree: MachineTree) -> tuple[MachineFact, ...]:
    """Returns the thermal state and how often the processor throttled.

    References:
        Linux Documentation/driver-api/thermal/sysfs-api.rst; Intel SDM 3B, 15.8 (thermal status), as
        ``thermal_throttle`` shows it.
    """
    return (_zones(tree), _throttling(tree))


def _zones(tree: MachineTree) -> MachineFact:
    hottest: tuple[float, float | None] | None = None
    for zone in tree.glob(f"{_ZONES}/thermal_zone*"):
        milli = tree.number(f"{zone}/temp")
        if milli is None or not -60_000 < milli < 200_000:
            continue
        room = _room_degc(tree, zone, milli / 1000.0)
        if hottest is None or _key(room, milli / 1000.0) > _key(hottest[1], hottest[0]):
            hottest = (milli / 1000.0, room)
    if hottest is None:
        return unknown("thermal_state", "no thermal zone can be read")
    degc, room = hottest
    value = f"{degc:.0f} degC"
    if room is None:
        detail = "the hottest zone; its limits are not told"
        return MachineFact(key="thermal_state", value=value, state=FactState.OK, detail=detail)
    if room < _NEAR_DEGC:
        return MachineFact(
            key="thermal_state",
            value=value,
            state=FactState.DOUBTFUL if room > 0 else FactState.BAD,
            detail=f"{room:.0f} degC below the limit at which it slows down",
            fix="let it cool down, and see that air gets through",
        )
    detail = f"{room:.0f} degC below the limit at which it slows down"
    return MachineFact(key="thermal_state", value=value, state=FactState.OK, detail=detail)


def _key(room: float | None, degc: float) -> tuple[bool, float]:
    """Returns what ranks zones: those with a limit first, the least room first."""
    return (room is not None, -room if room is not None else degc)


def _room_degc(tree: MachineTree, zone: str, degc: float) -> float | None:
    limits = []
    for path in tree.glob(f"{zone}/trip_point_*_type"):
        milli = tree.number(path.replace("_type", "_temp"))
        if tree.read(path) in _LIMITING and milli is not None and milli > 0:
            limits.append(milli / 1000.0)
    return min(limits) - degc if limits else None


def _throttling(tree: MachineTree) -> MachineFact:
    paths = tree.glob("sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count")
    counts = [count for path in paths if (count := tree.number(path)) is not None]
    if not counts:
        return unknown("throttle_count", "the processor does not count how often heat slowed it down")
    total = max(counts)
    if total == 0:
        detail = "heat has not slowed the processor down since it was started"
        return MachineFact(key="throttle_count", value=0, state=FactState.OK, detail=detail)
    return MachineFact(
        key="throttle_count",
        value=total,
        state=FactState.DOUBTFUL,
        detail=f"heat has slowed a core down {total} times since the machine was started",
        fix="let it cool down; watch the count while a run lasts",
    )
