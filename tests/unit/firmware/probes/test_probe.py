"""Probes: the virtual one reads the board as it runs and can be lost; those that are not built say so."""

from __future__ import annotations

import pytest

from board_bench import build_firmware, open_session
from joulemap.errors import CaptureError, SetupError, UsageError
from joulemap.firmware.boards.base import ResetOptions, StopReason
from joulemap.firmware.probes.registry import probe_names, resolve_probe
from joulemap.firmware.probes.virtual import VirtualProbe

COUNTING = "volatile uint32_t count = 3; int main(void) { for (;;) { count++; sleep_once(); } }"


def test_the_virtual_probe_programs_resets_and_reads_without_a_reset() -> None:
    artifact = build_firmware(COUNTING)
    address, size_b = artifact.symbols["count"]
    with open_session(artifact) as session:
        probe = resolve_probe("virtual", session)
        probe.flash(artifact.elf)
        probe.reset(ResetOptions(deadline_s=1.0))
        for expected in (4, 5, 6):
            assert session.run().reason is StopReason.IDLE
            assert int.from_bytes(probe.read_memory(address, size_b), "little") == expected
        probe.write_memory(address, (90).to_bytes(4, "little"))
        session.run()
        assert int.from_bytes(probe.read_memory(address, size_b), "little") == 91
        assert not probe.lost


def test_a_lost_probe_stays_lost_and_the_board_runs_on() -> None:
    artifact = build_firmware(COUNTING)
    with open_session(artifact) as session:
        probe = VirtualProbe(session)
        probe.reset(ResetOptions(deadline_s=1.0))
        probe.disconnect()
        assert probe.lost
        for call in (
            lambda: probe.read_memory(0, 4),
            lambda: probe.write_memory(0x20000000, b"x"),
            lambda: probe.reset(ResetOptions(deadline_s=1.0)),
            lambda: probe.flash(artifact.elf),
        ):
            with pytest.raises(CaptureError) as caught:
                call()
            assert caught.value.slug == "probe-lost"
        assert session.run().reason is StopReason.IDLE


@pytest.mark.parametrize("name", ["jlink", "cmsis-dap", "gdb"])
def test_a_probe_that_is_not_built_is_a_setup_error(name: str) -> None:
    with open_session(build_firmware(COUNTING)) as session, pytest.raises(SetupError) as caught:
        resolve_probe(name, session)
    assert caught.value.slug == "probe-unavailable"
    assert "virtual" in caught.value.hint


def test_an_unknown_probe_is_a_usage_error() -> None:
    with open_session(build_firmware(COUNTING)) as session, pytest.raises(UsageError, match="no probe named psychic"):
        resolve_probe("psychic", session)
    assert probe_names() == ("virtual",)
