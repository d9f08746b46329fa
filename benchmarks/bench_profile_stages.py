"""Where a warm ``joulemap profile`` spends its time: by stage, and all of it outside the guest's own emulation.

    python benchmarks/bench_profile_stages.py [MODEL.tflite]

The model is MLPerf Tiny's keyword spotter where it lies beside the repository, else the demo's own of the same shape.
Emulation is what the board's worker needs for ``run`` and ``advance``; everything else is ours: start of the program,
engine, builds from the cache, simulated instrument, attribution, bundle. Target: <= 3 s at the defaults.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ratios import print_ratio

from joulemap.firmware.boards.base import Board
from joulemap.firmware.boards.registry import board
from joulemap.firmware.stages.bench import Bench
from joulemap.records.progress import ProgressSink
from joulemap.records.run import ProfileRequest
from joulemap.workflow.journal import RunJournal
from joulemap.workflow.profile import profile

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "models" / "mlperf_tiny" / "kws_ref_model.tflite"
LIMIT_S = 3.0
ROUNDS = 3


class Stopwatch:
    """Seconds spent inside the calls that it wraps, by name."""

    def __init__(self) -> None:
        self.spent_s = 0.0

    def timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the call with its time added up."""

        def wrapped(*arguments: Any, **named: Any) -> Any:
            start_s = time.perf_counter()
            try:
                return call(*arguments, **named)
            finally:
                self.spent_s += time.perf_counter() - start_s

        return wrapped


class TimedSession:
    """A board session whose emulation is timed."""

    def __init__(self, session: Any, watch: Stopwatch) -> None:
        self._session = session
        self.run = watch.timed(session.run)
        self.advance = watch.timed(session.advance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class TimedBoard:
    """A board whose sessions are timed."""

    def __init__(self, kind: Board, watch: Stopwatch) -> None:
        self._kind, self._watch = kind, watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)

    def open(self) -> TimedSession:
        """Returns a timed session."""
        return TimedSession(self._kind.open(), self._watch)


def demo_model(folder: Path) -> Path:
    path = folder / "ds_cnn.tflite"
    subprocess.run(
        [sys.executable, str(ROOT / "examples" / "make_ds_cnn.py"), str(path)], check=True, capture_output=True
    )
    return path


def start_s() -> float:
    """Returns how long the program needs before its first stage: the interpreter and every import."""
    begin_s = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import joulemap.cli.profile_cmd"], check=True)
    return time.perf_counter() - begin_s


def one_run(model: Path, output: Path) -> tuple[float, float, dict[str, float]]:
    """Returns wall time, emulation time and time per stage, s."""
    watch = Stopwatch()

    def make_bench(sink: ProgressSink) -> Bench:
        timed: Any = lambda name: TimedBoard(board(name), watch)  # noqa: E731  a proxy is no Board to the type checker
        return Bench(board=timed, progress=sink)

    journal = RunJournal()
    begin_s = time.perf_counter()
    profile(ProfileRequest(model=model), output, force=True, journal=journal, make_bench=make_bench)
    wall_s = time.perf_counter() - begin_s
    return wall_s, watch.spent_s, {timing.stage: timing.duration_s for timing in journal.timings}


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        named = Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED
        model = named if named.exists() else demo_model(folder)
        one_run(model, folder / "warm.jm")  # fills the build cache, compiles the kernels
        rounds = [(start_s(), *one_run(model, folder / "timed.jm")) for _ in range(ROUNDS)]
    begin_s, wall_s, emulation_s, stages = sorted(rounds, key=lambda r: r[0] + r[1] - r[2])[len(rounds) // 2]
    print(f"{model.name}, defaults, warm; the round with the median time of ours")
    print(f"  {'start of the program':<30}{begin_s:8.3f} s")
    for stage, duration_s in stages.items():
        if duration_s >= 0.001:
            print(f"  {stage:<30}{duration_s:8.3f} s")
    print(f"  {'all':<30}{begin_s + wall_s:8.3f} s")
    print(f"  {'guest emulation':<30}{emulation_s:8.3f} s")
    ours_s = begin_s + wall_s - emulation_s
    print(f"  {'outside the emulation':<30}{ours_s:8.3f} s")
    ratio = ours_s / LIMIT_S
    print_ratio(f"profile outside the emulation / {LIMIT_S:.0f} s", ratio, target="<= 1", met=ratio <= 1)


if __name__ == "__main__":
    main()
