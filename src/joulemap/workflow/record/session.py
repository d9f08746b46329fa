"""A recording of live meters: its sampling process, replaced when it is killed, and the capture read at the end."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from joulemap.errors import FormatError, JoulemapError, PowerError, SetupError, UsageError
from joulemap.formats.base import ReadOptions
from joulemap.formats.live.capture import CAPTURE_FILE, MARKS_FOLDER, MONOTONIC, CaptureReader
from joulemap.formats.live.powers import UNDECLARED_UPDATE_S
from joulemap.meters.live.marking.sink import MarkSink
from joulemap.meters.live.sampling.plan import NamedMeter, Priority, SamplingPlan
from joulemap.meters.live.sampling.process import SamplerProcess
from joulemap.meters.live.sampling.ring import RingReader
from joulemap.records.live.capture_header import CaptureHeader
from joulemap.records.live.domain import DomainReading, MeterCandidate
from joulemap.records.recording import Recording
from joulemap.trace import Clock

__all__ = ["SampledSession"]

_REPLACED: Final = 8
"""Times that a lost sampling process is replaced; a machine that kills more of them wants none."""
_SETTLE_LIMIT_S: Final = 3.0


class SampledSession:
    """Samples meters in a process of its own from :meth:`start` to :meth:`stop`; a context manager that always ends it.

    Args:
        meters: usable candidates, names unique.
        rate_hz: readings per second.
        folder: for the capture and marks, made here; None for a temporary one, made at the start, that goes with the
            session.
        priority: of the sampling process, as far as the system grants it.
        live: keep the latest samples in shared memory (``ring``).
        capture: write a capture; without one only live readers see the samples.

    Raises:
        UsageError: a rate that cannot be (``flag-form``), or two meters of one name.
        SetupError: the folder cannot be made (``output-unwritable``).
    """

    def __init__(
        self,
        meters: Sequence[MeterCandidate],
        *,
        rate_hz: float = 10.0,
        folder: Path | None = None,
        priority: Priority = Priority.NORMAL,
        live: bool = True,
        capture: bool = True,
    ) -> None:
        if len({meter.name for meter in meters}) < len(meters):
            raise UsageError("two meters have one name", hint="name each meter once", slug="flags-contradict")
        try:
            self._plan = SamplingPlan(
                meters=tuple(NamedMeter(name=meter.name, address=meter.address) for meter in meters),
                rate_hz=rate_hz,
                session=uuid.uuid4().hex,
                priority=priority,
            )
        except ValueError as error:
            raise UsageError(
                f"{rate_hz:g} Hz: {error}", hint="a rate from 0.001 to 100000 Hz", slug="flag-form"
            ) from error
        self._temporary = folder is None
        self._folder = None if folder is None else _make_folder(folder)
        self.meters = tuple(meters)
        self._live = live
        self._capture = capture
        self._sampler: SamplerProcess | None = None
        self._lock = threading.Lock()
        self._replaced = 0
        self._paused = False
        self._stopped = False

    @property
    def clock(self) -> Clock:
        """The machine's monotonic clock."""
        return MONOTONIC

    @property
    def folder(self) -> Path:
        """Where capture and marks lie; a temporary one is there from :meth:`start` on."""
        assert self._folder is not None  # asked for after the start
        return self._folder

    @property
    def pid(self) -> int:
        """Process id of the sampling process; 0 before it was started."""
        return 0 if self._sampler is None else self._sampler.pid

    @property
    def header(self) -> CaptureHeader:
        """What is sampled.

        Raises:
            PowerError: nothing is yet (``sampler-lost``).
        """
        if self._sampler is None:
            raise PowerError("nothing is sampled yet", hint="start it first", slug="sampler-lost", phase="power")
        return self._sampler.require()

    @property
    def ring(self) -> RingReader | None:
        """The latest samples, of the process that samples now."""
        return None if self._sampler is None else self._sampler.ring

    @property
    def marks_folder(self) -> Path:
        """Where programs under test put their marks; made on first use."""
        folder = self.folder / MARKS_FOLDER
        folder.mkdir(exist_ok=True)
        return folder

    def open_marks(self, kind: str = "mark") -> MarkSink:
        """Returns mark files of this process in the recording.

        Raises:
            SetupError: there is no room for them (``output-unwritable``).
        """
        try:
            return MarkSink(self.marks_folder, kind=kind)
        except OSError as error:
            raise SetupError(
                f"{self.folder}: cannot be written ({error.strerror or error})",
                hint="free some space, or name an output elsewhere with -o",
                slug="output-unwritable",
            ) from error

    @property
    def settle_s(self) -> float:
        """How long to go on after an instant so that every meter has shown what it counted until then, s."""
        updates = [
            domain.update_period_s or (UNDECLARED_UPDATE_S if domain.reading is DomainReading.POWER else 0.0)
            for meter in self.meters
            for domain in meter.domains
            if domain.reading is not DomainReading.SIGNAL
        ]
        return min(2.0 * max([0.0, 1.0 / self._plan.rate_hz, *updates]) + 0.01, _SETTLE_LIMIT_S)

    def now_ns(self) -> int:
        """Returns the present instant on the monotonic clock, ns."""
        return time.monotonic_ns()

    def start(self) -> None:
        """Starts the sampling process; returns when its first readings are in the capture.

        Raises:
            SetupError: a meter cannot be opened, or the process cannot run, or there is no room for a temporary folder.
        """
        if self._folder is None:  # no sooner: only the sampling process clears it away when this one is killed
            self._folder = _make_folder(None)
        self._plan = replace(
            self._plan,
            file=str(self.folder / CAPTURE_FILE) if self._capture else "",
            scratch=str(self.folder) if self._temporary else "",
        )
        sampler = SamplerProcess(self._plan, live=self._live, lost=self._replace)
        self._sampler = sampler
        try:
            sampler.start()
        except JoulemapError:
            sampler.stop()
            self._discard_temporary()
            raise

    def read_now(self) -> int | None:
        """Has every quick meter read now; returns the instant, ns, or None when nothing answered in time."""
        return None if self._sampler is None else self._sampler.read_now()

    def pause(self) -> int | None:
        """Samples no longer until :meth:`resume`, but for the wraps of counters.

        It goes on first until meters that renew seldom have shown what was drawn until now.
        """
        time.sleep(self.settle_s)
        sampler = self._remember(paused=True)
        return None if sampler is None else sampler.pause()

    def resume(self) -> int | None:
        """Samples again."""
        sampler = self._remember(paused=False)
        return None if sampler is None else sampler.resume()

    def _remember(self, *, paused: bool) -> SamplerProcess | None:
        """Returns the sampling process that is to be told; one that replaces it later begins as it was told."""
        with self._lock:  # one that is being replaced is told when it is there
            self._paused = paused
            return self._sampler

    def stop(self, *, settle: bool = True) -> Recording:
        """Ends the sampling and returns what was recorded.

        Args:
            settle: go on first until meters that renew seldom have shown their last value.

        Raises:
            PowerError: nothing was recorded (``nothing-recorded``).
        """
        if settle and not self._stopped:
            time.sleep(self.settle_s)
        self.end()
        try:
            return CaptureReader().read(self.folder, ReadOptions())
        except FormatError as error:
            raise PowerError(
                f"nothing was recorded: {error.message}",
                hint=error.hint or "record for longer",
                slug="nothing-recorded",
                phase="power",
            ) from error
        finally:
            self._discard_temporary()

    def read_through_pauses(self) -> Recording:
        """Returns what counters tell of the pauses too, after :meth:`stop` and while the folder is there.

        Raises:
            FormatError, InputError: the capture cannot be read.
        """
        return CaptureReader(through_pauses=True).read(self.folder, ReadOptions())

    def end(self) -> None:
        """Ends the sampling process; idempotent; what it wrote stays."""
        with self._lock:
            self._stopped = True
            sampler = self._sampler
        if sampler is not None:
            sampler.stop()

    def discard(self) -> None:
        """Ends the sampling and removes the folder."""
        self.end()
        self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._discard_temporary()

    def _discard_temporary(self) -> None:
        if self._temporary:
            self._remove()

    def _remove(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _replace(self) -> None:
        """Starts another process where one was lost; it appends to the same capture."""
        with self._lock:
            if self._stopped or self._replaced >= _REPLACED:
                return
            self._replaced += 1
            if self._sampler is not None:
                self._sampler.stop()  # it is gone: lets go of what was shared with it
            plan = replace(self._plan, paused=self._paused)
            sampler = SamplerProcess(plan, live=self._live, lost=self._replace)
            try:
                sampler.start()
            except (JoulemapError, OSError):
                sampler.stop()  # the capture says that the last one ended; the rest is a gap
                return
            self._sampler = sampler


def _make_folder(folder: Path | None) -> Path:
    try:
        if folder is None:
            return Path(tempfile.mkdtemp(prefix="joulemap-"))
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise UsageError(
            f"{folder}: is there already; a recording that was killed left it",
            hint=f"joulemap import {folder} -o NAME.jm saves it; remove the folder then, or name another output",
            slug="capture-exists",
        ) from error
    except OSError as error:
        raise SetupError(
            f"{folder}: cannot be made ({error.strerror or error})",
            hint="name an output in a writable folder with -o",
            slug="output-unwritable",
        ) from error
    return folder
