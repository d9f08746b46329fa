"""Ranges of other tracers that become marks, and marks that become theirs."""

from __future__ import annotations

import asyncio
import time

import pytest

import joulemap
from joulemap.errors import UsageError
from live_benches import METER


def test_annotations_of_nvtx_become_marks() -> None:
    import nvtx

    enter, over = nvtx.annotate.__enter__, nvtx.annotate.__call__
    with joulemap.measure(meters=[METER], rate_hz=50.0) as m, joulemap.adapters.collect_nvtx():
        with nvtx.annotate("block", color="red"):
            time.sleep(0.02)

        def work() -> int:
            return 4

        annotated = nvtx.annotate()(work)
        assert (annotated(), annotated()) == (4, 4)
    assert (nvtx.annotate.__enter__, nvtx.annotate.__call__) == (enter, over)
    assert {row.key: row.count for row in m.rows()} == {"block": 1, "work": 2}


def test_ranges_and_spans_of_other_tracers_become_marks() -> None:
    import nvtx
    from opentelemetry.sdk import trace

    provider = trace.TracerProvider()
    provider.add_span_processor(joulemap.adapters.span_processor())
    tracer = provider.get_tracer("test")
    emit = joulemap.adapters.emit_ranges("nvtx")
    original = nvtx.push_range
    with joulemap.measure(meters=[METER], rate_hz=50.0) as m:
        with joulemap.adapters.collect_nvtx(), tracer.start_as_current_span("span"):
            nvtx.push_range("range")
            time.sleep(0.02)
            nvtx.pop_range()
        with emit("both"):
            time.sleep(0.02)
    provider.shutdown()
    assert nvtx.push_range is original
    counts = {row.key: row.count for row in m.rows()}
    assert counts == {"span": 1, "range": 1, "both": 1}
    tracks = set(m.recording.timelines[0].tracks)  # type: ignore[union-attr]
    assert len(tracks) == 1


def test_marks_may_be_tasks_of_itt_too() -> None:
    emit = joulemap.adapters.emit_ranges("itt")
    with joulemap.measure(meters=[METER], rate_hz=50.0) as m:
        for _ in range(2):
            with emit("task"):
                time.sleep(0.02)
    assert [(row.key, row.count) for row in m.rows()] == [("task", 2)]


def test_a_tracer_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        joulemap.adapters.emit_ranges("perf")
    assert caught.value.slug == "tracer-unknown"
    with pytest.raises(UsageError), joulemap.adapters.collect_nvtx(asyncio):
        pass
