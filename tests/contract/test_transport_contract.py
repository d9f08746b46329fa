"""What every transport of the registry owes to the pipeline. The target of these tests fails on any reset."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from joulemap.errors import CaptureError, PowerError, UsageError
from joulemap.firmware.boards.base import StopReason
from joulemap.firmware.transports.base import PowerTerminalTransport, ProfileTransport
from joulemap.firmware.transports.registry import profile_transport, terminal_transport, transport_names
from joulemap.firmware.wire.terminal import PowerTerminalParser
from scripted_target import RING_B, ScriptedTarget
from wire_text import profile_stream, terminal_record

RECORD = terminal_record()
WHOLE = PowerTerminalParser().parse(RECORD)


@pytest.fixture(params=transport_names())
def terminal(request: pytest.FixtureRequest) -> PowerTerminalTransport:
    name: str = request.param
    return terminal_transport(name)


@pytest.fixture(params=transport_names())
def profile(request: pytest.FixtureRequest) -> ProfileTransport:
    name: str = request.param
    return profile_transport(name)


def reporting(at_s: float, text: bytes, stop: StopReason = StopReason.IDLE) -> ScriptedTarget:
    def act(target: ScriptedTarget) -> None:
        target.put_ring()
        target.print(text)

    return ScriptedTarget([(at_s, act)], stop)


def slug_of(transport: PowerTerminalTransport, target: ScriptedTarget, *, since_s: float = 0.0) -> str:
    with pytest.raises(PowerError) as caught:
        transport.collect(target.link(since_s=since_s), 0.5)
    assert caught.value.phase == "power"
    return caught.value.slug


@pytest.mark.parametrize("at_s", [0.0, 0.2, 0.45])
def test_a_record_in_time_is_collected(terminal: PowerTerminalTransport, at_s: float) -> None:
    assert terminal.collect(reporting(at_s, RECORD).link(), 0.5) == WHOLE


def test_time_counts_from_the_gate(terminal: PowerTerminalTransport) -> None:
    target = reporting(3.0, RECORD)
    target.time_s = 3.0
    assert terminal.collect(target.link(since_s=2.9), 0.5) == WHOLE


def test_a_record_after_the_time_out_is_late(terminal: PowerTerminalTransport) -> None:
    assert slug_of(terminal, reporting(1.5, RECORD)) == "terminal-late"


def test_no_record_is_missing(terminal: PowerTerminalTransport) -> None:
    assert slug_of(terminal, ScriptedTarget()) == "terminal-missing"
    assert slug_of(terminal, reporting(9.0, RECORD)) == "terminal-missing"


def test_an_image_without_diagnostics_has_no_record(terminal: PowerTerminalTransport) -> None:
    with pytest.raises(PowerError) as caught:
        terminal.collect(ScriptedTarget().link(with_ring=False), 0.5)
    assert caught.value.slug == "terminal-missing"


def test_half_a_record_is_truncated(terminal: PowerTerminalTransport) -> None:
    assert slug_of(terminal, reporting(0.0, RECORD[:80])) == "terminal-truncated"


@pytest.mark.parametrize("stop", [StopReason.DEADLINE, StopReason.HARD_FAULT, StopReason.BROWN_OUT])
def test_a_board_that_ended_is_not_waited_for(terminal: PowerTerminalTransport, stop: StopReason) -> None:
    assert slug_of(terminal, reporting(0.0, RECORD[:80], stop)) == "terminal-truncated"


def test_arming_forgets_an_earlier_record(terminal: PowerTerminalTransport) -> None:
    target = ScriptedTarget()
    target.put_ring()
    target.print(RECORD)
    terminal.arm(target.link())
    assert slug_of(terminal, target) == "terminal-missing"


def test_a_profile_is_captured_whole(profile: ProfileTransport) -> None:
    stream = profile_stream()
    assert profile.capture(reporting(0.0, stream).link()).stream == stream


def test_a_profile_longer_than_the_buffer_is_drained(profile: ProfileTransport) -> None:
    stream = profile_stream() * 3
    pieces = [stream[k : k + RING_B - 1] for k in range(0, len(stream), RING_B - 1)]

    def writing(k: int) -> Callable[[ScriptedTarget], None]:
        def act(target: ScriptedTarget) -> None:
            if k == 0:
                target.put_ring()
            target.print(pieces[k])

        return act

    script = [(0.01 * k, writing(k)) for k in range(len(pieces))]
    delivery = profile.capture(ScriptedTarget(script).link())
    assert delivery.stream.startswith(profile_stream())
    assert delivery.stop.reason is StopReason.IDLE


def test_a_stop_of_the_board_is_handed_on(profile: ProfileTransport) -> None:
    delivery = profile.capture(reporting(0.0, profile_stream()[:50], StopReason.HARD_FAULT).link())
    assert delivery.stop.reason is StopReason.HARD_FAULT
    assert delivery.stream == profile_stream()[:50]


def test_an_image_without_a_ring_is_refused(profile: ProfileTransport) -> None:
    with pytest.raises(CaptureError) as caught:
        profile.capture(ScriptedTarget().link(with_ring=False))
    assert caught.value.slug == "rtt-corrupt"


def test_an_unknown_name_is_a_usage_error() -> None:
    for find in (terminal_transport, profile_transport):
        with pytest.raises(UsageError) as caught:
            find("telepathy")
        assert caught.value.slug == "unknown-transport"
        assert "rtt" in caught.value.hint
