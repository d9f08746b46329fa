"""The Python API: figures, marks, decorators, async, notebooks, bundles, and what it does when it cannot measure."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

import joulemap
from joulemap.errors import SetupError, UsageError
from joulemap.estimate import Estimate, Unavailable
from joulemap.meters.live.ground.waves import PowerWave
from joulemap.meters.live.kit import FakeTree, TreePlan
from joulemap.meters.live.marking import current_sink
from joulemap.records.live.mark_layout import FOLDER_VARIABLE
from program import call, leftovers

METER = "simulated:mean_w=20"


def test_a_block_is_measured_and_its_marks_are_rows(tmp_path: Path) -> None:
    with joulemap.measure("train", meters=[METER], rate_hz=100.0, baseline_s=0.2) as m:
        for _ in range(3):
            with joulemap.mark("step"):
                time.sleep(0.06)
            with m.mark("eval"):
                time.sleep(0.03)
    assert isinstance(m.energy_j, Estimate)
    assert m.energy_j.value == pytest.approx(20.0 * m.duration_s, rel=0.01)
    assert isinstance(m.energy_above_idle_j, Estimate)
    assert abs(m.energy_above_idle_j.value) < 0.05 * m.energy_j.value
    assert isinstance(m.average_power_w, Estimate)
    assert list(m.domains) == ["simulated:rail"]
    rows = {row.key: row for row in m.rows()}
    assert {key: row.count for key, row in rows.items()} == {"step": 3, "eval": 3}
    assert isinstance(rows["step"].energy_j, Estimate)
    assert rows["step"].energy_j.value == pytest.approx(20.0 * rows["step"].duration_s, rel=0.05)
    page = m._repr_html_()
    assert page.startswith("<table>")
    assert "train" in page
    assert "train" in repr(m)
    m.save(tmp_path / "r.jm")
    assert {row["key"] for row in call("map", tmp_path / "r.jm", "--json").json["rows"]} == {"step", "eval"}
    with pytest.raises(UsageError, match="no domain"):
        m.rows("nothing")


def test_a_name_from_the_user_is_no_html() -> None:
    with joulemap.measure("<script>", meters=[METER]) as m:
        pass
    assert "<script>" not in m._repr_html_()


def test_an_output_is_written_at_the_end_and_nothing_else_stays(tmp_path: Path) -> None:
    with joulemap.measure(meters=[METER], output=tmp_path / "r.jm") as m:
        assert leftovers(tmp_path) == ["r.jm.live"]
        time.sleep(0.05)
    assert leftovers(tmp_path) == ["r.jm"]
    assert m.recording is not None


def test_an_exception_passes_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), joulemap.measure(meters=[METER], output=tmp_path / "r.jm") as m:
        1 / 0  # noqa: B018
    assert leftovers(tmp_path) == []
    assert isinstance(m.energy_j, Estimate | Unavailable)
    assert FOLDER_VARIABLE not in os.environ
    assert current_sink() is None


def test_each_call_of_a_function_is_measured() -> None:
    @joulemap.measure(meters=[METER], rate_hz=50.0)
    def work(span_s: float) -> float:
        time.sleep(span_s)
        return span_s

    assert work(0.05) == 0.05
    assert work(0.1) == 0.1
    first, second = work.measurements  # type: ignore[attr-defined]
    assert second.energy_j.value > first.energy_j.value
    assert "work" in first.name


def test_async_code_is_measured_as_a_block_and_as_a_function() -> None:
    @joulemap.measure(meters=[METER])
    async def work() -> int:
        with joulemap.mark("inside"):
            await asyncio.sleep(0.05)
        return 5

    async def main() -> joulemap.Measurement:
        async with joulemap.measure(meters=[METER], rate_hz=50.0) as m:
            await asyncio.gather(*(asyncio.sleep(0.05) for _ in range(3)))
        return m

    assert asyncio.run(work()) == 5
    (measured,) = work.measurements  # type: ignore[attr-defined]
    assert [row.key for row in measured.rows()] == ["inside"]
    assert isinstance(asyncio.run(main()).energy_j, Estimate)


def test_of_a_package_and_its_memory_the_package_is_the_headline_and_said() -> None:
    with FakeTree(TreePlan(wave=PowerWave(mean_w=60.0))) as tree:
        with joulemap.measure(meters=[f"powercap:root={tree.root},proc={tree.root}"], rate_hz=50.0) as m:
            time.sleep(0.4)
        assert isinstance(m.energy_j, Estimate)
        assert m.energy_j == m.domains["powercap:package-0"]
        said = [finding for finding in m.findings if finding.slug == "domains_chosen"]
        assert len(said) == 1
        assert "package-0/dram" in said[0].message


def test_one_measurement_runs_at_a_time_and_once() -> None:
    with joulemap.measure(meters=[METER]) as m:
        with pytest.raises(UsageError) as caught, joulemap.measure(meters=[METER]):
            pass
        with pytest.raises(UsageError):
            m.save("nowhere.jm")
        assert isinstance(m.energy_j, Unavailable)
    assert caught.value.slug == "measure-order"
    with pytest.raises(UsageError):
        m.__enter__()
    with joulemap.measure(meters=[METER]):
        pass


def test_a_meter_that_is_not_there_is_refused_on_entry() -> None:
    with pytest.raises(SetupError), joulemap.measure(meters=["powercap:root=/nowhere,proc=/nowhere"]):
        pass
    assert current_sink() is None


def test_a_forked_child_leaves_the_measurement_alone() -> None:
    with joulemap.measure(meters=[METER], rate_hz=50.0) as m:
        pid = os.fork()
        if pid == 0:
            try:
                with joulemap.mark("in the child"):
                    time.sleep(0.02)
                m.__exit__(None, None, None)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        time.sleep(0.1)
    assert isinstance(m.energy_j, Estimate)
    assert "in the child" in {row.key for row in m.rows()}


def test_ranges_and_spans_of_other_tracers_become_marks() -> None:
    nvtx = pytest.importorskip("nvtx")
    trace = pytest.importorskip("opentelemetry.sdk.trace")
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
    pytest.importorskip("ittapi")
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
