"""What every board of the registry owes to the pipeline, whichever it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from board_bench import firmware_source
from joulemap.errors import BuildError, SetupError, UsageError
from joulemap.estimate import Provenance
from joulemap.firmware.boards.base import Board, BoardSession, ResetOptions, StopReason
from joulemap.firmware.boards.registry import board, board_names
from joulemap.firmware.toolchains.zig import ZigToolchain
from joulemap.records.firmware import FirmwareArtifact
from joulemap.records.target import Line

NETWORK = (Path(__file__).parents[1] / "support" / "firmware" / "network.c").read_text(encoding="utf-8")
LAYERS = ("layer_000", "layer_001", "layer_002")


@pytest.fixture(params=board_names())
def kind(request: pytest.FixtureRequest) -> Board:
    name: str = request.param
    return board(name)


@pytest.fixture
def image(kind: Board) -> FirmwareArtifact:
    return ZigToolchain().build(firmware_source(NETWORK), kind.target.cpu)


@pytest.fixture
def session(kind: Board, image: FirmwareArtifact) -> Iterator[BoardSession]:
    opened = kind.open()
    opened.flash(image.elf, layer_symbols=LAYERS)
    yield opened
    opened.close()


def _to_gate_fall(session: BoardSession, options: ResetOptions) -> None:
    session.reset(options)
    assert session.run(until=frozenset({Line.READY})).line is Line.READY
    assert session.run().reason is StopReason.IDLE
    session.advance(1e-3)
    session.set_line(Line.GO, True)
    assert session.run(until=frozenset({Line.GATE})).level is True
    assert session.run(until=frozenset({Line.GATE})).level is False


def test_the_target_is_whole(kind: Board) -> None:
    target = kind.target
    assert target.name in board_names()
    assert target.description
    assert target.operating_point.core_hz > 0
    for name in ("flash", "ram"):
        assert target.region(name).size_b > 0
    assert target.transports
    assert target.provenance is not Provenance.UNAVAILABLE


def test_a_board_that_can_run_has_nothing_to_say(kind: Board) -> None:
    assert kind.diagnose() == []


def test_an_unknown_name_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UsageError, match="no target named tin-can") as caught:
        board("tin-can")
    assert all(name in caught.value.hint for name in board_names())


def test_the_handshake_and_the_gate(session: BoardSession) -> None:
    _to_gate_fall(session, ResetOptions(deadline_s=5.0, record_rail=True))
    stop = session.run()
    assert stop.reason is StopReason.IDLE
    rail, truth = session.rail(), session.truth()
    assert [marker.name for marker in rail.edges] == ["ready", "gate", "gate"]
    assert truth.layer_j.shape == (3,)
    assert (truth.layer_j > 0).all()
    assert truth.gate_j == pytest.approx(truth.layer_j.sum() + truth.gap_j, rel=1e-9)
    gate = [marker.time_ns for marker in rail.edges if marker.name == "gate"]
    rows = slice(int(gate[0] * 1e-9 / rail.row_s), int(gate[1] * 1e-9 / rail.row_s))
    assert rail.energy_fj[rows].sum(dtype=np.uint64) * 1e-15 == pytest.approx(truth.gate_j, rel=0.02)
    assert 0.0 <= session.throttled_share() <= 1.0
    counts = session.layer_instructions()
    assert counts is None or all(count > 0 for count in counts)


def test_a_reset_starts_anew(session: BoardSession) -> None:
    options = ResetOptions(deadline_s=5.0, record_rail=True)
    _to_gate_fall(session, options)
    first = session.truth()
    _to_gate_fall(session, options)
    second = session.truth()
    assert first.gate_j == pytest.approx(second.gate_j, rel=1e-3)
    assert first.gate_cycles == pytest.approx(second.gate_cycles, rel=1e-3)


def test_memory_is_read_and_written_without_a_reset(session: BoardSession, image: FirmwareArtifact) -> None:
    session.reset(ResetOptions(deadline_s=5.0))
    session.run()
    address, size_b = image.symbols["result"]
    assert session.read_memory(address, size_b) == bytes(4)
    session.write_memory(address, b"\x01\x02\x03\x04")
    assert session.read_memory(address, size_b) == b"\x01\x02\x03\x04"


def test_a_deadline_ends_a_wait(session: BoardSession) -> None:
    session.reset(ResetOptions(deadline_s=5e-3))
    session.run()
    session.advance(1.0)
    assert session.run().reason is StopReason.DEADLINE


def test_no_image_and_a_damaged_one_are_build_errors(session: BoardSession, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.elf"
    damaged.write_bytes(b"\x7fELF" + bytes(60))
    for path in (damaged, tmp_path / "absent.elf"):
        with pytest.raises(BuildError):
            session.flash(path, layer_symbols=())


def test_closing_is_idempotent(kind: Board) -> None:
    opened = kind.open()
    opened.close()
    opened.close()


def test_every_problem_of_a_board_has_a_fix(kind: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    # an interpreter that finds no package at all: the outside world, not a module of ours
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    problems = kind.diagnose()
    assert problems
    assert all(problem and fix for problem, fix in problems)
    with pytest.raises(SetupError) as caught:
        kind.open()
    assert caught.value.hint
