"""A JLS of 2 GB and ten million slices, as Chrome JSON and as CSV: imported by reference, mapped, checked.

Run: python benchmarks/bench_big_map.py [--pairs 2.5e8] [--slices 1e7] [--rounds 3] [--folder F]   (5 GB of disk)

Memory is the proportional set size of the program and everything that it starts, sampled fifty times a second: what is
anonymous, shared and mapped, each page once; nobody looks while time is taken, since the program waits for every look.
The map's time is that of the whole command, start-up of Python included; its baseline is a bare pass over both signals
of the file. The answer is compared with plain numpy over the same file.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # a script finds its neighbours by its own folder
from bench_jls import CHUNK, run_bare
from big_recording import START_NS, STEP_NS, draw_slices, name_slices
from process_tree import Watched, run_watched
from ratios import print_ratio

LIMIT_B = 800_000_000
PROGRAM = [sys.executable, "-c", "import sys; from joulemap.cli.main import main; sys.exit(main())"]


def run_program(*words: str, watched: bool = True) -> Watched:
    found = run_watched([*PROGRAM, *words], every_s=0.02 if watched else 0.0, env=os.environ | {"NO_COLOR": "1"})
    if found.code:
        sys.exit(f"joulemap {' '.join(words)} ended with {found.code}:\n{found.text[-2000:]}")
    return found


def write_file(kind: str, path: Path, pairs: int, slices: int) -> None:
    if not path.exists():
        script = Path(__file__).with_name("big_recording.py")
        subprocess.run([sys.executable, str(script), kind, str(path), str(pairs), str(slices)], check=True)


def print_memory(what: str, found: Watched) -> None:
    print(
        f"  {what}: {found.seconds:.1f} s, {found.cpu_s:.1f} s of processors, "
        f"anonymous and shared {found.anon_b / 1e6:.0f} MB"
    )
    print_ratio(
        f"{what}: peak memory of all processes, MB", found.peak_b / 1e6, target="<= 800", met=found.peak_b <= LIMIT_B
    )


def sum_plainly(path: Path, slices: int, sample: int, shift_ns: int) -> tuple[float, list[tuple[int, float]]]:
    """Returns the energy of the file, and of some slices by their rows, J: exactly rounded sums of plain products.

    JLS keeps UTC in steps of 0.93 ns: ``shift_ns`` is by how much its samples so begin before what was written.
    """
    import pyjls

    reader = pyjls.Reader(str(path))
    try:
        length = reader.signals[1].length
        start_ns, end_ns, _ = draw_slices(slices, length)
        start_ns, end_ns = start_ns + shift_ns, end_ns + shift_ns
        sums = []
        for at in range(0, length, CHUNK):
            count = min(CHUNK, length - at)
            power_w = reader.fsr(1, at, count).astype(float) * reader.fsr(2, at, count)
            sums += [float(part.sum()) for part in np.array_split(power_w, 64)]
        rows = np.random.default_rng(7).integers(0, start_ns.size, sample)
        known = []
        for row in rows.tolist():
            first, last = int(start_ns[row]) // STEP_NS, -(-int(end_ns[row]) // STEP_NS)
            power_w = reader.fsr(1, first, last - first).astype(float) * reader.fsr(2, first, last - first)
            edges = np.arange(first, last + 1) * STEP_NS
            lasting = np.clip(edges[1:], None, end_ns[row]) - np.clip(edges[:-1], start_ns[row], None)
            known.append((row, math.fsum((power_w * lasting * 1e-9).tolist())))
        return math.fsum(sums) * STEP_NS * 1e-9, known
    finally:
        reader.close()


def check_answer(document: dict[str, Any], path: Path, slices: int) -> None:
    """Compares total, closure, counts and single slices with plain numpy."""
    (trace,) = open_trace(path)
    total_j, known = sum_plainly(path, slices, 200, START_NS - trace.start_ns)
    off = abs(document["total_j"]["value"] / total_j - 1.0)
    print_ratio("total against an exactly rounded sum, relative", off, target="<= 1e-12", met=off <= 1e-12)
    rows = document["rows"]
    counted = sum(row["count"] for row in rows)
    print_ratio("slices counted", counted, target=f"{slices:.0e}", met=counted == slices // 500 * 500)
    from joulemap.trace.passes import sum_slices

    start_ns, end_ns, name = draw_slices(slices, trace.n)
    picked = np.array([row for row, _ in known])
    held = sum_slices(trace, start_ns[picked] + START_NS, end_ns[picked] + START_NS)
    exact = np.array([energy_j for _, energy_j in known])
    worst = float(np.max(np.abs(held.energy_j - exact) / np.maximum(exact, 1e-300)))
    print_ratio(
        f"{picked.size} slices against exactly rounded sums, relative", worst, target="<= 1e-12", met=worst <= 1e-12
    )
    inferences = name == 0
    whole_j = math.fsum(sum_slices(trace, start_ns[inferences] + START_NS, end_ns[inferences] + START_NS).energy_j)
    names, _ = name_slices()
    row = next(row for row in rows if row["key"] == names[0])
    off = abs(row["energy_j"]["value"] / whole_j - 1.0) if row["energy_j"]["value"] is not None else math.nan
    print_ratio("energy of the inferences against their sum, relative", off, target="<= 1e-6", met=off <= 1e-6)
    own = [row["self_j"]["value"] for row in rows]
    if all(value is not None for value in own) and document["idle_j"]["value"] is not None:
        off = abs((math.fsum(own) + document["idle_j"]["value"]) / total_j - 1.0)
        print_ratio("rows and idle against the total, relative", off, target="<= 1e-3", met=off <= 1e-3)


def open_trace(path: Path) -> Any:
    from joulemap.formats.base import ReadOptions
    from joulemap.formats.joulescope.jls import JlsReader

    return JlsReader().open_traces(path, ReadOptions())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=float, default=2.5e8)
    parser.add_argument("--slices", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="keeps the files there and uses them again")
    given = parser.parse_args()
    pairs, slices = int(given.pairs), int(given.slices)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        files = {kind: folder / f"big.{end}" for kind, end in (("jls", "jls"), ("chrome", "json"), ("csv", "csv"))}
        for kind, path in files.items():
            write_file(kind, path, pairs, slices)
            print(f"{path.name}: {path.stat().st_size / 1e9:.2f} GB")
        document: dict[str, Any] = {}
        for kind in ("chrome", "csv"):
            bundle = Path(temporary) / f"{kind}.jm"
            zone = ["--utc-offset", "+00:00"] if kind == "csv" else []
            print_memory(
                f"import of JLS and {kind}",
                run_program("import", str(files["jls"]), str(files[kind]), *zone, "-o", str(bundle)),
            )
            said = ["--offset", "0", "--json"]  # both clocks are known to be one
            run_program("map", str(bundle), *said, watched=False)  # compiles what was not compiled yet
            print_memory(f"map of {kind}", run_program("map", str(bundle), *said))
            bare, mapped = [], []
            for _ in range(given.rounds):
                bare.append(run_bare(files["jls"]))
                mapped.append(run_program("map", str(bundle), *said, watched=False))
            document = json.loads(mapped[-1].text[mapped[-1].text.index("{") :])
            base, base_cpu = (statistics.median(column) for column in zip(*bare, strict=True))
            ratio = statistics.median(found.seconds for found in mapped) / base
            whole = ", ".join(f"{found.seconds:.2f}" for found in mapped)
            print(f"  bare pass {base:.2f} s; processor time of it {base_cpu:.2f} s; the map {whole} s")
            cpu_s = statistics.median(found.cpu_s for found in mapped)
            print_ratio(
                f"   processor time of the map of {kind} on two cores / bare pass",
                cpu_s / 2 / base_cpu,
                target="",
                met=None,
            )
            print_ratio(f"map of {kind}, whole command / bare pass", ratio, target="<= 4", met=ratio <= 4)
        check_answer(document, files["jls"], slices)
        for what, words in (("map by path", ("--by", "path")), ("map without a timeline", ())):
            bundle = Path(temporary) / ("csv.jm" if words else "alone.jm")
            if not words:
                run_program("import", str(files["jls"]), "-o", str(bundle))
            said = ["--offset", "0"] if words else []
            print_memory(what, run_program("map", str(bundle), *words, *said, "--json"))
        output = Path(temporary) / "slices.parquet"
        found = run_program(
            "export", str(Path(temporary) / "csv.jm"), "--to", "parquet", "--offset", "0", "-o", str(output)
        )
        print_memory("export to Parquet", found)


if __name__ == "__main__":
    main()
