"""The rail and the truth behind it: exact sums, an exact reference, planted factors, peripherals, supply and clock."""

from __future__ import annotations

import numpy as np
import pytest

from board_bench import LAYERS, build_firmware, build_network, open_session, run_inference
from joulemap.firmware.boards.base import ResetOptions, StopReason
from joulemap.firmware.boards.virtual_m33.client import VirtualM33Session
from joulemap.firmware.boards.virtual_m33.power_model import read_power_model
from joulemap.records.rail import BoardTruth, RailActivity
from joulemap.records.target import Line

RECORDED = ResetOptions(deadline_s=5.0, record_rail=True)
BUSY = "int main(void) { outputs(GATE); for (volatile int i = 0; i < 20000; i++) {} outputs(0); park(); }"


def _captured(session: VirtualM33Session, options: ResetOptions) -> tuple[RailActivity, BoardTruth]:
    run_inference(session, options, idle_s=1e-3)
    session.run()
    session.advance(1e-6 - session.time_ns % 1000 * 1e-9)  # to the end of the row
    return session.rail(), session.truth()


def test_two_boards_agree_to_the_bit() -> None:
    captures = []
    for _ in range(2):
        with open_session(build_network(), layers=LAYERS) as session:
            captures += [_captured(session, RECORDED), _captured(session, RECORDED)]
    first_rail, first_truth = captures[0]
    for rail, truth in captures[1:]:
        assert np.array_equal(rail.energy_fj, first_rail.energy_fj)
        assert rail.edges == first_rail.edges
        assert np.array_equal(truth.layer_j, first_truth.layer_j)
        assert (truth.gate_j, truth.gap_j, truth.gate_cycles) == (
            first_truth.gate_j, first_truth.gap_j, first_truth.gate_cycles,
        )  # fmt: skip


def test_rows_add_up_to_the_energy_that_was_spent() -> None:
    with open_session(build_network(), layers=LAYERS) as session:
        run_inference(session, RECORDED, idle_s=1e-3)
        session.run()
        session.advance(1e-6 - session.time_ns % 1000 * 1e-9)  # to the end of the row
        rail = session.rail()
        assert session.time_ns % 1000 == 0
        assert rail.energy_fj.size * 1000 == session.time_ns
        assert int(rail.energy_fj.sum(dtype=np.uint64)) == session.counts()["true_fj"]


def test_truth_adds_up_and_agrees_with_the_rows_inside_the_gate() -> None:
    with open_session(build_network(200), layers=LAYERS) as session:
        rail, truth = _captured(session, RECORDED)
    assert truth.gate_j == pytest.approx(truth.layer_j.sum() + truth.gap_j, rel=1e-12)
    assert truth.layer_entries.tolist() == [200, 200, 200]
    gate = [edge.time_ns for edge in rail.edges if edge.name == "gate"]
    assert truth.gate_cycles == (gate[1] - gate[0]) // 10
    rows_j = rail.energy_fj[gate[0] // 1000 : gate[1] // 1000].sum(dtype=np.uint64) * 1e-15
    assert rows_j == pytest.approx(truth.gate_j, rel=2e-5)  # a row cut by an edge at each end
    assert truth.layer_cycles[2] == 200 * (3 + 2)  # three NOPs and the return


CONDITIONAL_RETURN = """
__attribute__((naked, noinline)) static void count_down(int n) {
    __asm volatile("push {r4, r5, r6, lr}\\n 1: subs r0, #1\\n it eq\\n popeq {r4, r5, r6, pc}\\n b 1b");
}
__attribute__((naked, noinline)) static void count_wide(int n) {
    __asm volatile("push {r4-r8, lr}\\n 1: subs r0, #1\\n it eq\\n popeq.w {r4-r8, pc}\\n b 1b");
}
int main(void) { outputs(GATE); for (int i = 1; i < 300; i++) { count_down(i); count_wide(i); } outputs(0); park(); }
"""
LONG_STRAIGHT_CODE = """
__attribute__((naked, noinline)) static void straight(const void *from) {
    __asm volatile(".rept 700\\n ldr r1, [r0, #4]\\n str r1, [sp, #-8]\\n ldrb r2, [r0]\\n .endr\\n bx lr");
}
int main(void) { outputs(GATE); for (int i = 0; i < 40; i++) straight((void *)64); outputs(0); park(); }
"""
EVERY_TRANSFER = """
__attribute__((naked, noinline)) static void transfers(void) {
    __asm volatile("push {r4-r11, lr}\\n vpush {s0-s7}\\n sub sp, #64\\n stm sp, {r0-r7}\\n ldm sp, {r0-r3}\\n"
        "strd r0, r1, [sp]\\n ldrsh r4, [sp, #6]\\n strb r4, [sp, #3]\\n vldr s1, [sp]\\n vstr d3, [sp, #8]\\n"
        "ldr r0, =0x12345678\\n ldrex r1, [sp]\\n strex r2, r1, [sp]\\n tbb [pc, r5]\\n .byte 1, 1\\n"
        "add sp, #64\\n vpop {s0-s7}\\n pop {r4-r11, pc}\\n .ltorg");
}
int main(void) { outputs(GATE); for (int i = 0; i < 50; i++) transfers(); outputs(0); park(); }
"""
IMAGES = {
    "network": None,
    "loop": BUSY,
    "conditional return": CONDITIONAL_RETURN,
    "long straight code": LONG_STRAIGHT_CODE,
    "every kind of transfer": EVERY_TRANSFER.replace("tbb [pc, r5]", "movs r5, #0\\n tbb [pc, r5]"),
}


@pytest.mark.parametrize("name", IMAGES)
def test_the_scout_prices_as_memory_hooks_do_to_the_femtojoule(name: str) -> None:
    text = IMAGES[name]
    artifact = build_network() if text is None else build_firmware(text)
    layers = LAYERS if text is None else ()
    totals, truths = [], []
    for pricing in ("scout", "hook"):
        with open_session(artifact, layers=layers, pricing=pricing) as session:
            session.reset(ResetOptions(deadline_s=1.0))
            session.set_line(Line.GO, level=True)
            assert session.run().reason is StopReason.IDLE
            counts = session.counts()
            totals.append((counts["true_fj"], counts["instructions"], counts["cycles"]))
            truths.append(session.truth())
            assert counts["varying_blocks"] == 0
    assert totals[0] == totals[1]
    assert np.array_equal(truths[0].layer_j, truths[1].layer_j)
    assert truths[0].gap_j == truths[1].gap_j


def test_a_layer_that_shares_a_kernel_has_traffic_of_its_own() -> None:
    artifact = build_firmware(
        """
        __attribute__((naked, used, noinline)) static void kernel(void) {
            __asm volatile("1: ldrb r2, [r0]\\n subs r1, #1\\n bne 1b\\n bx lr");
        }
        #define LAYER(name, high) __attribute__((naked, noinline)) void name(void) { \\
            __asm volatile("movw r0, #64\\n movt r0, #" high "\\n movw r1, #500\\n b.w kernel"); }
        LAYER(layer_000, "0")
        LAYER(layer_001, "0x2000")
        LAYER(layer_002, "0x2000")
        int main(void) {
            outputs(GATE);
            for (int i = 0; i < 3; i++) { layer_000(); layer_001(); layer_002(); }
            outputs(0);
            park();
        }
        """
    )
    with open_session(artifact, layers=LAYERS) as session:
        session.reset(RECORDED)
        session.run()
        truth = session.truth()
    flash_fj, ram_fj, *_ = read_power_model().traffic_fj_per_b
    assert (truth.layer_j[0] - truth.layer_j[1]) * 1e15 == pytest.approx(3 * 500 * (flash_fj - ram_fj), rel=1e-9)
    assert truth.layer_j[1] == truth.layer_j[2]


def test_a_block_whose_traffic_varies_is_flagged() -> None:
    artifact = build_firmware(
        """
        static volatile uint32_t sink;
        int main(void) {
            static volatile uint32_t ram[4];
            for (uint32_t i = 0; i < 2000000; i++) {
                const volatile uint32_t *from = i & 1 ? (const volatile uint32_t *)0 : ram;
                __asm volatile("" ::: "memory");
                sink += from[i & 3];
                if (i % 3 == 0) __asm volatile("nop");
            }
            park();
        }
        """
    )
    with open_session(artifact) as session:
        session.reset(ResetOptions(deadline_s=1.0, record_rail=True))
        assert session.run().reason is StopReason.IDLE
        counts = session.counts()
    assert counts["varying_blocks"] > 1_000_000
    assert counts["scout_runs"] < 2000


def test_a_conditional_load_is_priced_by_how_often_it_happens() -> None:
    artifact = build_firmware(
        """
        __attribute__((naked, noinline)) static void sometimes(uint32_t odd, const void *from) {
            __asm volatile("cmp r0, #3\\n itt eq\\n ldrdeq r2, r3, [r1]\\n ldreq r2, [r1]\\n nop\\n bx lr");
        }
        int main(void) {
            outputs(GATE);
            for (uint32_t i = 0; i < 40000; i++) sometimes(i & 3, (void *)64);
            outputs(0);
            park();
        }
        """
    )
    totals = []
    for pricing in ("scout", "hook"):
        with open_session(artifact, pricing=pricing) as session:
            session.reset(ResetOptions(deadline_s=1.0))
            session.run()
            totals.append(session.truth().gate_j)
            assert (session.counts()["varying_blocks"] >= 40000) is (pricing == "scout")
    flash_fj = read_power_model().traffic_fj_per_b[0]
    moved_j = 10000 * 12 * flash_fj * 1e-15
    assert abs(totals[0] - totals[1]) < 0.2 * moved_j  # a few dozen looks at one in four


def test_the_run_factor_scales_the_rail_and_leaves_the_truth() -> None:
    factor = 1.0037
    with open_session(build_network(), layers=LAYERS) as session:
        rail, truth = _captured(session, RECORDED)
        varied = ResetOptions(deadline_s=5.0, record_rail=True, run_factor=factor)
        varied_rail, varied_truth = _captured(session, varied)
    assert (varied_truth.run_factor, truth.run_factor) == (factor, 1.0)
    assert varied_truth.gate_j == truth.gate_j
    expected = rail.energy_fj * factor
    assert np.abs(varied_rail.energy_fj - expected).max() <= 2.0
    total = rail.energy_fj.sum(dtype=np.uint64) * factor
    assert varied_rail.energy_fj.sum(dtype=np.uint64) == pytest.approx(total, rel=1e-9)


def test_layer_factors_multiply_the_whole_power_of_a_layer() -> None:
    with open_session(build_network(), layers=LAYERS) as session:
        rail, truth = _captured(session, RECORDED)
        planted = ResetOptions(deadline_s=5.0, record_rail=True, layer_factors=(2.0, 0.5, 1.5))
        planted_rail, planted_truth = _captured(session, planted)
    assert planted_truth.layer_j == pytest.approx(truth.layer_j * [2.0, 0.5, 1.5], rel=1e-9)
    assert planted_truth.gap_j == truth.gap_j
    assert np.array_equal(planted_truth.layer_cycles, truth.layer_cycles)
    added_j = planted_rail.energy_fj.sum(dtype=np.uint64) * 1e-15 - rail.energy_fj.sum(dtype=np.uint64) * 1e-15
    assert added_j == pytest.approx(planted_truth.gate_j - truth.gate_j, rel=1e-6)


def test_a_sleeping_core_draws_its_sleep_power() -> None:
    model = read_power_model()
    with open_session(build_network(), layers=LAYERS) as session:
        session.reset(RECORDED)
        assert session.run().reason is StopReason.IDLE
        asleep = session.time_ns // 1000 + 1
        session.advance(2e-3)
        rows = session.rail().energy_fj[asleep:]
    expected_fj = 1000 * model.sleep_static_uw + 100 * model.sleep_clock_fj_per_cycle
    assert rows.size >= 1999
    assert set(rows.tolist()) == {int(expected_fj)}


@pytest.mark.parametrize("bit", range(4))
def test_an_enabled_peripheral_adds_its_draw_while_it_is_enabled(bit: int) -> None:
    model = read_power_model()
    artifact = build_firmware(f"int main(void) {{ diagnostics({1 << bit}); sleep_once(); diagnostics(0); park(); }}")
    with open_session(artifact) as session:
        session.reset(RECORDED)
        session.run()
        session.advance(1e-3)
        enabled_fj = int(session.rail().energy_fj[-2])
        session.run()
        session.advance(1e-3)
        assert enabled_fj - int(session.rail().energy_fj[-2]) == 1000 * model.peripheral_uw[bit]


def test_a_clamped_clock_takes_longer_and_keeps_its_cycles() -> None:
    artifact = build_firmware(BUSY)
    with open_session(artifact) as session:
        session.reset(RECORDED)
        session.run()
        cycles, time_ns, energy_fj = session.counts()["cycles"], session.time_ns, session.counts()["true_fj"]
        assert session.throttled_share() == 0.0
        session.reset(ResetOptions(deadline_s=5.0, record_rail=True, throttle_at_s=time_ns / 2 * 1e-9))
        assert session.run().reason is StopReason.IDLE
        clamped_ns, clamped_fj = session.time_ns, session.counts()["true_fj"]
        assert session.counts()["cycles"] == cycles
        assert clamped_ns == pytest.approx(1.5 * time_ns, rel=1e-3)
        assert session.throttled_share() == pytest.approx(2 / 3, rel=1e-3)
        extra_fj = read_power_model().static_uw * (clamped_ns - time_ns)
        assert clamped_fj - energy_fj == pytest.approx(extra_fj, rel=1e-6)
        rows = session.rail().energy_fj
        assert rows.size == clamped_ns // 1000
        static_fj = 1000 * read_power_model().static_uw
        assert rows[-5:-1].mean() == pytest.approx((rows[100:200].mean() - static_fj) / 2 + static_fj, rel=0.05)


def test_a_brown_out_stops_the_core_and_the_rail() -> None:
    with open_session(build_firmware(BUSY)) as session:
        session.reset(ResetOptions(deadline_s=5.0, record_rail=True, brown_out_at_s=50e-6))
        stop = session.run()
        assert stop.reason is StopReason.BROWN_OUT
        assert stop.time_ns == pytest.approx(50_000, abs=500)
        session.advance(100e-6)
        assert session.run().reason is StopReason.BROWN_OUT
        rows = session.rail().energy_fj
        assert (rows[:49] > 0).all()
        assert rows.size >= 149
        assert (rows[51:] == 0).all()


def test_a_brown_out_finds_a_sleeping_core_too() -> None:
    with open_session(build_network(), layers=LAYERS) as session:
        session.reset(ResetOptions(deadline_s=5.0, record_rail=True, brown_out_at_s=1e-3))
        assert session.run().reason is StopReason.IDLE
        session.advance(3e-3)
        assert session.run().reason is StopReason.BROWN_OUT
        rows = session.rail().energy_fj
        assert rows[999] > 0
        assert (rows[1000:] == 0).all()
        assert rows.size == 3000 + (session.time_ns - 3_000_000) // 1000


def test_energy_outside_the_gate_is_no_part_of_the_truth() -> None:
    artifact = build_firmware("int main(void) { for (volatile int i = 0; i < 1000; i++) {} park(); }")
    with open_session(artifact) as session:
        session.reset(RECORDED)
        session.run()
        truth = session.truth()
        assert session.counts()["true_fj"] > 0
    assert (truth.gate_j, truth.gate_cycles, truth.layer_j.size) == (0.0, 0, 0)


def test_instructions_of_a_layer_are_counted_per_entry() -> None:
    artifact = build_firmware(
        """
        __attribute__((naked, noinline)) void layer_000(void) { __asm volatile("nop\\n nop\\n bx lr"); }
        __attribute__((naked, noinline)) static void twice(void) { __asm volatile("nop\\n bx lr"); }
        __attribute__((naked, noinline)) void layer_001(void) {
            __asm volatile("movs r1, #10\\n 1: subs r1, #1\\n bne 1b\\n b.w %c0" ::"i"(twice));
        }
        __attribute__((naked, noinline)) void layer_002(void) {
            __asm volatile("0: subs r0, #1\\n bne.w layer_002\\n bx lr");
        }
        int main(void) {
            for (int i = 0; i < 7; i++) { layer_000(); layer_001(); }
            ((void (*)(int))layer_002)(5);
            park();
        }
        """
    )
    with open_session(artifact, layers=LAYERS) as session:
        session.reset(ResetOptions(deadline_s=1.0))
        session.run()
        # three; a loop of ten, then a tail call; a loop back to the layer's own entry is one entry
        assert session.layer_instructions() == (3, 1 + 20 + 1 + 2, 2 * 5 + 1)
