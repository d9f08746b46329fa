"""What a reader may do with a mutant, and the count of what it did.

Allowed: a recording, or a typed error that says what to do. Not allowed: any other exception, a changed input, memory
beyond 64 MB plus eight times the file, time beyond one second plus one per megabyte, no end at all.

Time is what the processor spent on this process and on the children it waited for, never what the wall clock says: a
loaded machine makes no reader late. A reader that does not come back is ended after 30 s of processor time, or after
600 s of the wall clock when it waits for something that never comes; one stuck inside a library, where no signal is
seen, ends the whole test process with a trace of its stack.

Memory is the growth of this process's peak over what it held before a batch of eight reads, which together may not
take more than one of them is allowed; for a reader that works in a child it is also the child's peak over that of a
child which only imported its library.
"""

from __future__ import annotations

import contextlib
import faulthandler
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from fuzz_structures import mutate
from joulemap.errors import FormatError, InputError, SetupError
from joulemap.formats.base import Reader, ReadOptions
from joulemap.formats.readers import sniff_scores
from joulemap.records.recording import Recording
from reader_cases import Case

__all__ = ["FuzzReport", "fuzz_case", "fuzz_reader"]

_CPU_LIMIT_S = 30.0
_WALL_LIMIT_S = 600.0
_STUCK_S = 1800.0
_MEMORY_B = 64 << 20
_SNIFF_EVERY = 97
_BATCH = 8


@dataclass(slots=True)
class FuzzReport:
    """What became of the mutants of one reader.

    Args:
        outcomes: how often each outcome came: ``read`` or the slug of an error.
        doubted: mutants that were read with another set of findings than the seed.
        failures: number of the mutant, and how it broke a promise.
        slowest_s: longest read, s of processor time.
        late_s: longest read beyond its allowance, s; negative when all were within.
        growth_b: greatest growth of memory in one read, bytes.
        excess_b: greatest growth beyond its allowance, bytes; negative when all were within.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    doubted: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)
    slowest_s: float = 0.0
    late_s: float = -1.0
    growth_b: int = 0
    excess_b: int = -_MEMORY_B

    @property
    def total(self) -> int:
        """Number of mutants."""
        return sum(self.outcomes.values())

    @property
    def reached(self) -> float:
        """Share of mutants whose records were parsed, counted strictly: the reader gave a recording of them."""
        return self.outcomes["read"] / max(self.total, 1)

    def line(self, name: str) -> str:
        """Returns the figures as a row of a table."""
        return (
            f"{name},{self.total},{self.reached:.3f},{self.slowest_s:.3f},{self.growth_b / (1 << 20):.1f},"
            f"{self.doubted},{len(self.failures)}"
        )


class _HangError(BaseException):
    """A read that does not end."""


@contextlib.contextmanager
def _limits() -> Iterator[None]:
    """Ends a read that spends too much of the processor, or waits for ever."""

    def stop(number: int, _: FrameType | None) -> None:
        what = f"{_CPU_LIMIT_S:.0f} s of processor time" if number == signal.SIGPROF else f"{_WALL_LIMIT_S:.0f} s"
        raise _HangError(f"does not end: {what} have passed")

    before = [(number, signal.signal(number, stop)) for number in (signal.SIGPROF, signal.SIGALRM)]
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before:
            signal.signal(number, handler)
        faulthandler.cancel_dump_traceback_later()


def _spent_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _memory_b(key: str, process: str = "self") -> int:
    try:
        for line in Path(f"/proc/{process}/status").read_text("ascii").splitlines():
            if line.startswith(key):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def _reset_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5", "ascii")
    except OSError:
        return False
    return True


class _Children:
    """The greatest memory that any child of this thread has, beyond that of one that only imported the library."""

    def __init__(self) -> None:
        self._list = Path(f"/proc/self/task/{threading.get_native_id()}/children")
        self._own = Path("/proc/self/cmdline").read_bytes()
        self._peak_b = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        command = "import numpy, pyjls, time; time.sleep(0.3)"
        subprocess.run([sys.executable, "-I", "-c", command], check=True)
        self._bare_b, self._peak_b = self._peak_b, 0

    def _watch(self) -> None:
        while not self._over.wait(0.004):
            for child in self._list.read_text("ascii").split():
                if self._begun(child):
                    self._peak_b = max(self._peak_b, _memory_b("VmHWM", child))

    def _begun(self, child: str) -> bool:
        """Returns whether a child runs its own program by now: before that, its memory is this process's."""
        try:
            return Path(f"/proc/{child}/cmdline").read_bytes() not in (self._own, b"")
        except OSError:
            return False

    def growth_b(self) -> int:
        """Returns the growth since the last call, bytes."""
        peak_b, self._peak_b = self._peak_b, 0
        return max(peak_b - self._bare_b, 0)

    def close(self) -> None:
        self._over.set()
        self._thread.join()


def fuzz_reader(
    reader: Reader, cases: tuple[Case, ...], *, mutants: int, folder: Path, draw: int, child: bool = False
) -> FuzzReport:
    """Returns what a reader does with so many mutants of its seeds: half of the first form, the rest of the others.

    Args:
        reader: under test.
        cases: its seeds; the first is its main form.
        mutants: how many.
        folder: for the files; it must be empty.
        draw: seed of the generator.
        child: whether the reader works in a child process, whose memory counts too.
    """
    report = FuzzReport()
    others = len(cases) - 1
    part = mutants // 2 // others if others else 0
    watch = _Children() if child and Path("/proc/self/task").is_dir() else None
    try:
        for number, case in enumerate(cases):
            place = folder / f"form{number}"
            place.mkdir()
            count = mutants - part * others if number == 0 else part
            fuzz_case(reader, case, report, mutants=count, folder=place, draw=draw + number, growth_b=watch.growth_b if watch is not None else None)  # fmt: skip  # noqa: E501
    finally:
        if watch is not None:
            watch.close()
    return report


def fuzz_case(
    reader: Reader,
    case: Case,
    report: FuzzReport,
    *,
    mutants: int,
    folder: Path,
    draw: int,
    growth_b: Callable[[], int] | None = None,
) -> None:
    """Reads so many mutants of one seed and counts what becomes of them."""
    rng = random.Random(draw)
    files = dict(case.files())
    path = case.write(folder, files)
    plain = {finding.slug for finding in reader.read(path, case.options).findings}
    names = sorted(files)
    peaks, before_b = _reset_peak(), 0
    with _limits():
        for number in range(mutants):
            if number % 500 == 0:
                faulthandler.dump_traceback_later(_STUCK_S, exit=True)
            name = names[0] if len(names) == 1 else rng.choice(names)
            body = mutate(files[name], rng)
            (folder / name).write_bytes(body)
            if peaks and number % _BATCH == 0:
                before_b = _memory_b("VmRSS")
                _reset_peak()
            start_s = _spent_s()
            outcome, why = _read_one(reader, path, case.options, plain)
            spent_s = _spent_s() - start_s
            size_b = len(body) + sum(len(files[other]) for other in names if other != name)
            grown_b = 0
            if number % _BATCH == _BATCH - 1 or number == mutants - 1:
                grown_b = _memory_b("VmHWM") - before_b if peaks else 0
                there = {one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file()}
                if there != set(names):
                    report.failures.append((number, f"files were added or removed: {sorted(there)}"))
            grown_b = max(grown_b, growth_b()) if growth_b is not None else grown_b
            if number % _SNIFF_EVERY == 0:
                why = why or _sniff_all(path)
            _count(report, (outcome, why), number, (spent_s, grown_b, size_b))
            for other in names:
                if (folder / other).read_bytes() != (body if other == name else files[other]):
                    report.failures.append((number, f"the input {other} was rewritten"))
            if len(names) > 1:
                (folder / name).write_bytes(files[name])


def _count(report: FuzzReport, result: tuple[str, str], number: int, measured: tuple[float, int, int]) -> None:
    (outcome, why), (spent_s, grown_b, size_b) = result, measured
    if outcome == "read, doubted":
        outcome = "read"
        report.doubted += 1
    report.outcomes[outcome] += 1
    if why:
        report.failures.append((number, why))
    report.slowest_s = max(report.slowest_s, spent_s)
    report.late_s = max(report.late_s, spent_s - 1.0 - size_b / 1e6)
    report.growth_b = max(report.growth_b, grown_b)
    report.excess_b = max(report.excess_b, grown_b - _MEMORY_B - 8 * size_b)


def _read_one(reader: Reader, path: Path, options: ReadOptions, plain: set[str]) -> tuple[str, str]:
    """Returns the outcome of one read, and how it broke a promise (empty when it did not)."""
    signal.setitimer(signal.ITIMER_PROF, _CPU_LIMIT_S)
    signal.setitimer(signal.ITIMER_REAL, _WALL_LIMIT_S)
    try:
        head = b""
        if path.is_file():
            with path.open("rb") as handle:
                head = handle.read(65536)
        sure = reader.sniff(path, head)
        if not 0.0 <= sure <= 1.0:
            return "sniffed", f"the certainty is {sure}"
        found = reader.read(path, options)
        if not isinstance(found, Recording):
            return "no recording", f"a {type(found).__name__} came back"
        return ("read" if {finding.slug for finding in found.findings} == plain else "read, doubted"), ""
    except (FormatError, InputError, SetupError) as error:
        bare = not (error.message and error.slug and error.hint)
        return error.slug, "an error without a slug, a message or a hint" if bare else ""
    except _HangError as error:
        return "hang", str(error)
    except Exception as error:  # noqa: BLE001  # every other exception is what this harness looks for
        return type(error).__name__, f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _sniff_all(path: Path) -> str:
    """Returns how the sniffing of all readers broke on a mutant; empty when it did not."""
    try:
        sniff_scores(path)
    except Exception as error:  # noqa: BLE001  # as above
        return f"sniffing by all: {type(error).__name__}: {error}"
    return ""
