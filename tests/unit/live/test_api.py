"""The Python API: figures, marks, arguments, bundles, notebooks, and what it does when it cannot measure."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, cast

import pytest

import joulemap
from joulemap.errors import SetupError, UsageError
from joulemap.estimate import Estimate, Unavailable
from joulemap.meters.live.ground.waves import PowerWave
from joulemap.meters.live.kit import FakeTree, TreePlan
from joulemap.meters.live.marking import current_sink
from joulemap.records.live.mark_layout import FOLDER_VARIABLE
from live_benches import METER
from program import call, leftovers


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


def fail_after(span_s: float) -> None:
    time.sleep(span_s)
    raise ZeroDivisionError


def test_an_exception_passes_and_what_was_measured_is_kept(tmp_path: Path) -> None:
    m = joulemap.measure(meters=[METER], output=tmp_path / "r.jm")
    with pytest.raises(ZeroDivisionError), m:
        fail_after(0.3)
    assert leftovers(tmp_path) == ["r.jm"]
    assert isinstance(m.energy_j, Estimate)
    assert "block_raised" in {finding.slug for finding in m.findings}
    assert "ZeroDivisionError" in str(m)
    assert FOLDER_VARIABLE not in os.environ
    assert current_sink() is None


@pytest.mark.parametrize(
    ("argument", "value", "wanted"),
    [
        ("rate_hz", float("nan"), "a number from 0.001 to 100000 Hz"),
        ("rate_hz", 0, "a number from 0.001"),
        ("rate_hz", "fast", "a number from 0.001"),
        ("baseline_s", -1, "a number from 0 to 86400 s"),
        ("baseline_s", float("inf"), "a number from 0 to 86400 s"),
        ("priority", "urgent", "normal, nice, realtime"),
        ("meters", [3], "a list of names"),
        ("meters", 5, "a list of names"),
        ("meters", [""], "a list of names"),
        ("headline", [3], "a name of a domain"),
        ("headline", None, "a name of a domain"),
        ("headline", "", "a name of a domain"),
        ("output", "", "the path of a bundle"),
        ("output", 3, "the path of a bundle"),
        ("output", "a\0b", "the path of a bundle"),
    ],
)
def test_an_argument_that_cannot_be_is_refused_at_once(argument: str, value: object, wanted: str) -> None:
    with pytest.raises(UsageError) as caught:
        joulemap.measure(**cast("Any", {argument: value}))
    assert caught.value.slug == "measure-argument"
    assert argument in caught.value.message
    assert wanted in caught.value.hint


def test_one_meter_may_be_given_without_a_list() -> None:
    with joulemap.measure(meters=METER) as m:
        time.sleep(0.05)
    assert list(m.domains) == ["simulated:rail"]


def test_the_headline_is_the_package_or_what_was_asked_for(tmp_path: Path) -> None:
    with FakeTree(TreePlan(wave=PowerWave(mean_w=60.0))) as tree:
        meter = f"powercap:root={tree.root},proc={tree.root}"

        def measure(headline: str | list[str]) -> joulemap.Measurement:
            with joulemap.measure(
                meters=meter, rate_hz=50, headline=headline, output=tmp_path / "r.jm", force=True
            ) as m:
                time.sleep(0.4)
            return m

        package, memory, core = (f"powercap:package-0{tail}" for tail in ("", "/dram", "/core"))
        for headline, names in (
            ([], [package]),
            ("sum", [package, memory]),
            (core, [core]),
            ([core, memory], [core, memory]),
        ):
            m = measure(headline)
            each = {name: energy.value for name, energy in m.domains.items() if isinstance(energy, Estimate)}
            assert isinstance(m.energy_j, Estimate)
            assert m.energy_j.value == pytest.approx(sum(each[name] for name in names))
            assert (m.energy_j.boundary is None) == (headline == "sum")
            assert isinstance(m.average_power_w, Estimate)
            assert m.average_power_w.value == pytest.approx(m.energy_j.value / m.duration_s)
            document = json.loads((tmp_path / "r.jm" / "result.json").read_text())
            assert document["energy_of"] == names
            assert document["energy_j"]["value"] == m.energy_j.value
            said = {finding.slug for finding in m.findings}
            assert ("domains_chosen" in said, "boundaries_differ" in said) == (headline == [], headline == "sum")
        for headline, slug in (
            ([package, core], "domains-overlap"),
            ("powercap:package-9", "domain-unknown"),
            (["sum", package], "flags-contradict"),
        ):
            with pytest.raises(UsageError) as refused:
                measure(headline)
            assert refused.value.slug == slug
            assert current_sink() is None


def test_an_output_that_exists_or_cannot_be_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "there.jm").write_text("mine")
    ran = []
    for output in (tmp_path / "there.jm", tmp_path / "no" / "folder.jm", Path("/dev/null")):
        with pytest.raises((UsageError, SetupError)), joulemap.measure(meters=[METER], output=output):
            ran.append(output)
    assert ran == []
    assert leftovers(tmp_path) == ["there.jm"]
    assert (tmp_path / "there.jm").read_text() == "mine"


def test_an_output_that_is_taken_meanwhile_fails_nothing_and_loses_nothing(tmp_path: Path) -> None:
    m = joulemap.measure(meters=[METER], output=tmp_path / "r.jm")
    m.__enter__()
    time.sleep(0.3)
    (tmp_path / "r.jm").write_text("another's")
    with pytest.warns(RuntimeWarning, match=r"joulemap import .*r\.jm\.live"):
        m.__exit__(None, None, None)
    assert "measurement_unsaved" in {finding.slug for finding in m.findings}
    assert isinstance(m.energy_j, Estimate)
    assert call("import", tmp_path / "r.jm.live", "-o", tmp_path / "saved.jm", "--quiet").code == 0


def test_exits_out_of_order_are_told_or_do_nothing() -> None:
    with pytest.raises(UsageError, match="not entered"):
        joulemap.measure(meters=[METER]).__exit__(None, None, None)
    with joulemap.measure(meters=[METER]) as m:
        time.sleep(0.05)
    before = m.energy_j
    m.__exit__(None, None, None)
    assert len(m.windows["run"]) == 1
    assert m.energy_j == before


def test_people_read_what_a_figure_is_and_no_digit_too_many() -> None:
    with joulemap.measure("train", meters=[METER], rate_hz=100.0) as m:
        for _ in range(2):
            with joulemap.mark("<step>"):
                time.sleep(0.1)
    text, page = str(m), m._repr_html_()
    for shown in (text, page):
        assert "rail, simulated" in shown
        assert "train" in shown
    assert "&lt;step&gt;" in page
    assert "<step>" not in page
    assert next(line.split()[:2] for line in text.splitlines() if "<step>" in line) == ["<step>", "2"]
    assert str(m.energy_j).endswith("(rail, simulated)")
    assert len(str(m.energy_j)) < 40
    assert str(joulemap.measure()).endswith("not available (not_ended)")


def test_marks_of_many_names_do_not_keep_the_reader_waiting() -> None:
    with joulemap.measure(meters=[METER]) as m:
        for k in range(4000):
            with joulemap.mark(f"step {k}"):
                pass
    assert m.recording is not None
    assert "4000 names: rows() has them" in str(m)
    assert "rows() has them" in m._repr_html_()


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
