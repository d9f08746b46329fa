"""The cycle counter and the edges: exact to a cycle, in the modelled cycles of the data file."""

from __future__ import annotations

import pytest

from board_bench import build_firmware, open_session, read_word
from joulemap.firmware.boards.base import ResetOptions, StopReason
from joulemap.firmware.boards.virtual_m33.power_model import CLASSES, read_power_model
from joulemap.records.target import Line

# instruction, class, registers that it moves; each stands alone between two reads of the counter
INSTRUCTIONS = [
    ("adds r0, r0, #1", "alu", 1),
    ("add.w r0, r0, r1, lsl #3", "alu", 1),
    ("movw r0, #0x1234", "alu", 1),
    ("ubfx r0, r1, #3, #5", "alu", 1),
    ("ssat r0, #8, r1", "alu", 1),
    ("muls r0, r1, r0", "multiply", 1),
    ("mla r0, r1, r2, r3", "multiply", 1),
    ("smlad r0, r1, r2, r3", "multiply", 1),
    ("smull r0, r1, r2, r3", "multiply", 1),
    ("udiv r0, r1, r3", "divide", 1),
    ("sdiv r0, r1, r3", "divide", 1),
    ("ldr r0, [sp]", "load", 1),
    ("ldrb.w r0, [sp, #1]", "load", 1),
    ("ldrsh.w r0, [sp, #2]", "load", 1),
    ("ldrd r0, r1, [sp]", "load", 2),
    ("ldm sp, {r0, r1, r2, r3}", "load", 4),
    ("str r0, [sp]", "store", 1),
    ("strb.w r0, [sp, #1]", "store", 1),
    ("strd r0, r1, [sp]", "store", 2),
    ("stm sp, {r0, r1, r2}", "store", 3),
    ("vadd.f32 s0, s1, s2", "float", 1),
    ("vmul.f32 s0, s1, s2", "float", 1),
    ("vmov s0, r0", "float", 1),
    ("vdiv.f32 s0, s1, s2", "float_divide", 1),
    ("vsqrt.f32 s0, s1", "float_divide", 1),
    ("vldr s0, [sp]", "load", 1),
    ("vstr s0, [sp]", "store", 1),
    ("vldm sp, {s0-s3}", "load", 4),
    ("dmb", "system", 1),
    ("mrs r0, primask", "system", 1),
    ("nop", "other", 1),
]


def _measured(instruction: str) -> str:
    """C of a function that returns the counter's advance over one instruction, the read's own cost included."""
    return (
        "push {r4, r5, r6, lr}\\n sub sp, sp, #32\\n movs r3, #7\\n bl cycle_counter\\n mov r4, r0\\n movs r3, #7\\n"
        f" {instruction}\\n bl cycle_counter\\n subs r0, r0, r4\\n add sp, sp, #32\\n pop {{r4, r5, r6, pc}}"
    )


@pytest.fixture(scope="module")
def advances() -> list[int]:
    bodies = [*(text for text, _, _ in INSTRUCTIONS), ""]
    functions = "".join(
        f'__attribute__((naked, noinline)) static uint32_t f{k}(void) {{ __asm volatile("{_measured(body)}"); }}\n'
        for k, body in enumerate(bodies)
    )
    calls = "".join(f"advance[{k}] = f{k}();" for k in range(len(bodies)))
    artifact = build_firmware(
        f"volatile uint32_t advance[{len(bodies)}];\n{functions}int main(void) {{ {calls} park(); }}"
    )
    with open_session(artifact) as session:
        session.reset(ResetOptions(deadline_s=1.0))
        stop = session.run()
        assert stop.reason is StopReason.IDLE, stop
        return [read_word(session, artifact, "advance", k) for k in range(len(bodies))]


@pytest.mark.parametrize("index", range(len(INSTRUCTIONS)), ids=[text for text, _, _ in INSTRUCTIONS])
def test_an_instruction_takes_the_cycles_of_its_class(advances: list[int], index: int) -> None:
    _, name, transfers = INSTRUCTIONS[index]
    expected = read_power_model().class_cycles[CLASSES.index(name)] + transfers - 1
    assert advances[index] - advances[-1] == expected


def test_ten_nops_advance_the_counter_by_ten() -> None:
    artifact = build_firmware(
        """
        volatile uint32_t plain, padded, loop;
        #define TIMED(body) __asm volatile("push {r4, r5, r6, lr}\\n bl cycle_counter\\n mov r4, r0\\n" body \\
            "bl cycle_counter\\n subs r0, r0, r4\\n pop {r4, r5, r6, pc}")
        #define FUNCTION __attribute__((naked, noinline)) static uint32_t
        FUNCTION timed_nothing(void) { TIMED(""); }
        FUNCTION timed_nops(void) { TIMED("nop\\nnop\\nnop\\nnop\\nnop\\nnop\\nnop\\nnop\\nnop\\nnop\\n"); }
        FUNCTION timed_loop(void) { TIMED("movw r5, #1000\\n 1: subs r5, #1\\n bne 1b\\n"); }
        int main(void) { plain = timed_nothing(); padded = timed_nops(); loop = timed_loop(); park(); }
        """
    )
    with open_session(artifact) as session:
        session.reset(ResetOptions(deadline_s=1.0))
        session.run()
        plain = read_word(session, artifact, "plain")
        assert read_word(session, artifact, "padded") - plain == 10
        assert read_word(session, artifact, "loop") - plain == 1 + 1000 * (1 + 2)


def test_the_counter_can_be_written_wraps_and_stops() -> None:
    artifact = build_firmware(
        """
        volatile uint32_t wrapped, held, again, resumed;
        int main(void) {
            set_cycle_counter(0xfffffff0u);
            for (volatile int i = 0; i < 100; i++) {}
            wrapped = cycle_counter();
            set_cycle_counter_control(0);
            held = cycle_counter();
            for (volatile int i = 0; i < 100; i++) {}
            again = cycle_counter();
            set_cycle_counter_control(1);
            for (volatile int i = 0; i < 100; i++) {}
            resumed = cycle_counter();
            park();
        }
        """
    )
    with open_session(artifact) as session:
        session.reset(ResetOptions(deadline_s=1.0))
        session.run()
        wrapped, held, again, resumed = (
            read_word(session, artifact, name) for name in ("wrapped", "held", "again", "resumed")
        )
    assert 500 < wrapped < 5000
    assert wrapped < held == again < resumed < again + 5000


def test_an_edge_stands_where_the_counter_stands() -> None:
    artifact = build_firmware(
        """
        volatile uint32_t before, after;
        int main(void) {
            before = cycle_counter();
            outputs(READY | GATE);
            for (volatile int i = 0; i < 50; i++) {}
            outputs(READY);
            after = cycle_counter();
            park();
        }
        """
    )
    with open_session(artifact) as session:
        session.reset(ResetOptions(deadline_s=1.0, record_rail=True))
        rise = session.run(until=frozenset({Line.GATE}))
        fall = session.run(until=frozenset({Line.GATE}))
        session.run()
        edges = session.rail().edges
        before, after = (read_word(session, artifact, name) for name in ("before", "after"))
        gate_cycles = session.truth().gate_cycles
    assert [(edge.name, edge.direction.value) for edge in edges] == [
        ("gate", "rise"), ("ready", "rise"), ("gate", "fall"),
    ]  # fmt: skip
    assert [edge.time_ns for edge in edges] == [rise.time_ns, rise.time_ns, fall.time_ns]
    assert before < rise.time_ns // 10 < fall.time_ns // 10 < after <= before + 2000
    assert gate_cycles == (fall.time_ns - rise.time_ns) // 10


def test_stopping_at_edges_changes_no_cycle() -> None:
    artifact = build_firmware(
        """
        int main(void) {
            for (int i = 0; i < 200; i++) { outputs(READY | GATE); outputs(READY); }
            park();
        }
        """
    )
    with open_session(artifact) as session:
        session.reset(ResetOptions(deadline_s=1.0))
        whole = session.run()
        instructions = session.counts()["instructions"]
        session.reset(ResetOptions(deadline_s=1.0))
        stops = 0
        while (stop := session.run(until=frozenset({Line.GATE, Line.READY}))).reason is StopReason.EDGE:
            stops += 1
        assert (stop.time_ns, session.counts()["instructions"], stops) == (whole.time_ns, instructions, 400)
