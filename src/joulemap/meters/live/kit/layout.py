"""What stands in a fake tree: powercap zones, two hwmon chips and a battery, each fed a share of one power function."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from joulemap.meters.live.ground.made_up import mark_made_up
from joulemap.meters.live.ground.waves import PowerWave
from joulemap.meters.live.kit.faults import KitFault
from joulemap.meters.live.kit.node import CounterRule, Node, Rule, power_rule

__all__ = ["TreePlan", "build_nodes"]

_SHARES = {"core": 0.6, "uncore": 0.05, "dram": 0.2}
_PSYS_SHARE = 1.6
_BATTERY_SHARE = 1.8
_RAIL_V = 5.0
_BATTERY_V = 11.4
_BATTERY_UWH = 48_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePlan:
    """A tree and the power function that drives it.

    Args:
        wave: power of one package, and of the hwmon chips; cores take 0.6, the uncore 0.05, memory 0.2 of it, psys 1.6
            for each package, the battery 1.8.
        rate_hz: how often every file is written over, > 0.
        sockets: number of packages, >= 1.
        psys: a platform domain stands beside the packages.
        range_uj: highest value of a powercap counter, microjoules.
        begin_uj: what every counter holds at the start, microjoules.
        faults: what goes wrong.
    """

    wave: PowerWave = field(default_factory=lambda: PowerWave(mean_w=65.0))
    rate_hz: float = 1000.0
    sockets: int = 1
    psys: bool = False
    range_uj: int = 262_143_328_850
    begin_uj: int = 1_000_000
    faults: tuple[KitFault, ...] = ()

    def __post_init__(self) -> None:
        if not (self.rate_hz > 0 and self.sockets >= 1 and self.range_uj > 0 and self.begin_uj >= 0):
            raise ValueError("a tree needs rate_hz > 0, sockets >= 1, range_uj > 0 and begin_uj >= 0")

    @property
    def shares(self) -> dict[str, float]:
        """Factor of the wave by the domain's name."""
        shares = {}
        for socket in range(self.sockets):
            shares[f"package-{socket}"] = 1.0
            shares |= {f"package-{socket}/{name}": share for name, share in _SHARES.items()}
        if self.psys:
            shares["psys"] = _PSYS_SHARE * self.sockets
        return {**shares, "VDD_IN": 1.0, "energy1": 1.0, "BAT0": _BATTERY_SHARE}

    def energy_j(self, domain: str, start_ns: int, end_ns: int) -> float:
        """Returns the energy that a domain really took between two instants of the monotonic clock, J.

        Raises:
            KeyError: the tree has no such domain.
        """
        return self.wave.scaled(self.shares[domain]).energy_j(start_ns, end_ns)


def build_nodes(root: Path, plan: TreePlan, begin_ns: int) -> list[Node]:
    """Writes every file that stays as it is, and returns those that change.

    Args:
        root: stands for ``/sys``: the tree grows in ``root/class``.
        plan: what to build.
        begin_ns: instant at which the counters hold their first value.

    Raises:
        OSError: the folder cannot be written.
    """
    nodes: list[Node] = []
    mark_made_up(root)
    zones = root / "class" / "powercap" / "intel-rapl"
    zones.mkdir(parents=True, exist_ok=True)
    _put(zones, enabled="1")
    _link(zones / "subsystem", zones.parent)
    for number, top in enumerate([f"package-{socket}" for socket in range(plan.sockets)] + ["psys"] * plan.psys):
        folder = zones / f"intel-rapl:{number}"
        nodes.append(_build_zone(root, folder, top, plan=plan, begin_ns=begin_ns))
        for child, name in enumerate(_SHARES if top != "psys" else ()):
            nodes.append(
                _build_zone(root, folder / f"{folder.name}:{child}", f"{top}/{name}", plan=plan, begin_ns=begin_ns)
            )
    return [*nodes, *_build_chips(root, plan, begin_ns), *_build_battery(root, plan, begin_ns)]


def _build_zone(root: Path, folder: Path, domain: str, *, plan: TreePlan, begin_ns: int) -> Node:
    folder.mkdir(exist_ok=True)
    _put(folder, name=domain.rpartition("/")[2], enabled="1", max_energy_range_uj=str(plan.range_uj))
    _link(root / "class" / "powercap" / folder.name, folder)
    _link(folder / "subsystem", root / "class" / "powercap")
    wave = plan.wave.scaled(plan.shares[domain])
    limit_uw = str(round((wave.mean_w + wave.swing_w) * 1e6))
    _put(
        folder, constraint_0_name="long_term", constraint_0_max_power_uw=limit_uw, constraint_0_power_limit_uw=limit_uw
    )
    rule = CounterRule(wave=wave, range_uj=plan.range_uj, begin_ns=begin_ns, begin_uj=plan.begin_uj)
    return Node(folder / "energy_uj", domain, rule)


def _build_chips(root: Path, plan: TreePlan, begin_ns: int) -> list[Node]:
    rail, meter = (root / "class" / "hwmon" / f"hwmon{number}" for number in (0, 1))
    for folder in (rail, meter):
        folder.mkdir(parents=True, exist_ok=True)
    _put(rail, name="ina226", in1_label="VDD_IN", in1_input=f"{_RAIL_V * 1e3:.0f}", power1_label="VDD_IN")
    _put(meter, name="fake_energy", energy1_label="energy1")
    rules: dict[Path, tuple[str, Rule]] = {
        rail / "curr1_input": ("VDD_IN", power_rule(plan.wave, 1e3 / _RAIL_V)),
        rail / "power1_input": ("VDD_IN", power_rule(plan.wave, 1e6)),
        meter / "energy1_input": (
            "energy1",
            CounterRule(wave=plan.wave, range_uj=None, begin_ns=begin_ns, begin_uj=plan.begin_uj),
        ),
    }
    return [Node(path, domain, rule) for path, (domain, rule) in rules.items()]


def _build_battery(root: Path, plan: TreePlan, begin_ns: int) -> list[Node]:
    folder = root / "class" / "power_supply" / "BAT0"
    folder.mkdir(parents=True, exist_ok=True)
    facts = {"type": "Battery", "present": "1", "status": "Discharging", "scope": "System"}
    _put(folder, **facts, voltage_now=f"{_BATTERY_V * 1e6:.0f}", energy_full=str(_BATTERY_UWH))
    wave = plan.wave.scaled(_BATTERY_SHARE)

    def energy_uwh(now_ns: int) -> int:
        return max(0, round(_BATTERY_UWH - wave.energy_j(begin_ns, now_ns) / 3600.0 * 1e6))

    rules: dict[str, Rule] = {
        "current_now": power_rule(wave, 1e6 / _BATTERY_V),
        "power_now": power_rule(wave, 1e6),
        "energy_now": energy_uwh,
    }
    return [Node(folder / name, "BAT0", rule) for name, rule in rules.items()]


def _link(link: Path, target: Path) -> None:
    if not link.is_symlink():
        link.symlink_to(os.path.relpath(target, link.parent))


def _put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name).write_text(text + "\n", "ascii")
