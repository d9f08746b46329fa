# Copyright (c) joulemap contributors.
# SPDX-License-Identifier: BSD-3-Clause
#
# A program of its own: it runs in its own process and imports nothing of joulemap. Licence text: LICENSE.worker.
"""The virtual Cortex-M33 as a program of its own: an emulator, driven by JSON lines on standard input and output.

    python worker.py LIBRARY ROWS_FD PARENT_PID

LIBRARY is the board core compiled for this machine; ROWS_FD is an inherited descriptor of shared memory for the energy
rows. The first line out is a greeting with the protocol version. Each line in is ``{"op": name, ...}``, each line out
``{"ok": {...}}``, ``{"error": text}`` or, where this machine lacks memory, space or descriptors,
``{"exhausted": text}``. The program ends at the end of its input or when its parent is gone; Ctrl-C is the parent's
affair. Lines are UTF-8, whatever the environment says.
"""

from __future__ import annotations

import base64
import ctypes
import json
import mmap
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import unicorn
from unicorn import arm_const
from unicorn.unicorn_py3 import unicorn as binding

PROTOCOL = 1
RAM_BASE = 0x20000000
MMIO_BASE, MMIO_B = 0x40000000, 0x10000
PPB_BASE, PPB_B = 0xE0000000, 0x100000
NEVER = 2**64 - 1
PARENT_POLL_S = 0.5
STOPS = ("idle", "edge", "deadline", "brown_out", "pause")
AWAKE, ASLEEP, LOCKED, UNPOWERED = range(4)
STATE_NAMES = (
    "time_ns", "cycles", "true_fj", "rows", "rows_saturated", "stop", "core_state", "edges", "edges_lost",
    "throttled_ns", "edge_ns", "edge_line", "edge_level", "scout_runs", "scout_overflowed",
)  # fmt: skip
ACCOUNT_NAMES = ("gate_fj", "gate_cycles", "gate_entries", "entries", "instructions", "blocks", "varying")
PRICINGS = ("scout", "hook", "none")
CORE_REGISTERS = [f"r{k}" for k in range(13)] + ["sp", "lr", "xpsr"]
REGISTER_IDS = [
    getattr(arm_const, f"UC_ARM_REG_{name.upper()}")
    for name in (*CORE_REGISTERS, *(f"d{k}" for k in range(16)), "fpscr")
]


def fields_of(kind: Any, *names: str) -> list[tuple[str, Any]]:
    """Returns fields of one C type."""
    return [(name, kind) for name in names]


def layout(name: str, *fields: tuple[str, Any]) -> Any:
    """Returns the type of a C struct of ``board.h`` or ``api.c``."""
    return type(name, (ctypes.Structure,), {"_fields_": fields})


COEFFICIENTS = layout(
    "coefficients",
    *fields_of(ctypes.c_uint32 * 10, "class_cycles", "class_fj"),
    *fields_of(ctypes.c_uint32 * 4, "traffic_fj_per_b", "peripheral_uw"),
    *fields_of(ctypes.c_uint32, "static_uw", "clock_fj_per_cycle", "sleep_static_uw", "sleep_clock_fj_per_cycle"),
    *fields_of(ctypes.c_uint32, "wake_cycles", "period_ns", "throttled_period_ns"),
)
EMULATOR = layout("emulator", *fields_of(ctypes.c_void_p, "stop", "start", "read_registers", "write_registers"))
DESCRIPTION = layout(
    "description",
    ("image", ctypes.c_char_p),
    *fields_of(ctypes.c_uint32, "image_b", "code_b"),
    ("ram", ctypes.c_void_p),
    *fields_of(ctypes.c_uint32, "ram_b", "layer_count"),
    ("layer_entries", ctypes.POINTER(ctypes.c_uint32)),
)
RUN_OPTIONS = layout(
    "run_options",
    ("rows", ctypes.c_void_p),
    *fields_of(ctypes.c_uint64, "row_capacity", "row_ns", "deadline_ns", "brown_out_ns", "throttle_ns", "run_factor"),
    ("layer_factors", ctypes.POINTER(ctypes.c_uint64)),
    *fields_of(ctypes.c_uint32, "fault_select", "fault_argument", "pricing"),
)
EDGE = layout("edge", ("time_ns", ctypes.c_uint64), *fields_of(ctypes.c_uint32, "line", "level"))


def q32(factor: float) -> int:
    """Returns a factor as fixed point with 32 fractional bits."""
    return round(factor * 2**32)


def handle_of(emulator: Any) -> ctypes.c_void_p:
    """Returns the C handle of an emulator, which the binding has no public name for."""
    handle: ctypes.c_void_p = emulator._uch  # noqa: SLF001
    return handle


class SharedRows:
    """Energy rows in memory that the parent maps too: (n,) uint32 fJ."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._memory: mmap.mmap | None = None
        self._anchor: Any = None

    def resize(self, count: int) -> int | None:
        """Makes room for ``count`` rows of zeros; returns their address, None for no rows."""
        self._anchor = None
        if self._memory is not None:
            self._memory.close()
            self._memory = None
        os.ftruncate(self._descriptor, 0)
        if not count:
            return None
        os.ftruncate(self._descriptor, 4 * count)
        self._memory = mmap.mmap(self._descriptor, 4 * count)
        self._anchor = ctypes.c_char.from_buffer(self._memory)
        return ctypes.addressof(self._anchor)


class Board:
    """One board: flash and RAM that last, and an emulator that each reset makes anew."""

    def __init__(self, library: str, rows_descriptor: int) -> None:
        self._core = ctypes.CDLL(library)
        self._core.board_new.restype = ctypes.c_void_p
        self._rows = SharedRows(rows_descriptor)
        self._board: ctypes.c_void_p | None = None
        self._flash = b""
        self._ram = mmap.mmap(-1, mmap.PAGESIZE)
        self._ram_anchor = ctypes.c_char.from_buffer(self._ram)
        self._layer_count = 0
        self._emulators: list[Any] = []
        self._kept: list[Any] = []  # what the core points to
        self._pc = 0
        self._fault: dict[str, Any] | None = None
        self._invalid_address: int | None = None

    # --- operations: each takes the message's fields and returns the answer's

    def flash(self, image: str, flash_b: int, ram_b: int, code_b: int, **rest: Any) -> dict[str, Any]:
        """Programs the image and describes its layers to the core; the board then needs a reset."""
        self._drop()
        content = base64.b64decode(image)
        self._flash = content.ljust(flash_b, b"\xff")
        self._ram = mmap.mmap(-1, ram_b)
        self._ram_anchor = ctypes.c_char.from_buffer(self._ram)
        entries = rest["layer_entries"]
        self._layer_count = len(entries)
        description = DESCRIPTION(
            content, len(content), code_b, ctypes.addressof(self._ram_anchor), ram_b, len(entries),
            (ctypes.c_uint32 * max(1, len(entries)))(*entries),
        )  # fmt: skip
        coefficients = COEFFICIENTS(
            **{name: tuple(value) if isinstance(value, list) else value for name, value in rest["coefficients"].items()}
        )
        library = binding.uclib
        names = ("uc_emu_stop", "uc_emu_start", "uc_reg_read_batch", "uc_reg_write_batch")
        emulator = EMULATOR(*(ctypes.cast(getattr(library, name), ctypes.c_void_p) for name in names))
        board = self._core.board_new(
            ctypes.byref(description), ctypes.byref(coefficients), ctypes.byref(emulator),
            (ctypes.c_int * len(REGISTER_IDS))(*REGISTER_IDS),
        )  # fmt: skip
        if not board:
            raise MemoryError("no memory for the board")
        self._board = ctypes.c_void_p(board)
        return {}

    def reset(self, deadline_ns: int, *, record: bool, pricing: str, accounting: bool, **rest: Any) -> dict[str, Any]:
        """Starts the image anew with a fresh emulator."""
        board = self._programmed()
        self._emulators = []
        self._fault = self._invalid_address = None
        self._ram.seek(0)
        self._ram.write(bytes(len(self._ram)))
        stack, entry = struct.unpack_from("<II", self._flash)
        self._pc = entry & ~1
        capacity = deadline_ns // rest["row_ns"] + 2 if record else 0
        factors = rest["layer_factors"]
        layer_factors = (ctypes.c_uint64 * len(factors))(*map(q32, factors)) if factors else None
        options = RUN_OPTIONS(
            self._rows.resize(capacity), capacity, rest["row_ns"], deadline_ns, rest["brown_out_ns"] or NEVER,
            rest["throttle_ns"] or NEVER, q32(rest["run_factor"]), layer_factors, rest["fault_select"],
            rest["fault_argument"], PRICINGS.index(pricing),
        )  # fmt: skip
        self._kept = [layer_factors]
        scout = None
        if accounting and pricing == "scout":
            scout = self._emulator(board, "board_on_scout_mmio_read", "board_on_scout_mmio_write", ppb=None)
            self._hook(scout, unicorn.UC_HOOK_BLOCK, "board_on_scout_block")
            self._hook(scout, unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE, "board_on_scout_access")
        self._core.board_reset(board, ctypes.byref(options), handle_of(scout) if scout else None)
        main = self._emulator(
            board, "board_on_mmio_read", "board_on_mmio_write", ppb=("board_on_ppb_read", "board_on_ppb_write")
        )
        if accounting:
            self._hook(main, unicorn.UC_HOOK_BLOCK, "board_on_block")
        if accounting and pricing == "hook":
            self._hook(main, unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE, "board_on_access")
        main.hook_add(unicorn.UC_HOOK_MEM_INVALID, self._on_invalid)
        main.reg_write(arm_const.UC_ARM_REG_SP, stack)
        self._emulators = [main, scout]
        return {}

    def run(self, until: int = 0, pause_ns: int = NEVER) -> dict[str, Any]:
        """Runs to an edge of the wanted lines, an idle core, a limit or a fault."""
        board = self._running()
        state = self.state()
        if self._fault is None and state["core_state"] != UNPOWERED:
            state = self._execute(board, until, pause_ns)
        reason = STOPS[state["stop"]]
        if self._fault is not None:
            return state | {"reason": "hard_fault", **self._fault}
        return state | {"reason": "brown_out" if state["core_state"] == UNPOWERED else reason}

    def advance(self, duration_ns: int) -> dict[str, Any]:
        """Lets time pass: a core that is awake goes on until it sleeps, a sleeping one at most to its wake-up."""
        board = self._running()
        state = self.state()
        until_ns = state["time_ns"] + duration_ns
        if state["core_state"] == AWAKE:
            state = self.run(0, until_ns)
        if state["core_state"] != AWAKE and state["time_ns"] < until_ns:
            self._core.board_pass_time(board, ctypes.c_uint64(until_ns))
        return self.state()

    def inputs(self, levels: int) -> dict[str, Any]:
        """Drives the lines of the host."""
        self._core.board_set_inputs(self._running(), levels)
        return {}

    def read(self, address: int, size_b: int) -> dict[str, Any]:
        """Returns bytes of RAM or flash."""
        self._programmed()
        for base, content in ((RAM_BASE, self._ram), (0, self._flash)):
            start = address - base
            if start >= 0 and start + size_b <= len(content):
                return {"content": base64.b64encode(content[start : start + size_b]).decode("ascii")}
        raise ValueError(f"no memory at {address:#x}, {size_b} bytes")

    def write(self, address: int, content: str) -> dict[str, Any]:
        """Writes RAM."""
        self._programmed()
        data = base64.b64decode(content)
        start = address - RAM_BASE
        if start < 0 or start + len(data) > len(self._ram):
            raise ValueError(f"no RAM at {address:#x}, {len(data)} bytes")
        self._ram[start : start + len(data)] = data
        return {}

    def state(self) -> dict[str, Any]:
        """Returns the scalars of the run."""
        out = (ctypes.c_uint64 * len(STATE_NAMES))()
        self._core.board_read_state(self._running(), out)
        return dict(zip(STATE_NAMES, out, strict=True))

    def edges(self) -> dict[str, Any]:
        """Returns every edge of READY and GATE: [time_ns, line, level]."""
        out = (EDGE * max(1, self.state()["edges"]))()
        self._core.board_read_edges(self._board, out)
        return {"edges": [[e.time_ns, e.line, e.level] for e in out[: self.state()["edges"]]]}

    def accounts(self) -> dict[str, Any]:
        """Returns the accounts of the gap and of each layer, in this order."""
        width = len(ACCOUNT_NAMES)
        out = (ctypes.c_uint64 * (width * (self._layer_count + 1)))()
        self._core.board_read_accounts(self._running(), out)
        return {name: list(out[k::width]) for k, name in enumerate(ACCOUNT_NAMES)}

    # --- inside

    def _programmed(self) -> ctypes.c_void_p:
        if self._board is None:
            raise RuntimeError("the board has no image")
        return self._board

    def _running(self) -> ctypes.c_void_p:
        if not self._emulators:
            raise RuntimeError("the board was not reset after it was programmed")
        return self._programmed()

    def _drop(self) -> None:
        self._emulators = []
        if self._board is not None:
            self._core.board_delete(self._board)
            self._board = None

    def _callback(self, name: str) -> ctypes.c_void_p:
        return ctypes.cast(getattr(self._core, name), ctypes.c_void_p)

    def _emulator(self, board: ctypes.c_void_p, read: str, write: str, *, ppb: tuple[str, str] | None) -> Any:
        emulator = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
        emulator.ctl_set_cpu_model(arm_const.UC_CPU_ARM_CORTEX_M33)
        emulator.mem_map(0, len(self._flash), unicorn.UC_PROT_READ | unicorn.UC_PROT_EXEC)
        emulator.mem_write(0, self._flash)
        library, handle = binding.uclib, handle_of(emulator)
        status = library.uc_mem_map_ptr(
            handle, ctypes.c_uint64(RAM_BASE), ctypes.c_size_t(len(self._ram)),
            ctypes.c_uint32(unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE),
            ctypes.c_void_p(ctypes.addressof(self._ram_anchor)),
        )  # fmt: skip
        ppb_read, ppb_write = ppb or (read, write)
        for base, size_b, on_read, on_write in (
            (MMIO_BASE, MMIO_B, read, write),
            (PPB_BASE, PPB_B, ppb_read, ppb_write),
        ):
            status = status or library.uc_mmio_map(
                handle, ctypes.c_uint64(base), ctypes.c_size_t(size_b), self._callback(on_read), board,
                self._callback(on_write), board,
            )  # fmt: skip
        if status:
            raise unicorn.UcError(status)
        return emulator

    def _hook(self, emulator: Any, kind: int, name: str) -> None:
        """Hooks a C function everywhere (an empty range means no limit)."""
        handle = ctypes.c_size_t()
        status = binding.uclib.uc_hook_add(
            handle_of(emulator), ctypes.byref(handle), ctypes.c_int(kind), self._callback(name), self._board,
            ctypes.c_uint64(1), ctypes.c_uint64(0),
        )  # fmt: skip
        if status:
            raise unicorn.UcError(status)

    def _on_invalid(self, _emulator: Any, _access: int, address: int, *_rest: Any) -> bool:
        self._invalid_address = address
        return False

    def _execute(self, board: ctypes.c_void_p, until: int, pause_ns: int) -> dict[str, Any]:
        main = self._emulators[0]
        asleep = False
        while not asleep:
            self._core.board_resume(board, until, ctypes.c_uint64(pause_ns))
            try:
                main.emu_start(self._pc | 1, 0xFFFFFFFE)
            except unicorn.UcError as error:
                self._fault = self._describe_fault(main, error)
                self._core.board_locked_up(board)
            self._pc = main.reg_read(arm_const.UC_ARM_REG_PC)
            if self._fault is not None or STOPS[self.state()["stop"]] != "idle":
                break
            asleep = bool(self._core.board_fell_asleep(board))
        return self.state()

    def _describe_fault(self, main: Any, error: Exception) -> dict[str, Any]:
        names = (*CORE_REGISTERS, "pc")
        registers = {name: main.reg_read(getattr(arm_const, f"UC_ARM_REG_{name.upper()}")) for name in names}
        if self._invalid_address is not None:
            registers["fault_address"] = self._invalid_address
        return {"message": str(error), "registers": registers}


def watch_parent(parent: int) -> None:
    """Ends this process when its parent is gone, even in the middle of a run."""
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_S)
    os._exit(1)


def answer(operations: dict[str, Callable[..., dict[str, Any]]], line: bytes) -> dict[str, Any]:
    """Returns the answer to one line of input."""
    try:
        message = json.loads(line)
        return {"ok": operations[message.pop("op")](**message)}
    except (OSError, MemoryError) as error:
        return {"exhausted": f"{type(error).__name__}: {error}".removesuffix(": ")}
    except Exception as error:  # noqa: BLE001  the root of this process: the parent gets every failure as text
        return {"error": f"{type(error).__name__}: {error}"}


def write_line(document: dict[str, Any]) -> None:
    """Writes one line of output at once."""
    sys.stdout.buffer.write(json.dumps(document).encode() + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    """Serves the board until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch_parent, args=(int(sys.argv[3]),), daemon=True).start()
    board = Board(sys.argv[1], int(sys.argv[2]))
    names = ("flash", "reset", "run", "advance", "inputs", "read", "write", "state", "edges", "accounts")
    operations = {name: getattr(board, name) for name in names}
    greeting = {"hello": "joulemap-board", "protocol": PROTOCOL, "emulator": f"unicorn {unicorn.__version__}"}
    write_line(greeting)
    for line in sys.stdin.buffer:
        write_line(answer(operations, line))


if __name__ == "__main__":
    main()
