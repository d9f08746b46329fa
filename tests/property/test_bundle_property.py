"""Traces, timelines and documents come back from files as they went."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.json_text import decode_json, encode_json
from joulemap.formats.timeline_parquet import read_timeline, write_timeline
from joulemap.formats.trace_parquet import read_trace, write_trace
from joulemap.trace import (
    Channel,
    Clock,
    ClockKind,
    EdgeDirection,
    EnergyTrace,
    KernelKind,
    Marker,
    SensorKernel,
    Slice,
    Timeline,
)

instants = st.integers(-(2**60), 2**60)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
clocks = st.builds(
    Clock,
    name=words.filter(bool),
    kind=st.sampled_from(ClockKind),
    resolution_ns=st.floats(1e-3, 1e9),
    rate_std_ppm=st.none() | st.floats(0, 1e6),
)
channels = st.builds(
    Channel,
    name=words,
    boundary=st.sampled_from(Boundary),
    provenance=st.sampled_from(Provenance),
    kernel=st.builds(
        SensorKernel,
        kind=st.sampled_from(KernelKind),
        window_s=st.floats(0, 1e3),
        latency_s=st.floats(-1, 1),
        quantum_w=st.floats(0, 1),
    ),
)
markers = st.builds(Marker, time_ns=instants, name=words, direction=st.sampled_from(EdgeDirection))


@st.composite
def traces(draw: st.DrawFn) -> EnergyTrace:
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    elements = st.floats(width=32 if dtype is np.float32 else 64, allow_nan=False, allow_infinity=False)
    power = draw(hnp.arrays(dtype, st.integers(0, 40), elements=elements))
    start = draw(instants)
    cuts = draw(st.lists(st.integers(0, power.size), unique=True, max_size=6).map(sorted))
    gaps = np.array(cuts[: len(cuts) // 2 * 2], np.int64).reshape(-1, 2)
    if draw(st.booleans()):
        steps = draw(st.lists(st.integers(1, 2**30), min_size=power.size, max_size=power.size))
        edges = start + np.concatenate([[0], np.cumsum(np.array(steps, np.int64))])
        return EnergyTrace(
            clock=draw(clocks), channel=draw(channels), power_w=power, start_ns=start, edges_ns=edges, gaps=gaps
        )
    period = draw(st.floats(1e-9, 1e3))
    return EnergyTrace(
        clock=draw(clocks), channel=draw(channels), power_w=power, start_ns=start, period_s=period, gaps=gaps
    )


@settings(deadline=None)
@given(trace=traces(), marks=st.lists(markers, max_size=4))
def test_a_trace_comes_back_to_the_bit(trace: EnergyTrace, marks: list[Marker]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = (Path(folder) / "a.parquet", Path(folder) / "a.json")
        write_trace(*files, trace, markers=marks)
        back, marks_back = read_trace(*files)
    assert back.power_w.dtype == trace.power_w.dtype
    assert back.power_w.tobytes() == trace.power_w.tobytes()
    assert (back.clock, back.channel, back.start_ns) == (trace.clock, trace.channel, trace.start_ns)
    assert back.period_s == trace.period_s
    assert back.gaps.tolist() == trace.gaps.tolist()
    assert marks_back == tuple(marks)
    if trace.edges_ns is not None:
        assert back.edges_ns is not None
        assert back.edges_ns.tolist() == trace.edges_ns.tolist()


slices = st.builds(
    lambda name, start, length, track, kind: Slice(
        name=name, start_ns=start, end_ns=start + length, track=track, kind=kind
    ),
    words,
    instants,
    st.integers(0, 2**40),
    words,
    st.sampled_from(["run", "inference", "layer", ""]),
)


@settings(deadline=None)
@given(clock=clocks, rows=st.lists(slices, max_size=12))
def test_a_timeline_comes_back_slice_by_slice(clock: Clock, rows: list[Slice]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "timeline.parquet"
        write_timeline(path, Timeline.from_slices(clock, rows))
        back = read_timeline(path)
        first = path.read_bytes()
        write_timeline(path, back)
        assert path.read_bytes() == first
    assert back.clock == clock
    assert list(back) == rows


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=20,
)


@given(document=documents)
def test_json_comes_back_equal_and_the_same_every_time(document: object) -> None:
    data = encode_json(document)
    assert decode_json(data) == document
    assert encode_json(json.loads(data)) == data


@settings(deadline=None, max_examples=60)
@given(position=st.floats(0, 1), byte=st.integers(1, 255), cut=st.booleans(), which=st.integers(0, 1))
def test_no_damage_to_a_trace_s_files_escapes_as_another_error(
    position: float, byte: int, cut: bool, which: int
) -> None:
    trace = EnergyTrace(
        clock=Clock(name="c", kind=ClockKind.LOCAL),
        channel=Channel(
            name="rail",
            boundary=Boundary.RAIL,
            provenance=Provenance.SIMULATED,
            kernel=SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1e-6),
        ),
        power_w=np.linspace(0, 1, 300, dtype=np.float32),
        start_ns=0,
        edges_ns=np.arange(301),
    )
    with tempfile.TemporaryDirectory() as folder:
        files = (Path(folder) / "a.parquet", Path(folder) / "a.json")
        write_trace(*files, trace)
        data = bytearray(files[which].read_bytes())
        at = min(int(position * len(data)), len(data) - 1)
        if cut:
            del data[at:]
        else:
            data[at] ^= byte
        files[which].write_bytes(bytes(data))
        try:
            back, _ = read_trace(*files)
        except FormatError:
            return
        assert back.n == 300  # the damage hit a value: the bundle's digest is what finds that


def test_files_that_contradict_each_other_are_refused() -> None:
    trace = EnergyTrace(
        clock=Clock(name="c", kind=ClockKind.LOCAL),
        channel=Channel(
            name="rail",
            boundary=Boundary.RAIL,
            provenance=Provenance.SIMULATED,
            kernel=SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1e-6),
        ),
        power_w=np.ones(3, np.float32),
        start_ns=0,
        period_s=1e-6,
    )
    with tempfile.TemporaryDirectory() as folder:
        files = (Path(folder) / "a.parquet", Path(folder) / "a.json")
        for key, value in (("n", 4), ("period_s", None), ("gaps", [[2, 9]]), ("clock", 7), ("markers", [{}])):
            write_trace(*files, trace)
            document = json.loads(files[1].read_text())
            files[1].write_text(json.dumps(document | {key: value}))
            with pytest.raises(FormatError):
                read_trace(*files)
