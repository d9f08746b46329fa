"""Speed of the virtual board against the bare emulator on the same power image: how much accounting costs.

Run: python benchmarks/bench_guest.py [MODEL.tflite ...] [--count N] [--rounds 5]

Without a model the demo's DS-CNN is used. Each round runs the same image once per mode, in turn: bare emulation (no
hook at all), counting (cycles, energy, layer truth), counting with 1 us power rows, and what a power run does: rows
and traffic per region priced by the scout. Memory hooks on every access are shown with --hooks: they are what the
scout replaces. Target of the whole: >= 0.7.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # a script finds its neighbours by its own folder
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "examples"))
from make_ds_cnn import build_ds_cnn
from ratios import print_ratio, time_in_turn

from joulemap.firmware.boards.base import ResetOptions, StopReason
from joulemap.firmware.boards.virtual_m33.board import VIRTUAL_M33, VirtualM33Board
from joulemap.firmware.boards.virtual_m33.client import VirtualM33Session
from joulemap.firmware.engines.registry import engine
from joulemap.firmware.stages.sources import render_power_source
from joulemap.firmware.toolchains.registry import toolchain
from joulemap.records.fault import FaultPlan
from joulemap.records.firmware import FirmwareArtifact
from joulemap.records.power import PowerRunPlan
from joulemap.records.target import Line

DEADLINE_S = 120.0
TARGET = 0.7


def build_image(model: Path, count: int) -> tuple[FirmwareArtifact, list[str]]:
    """Returns the power image of a model and its layer symbols."""
    prepared = engine("aot").prepare(model, inputs=None, seed=0)
    plan = PowerRunPlan(
        requested_count=count, repeats=1, reference_inference_us=0.0, planned_runtime_s=0.0, boot_allowance_s=5.0,
        fixed_margin_s=2.0, execution_deadline_s=DEADLINE_S, gate_tolerance_s=1e-3, idle_window_s=1e-3, tail_s=0.0,
        lockstep=True, expected_crc32=None,
    )  # fmt: skip
    source = render_power_source(prepared, VIRTUAL_M33, FaultPlan(), plan)
    layers = [f"hpx_layer_{index:03d}" for index in range(len(prepared.summary.layers))]
    return toolchain("zig").build(source, VIRTUAL_M33.cpu), layers


def run_once(session: VirtualM33Session, *, record_rail: bool) -> None:
    """Runs the whole image: GO is given before it is waited for."""
    session.reset(ResetOptions(deadline_s=DEADLINE_S, record_rail=record_rail))
    session.set_line(Line.GO, level=True)
    stop = session.run()
    if stop.reason is not StopReason.IDLE:
        raise RuntimeError(f"the image did not reach its park loop: {stop}")


def bench_model(model: Path, *, count: int, rounds: int, hooks: bool) -> None:
    """Prints the ratios of one model."""
    artifact, layers = build_image(model, count)
    boards = {
        "counting": (VirtualM33Board(pricing="none"), False),
        "counting and 1 us rows": (VirtualM33Board(pricing="none"), True),
        "counting, 1 us rows and traffic (scout)": (VirtualM33Board(), True),
        "bare": (VirtualM33Board(accounting=False), False),
    }
    if hooks:
        boards["memory hooks always"] = (VirtualM33Board(pricing="hook"), False)
    with ExitStack() as stack:
        calls = {}
        for name, (board, record_rail) in boards.items():
            session = board.open()
            stack.callback(session.close)
            session.flash(artifact.elf, layer_symbols=layers)
            calls[name] = functools.partial(run_once, session, record_rail=record_rail)
            if name == "counting":
                run_once(session, record_rail=False)
                instructions = session.counts()["instructions"]
        seconds = time_in_turn(calls, rounds=rounds)
    bare_mips = instructions / 1e6 / seconds["bare"]
    print(f"{model.stem}: {instructions / 1e6:.1f} M guest instructions, bare {bare_mips:.0f} MIPS")
    for name in boards:
        if name != "bare":
            ratio = seconds["bare"] / seconds[name]
            whole = "scout" in name
            print_ratio(
                f"{model.stem}: {name} / bare",
                ratio,
                target=f">= {TARGET}" if whole else "",
                met=ratio >= TARGET if whole else None,
            )


def main() -> None:
    """Parses the arguments and runs each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, help="int8 .tflite files; none for the demo's DS-CNN")
    parser.add_argument("--count", type=int, default=10, help="inferences per run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--hooks", action="store_true", help="show memory hooks on every access too (slow)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder) / "ds_cnn.tflite"
        if not arguments.models:
            demo.write_bytes(build_ds_cnn(0))
        for model in arguments.models or [demo]:
            bench_model(model, count=arguments.count, rounds=arguments.rounds, hooks=arguments.hooks)


if __name__ == "__main__":
    main()
