"""The finaliser and loop of ``hpx_profiler_power``, compiled for this machine with a port that notes every call."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from joulemap.firmware.toolchains.zig import ZigToolchain
from joulemap.firmware.wire.terminal import PowerTerminalParser
from joulemap.records.power import FirmwarePhase, TerminalStatus

READY, GATE = 1, 2
DEBUG = 2
PORT_H = """
#ifndef HPX_PORT_H
#define HPX_PORT_H
#include <stdint.h>
enum { HPX_LINE_READY = 1u, HPX_LINE_GATE = 2u };
enum { HPX_DIAG_UART = 1u, HPX_DIAG_DEBUG = 2u };
#define HPX_CORE_HZ 100000000u
#define HPX_COUNT 3u
#define HPX_LATE_US 0u
#define HPX_LOCKSTEP 1
#define HPX_GO_TIMEOUT_US 1000u
#define HPX_IDLE_US 50u
extern volatile uint32_t hpx_phase;
void hpx_port_init(void);
uint32_t hpx_mmio_cyccnt(void);
uint32_t hpx_port_go(void);
void hpx_port_lines(uint32_t lines);
void hpx_port_diagnostics(uint32_t domains);
void hpx_port_wake_after_us(uint32_t us);
void hpx_port_sleep_us(uint32_t us);
void hpx_port_wait(void);
static inline uint32_t hpx_fault(uint32_t bits) { (void)bits; return 0u; }
uint32_t hpx_fault_before_inference(uint32_t i);
#endif
"""
HARNESS_C = """
#include <setjmp.h>
#include "hpx_finish.h"
#include "hpx_loop.h"
#include "hpx_model.h"
#include "hpx_port.h"
#include "hpx_rtt.h"

volatile uint32_t hpx_phase;
static struct { char what; uint32_t value; } calls[256];
static uint32_t call_count, record_size, cycles, go, init_code, fail_at, parked;
static char record[1024];
static jmp_buf out;

static void note(char what, uint32_t value)
{
    if (call_count < 256u) { calls[call_count].what = what; calls[call_count].value = value; call_count++; }
}
void hpx_port_init(void) {}
uint32_t hpx_mmio_cyccnt(void) { return cycles += 1000u; }
uint32_t hpx_port_go(void) { return go; }
void hpx_port_lines(uint32_t lines) { note('L', lines); }
void hpx_port_diagnostics(uint32_t domains) { note('D', domains); }
void hpx_port_wake_after_us(uint32_t us) { note('W', us); }
void hpx_port_sleep_us(uint32_t us) { note('S', us); }
void hpx_port_wait(void) { if (hpx_phase == 10u || ++parked > 1000u) longjmp(out, 1); }
uint32_t hpx_fault_before_inference(uint32_t i) { return i == fail_at ? 257u : 0u; }
void hpx_rtt_init(void) { note('R', 0u); record_size = 0u; }
uint32_t hpx_rtt_write_once(const char *bytes, uint32_t size)
{
    for (uint32_t k = 0u; k < size; k++) record[record_size++] = bytes[k];
    return 1u;
}
int hpx_model_init(void) { return (int)init_code; }
void hpx_model_run(void) { note('I', 0u); }
uint32_t hpx_model_output_crc32(void) { return 77u; }

int hpx_main(void);
void harness_run(uint32_t given_go, uint32_t code, uint32_t failing)
{
    go = given_go; init_code = code; fail_at = failing; parked = 0u;
    if (!setjmp(out)) hpx_main();
}
void harness_finish(uint32_t code, uint32_t phase) { if (!setjmp(out)) hpx_finish(code, phase); }
void harness_reset(void)
{
    call_count = record_size = cycles = 0u;
    hpx_run.lines = hpx_run.gate_asserted = hpx_run.gate_lowered = hpx_run.elapsed_valid = 0u;
    hpx_loop_start();
}
uint32_t harness_calls(char *what, uint32_t *value)
{
    for (uint32_t k = 0u; k < call_count; k++) { what[k] = calls[k].what; value[k] = calls[k].value; }
    return call_count;
}
uint32_t harness_record(char *to) { for (uint32_t k = 0u; k < record_size; k++) to[k] = record[k]; return record_size; }
"""


def _sources() -> Mapping[str, str]:
    folder = files("joulemap.firmware") / "csrc" / "target"
    names = (
        "hpx_finish.c",
        "hpx_finish.h",
        "hpx_loop.c",
        "hpx_loop.h",
        "hpx_line.c",
        "hpx_line.h",
        "hpx_crc.c",
        "hpx_crc.h",
        "hpx_rtt.h",
    )
    taken = {name: (folder / name).read_text(encoding="utf-8") for name in (*names, "hpx_wire.h", "hpx_model.h")}
    main = (folder / "main_power.c").read_text(encoding="utf-8").replace("int main(void)", "int hpx_main(void)")
    return {**taken, "main_power.c": main, "hpx_port.h": PORT_H, "harness.c": HARNESS_C}


@cache
def _library() -> Path:
    return ZigToolchain().build_host_library("finaliser_harness", _sources())


class Harness:
    """The power image in this process; each one is loaded afresh, so that its static state is that of a reset."""

    def __init__(self, folder: Path) -> None:
        copy = folder / "image.so"
        copy.write_bytes(_library().read_bytes())
        self._c = ctypes.CDLL(str(copy))

    def run(self, *, go: int = 1, init_code: int = 0, fail_at: int = 99) -> Harness:
        """Runs main to its park."""
        self._c.harness_run(go, init_code, fail_at)
        return self

    def finish(self, code: int, phase: int) -> Harness:
        """Calls the finaliser once more."""
        self._c.harness_finish(code, phase)
        return self

    @property
    def calls(self) -> list[tuple[str, int]]:
        """Everything that the image asked of its port: L lines, D diagnostics, R ring made, I inference, W wake-up."""
        what, value = (ctypes.c_char * 256)(), (ctypes.c_uint32 * 256)()
        count = self._c.harness_calls(what, value)
        return [(what[k].decode(), value[k]) for k in range(count)]

    @property
    def record(self) -> Any:
        """The terminal record that it wrote."""
        to = ctypes.create_string_buffer(1024)
        size_b = self._c.harness_record(to)
        return PowerTerminalParser().parse(to.raw[:size_b]).record


@pytest.fixture
def image(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def only(calls: list[tuple[str, int]], kinds: str) -> list[tuple[str, int]]:
    return [call for call in calls if call[0] in kinds]


def test_a_clean_run_has_nothing_between_the_edges_but_inferences(image: Harness) -> None:
    calls = image.run().calls
    rise, fall = calls.index(("L", READY | GATE)), calls.index(("L", READY), calls.index(("L", READY | GATE)))
    assert calls[rise + 1 : fall] == [("I", 0)] * 3
    assert only(calls[:fall], "DR") == []
    assert only(calls[fall:], "DR") == [("D", DEBUG), ("R", 0)]
    assert (image.record.status, image.record.completed_count) == (TerminalStatus.OK, 3)


def test_the_go_timer_is_cancelled_before_gate(image: Harness) -> None:
    calls = image.run().calls
    assert only(calls[: calls.index(("L", READY | GATE))], "W")[-1] == ("W", 0)


def test_an_error_inside_gate_lowers_it_before_any_transport(image: Harness) -> None:
    calls = image.run(fail_at=2).calls
    lines = only(calls, "LDR")
    assert lines == [("L", READY), ("L", READY | GATE), ("L", READY), ("D", DEBUG), ("R", 0)]
    record = image.record
    assert (record.status, record.error_code, record.completed_count) == (TerminalStatus.ERROR, 257, 2)
    assert record.final_phase is FirmwarePhase.RUN_FIXED_N
    assert record.gate_asserted
    assert record.gate_lowered


def test_an_error_of_the_model_does_not_look_like_ready(image: Harness) -> None:
    calls = image.run(init_code=17).calls
    assert all(not value & READY for value in (value for _, value in only(calls, "L")))
    record = image.record
    assert (record.error_code, record.final_phase) == (17, FirmwarePhase.MODEL_INIT)
    assert not record.gate_asserted
    assert not record.gate_lowered
    assert record.elapsed_us is None


def test_no_go_ends_by_the_firmwares_own_timer(image: Harness) -> None:
    calls = image.run(go=0).calls
    assert ("L", READY | GATE) not in calls
    assert (image.record.error_code, image.record.final_phase) == (256, FirmwarePhase.WAIT_GO)


@pytest.mark.parametrize("fail_at", [0, 99])
def test_the_finaliser_is_idempotent_and_never_raises_gate(image: Harness, fail_at: int) -> None:
    image.run(fail_at=fail_at)
    before, record = image.calls, image.record
    image.finish(1, 6).finish(0, 7)
    added = image.calls[len(before) :]
    assert added == [("L", READY), ("L", READY)]
    assert image.record == record


@pytest.mark.parametrize(("code", "phase"), [(0, 7), (257, 6), (1, 2)])
def test_the_finaliser_alone_forces_gate_low_first(image: Harness, code: int, phase: int) -> None:
    calls = image.finish(code, phase).calls
    assert calls[0] == ("L", 0)
    assert only(calls, "DR") == [("D", DEBUG), ("R", 0)]
