"""The ground of the readers of logs: samples, slices, streamed JSON, XML trees, protocol buffers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from host_reading import energy_j
from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.json_stream import JsonStream, read_json
from joulemap.formats.ground.logs import key_of, local_clock, parse_asctime, parse_quantity
from joulemap.formats.ground.protobuf import decode_message
from joulemap.formats.ground.prototext import parse_text_messages
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, chain_interval
from joulemap.formats.ground.slices import SliceColumns
from joulemap.formats.ground.xml_tree import read_documents
from joulemap.trace import Clock, ClockKind
from wire_fields import varint, wire

CLOCK = Clock(name="c", kind=ClockKind.MONOTONIC)
S = 10**9


def book() -> SampleBook:
    return SampleBook(CLOCK, FindingLog())


def counter(**more: object) -> Domain:
    return Domain(boundary=Boundary.PACKAGE, meaning=Meaning.COUNTER, **more)  # type: ignore[arg-type]


def test_counter_wraps_with_its_range_and_the_wrap_is_said() -> None:
    made = book()
    series = made.series("p", counter(modulus=1000.0))
    for k, value in enumerate((900.0, 950.0, 10.0, 60.0)):
        series.add(k * S, value, k + 1)
    trace = made.traces()[0]
    assert trace.power_w.tolist() == [50.0, 60.0, 50.0]
    assert made.log.count("counter_wrapped") == 1


def test_several_wraps_between_two_reads_are_beyond_any_power_and_lost() -> None:
    made = book()
    series = made.series("p", counter(modulus=1e6, largest_w=300.0))
    for time_s, value in ((0, 0.0), (1, 200.0), (2, 100.0), (3, 300.0)):
        series.add(time_s * S, value, 1)
    trace = made.traces()[0]
    assert trace.gaps.tolist() == [[1, 2]]
    assert energy_j(trace) == 400.0


def test_power_beyond_the_limit_and_missing_values_are_gaps() -> None:
    made = book()
    series = made.series("p", Domain(boundary=Boundary.BOARD, largest_w=100.0))
    for k, value in enumerate((5.0, float("nan"), 1e6, 6.0)):
        series.add(k * S, value, k + 1)
    trace = made.traces()[0]
    assert trace.gaps.tolist() == [[1, 3]]
    assert made.log.count("impossible_power") == 1


def test_one_reading_is_a_stated_figure_with_its_provenance() -> None:
    made = book()
    made.series("a b", Domain(boundary=Boundary.BOARD, provenance=Provenance.ESTIMATED)).add(5, 2.5, 3)
    assert made.traces() == ()
    figure = made.totals[0]
    assert (figure.key, figure.value, figure.provenance, figure.span) == (
        "a_b_power_w",
        2.5,
        Provenance.ESTIMATED,
        "line 3",
    )


def test_intervals_with_holes_and_overlaps() -> None:
    made = book()
    series = made.series("p", Domain(boundary=Boundary.NODE, meaning=Meaning.STEP))
    for start, end, energy in ((0, 2, 10.0), (4, 6, 8.0), (5, 7, 99.0), (6, 8, 4.0)):
        series.add_interval(start * S, end * S, energy, 1)
    trace = made.traces()[0]
    assert trace.power_w.tolist() == [5.0, 0.0, 4.0, 2.0]
    assert trace.gaps.tolist() == [[1, 2]]
    assert energy_j(trace) == 22.0
    assert made.log.count("interval_overlap") == 1


def test_steps_below_zero_are_impossible() -> None:
    made = book()
    series = made.series("p", Domain(boundary=Boundary.NODE, meaning=Meaning.STEP))
    for k, value in enumerate((1.0, 2.0, -3.0, 4.0)):
        series.add(k * S, value, k + 1)
    assert made.traces()[0].gaps.tolist() == [[1, 2]]


def test_chained_intervals_follow_each_other_until_a_stamp_contradicts() -> None:
    assert chain_interval(None, 10 * S, S) == (9 * S, 10 * S, False)
    assert chain_interval(10 * S, 12 * S, S) == (10 * S, 11 * S, False)
    assert chain_interval(10 * S, 20 * S, S) == (19 * S, 20 * S, True)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("22.89 W", "", 22.89),
        ("5299mW", "", 5.299),
        ("142", "mW", 0.142),
        ("1485MHz", "", 1.485e9),
        ("12 %", "", 0.12),
        ("5", "%", 0.05),
    ],
)
def test_quantities(text: str, unit: str, value: float) -> None:
    assert parse_quantity(text, unit) == pytest.approx(value)


@pytest.mark.parametrize("text", ["N/A", "[Not Supported]", "-", "", "N/A (Secondary die)", "<not counted>"])
def test_missing_quantities_are_nan(text: str) -> None:
    assert np.isnan(parse_quantity(text))


@pytest.mark.parametrize("text", ["abc", "12 parsec", "1_000"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_quantity(text)


def test_asctime_with_and_without_a_zone() -> None:
    assert parse_asctime("Fri Nov 10 12:37:08 2023 +0100").utc_ns == 1699616228 * S
    assert parse_asctime("Fri Aug  4 11:44:30 2023").offset_s is None
    with pytest.raises(ValueError, match="not a time stamp"):
        parse_asctime("Fri Nix 10 12:37:08 2023")


def test_local_clock_is_never_silently_utc() -> None:
    log = FindingLog()
    clock, shift_ns = local_clock(ReadOptions(), log)
    assert (clock.kind, shift_ns, log.count("zone_unstated")) == (ClockKind.LOCAL, 0, 1)
    clock, shift_ns = local_clock(ReadOptions(utc_offset_s=-28800.0), log)
    assert (clock.kind, shift_ns) == (ClockKind.UTC, 28800 * S)


def test_keys() -> None:
    assert key_of("GPU-x / stream 7") == "gpu_x_stream_7"


def elements(text: str, tmp_path: Path, **more: frozenset[str]) -> tuple[list[tuple[str, object]], bool]:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode())
    stream = JsonStream(path, **more)
    return list(stream), stream.truncated


def test_json_stream_keeps_decimals_as_written(tmp_path: Path) -> None:
    found, cut = elements('[{"t": 1712195495519689.123, "n": NaN, "i": 7}]', tmp_path)
    assert found == [("", {"t": "1712195495519689.123", "n": None, "i": 7})]
    assert not cut


def test_json_stream_of_members_and_their_arrays(tmp_path: Path) -> None:
    text = '{"a": 1, "events": [1, {"b": [2]}, "x"], "z": {"y": 3}}'
    found, cut = elements(text, tmp_path, arrays=frozenset({"events"}))
    assert found == [("a", 1), ("events", 1), ("events", {"b": [2]}), ("events", "x"), ("z", {"y": 3})]
    assert not cut


@pytest.mark.parametrize("length", [1, 7, 100, 70_000])
def test_json_stream_over_the_edges_of_its_buffer(length: int, tmp_path: Path) -> None:
    values = [{"k": k, "s": "é" * (k % 50), "f": k / 8} for k in range(length)]
    found, cut = elements(json.dumps(values), tmp_path)
    assert [one for _, one in found] == [{**value, "f": str(value["f"])} for value in values]
    assert not cut


@pytest.mark.parametrize(
    "text", ["[1, 2", "[1, 2,", '[1, 2, "abc', "[1, 2, {", '{"events": [1, 2', '{"events": [1, 2,{"a":']
)
def test_json_stream_of_a_file_that_ends_early(text: str, tmp_path: Path) -> None:
    found, cut = elements(text, tmp_path, arrays=frozenset({"events"}))
    assert [value for _, value in found] == [1, 2]
    assert cut


@pytest.mark.parametrize(
    "text",
    [
        "[1, oops and a lot more text after it]",
        "hello",
        '{1: 2, "long enough": "to see"}',
        "[1] trailing text",
        "[" * 100_000,
    ],
)
def test_json_stream_of_no_json_is_a_typed_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        elements(text, tmp_path)
    assert caught.value.slug == "json-damaged"


def test_small_json_is_bounded_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": 1.5}')
    assert read_json(path) == {"a": "1.5"}
    with pytest.raises(FormatError) as caught:
        read_json(path, limit_b=4)
    assert caught.value.slug == "recording-too-large"


def test_xml_documents_that_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_text('<?xml version="1.0"?>\n<a><b k="1">x</b></a>\n<?xml version="1.0"?>\n<a><b>y</b>')
    found = [(root.read("b"), complete) for root, complete in read_documents(path)]
    assert found == [("x", True), ("y", False)]


SCHEMA = {
    "M": {1: ("n", "int"), 2: ("s", "string"), 3: ("m", "M"), 4: ("f", "float"), 5: ("b", "bool"), 6: ("u", "uint")}
}


def test_protobuf_wire_form() -> None:
    body = wire(1, -5) + wire(2, "é") + wire(3, wire(1, 7)) + varint(4 << 3 | 5) + b"\x00\x00\xc0\x3f" + wire(5, 1)
    body += varint(6 << 3 | 2) + varint(3) + varint(1) + varint(300) + wire(99, b"skipped")
    assert decode_message(SCHEMA, "M", body) == {
        "n": [-5],
        "s": ["é"],
        "m": [{"n": [7]}],
        "f": [1.5],
        "b": [True],
        "u": [1, 300],
    }


@pytest.mark.parametrize(
    "body", [b"\x08", b"\x12\x05ab", b"\x08" + b"\xff" * 11, b"\x07", b"\x1a\x02\x08", b"\x00\x01"]
)
def test_protobuf_that_is_cut_or_no_message(body: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        decode_message(SCHEMA, "M", body)
    assert caught.value.slug == "protobuf-damaged"


def test_protobuf_text_form() -> None:
    text = 'n: -5 # why\ns: "a\\n" "b\\303"\nm { n: 7 unknown { x: 1 } }\nf: 1.5\nb: true\nu: [1, 0x10]\nm <n: 8>'
    found = parse_text_messages(SCHEMA, "M", text)
    assert found["n"] == [-5]
    assert found["m"] == [{"n": [7]}, {"n": [8]}]
    assert found["u"] == [1, 16]
    assert found["s"][0].startswith("a\nb")
    for broken in ("n: ", "m {", "}", 'n: "text"', "m: 5"):
        with pytest.raises(FormatError):
            parse_text_messages(SCHEMA, "M", broken)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [("uint", "18446744073709551615", 2**64 - 1), ("int", "-9223372036854775808", -(2**63)), ("enum", "3", 3),
     ("enum", "TYPE_A", "TYPE_A"), ("uint", "-1", None), ("uint", "18446744073709551616", None), ("int", "null", None),
     ("uint", "TRUE", None), ("float", "null", None), ("enum", "99999999999", None)],
)  # fmt: skip
def test_protobuf_text_values_have_the_type_of_their_field(kind: str, text: str, value: object) -> None:
    schema = {"M": {1: ("x", kind)}}
    if value is not None:
        assert parse_text_messages(schema, "M", f"x: {text}") == {"x": [value]}
        return
    with pytest.raises(FormatError) as caught:
        parse_text_messages(schema, "M", f"x: {text}")
    assert caught.value.slug == "protobuf-damaged"


def test_slices_are_in_order_of_start_the_outer_first() -> None:
    log = FindingLog()
    columns = SliceColumns(CLOCK, log)
    columns.add("t", "late", (10, 20))
    columns.add("t", "inner", (0, 5))
    columns.add("t", "outer", (0, 9))
    columns.extend(
        ["t"],
        ["block"],
        ["k"],
        (np.array([3, 9]), np.array([4, 8]), np.zeros(2, int), np.zeros(2, int), np.zeros(2, int)),
    )
    line = columns.timelines()[0]
    assert [piece.name for piece in line] == ["outer", "inner", "block", "late"]
    assert log.count("backward_stamp") == 1
    assert not line.start_ns.flags.writeable


def test_tracks_of_one_name_stay_apart_and_many_marks_become_slices() -> None:
    columns = SliceColumns(CLOCK, FindingLog())
    columns.add(("p", 1), "a", (0, 1))
    columns.add(("p", 2), "b", (0, 1))
    assert columns.timelines(lambda _: "worker")[0].tracks == ("worker", "worker #2")
    many = SliceColumns(CLOCK, FindingLog())
    for k in range(20_001):
        many.mark("m", k)
    line = many.timelines()[0]
    assert len(line) == 20_001
    assert line.tracks == ("marks",)
    assert many.markers() == ()
