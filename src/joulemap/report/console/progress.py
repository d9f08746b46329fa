"""The console sink of a run: one live block on a terminal, plain lines in a pipe; always on stderr.

Shows phase, stage, position and what the stage says in real units; an ETA only where the update carries one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from joulemap.records.progress import ProgressUpdate
from joulemap.report.console.style import Style
from joulemap.report.view.text import printable

if TYPE_CHECKING:
    from rich.live import Live

__all__ = ["HpxConsole"]

# Shown whatever the verbosity: N of the power run comes from the first, and what is about to happen is the second.
_HIGH_SIGNAL = frozenset({"counter_capture_complete", "power_run_planned", "gate_fallback"})


class HpxConsole:
    """A progress sink that people read.

    Args:
        stream: stderr.
        style: what it takes.
        verbosity: updates of a higher ``min_verbosity`` are not shown; most checkpoints need 1.
        live: redraw one block in place (a terminal) instead of adding lines.
    """

    def __init__(self, stream: TextIO, *, style: Style, verbosity: int = 0, live: bool = False) -> None:
        self._stream = stream
        self._style = style
        self._verbosity = verbosity
        self._live: Live | None = _open_live(stream, style) if live else None
        self._status = ""
        self._heard = True

    def __enter__(self) -> Self:
        if self._live is not None:
            with self._listening():
                self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            with self._listening():
                self._live.stop()

    def __call__(self, update: ProgressUpdate) -> None:
        """Shows an update, or leaves it out when the verbosity does not reach it or the stream has gone."""
        if self._heard:
            with self._listening():
                self._show(update)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """A reader that went away, a full disk or a lost terminal ends what is said, never the run."""
        try:
            yield
        except OSError:
            self._heard = False

    def _show(self, update: ProgressUpdate) -> None:
        if update.checkpoint:
            if update.name in _HIGH_SIGNAL or self._verbosity >= max(1, update.min_verbosity):
                self._write_line(f"{'✓' if self._style.unicode else '*'} {printable(update.message)}")
        elif update.min_verbosity > self._verbosity:
            return
        elif update.min_verbosity > 0:
            self._write_line(f"  {printable(update.message)}")
        else:
            self._show_status(_status_line(update))

    def _show_status(self, line: str) -> None:
        if self._live is None:
            if line != self._status:
                self._write_line(line)
        else:
            from rich.text import Text  # noqa: PLC0415  only a live block needs it

            text = Text(self._style.encode(line), no_wrap=True, overflow="ellipsis")
            self._live.update(text, refresh=True)
        self._status = line

    def _write_line(self, line: str) -> None:
        line = self._style.encode(line)
        if self._live is not None:
            self._live.console.print(line, markup=False, highlight=False, soft_wrap=True)
            return
        self._stream.write(line + "\n")
        self._stream.flush()


def _status_line(update: ProgressUpdate) -> str:
    position = f"[{update.position[0]:2d}/{update.position[1]}] " if update.position else ""
    eta = f", {_whole_seconds(update.eta_s)} left" if update.eta_s is not None and update.eta_s >= 1 else ""
    return f"{position}{update.phase:<7} {printable(update.message)}{eta}"


def _whole_seconds(duration_s: float) -> str:
    minutes, seconds = divmod(round(duration_s), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _open_live(stream: TextIO, style: Style) -> Live:
    from rich.console import Console  # noqa: PLC0415  a pipe needs no rich
    from rich.live import Live  # noqa: PLC0415  as above

    console = Console(file=stream, no_color=not style.color, force_terminal=True, legacy_windows=False)
    return Live(console=console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
