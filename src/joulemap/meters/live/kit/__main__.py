"""Drives a fake tree until it is stopped: ``python -m joulemap.meters.live.kit FOLDER --mean-w 65 --seconds 60``.

Writes one JSON line when the first values stand (start, domains), and one at its end (the true energy of each domain).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from joulemap.meters.live.ground.waves import PowerWave, WaveShape
from joulemap.meters.live.kit.faults import KitFault
from joulemap.meters.live.kit.layout import TreePlan, build_nodes

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Runs the program; returns its exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        plan = _plan(given)
    except ValueError as error:
        parser.error(str(error))
    return _drive(Path(given.folder), plan, given.seconds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m joulemap.meters.live.kit", description=__doc__)
    parser.add_argument("folder", help="stands for /sys: the tree grows in FOLDER/class")
    parser.add_argument("--seconds", type=float, default=0.0, help="0: until SIGTERM or the end of the parent")
    parser.add_argument("--mean-w", type=float, default=65.0)
    parser.add_argument("--swing-w", type=float, default=0.0)
    parser.add_argument("--period-s", type=float, default=1.0)
    parser.add_argument("--shape", choices=list(WaveShape), default=WaveShape.CONSTANT)
    parser.add_argument("--rate-hz", type=float, default=1000.0)
    parser.add_argument("--sockets", type=int, default=1)
    parser.add_argument("--psys", action="store_true")
    parser.add_argument("--range-uj", type=int, default=262_143_328_850)
    parser.add_argument("--begin-uj", type=int, default=1_000_000)
    parser.add_argument("--fault", action="append", default=[], help="KIND@SECONDS[+SECONDS][:DOMAIN], repeatable")
    return parser


def _plan(given: argparse.Namespace) -> TreePlan:
    wave = PowerWave(mean_w=given.mean_w, swing_w=given.swing_w, period_s=given.period_s, shape=WaveShape(given.shape))
    return TreePlan(
        wave=wave,
        rate_hz=given.rate_hz,
        sockets=given.sockets,
        psys=given.psys,
        range_uj=given.range_uj,
        begin_uj=given.begin_uj,
        faults=tuple(KitFault.parse(text) for text in given.fault),
    )


def _drive(root: Path, plan: TreePlan, seconds: float) -> int:
    stopped = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    parent = os.getppid()
    begin_ns = time.monotonic_ns()
    nodes = build_nodes(root, plan, begin_ns)
    period_ns = round(1e9 / plan.rate_hz)
    now_ns, step = begin_ns, 0
    while True:
        elapsed_s = (now_ns - begin_ns) * 1e-9
        for node in nodes:
            node.write(now_ns, elapsed_s, plan.faults)
        if step == 0:
            _tell({"start_ns": begin_ns, "domains": plan.shares})
        step = max(step + 1, (now_ns - begin_ns) // period_ns + 1)  # a late turn is left out, never caught up
        if stopped or os.getppid() != parent or (seconds and elapsed_s >= seconds):
            break
        time.sleep(max(0, begin_ns + step * period_ns - time.monotonic_ns()) * 1e-9)
        now_ns = time.monotonic_ns()
    for node in nodes:
        node.close()
    _tell({"end_ns": now_ns, "energy_j": {name: plan.energy_j(name, begin_ns, now_ns) for name in plan.shares}})
    return 0


def _tell(document: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
