"""Whatever happens to a record on its way: it is read as it was written, or it is refused with a typed error."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from joulemap.errors import CaptureError, PowerError
from joulemap.firmware.wire.profile_stream import parse_profile_stream
from joulemap.firmware.wire.terminal import PowerTerminalParser
from joulemap.records.power import PowerTerminalEnvelope
from wire_text import profile_stream, terminal_record

RECORD, STREAM = terminal_record(), profile_stream()
WHOLE = PowerTerminalParser().parse(RECORD)


def read_terminal(stream: bytes) -> PowerTerminalEnvelope | str:
    """Returns the envelope, or the slug of the refusal."""
    try:
        return PowerTerminalParser().parse(stream)
    except PowerError as error:
        return error.slug


def read_profile(stream: bytes) -> list[list[int]] | str:
    """Returns the layers' cycles, or the slug of the refusal."""
    try:
        cycles = parse_profile_stream(stream, counter_source="dwt", layer_count=2).layer_cycles
    except CaptureError as error:
        return error.slug
    return [[int(value) for value in row] for row in cycles]


@settings(max_examples=300, deadline=None)
@given(at=st.integers(0, len(RECORD) - 1), value=st.integers(0, 255))
def test_a_changed_byte_never_changes_a_terminal_record(at: int, value: int) -> None:
    read = read_terminal(RECORD[:at] + bytes([value]) + RECORD[at + 1 :])
    assert read == WHOLE or (isinstance(read, str) and read.startswith("terminal-"))
    assert value == RECORD[at] or isinstance(read, str)


@settings(max_examples=300, deadline=None)
@given(at=st.integers(0, len(STREAM) - 1), value=st.integers(0, 255))
def test_a_changed_byte_never_changes_a_profile(at: int, value: int) -> None:
    read = read_profile(STREAM[:at] + bytes([value]) + STREAM[at + 1 :])
    assert read == [[359, 18965], [359, 18965]] or (isinstance(read, str) and read.startswith("profile-"))
    assert value == STREAM[at] or isinstance(read, str)


@settings(max_examples=200, deadline=None)
@given(end=st.integers(0, len(RECORD) - 1))
def test_no_prefix_of_a_record_is_taken_for_it(end: int) -> None:
    assert read_terminal(RECORD[:end]) in {"terminal-missing", "terminal-truncated"}


@settings(max_examples=300, deadline=None)
@given(junk=st.binary(max_size=400))
def test_junk_is_refused(junk: bytes) -> None:
    for marker in (b"", b"HPX_POWER_BEGIN VERSION=1\n", b"HPX_POWER_BEGIN VERSION=1\nSTATUS=ok\n"):
        assert isinstance(read_terminal(marker + junk + b"\nHPX_POWER_END\n"), str)
