"""Writes a meter's table and a profiler's timeline of one simulated run, to try ``joulemap import`` and ``map`` on.

    python examples/make_recording.py DIRECTORY

``power.csv`` holds mean power at 1 kHz with its noise, each sample stamped at its end, ``profile.json`` the layers that
ran (Chrome's trace format). Their clocks differ by 0.2 s. Nothing was measured: powers and times are invented here.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

LAYERS = (("conv1", 0.060, 2.4), ("depthwise1", 0.025, 1.5), ("conv2", 0.080, 2.7), ("softmax", 0.004, 1.1))
"""Name, duration in s, power in W."""
IDLE_W = 0.8
INFERENCES = 40
REST_S = 0.050
RATE_HZ = 1000
METER_AHEAD_S = 0.2
"""How much later the profiler was started than the meter."""


def main() -> None:
    """Writes the three files into the folder that the command line names."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(0)  # noqa: S311  an example, no secret
    slices: list[tuple[str, float, float, float]] = []
    at_s = METER_AHEAD_S
    for _ in range(INFERENCES):
        at_s += REST_S * draw.uniform(0.5, 1.5)
        start_s = at_s
        for name, duration_s, power_w in LAYERS:
            slices.append((name, at_s, at_s + duration_s, power_w))
            at_s += duration_s
        slices.append(("inference", start_s, at_s, 0.0))
    _write_power(folder / "power.csv", slices, end_s=at_s + METER_AHEAD_S, draw=draw)
    _write_profile(folder / "profile.json", slices)
    print(f"{folder / 'power.csv'}, {folder / 'profile.json'}: {INFERENCES} inferences in {at_s:.1f} s")


def _write_power(
    path: Path, slices: list[tuple[str, float, float, float]], *, end_s: float, draw: random.Random
) -> None:
    count = round(end_s * RATE_HZ)
    energies_j = [IDLE_W / RATE_HZ] * count
    for _, start_s, stop_s, power_w in slices:
        if not power_w:
            continue
        for k in range(int(start_s * RATE_HZ), int(stop_s * RATE_HZ) + 1):
            inside_s = min(stop_s, (k + 1) / RATE_HZ) - max(start_s, k / RATE_HZ)
            energies_j[k] += (power_w - IDLE_W) * max(inside_s, 0.0)
    lines = ["time [s],power [W]"]
    lines += [
        f"{(k + 1) / RATE_HZ:.3f},{joules * RATE_HZ + draw.gauss(0, 0.01):.5f}" for k, joules in enumerate(energies_j)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_profile(path: Path, slices: list[tuple[str, float, float, float]]) -> None:
    events = [
        {
            "name": name,
            "cat": "unit" if name == "inference" else "layer",
            "ph": "X",
            "pid": 1,
            "tid": 1,
            "ts": (start_s - METER_AHEAD_S) * 1e6,
            "dur": (stop_s - start_s) * 1e6,
        }
        for name, start_s, stop_s, _ in slices
    ]
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")


if __name__ == "__main__":
    main()
