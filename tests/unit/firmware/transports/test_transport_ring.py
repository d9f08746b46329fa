"""The RTT ring believes nothing that lies in target memory."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulemap.errors import CaptureError, PowerError
from joulemap.firmware.transports.base import LinkContext
from joulemap.firmware.transports.ring import RING_SYMBOL, RingDefectError, RttRing
from joulemap.firmware.transports.rtt import RttProfileTransport, RttTerminalTransport
from scripted_target import BLOCK, RAM, RING_B, ScriptedTarget


def ring_of(target: ScriptedTarget) -> RttRing:
    return RttRing(target.link())


def test_it_is_empty_until_its_id_is_there() -> None:
    target = ScriptedTarget()
    assert ring_of(target).read() == b""
    target.put_ring()
    assert ring_of(target).read() == b""


def test_what_was_drained_is_not_read_again() -> None:
    target = ScriptedTarget()
    target.put_ring()
    target.print(b"first")
    assert ring_of(target).read() == b"first"
    target.print(b"second")
    assert ring_of(target).read() == b"second"
    assert ring_of(target).read() == b""


@pytest.mark.parametrize("at", [RING_B - 1, RING_B - 3, RING_B - 6])
def test_a_text_that_wraps_is_put_together(at: int) -> None:
    target = ScriptedTarget()
    target.put_ring(write_at=at, read_at=at)
    target.print(b"around")
    assert ring_of(target).read() == b"around"


@pytest.mark.parametrize(
    "odd",
    [
        {"size": 0},
        {"size": 1},
        {"size": 0xFFFFFFFF},
        {"buffer": 0},
        {"buffer": 0xFFFFFFF0},
        {"buffer": RAM.origin + RAM.size_b - RING_B + 1},
        {"buffer": RAM.origin - 1},
        {"write_at": RING_B},
        {"write_at": 0xFFFFFFFF},
        {"read_at": RING_B},
        {"up_count": 0},
        {"up_count": -1},
        {"up_count": 1_000_000},
    ],
)
def test_an_impossible_block_is_refused(odd: dict[str, int]) -> None:
    target = ScriptedTarget()
    target.put_ring(**odd)
    with pytest.raises(RingDefectError):
        ring_of(target).read()
    with pytest.raises(CaptureError) as profile:
        RttProfileTransport().capture(target.link())
    with pytest.raises(PowerError) as terminal:
        RttTerminalTransport().collect(target.link(), 0.5)
    assert profile.value.slug == terminal.value.slug == "rtt-corrupt"


def test_a_symbol_outside_ram_is_refused() -> None:
    target = ScriptedTarget()
    for address in (0, RAM.origin - 4, RAM.origin + RAM.size_b - 8):
        link = LinkContext(session=target, memory=target, symbols={RING_SYMBOL: (address, 72)}, ram=RAM)
        with pytest.raises(RingDefectError):
            RttRing(link)


@settings(max_examples=200, deadline=None)
@given(block=st.binary(min_size=72, max_size=72), keep_id=st.booleans())
def test_any_block_is_read_inside_ram_or_refused(block: bytes, keep_id: bool) -> None:
    target = ScriptedTarget()
    target.put_ring()
    target.write_memory(BLOCK + (16 if keep_id else 0), block[: 56 if keep_id else 72])
    try:
        drained = ring_of(target).read()  # the scripted target itself asserts that RAM is never left
    except RingDefectError:
        return
    assert len(drained) < RAM.size_b
