"""Runs a program and watches how much memory it and everything that it starts take together."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Watched:
    """How a program went.

    Args:
        seconds: wall clock.
        peak_b: largest proportional set size of the whole tree, bytes: anonymous, shared and file pages, each once.
        cpu_s: processor time of it and of all that it waited for, s.
        anon_b: largest part of it that is anonymous or shared memory, bytes.
        code: exit status.
        text: standard output.
    """

    seconds: float
    cpu_s: float
    peak_b: int
    anon_b: int
    code: int
    text: str


def _tree(root: int) -> list[int]:
    found, fresh = [], [root]
    while fresh:
        found += fresh
        below = []
        for pid in fresh:
            with contextlib.suppress(OSError, ValueError):  # a process may end while it is looked at
                for task in Path(f"/proc/{pid}/task").glob("*/children"):
                    below += [int(child) for child in task.read_text().split()]
        fresh = below
    return found


def _memory(pids: Sequence[int]) -> tuple[int, int]:
    whole = anon = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
        except OSError:
            continue
        fields = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
        whole += fields.get("Pss", 0)
        anon += fields.get("Pss_Anon", 0) + fields.get("Pss_Shmem", 0)
    return whole, anon


def run_watched(argv: Sequence[str], *, every_s: float = 0.02, env: dict[str, str] | None = None) -> Watched:
    """Runs the program to its end.

    Args:
        argv: the program and its arguments.
        every_s: time between two looks at its memory, s; 0 for none: the kernel walks all of its pages for each, and
            the program waits for that.
        env: of the program; None for our own.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    peaks = [0, 0]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(every_s):
            whole, anon = _memory(_tree(process.pid))
            peaks[0], peaks[1] = max(peaks[0], whole), max(peaks[1], anon)

    watcher = threading.Thread(target=watch)
    if every_s:
        watcher.start()
    text = process.communicate()[0]
    seconds = time.perf_counter() - begin
    over.set()
    if every_s:
        watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Watched(seconds=seconds, cpu_s=cpu_s, peak_b=peaks[0], anon_b=peaks[1], code=process.returncode, text=text)


if __name__ == "__main__":
    import sys

    found = run_watched(sys.argv[1:])
    sys.stdout.write(found.text)
    sys.stdout.write(
        f"{found.seconds:.2f} s, CPU {found.cpu_s:.2f} s, "
        f"peak {found.peak_b / 1e6:.0f} MB ({found.anon_b / 1e6:.0f} anon)\n"
    )
