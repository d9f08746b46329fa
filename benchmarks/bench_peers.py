"""``joulemap record`` and its powercap meter beside CodeCarbon, pyJoules and Zeus on one tree whose truth is known.

A fake tree is mounted over /sys/class in a mount namespace of its own, so that the others read it unmodified; that
needs root and ``unshare``. The others live in an environment of their own (``build/peers``): ``--install`` makes it,
the variable JOULEMAP_PEERS_PYTHON names another. Energy of package 0 over a window with several wraps, and the CPU
time of one reading; of ``joulemap record``, the command with its sampling process, the jitter of its readings.
``--json`` prints one document.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / "build" / "peers"
PEERS = ("codecarbon", "pyjoules", "zeus")
OWN = ("joulemap", "record")
RECORD_HZ = 100.0
PACKAGES = ("codecarbon", "pyJoules", "zeus")
READER = Path(__file__).with_name("peer_reader.py")
RANGE_UJ = 150_000_000  # at 65 W the counter starts anew every 2.3 s
READS = 2000
INSIDE = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/class && exec "$@"', "sh")
"""What stands before a command that shall see an empty /sys/class of its own."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true", help="make the environment of the others first")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=7.0)
    parser.add_argument("--tools", nargs="*", default=[*OWN, *PEERS])
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        print(json.dumps(measure(given.seconds, given.tools)))
        return 0
    if given.install:
        install()
    missing = namespace_problem()
    if missing:
        print(f"not run: {missing}")
        return 0
    own = [sys.executable, __file__, "--inside", "--seconds", str(given.seconds), "--tools", *given.tools]
    done = subprocess.run([*INSIDE, *own], stdout=subprocess.PIPE, text=True, check=True)
    document = json.loads(done.stdout)
    print(json.dumps(document) if given.json else render(document))
    return 0


def peers_python() -> Path:
    return Path(os.environ.get("JOULEMAP_PEERS_PYTHON", ENVIRONMENT / "bin" / "python"))


def namespace_problem() -> str:
    """Why nothing can be mounted over /sys/class here; empty when it can."""
    if shutil.which("unshare") is None or os.geteuid() != 0:
        return "a mount namespace of one's own needs root and unshare"
    tried = subprocess.run([*INSIDE, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "this machine lets nobody mount over /sys/class, even in a namespace"


def install() -> None:
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    subprocess.run([str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "-q", *PACKAGES], check=True)


def measure(seconds: float, names: list[str]) -> dict[str, Any]:
    """Inside the namespace: every tool in turn on one tree."""
    from joulemap.meters.live.ground.waves import PowerWave, WaveShape
    from joulemap.meters.live.kit import FakeTree, TreePlan

    wave = PowerWave(mean_w=65.0, swing_w=30.0, period_s=0.37, shape=WaveShape.SQUARE)
    with FakeTree(TreePlan(wave=wave, range_uj=RANGE_UJ), root=Path("/sys")) as tree:
        own = {"joulemap": read_joulemap, "record": run_record}
        tools = {name: own[name](seconds) for name in OWN if name in names}
        for peer in (peer for peer in PEERS if peer in names):
            if not peers_python().exists():
                tools[peer] = {"problem": "no environment: bench_peers.py --install makes it"}
                continue
            command = [str(peers_python()), str(READER), peer, str(seconds), str(READS)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
            tools[peer] = json.loads(lines[-1]) if lines else {"problem": done.stderr.strip()[-400:]}
        for tool in tools.values():
            if "energy_j" in tool:
                truth_j = tree.energy_j("package-0", tool["start_ns"], tool["end_ns"])
                tool |= {"truth_j": truth_j, "error_rel": tool["energy_j"] / truth_j - 1.0}
                tool["wraps"] = int(truth_j * 1e6 // RANGE_UJ)
    return {"tools": tools}


def read_joulemap(seconds: float) -> dict[str, Any]:
    import numpy as np

    from joulemap import __version__
    from joulemap.meters.live.registry import open_meter
    from joulemap.records.live.domain import MeterAddress

    meter = open_meter(MeterAddress(driver="powercap"))
    at = [domain.name for domain in meter.domains].index("package-0")
    domain = meter.domains[at]
    assert domain.modulus is not None
    raw = np.empty(len(meter.domains))
    stamps: list[int] = []
    values: list[float] = []
    start = time.monotonic()
    while not stamps or time.monotonic() - start < seconds:
        meter.read(raw)
        stamps.append(time.monotonic_ns())
        values.append(raw[at])
        time.sleep(0.001)
    changed = np.flatnonzero(np.diff(values)) + 1  # the counter is exact where it was just renewed
    first, last = int(changed[0]), int(changed[-1])
    energy_j = float(np.mod(np.diff(values[first : last + 1]), domain.modulus).sum()) * domain.scale
    before = time.process_time()
    for _ in range(READS):
        meter.read(raw)
    cpu_s = (time.process_time() - before) / READS
    meter.close()
    return {
        "version": __version__,
        "energy_j": energy_j,
        "start_ns": stamps[first],
        "end_ns": stamps[last],
        "cpu_s": cpu_s,
        "reads": f"{len(meter.domains)} domains",
    }


def run_record(seconds: float) -> dict[str, Any]:
    """The command as a user calls it, on whatever meters the machine shows; package 0 of its one run."""
    from joulemap import __version__

    flags = ["--meter", "powercap", "--rate", str(RECORD_HZ), "--json", "--force"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "joulemap", "record", *flags, "-o", "r.jm", "--", "sleep", str(seconds)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"problem": done.stderr.strip()[-400:]}
    document = json.loads(done.stdout)
    (run,) = document["runs"]
    return {
        "version": __version__,
        "energy_j": run["energy_j"]["powercap:package-0"],
        "start_ns": run["start_ns"],
        "end_ns": run["end_ns"],
        "jitter_p99_s": document["sampler"]["jitter_p99_s"],
        "achieved_hz": document["sampler"]["achieved_hz"],
        "wraps_told": sum(
            finding["slug"] == "counter_wrapped" and "package-0:" in finding["message"]
            for finding in document["findings"]
        ),
    }


def render(document: dict[str, Any]) -> str:
    own = document["tools"].get("joulemap")
    lines = [
        f"{'tool':<12} {'version':<10} {'energy J':>10} {'truth J':>10} {'error':>10} {'wraps':>5}  CPU per reading"
    ]
    for name, tool in document["tools"].items():
        if "problem" in tool:
            lines.append(f"{name:<12} did not run: {tool['problem'].splitlines()[-1] if tool['problem'] else ''}")
            continue
        line = (
            f"{name:<12} {tool['version']:<10} {tool['energy_j']:>10.3f} {tool['truth_j']:>10.3f}"
            f" {tool['error_rel']:>+10.3%} {tool['wraps']:>5}  "
        )
        if "cpu_s" in tool:
            ratio = f" ({tool['cpu_s'] / own['cpu_s']:.2f} x joulemap)" if own else ""
            line += f"{tool['cpu_s'] * 1e6:.1f} us for {tool['reads']}{ratio}"
        else:
            line += f"{tool['achieved_hz']:.4g} Hz, jitter p99 {tool['jitter_p99_s'] * 1e6:.0f} us"
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
