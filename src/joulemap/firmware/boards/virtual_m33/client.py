"""A session with a virtual board: the calls of :class:`BoardSession` as messages to its worker.

Must not know the emulator; the worker is another program.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from joulemap.errors import BuildError, CapacityError, PowerError
from joulemap.firmware.boards.base import BoardStop, ResetOptions, StopReason
from joulemap.firmware.boards.virtual_m33.link import BoardRefusal, WorkerLink
from joulemap.firmware.boards.virtual_m33.power_model import PowerModel
from joulemap.firmware.toolchains.elf import ElfImage, read_elf
from joulemap.records.rail import BoardTruth, RailActivity
from joulemap.records.target import Line, Target
from joulemap.trace import EdgeDirection, Marker

__all__ = ["WINDOW_LIMIT_S", "Pricing", "VirtualM33Session"]

Pricing = str
_ROW_NS = 1000
_MAX_ROWS = 1_000_000_000
_MAX_FACTOR = 100.0
_LINE_BITS = {Line.READY: 1, Line.GATE: 2}
_LINES = {bit: line for line, bit in _LINE_BITS.items()}
_QUICK_WALL_S = 60.0
_WALL_PER_BOARD_S = 20.0  # the emulator needs about 0.2 s per board second; the rest is for a loaded machine
_J_PER_FJ = 1e-15
_NS_PER_S = 1e9
WINDOW_LIMIT_S = _MAX_ROWS * _ROW_NS / _NS_PER_S
"""What the rail keeps of one run."""


class VirtualM33Session:
    """One virtual board.

    Args:
        target: what it is.
        model: coefficients of its rail.
        link: its worker.
        wall_limit_s: seconds of wall clock that any call may take; None for a limit from the board time it may cover.
        pricing: how bytes per region are found: ``scout``, or ``hook`` (exact by construction, about 20 times slower,
            the reference), or ``none``.
        accounting: False runs the bare emulator: no time, no energy, no limits. For benchmarks.
    """

    def __init__(
        self,
        target: Target,
        model: PowerModel,
        link: WorkerLink,
        *,
        wall_limit_s: float | None = None,
        pricing: Pricing = "scout",
        accounting: bool = True,
    ) -> None:
        self._target = target
        self._model = model
        self._link = link
        self._wall_limit_s = wall_limit_s
        self._pricing = pricing
        self._accounting = accounting
        self._deadline_s = 0.0
        self._run_factor = 1.0
        self._recorded = False
        self._layer_count = 0
        self._time_ns = 0
        self._throttled_ns = 0

    @property
    def target_id(self) -> str:
        """Identity of this very board."""
        return f"{self._target.name}#{self._link.pid}"

    @property
    def time_ns(self) -> int:
        """Board time since reset, ns."""
        return self._time_ns

    @property
    def worker_pid(self) -> int:
        """Process of the worker."""
        return self._link.pid

    def flash(self, elf: Path, *, layer_symbols: Sequence[str]) -> None:
        """Programs the image; a layer that the image has no symbol for is refused."""
        image = read_elf(elf)
        content = self._flash_content(image)
        missing = [name for name in layer_symbols if name not in image.symbols]
        if missing:
            raise _build_error(f"{elf.name} has no symbol {missing[0]}", "layer-symbol-missing")
        self._call(
            "flash",
            image=base64.b64encode(content).decode("ascii"),
            flash_b=self._target.region("flash").size_b,
            ram_b=self._target.region("ram").size_b,
            code_b=min(image.code_end or len(content), len(content)),
            layer_entries=[image.symbols[name][0] for name in layer_symbols],
            coefficients=self._model.coefficients(core_hz=self._target.operating_point.core_hz),
        )
        self._layer_count = len(layer_symbols)

    def reset(self, options: ResetOptions) -> None:
        """Resets the core to the start of the image; time, lines, rail and counts start anew."""
        deadline_ns = _to_ns(options.deadline_s)
        if options.record_rail and deadline_ns // _ROW_NS > _MAX_ROWS:
            raise PowerError(
                f"a virtual rail keeps at most {WINDOW_LIMIT_S:g} s, not {options.deadline_s:g} s",
                hint="choose a smaller --count or --window-s",
                slug="window-too-long",
                phase="power",
            )
        factors = (options.run_factor, *options.layer_factors)
        if not all(0 < factor < _MAX_FACTOR for factor in factors):
            raise ValueError(f"factors must lie in 0..{_MAX_FACTOR}, got {factors}")
        if len(options.layer_factors) not in (0, self._layer_count):
            raise ValueError(f"{len(options.layer_factors)} layer factors for {self._layer_count} layers")
        self._deadline_s, self._run_factor, self._recorded = options.deadline_s, options.run_factor, options.record_rail
        self._time_ns = self._throttled_ns = 0
        self._call(
            "reset",
            deadline_ns=deadline_ns,
            record=options.record_rail,
            row_ns=_ROW_NS,
            brown_out_ns=None if options.brown_out_at_s is None else _to_ns(options.brown_out_at_s),
            throttle_ns=None if options.throttle_at_s is None else _to_ns(options.throttle_at_s),
            run_factor=options.run_factor,
            layer_factors=list(options.layer_factors),
            fault_select=options.fault_select,
            fault_argument=options.fault_argument,
            pricing=self._pricing,
            accounting=self._accounting,
        )

    def run(self, *, until: frozenset[Line] = frozenset()) -> BoardStop:
        """Runs to an edge on a wanted line, an idle core, the deadline or a fault; a sleeping core is woken first."""
        answer = self._call("run", until=sum(_LINE_BITS[line] for line in until))
        self._take_state(answer)
        reason = StopReason(answer["reason"])
        if reason is StopReason.EDGE:
            return BoardStop(
                reason=reason,
                time_ns=answer["edge_ns"],
                line=_LINES[answer["edge_line"]],
                level=bool(answer["edge_level"]),
            )
        return BoardStop(
            reason=reason,
            time_ns=answer["time_ns"],
            registers=answer.get("registers", {}),
            message=answer.get("message", ""),
        )

    def advance(self, duration_s: float) -> None:
        """Lets board time pass: an awake core goes on until it sleeps, a sleeping one at most to its own wake-up."""
        self._take_state(self._call("advance", duration_ns=_to_ns(duration_s)))

    def set_line(self, line: Line, level: bool) -> None:
        """Drives GO; the firmware sees it when it next reads its input."""
        if line is not Line.GO:
            raise ValueError(f"{line} is driven by the firmware")
        self._call("inputs", levels=int(level))

    def read_memory(self, address: int, size_b: int) -> bytes:
        """Returns RAM or flash without disturbing the core."""
        return base64.b64decode(self._call("read", address=address, size_b=size_b)["content"])

    def write_memory(self, address: int, content: bytes) -> None:
        """Writes RAM without resetting the core."""
        self._call("write", address=address, content=base64.b64encode(content).decode("ascii"))

    def layer_instructions(self) -> tuple[int, ...] | None:
        """Returns instructions issued per layer entry, rounded; 0 for a layer that was never entered."""
        accounts = self._call("accounts")
        counts = zip(accounts["instructions"][1:], accounts["entries"][1:], strict=True)
        return tuple(round(issued / entries) if entries else 0 for issued, entries in counts)

    def throttled_share(self) -> float:
        """Returns the share of the time since reset that the clock was clamped, 0..1."""
        return self._throttled_ns / self._time_ns if self._time_ns else 0.0

    def counts(self) -> dict[str, int]:
        """Returns instructions and blocks since reset, how often the scout ran, and what the board doubts.

        ``varying_blocks`` are executions of blocks whose traffic was seen to change: their energy is a mean.
        """
        accounts, state = self._call("accounts"), self._call("state")
        return {
            "instructions": sum(accounts["instructions"]),
            "blocks": sum(accounts["blocks"]),
            "varying_blocks": sum(accounts["varying"]),
            "scout_runs": state["scout_runs"],
            "edges_lost": state["edges_lost"],
            "cycles": state["cycles"],
            "true_fj": state["true_fj"],
        }

    def rail(self) -> RailActivity:
        """Returns what left the rail since reset, the run factor included; whole rows only."""
        if not self._recorded:
            raise ValueError("the board was reset without record_rail")
        state = self._call("state")
        if state["rows_saturated"]:
            raise OverflowError("a row holds more energy than its 32 bits")
        edges = tuple(
            Marker(
                time_ns=time_ns,
                name=_LINES[line].value,
                direction=EdgeDirection.RISE if level else EdgeDirection.FALL,
            )
            for time_ns, line, level in self._call("edges")["edges"]
        )
        return RailActivity(row_s=_ROW_NS / _NS_PER_S, energy_fj=self._link.read_rows(state["rows"]), edges=edges)

    def truth(self) -> BoardTruth:
        """Returns the true energies while GATE was high, at run factor 1; all zero when it never was."""
        accounts = self._call("accounts")
        energy_j = np.array(accounts["gate_fj"], np.float64) * _J_PER_FJ
        return BoardTruth(
            gate_j=sum(accounts["gate_fj"]) * _J_PER_FJ,
            layer_j=energy_j[1:],
            gap_j=float(energy_j[0]),
            layer_cycles=np.array(accounts["gate_cycles"][1:], np.int64),
            layer_entries=np.array(accounts["gate_entries"][1:], np.int64),
            gate_cycles=sum(accounts["gate_cycles"]),
            run_factor=self._run_factor,
        )

    def close(self) -> None:
        """Ends the board's process; idempotent."""
        self._link.close()

    def _call(self, operation: str, **fields: Any) -> dict[str, Any]:
        limit_s = self._wall_limit_s or _QUICK_WALL_S + _WALL_PER_BOARD_S * self._deadline_s
        try:
            return self._link.call(operation, wall_s=limit_s, **fields)
        except BoardRefusal as error:
            raise ValueError(f"the board refused '{operation}': {error}") from error

    def _take_state(self, state: dict[str, Any]) -> None:
        self._time_ns = state["time_ns"]
        self._throttled_ns = state["throttled_ns"]

    def _flash_content(self, image: ElfImage) -> bytes:
        """Returns the flash from its start; checks that every segment fits and that the core can start."""
        flash, ram = self._target.region("flash"), self._target.region("ram")
        content = bytearray()
        for segment in image.segments:
            if segment.content:
                start = segment.load_address - flash.origin
                _check_fits("flash", start, len(segment.content), flash.size_b)
                content.extend(b"\xff" * (start + len(segment.content) - len(content)))
                content[start : start + len(segment.content)] = segment.content
            if segment.run_address >= ram.origin:
                _check_fits("ram", segment.run_address - ram.origin, segment.memory_b, ram.size_b)
        stack, entry = (int.from_bytes(content[k : k + 4], "little") for k in (0, 4))
        if not entry & 1 or entry - flash.origin >= len(content) or not ram.origin < stack <= ram.origin + ram.size_b:
            raise _build_error(
                f"the image has no entry: its vector table starts with {stack:#x} {entry:#x}", "image-no-entry"
            )
        return bytes(content)


def _to_ns(seconds: float) -> int:
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"a board time must be finite and >= 0 s, got {seconds}")
    return round(seconds * _NS_PER_S)


def _check_fits(region: str, start: int, size_b: int, have_b: int) -> None:
    if start < 0:
        raise _build_error(f"the image has a segment before {region}", "image-no-entry")
    if start + size_b > have_b:
        raise CapacityError(
            f"the image does not fit {region}: needs {start + size_b} bytes, has {have_b}",
            hint="choose a smaller model or a target with more memory",
            slug="memory-overflow",
            phase="setup",
            details={"region": region, "need_b": start + size_b, "have_b": have_b},
        )


def _build_error(message: str, slug: str) -> BuildError:
    return BuildError(message, hint="build the firmware for this target again", slug=slug, phase="setup")
