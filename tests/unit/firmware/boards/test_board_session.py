"""How a session stops and sleeps, what a fault says, and what an image must be."""

from __future__ import annotations

from pathlib import Path

import pytest

from board_bench import LAYERS, build_firmware, build_network, firmware_source, open_session, read_word
from joulemap.errors import BuildError, CapacityError, PowerError
from joulemap.firmware.boards.base import ResetOptions, StopReason
from joulemap.firmware.boards.virtual_m33.board import VIRTUAL_M33
from joulemap.firmware.toolchains.zig import ZigToolchain
from joulemap.records.target import Line

SECOND = ResetOptions(deadline_s=1.0)
GO_TIMEOUT = """
volatile uint32_t phase;
int main(void) {
    phase = 1;
    wake_after_us(3000);
    uint32_t start = cycle_counter();
    while (!(inputs() & GO)) {
        sleep_once();
        if (cycle_counter() - start >= 300000) { phase = 9; park(); }
    }
    wake_after_us(0);
    phase = 2;
    park();
}
"""


def test_a_sleeping_core_wakes_at_its_own_time_at_the_latest() -> None:
    artifact = build_firmware(GO_TIMEOUT)
    with open_session(artifact) as session:
        session.reset(SECOND)
        assert session.run().reason is StopReason.IDLE
        session.advance(1e-3)
        assert session.time_ns == pytest.approx(1e6, rel=0.05)
        session.advance(0.5)
        assert session.time_ns == pytest.approx(3e6, rel=0.05)
        session.run()
        assert read_word(session, artifact, "phase") == 9


def test_a_cancelled_wake_up_does_not_cut_a_later_sleep_short() -> None:
    artifact = build_firmware(GO_TIMEOUT)
    with open_session(artifact) as session:
        session.reset(SECOND)
        session.run()
        session.set_line(Line.GO, level=True)
        assert session.run().reason is StopReason.IDLE
        assert read_word(session, artifact, "phase") == 2
        before_ns = session.time_ns
        session.advance(0.1)
        assert session.time_ns - before_ns == 100_000_000


def test_a_wake_up_that_came_before_the_sleep_is_not_lost() -> None:
    artifact = build_firmware(
        "volatile uint32_t woken; int main(void) { wake_after_us(10); for (volatile int i = 0; i < 1000; i++) {}"
        " sleep_once(); woken = 1; sleep_once(); woken = 2; park(); }"
    )
    with open_session(artifact) as session:
        session.reset(SECOND)
        assert session.run().reason is StopReason.IDLE
        assert read_word(session, artifact, "woken") == 1  # it came once
        before_ns = session.time_ns
        session.advance(1e-3)
        assert session.time_ns - before_ns == 1_000_000


def test_an_awake_core_goes_on_while_time_passes() -> None:
    artifact = build_firmware(
        "volatile uint32_t phase; int main(void) { outputs(READY); for (volatile int i = 0; i < 1000; i++) {}"
        " phase = 7; park(); }"
    )
    with open_session(artifact) as session:
        session.reset(SECOND)
        assert session.run(until=frozenset({Line.READY})).reason is StopReason.EDGE
        session.advance(1e-6)
        assert read_word(session, artifact, "phase") == 0
        session.advance(10e-3)
        assert read_word(session, artifact, "phase") == 7
        assert session.time_ns == pytest.approx(10e6, rel=0.01)


@pytest.mark.parametrize("body", ['for (;;) __asm volatile("nop");', "park();"])
def test_nothing_runs_past_the_deadline(body: str) -> None:
    artifact = build_firmware(f"volatile uint32_t phase; int main(void) {{ phase = 6; {body} }}")
    with open_session(artifact) as session:
        session.reset(ResetOptions(deadline_s=2e-3))
        session.run()
        session.advance(10.0)
        stop = session.run()
        assert stop.reason is StopReason.DEADLINE
        assert stop.time_ns == pytest.approx(2e6, rel=0.001)
        assert session.run().reason is StopReason.DEADLINE
        assert read_word(session, artifact, "phase") == 6  # read without a reset


@pytest.mark.parametrize(
    ("body", "address"),
    [
        ("*(volatile uint32_t *)0x100u = 1u;", 0x100),
        ("(void)*(volatile uint32_t *)0x30000000u;", 0x30000000),
        ("*(volatile uint32_t *)0x20080000u = 1u;", 0x20080000),
        ("((void (*)(void))0x20000101u)();", 0x20000100),
        ('__asm volatile("bkpt #1");', None),
        ('__asm volatile("udf #0");', None),
        ("((void (*)(void))0x100001u)();", None),
    ],
    ids=["write flash", "read nothing", "write past RAM", "run RAM", "breakpoint", "undefined", "run erased flash"],
)
def test_a_hard_fault_is_an_event_with_registers(body: str, address: int | None) -> None:
    artifact = build_firmware(
        f"volatile uint32_t phase; __attribute__((noinline)) void culprit(void) {{ {body} }}"
        " int main(void) { phase = 3; outputs(READY); culprit(); phase = 4; park(); }"
    )
    with open_session(artifact) as session:
        session.reset(SECOND)
        assert session.run(until=frozenset({Line.READY})).reason is StopReason.EDGE
        stop = session.run()
        assert stop.reason is StopReason.HARD_FAULT
        assert stop.message
        assert {"pc", "sp", "lr", "xpsr", "r0", "r12"} <= stop.registers.keys()
        assert stop.registers.get("fault_address") == address
        if "RAM" not in body and address != 0x20000100 and "0x100001" not in body:
            start, size_b = artifact.symbols["culprit"]
            assert start <= stop.registers["pc"] <= start + size_b
        assert session.run().reason is StopReason.HARD_FAULT
        assert read_word(session, artifact, "phase") == 3
        session.reset(SECOND)
        assert session.run(until=frozenset({Line.READY})).reason is StopReason.EDGE


def test_a_fault_word_reaches_the_firmware() -> None:
    artifact = build_firmware(
        "volatile uint32_t seen[2]; int main(void) { seen[0] = fault_select(); seen[1] = fault_argument(); park(); }"
    )
    with open_session(artifact) as session:
        session.reset(ResetOptions(deadline_s=1.0, fault_select=0x1234, fault_argument=7))
        session.run()
        assert [read_word(session, artifact, "seen", k) for k in (0, 1)] == [0x1234, 7]


def test_memory_is_written_without_a_reset_and_cleared_by_one() -> None:
    artifact = build_firmware(
        "volatile uint32_t word = 5; int main(void) { word += 1; sleep_once(); word += 1; park(); }"
    )
    address, _ = artifact.symbols["word"]
    with open_session(artifact) as session:
        session.reset(SECOND)
        session.run()
        session.write_memory(address, (100).to_bytes(4, "little"))
        session.run()
        assert read_word(session, artifact, "word") == 101
        session.reset(SECOND)
        session.run()
        assert read_word(session, artifact, "word") == 6
        assert session.read_memory(0, 4) == (0x20080000).to_bytes(4, "little")
        with pytest.raises(ValueError, match="no memory at 0x20080000"):
            session.read_memory(0x20080000, 1)
        with pytest.raises(ValueError, match="no RAM at 0x0"):
            session.write_memory(0, b"x")


def test_one_session_takes_another_image() -> None:
    first = build_firmware("volatile uint32_t word; int main(void) { word = 1; park(); }")
    second = build_firmware("volatile uint32_t other[8], word; int main(void) { other[0] = 9; word = 2; park(); }")
    with open_session(first) as session:
        for artifact, expected in ((first, 1), (second, 2), (first, 1)):
            session.flash(artifact.elf, layer_symbols=())
            session.reset(SECOND)
            session.run()
            assert read_word(session, artifact, "word") == expected


def test_a_board_refuses_what_it_was_not_prepared_for() -> None:
    with open_session(build_network(), layers=LAYERS) as session:
        with pytest.raises(ValueError, match="not reset"):
            session.run()
        session.reset(SECOND)
        with pytest.raises(ValueError, match="record_rail"):
            session.rail()
        with pytest.raises(ValueError, match="driven by the firmware"):
            session.set_line(Line.GATE, level=True)
        with pytest.raises(ValueError, match="finite"):
            session.advance(float("nan"))
        for factors in ({"run_factor": 0.0}, {"run_factor": float("nan")}, {"layer_factors": (1.0, 2.0)}):
            with pytest.raises(ValueError, match="factors"):
                session.reset(ResetOptions(deadline_s=1.0, **factors))
        with pytest.raises(PowerError) as caught:
            session.reset(ResetOptions(deadline_s=5000.0, record_rail=True))
        assert caught.value.slug == "window-too-long"


def test_a_damaged_image_is_refused(tmp_path: Path) -> None:
    content = build_network().elf.read_bytes()
    with open_session(build_network(), layers=LAYERS) as session:
        for k, damaged in enumerate(
            [b"", b"\x7fELF", b"no image", content[:40], content[:100], content[: len(content) // 2]]
        ):
            path = tmp_path / f"{k}.elf"
            path.write_bytes(damaged)
            with pytest.raises(BuildError) as caught:
                session.flash(path, layer_symbols=())
            assert caught.value.slug == "elf-corrupt"
        with pytest.raises(BuildError):
            session.flash(tmp_path / "absent.elf", layer_symbols=())
        with pytest.raises(BuildError) as caught:
            session.flash(build_network().elf, layer_symbols=("layer_999",))
        assert caught.value.slug == "layer-symbol-missing"


def test_an_image_for_another_memory_is_refused() -> None:
    source = firmware_source(
        '#include "board.h"\nstatic volatile char big[600000]; int main(void) { big[5] = 1; park(); }'
    )
    larger = source.files["test.ld"].replace("LENGTH = 512K", "LENGTH = 1024K").replace("LENGTH = 2M", "LENGTH = 8M")
    wide = firmware_source(source.files["main.c"])
    artifact = ZigToolchain().build(
        type(wide)(role=wide.role, files={**wide.files, "test.ld": larger}), VIRTUAL_M33.cpu
    )
    with open_session(build_network()) as session:
        with pytest.raises(CapacityError) as caught:
            session.flash(artifact.elf, layer_symbols=())
        assert caught.value.details["region"] == "ram"
        assert caught.value.details["have_b"] == 512 * 1024


def test_an_image_without_an_entry_is_refused() -> None:
    source = firmware_source('#include "board.h"\nint main(void) { park(); }')
    files = {**source.files, "startup.c": source.files["startup.c"].replace("&stack_top,", "(void *)0,")}
    artifact = ZigToolchain().build(type(source)(role=source.role, files=files), VIRTUAL_M33.cpu)
    with open_session(build_network()) as session, pytest.raises(BuildError) as caught:
        session.flash(artifact.elf, layer_symbols=())
    assert caught.value.slug == "image-no-entry"
