"""The quick way through a trace gives what the general reader gives: the same slices, marks, findings and refusals."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulemap.errors import FormatError
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.json_stream import JsonStream
from joulemap.formats.timelines.event_scan import EventScan, open_scan
from joulemap.formats.timelines.trace_events import TraceEvents
from joulemap.trace import Clock, ClockKind

_STAMPS = [
    "0", "1", "12.5", "12.0625", "12.06249", "1712195495519689.123", "99999999999999.9994999", "0.0005", "7.000",
    "123456789012345", "1234567890123456", "-3", "1e3", '"4.5"', "01", "1.", ".5", "null", "NaN", "true",
    "1.00049999999999999999999999",
]  # fmt: skip
_TEXTS = [
    '"a"', '"conv 1"', '"\\u00b5s"', '"quote \\" and \\\\"', '"µ"', '""', "3", "null", "[1]", '"bad \\x"', '"a\tb"',
]  # fmt: skip
_VALUES = [
    "{}", '{"a":[1,2,{"b":null}],"c":"}"}', "[ ]", "[[],[1.5e-3,true,false]]", "-0", "1.5E+7", '"x"', "NaN", "{,}",
    "[1,]", '{"a" 1}', "tru", "01", "[1 2]", '{"k":"\\u12G4"}',
]  # fmt: skip


def collect(path: Path, *, quick: bool, skip_zero: bool) -> Any:
    """Returns everything that can be seen of a reading, or the error."""
    log = FindingLog()
    events = TraceEvents(Clock(name="trace", kind=ClockKind.MONOTONIC), log, skip_zero=skip_zero)
    scan = open_scan(path, events, force=True) if quick else None
    assert (scan is not None) is quick
    stream = JsonStream(path, arrays=frozenset({"traceEvents"}), scan=scan.take if scan else None)
    others = []
    try:
        for member, value in stream:
            if member in ("", "traceEvents"):
                events.take(value)
            else:
                others.append((member, value))
    except FormatError as error:
        return error.slug, error.message
    timelines = [
        (t.names, t.tracks, t.kinds, *(getattr(t, key).tolist() for key in (
            "start_ns", "end_ns", "name_index", "track_index", "kind_index")))
        for t in events.timelines()
    ]  # fmt: skip
    marks = [(m.time_ns, m.name) for track in events.markers() for m in track.markers]
    return timelines, marks, log.findings(), events.seen, events.metadata(), stream.truncated, stream.offset, others


def check(path: Path, text: str, *, skip_zero: bool = False) -> Any:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    plain = collect(path, quick=False, skip_zero=skip_zero)
    assert collect(path, quick=True, skip_zero=skip_zero) == plain
    return plain


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def draw_event(rng: random.Random, *, broken: bool) -> str:
    stamps, texts, values = (
        [text for text in table if broken or is_json(text)] for table in (_STAMPS, _TEXTS, _VALUES)
    )
    members = {
        "ph": rng.choice(['"X"'] * 6 + ['"B"', '"E"', '"i"', '"M"', '"C"', "1"]),
        "ts": rng.choice(stamps) if rng.random() < 0.3 else f"{rng.randrange(10**6)}.{rng.randrange(1000):03d}",
        "dur": rng.choice(stamps) if rng.random() < 0.2 else str(rng.randrange(1000)),
        "name": rng.choice(texts) if rng.random() < 0.3 else f'"op_{rng.randrange(5)}"',
    }
    for key, table in (("cat", texts), ("pid", texts), ("tid", texts), ("args", values), ("id", values)):
        if rng.random() < 0.7:
            usual = str(rng.randrange(4)) if key in ("pid", "tid") else '"k"'
            members[key] = rng.choice(table) if rng.random() < 0.2 else usual
    pairs = list(members.items())
    rng.shuffle(pairs)
    if rng.random() < 0.05:
        pairs.append(rng.choice(pairs))
    if rng.random() < 0.05:
        pairs.append(("\\u0074s", "5"))
    blank = rng.choice(["", " ", "\n\t"])
    return "{" + f",{blank}".join(f'"{key}"{blank}:{value}' for key, value in pairs) + blank + "}"


@pytest.mark.parametrize("seed", range(8))
def test_drawn_events_are_read_alike(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    good = seen = 0
    for k in range(60):
        broken = k % 4 == 3
        events = [draw_event(rng, broken=broken) for _ in range(rng.randrange(1, 30))]
        ending = rng.choice(["]", "", ",", " ]\n", "]x" if broken else "]"])
        text = "[" + rng.choice([",", ",\n", " , "]).join(events) + ending
        if k % 3 == 0:
            text = '{"a":1,"traceEvents":' + text + ',"b":"c"}'
        found = check(tmp_path / "t.json", text, skip_zero=k % 2 == 0)
        seen += 1
        good += len(found) > 2
    assert good > 5, "some of them must be readable"
    assert seen > good, "and some must not be"


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_changed_byte_is_read_alike(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.json"
    text = (
        '[{"ph":"X","cat":"kernel","name":"gemm","pid":1,"tid":"s 7","ts":12.250,"dur":3.5,'
        '"args":{"a":[1,-2.5e3,{"b":null}]}},\n'
        ' {"name":"relu\\n","ph":"X","ts":20,"dur":0.001,"pid":1,"tid":7,"args":{}},'
        ' {"ph":"M","name":"process_name","pid":1,"args":{"name":"app"}},{"ph":"X","name":"gemm","ts":30.0005,"dur":1}]'
    )
    at = data.draw(st.integers(0, len(text)))
    kind = data.draw(st.sampled_from(["change", "drop", "insert", "cut"]))
    sign = data.draw(st.sampled_from(list('"\\{}[]:,0159.-+eEtnuX \n\x00\x01µ')))
    tail = {"change": sign + text[at + 1 :], "drop": text[at + 1 :], "insert": sign + text[at:], "cut": ""}[kind]
    check(path, text[:at] + tail)


def test_a_long_trace_goes_the_quick_way(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    events = [
        {"ph": "X", "name": f"op {k % 37}", "cat": "k", "pid": 1, "tid": k % 3, "ts": t, "dur": 5, "args": {"k": k}}
        for k, t in enumerate(np.sort(rng.integers(0, 10**7, 40_000)).tolist())
    ]
    path = tmp_path / "long.json"
    found = check(path, json.dumps({"traceEvents": events}))
    assert len(found[0][0][3]) == 40_000
    counted: list[int] = []
    scan = EventScan(TraceEvents(Clock(name="t", kind=ClockKind.MONOTONIC), FindingLog()))

    def take(text: bytes, at: int) -> int:
        after = scan.take(text, at)
        counted.append(after - at)
        return after

    decoded = sum(1 for _ in JsonStream(path, arrays=frozenset({"traceEvents"}), scan=take))
    assert decoded < 20, "nearly all of them are taken by the scan"
    assert sum(counted) > 0.99 * path.stat().st_size


def test_small_files_and_renaming_readers_go_the_general_way(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text("[]")
    clock = Clock(name="t", kind=ClockKind.MONOTONIC)
    assert open_scan(path, TraceEvents(clock, FindingLog())) is None
    assert open_scan(path, TraceEvents(clock, FindingLog(), rename=lambda _: ("a", "b")), force=True) is None
