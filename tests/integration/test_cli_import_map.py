"""``joulemap import`` and ``map`` from files to figures: published numbers, references, refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from joulemap.workflow.recordings import import_recording
from program import Called, call, leftovers
from recording_files import shared_file

# what the submitters published, to the last digit (FORMATS 2), and which metric holds it
PUBLISHED = [
    ("v2.0_NVIDIA_Orin_MaxQ_bert-99_SingleStream", "published_value", 262.48847977862425),
    ("v4.1_UntetherAI_h13_u3_slim_resnet50_offline", "average_power_w", 398.32998477930016),
    ("v4.1_NVIDIA_H200x8_MaxQ_resnet50_Offline", "average_power_w", 4954.031546707506),
    ("v5.1_Lenovo_SR780a_B200x8_llama3.1-8b_Server", "average_power_w", 9011.066666666662),
    ("v5.1_GATEOverflow_TRIGKEY_mobilenet128_offline", "average_power_w", 34.17648312611008),
]


def imported(tmp_path: Path, *arguments: str | Path) -> Path:
    bundle = tmp_path / "run.jm"
    called = call("import", *arguments, "-o", bundle, "--json")
    assert called.code == 0, called.err
    return bundle


def mapped(bundle: Path, *arguments: str) -> dict[str, Any]:
    called = call("map", bundle, "--json", *arguments)
    assert called.code == 0, called.err
    document: dict[str, Any] = called.json
    return document


def told(called: Called, code: int, slug: str) -> None:
    assert called.code == code, called.err
    assert f"docs/errors.md#{slug} (exit {code})" in called.err


@pytest.mark.parametrize(("folder", "metric", "value"), PUBLISHED)
def test_published_power_is_reproduced_to_the_last_digit(
    folder: str, metric: str, value: float, tmp_path: Path
) -> None:
    document = mapped(imported(tmp_path, shared_file("mlperf_inference", folder)), "--rule", "mlperf")
    assert document["rule"] == "mlperf"
    assert document["metrics"][metric] == value
    published = document["metrics"]
    shown = f"{published['published_value']!r} {published['published_unit']}"
    shown += "" if published["published_unit"] == "W" else " per query"
    assert f"rule mlperf        {shown}\n" in call("map", tmp_path / "run.jm", "--rule", "mlperf").out
    own = document["metrics"]["own_average_power_w"]
    differs = next(f for f in document["findings"] if f["slug"] == "published_rule_differs")
    assert f"{own:.10g} W" in differs["message"]
    assert f" {'above' if own > document['metrics']['average_power_w'] else 'below'} the pub" in differs["message"]


def test_what_explains_a_published_difference_is_said(tmp_path: Path) -> None:
    folder = shared_file("mlperf_inference", "v5.1_GATEOverflow_TRIGKEY_mobilenet128_offline")
    document = mapped(imported(tmp_path, folder), "--rule", "mlperf")
    found = {f["slug"]: f["message"] for f in document["findings"]}
    assert "37 of 600 samples" in found["published_samples_dropped"]
    assert "negative_power" in found
    channels = shared_file("mlperf_inference", "v5.1_Lenovo_SR780a_B200x8_llama3.1-8b_Server")
    bundle = tmp_path / "channels.jm"
    assert call("import", channels, "-o", bundle).code == 0
    document = mapped(bundle, "--rule", "mlperf")
    assert "channel_keys_repeat" in {f["slug"] for f in document["findings"]}
    assert document["traces"] == ["total"]


@pytest.mark.parametrize(
    ("parts", "energy_uj"),
    [
        (("mlperf_tiny", "v1.1_Krai_NUCLEO-H7A3ZI-Q", "ic"), 8471.102),
        (("mlperf_tiny", "v1.3_STM_NUCLEO-U575ZI-Q"), 664.4239),
    ],
)
def test_tiny_runs_are_scored_by_their_own_rules(parts: tuple[str, ...], energy_uj: float, tmp_path: Path) -> None:
    path = shared_file(*parts)
    candidates = [path, *sorted(p for p in path.rglob("*") if p.name == "results.json" or p.is_dir())]
    for number, candidate in enumerate(candidates):
        bundle = tmp_path / f"{number}.jm"
        if call("import", candidate, "-o", bundle).code:
            continue
        called = call("map", bundle, "--json", "--rule", "mlperf")
        if called.code == 0 and round(called.json["metrics"]["published_value"], 3) == round(energy_uj, 3):
            assert called.json["metrics"]["energy_per_query_j"] == pytest.approx(energy_uj * 1e-6, rel=1e-6)
            assert called.json["rule"].startswith("energyrunner")
            return
    pytest.fail(f"no run under {'/'.join(parts)} scores {energy_uj} uJ")


def write_power(path: Path, power_w: np.ndarray, *, rate_hz: float = 1000.0) -> Path:
    rows = "".join(f"{(k + 1) / rate_hz:.6f},{value!r}\n" for k, value in enumerate(power_w.tolist()))
    path.write_text("moment (s),power (W)\n" + rows)
    return path


def write_chrome(path: Path, events: list[tuple[str, int, int]]) -> Path:
    path.write_text(json.dumps({"traceEvents": [
        {"ph": "X", "name": name, "cat": "operator", "pid": 1, "tid": 1, "ts": start_us, "dur": end_us - start_us}
        for name, start_us, end_us in events
    ]}))  # fmt: skip
    return path


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two seconds at 1 kHz: 1 W, and 5 W from 0.5 s to 1.5 s, of which 1 s to 1.5 s is inside another slice."""
    power = np.ones(2000)
    power[500:1500] = 5.0
    events = [("run", 500_000, 1_500_000), ("conv", 1_000_000, 1_500_000)]
    return write_power(tmp_path / "power.csv", power), write_chrome(tmp_path / "trace.json", events)


MAP = ("--column", "time=moment (s)", "--column", "power=power (W)")


def test_a_table_and_a_timeline_become_rows(pair: tuple[Path, Path], tmp_path: Path) -> None:
    document = mapped(imported(tmp_path, *pair, *MAP), "--offset", "0")
    rows = {row["key"]: row for row in document["rows"]}
    assert document["total_j"]["value"] == pytest.approx(6.0, rel=1e-9)
    assert document["idle_j"]["value"] == pytest.approx(1.0, rel=1e-9)
    assert rows["run"]["energy_j"]["value"] == pytest.approx(5.0, rel=1e-9)
    assert rows["run"]["self_j"]["value"] == pytest.approx(2.5, rel=1e-9)
    assert rows["conv"]["mean_power_w"]["value"] == pytest.approx(5.0, rel=1e-9)
    assert sum(row["share"] for row in rows.values()) == pytest.approx(5.0 / 6.0)
    assert document["rows"][-1]["cumulative_share"] == pytest.approx(5.0 / 6.0)
    assert document["total_j"]["boundary"] == "rail"
    assert document["clocks"][0]["method"] == "stated"


def test_the_same_as_text_fits_eighty_columns(pair: tuple[Path, Path], tmp_path: Path) -> None:
    called = call("map", imported(tmp_path, *pair, *MAP), "--offset", "0")
    assert called.code == 0
    assert max(len(line) for line in called.out.splitlines() if not line.startswith("bundle ")) <= 80  # a path is whole
    assert "conv" in called.out
    assert "idle" in called.out
    path = call("map", tmp_path / "run.jm", "--offset", "0", "--by", "path", "--top", "1", "--json").json
    assert path["rows"][0]["key"] in ("run", "run;conv")
    assert path["rows_left_out"] == 1


def test_clocks_that_nothing_relates_are_no_map(pair: tuple[Path, Path], tmp_path: Path) -> None:
    bundle = imported(tmp_path, *pair, *MAP)
    told(call("map", bundle), 5, "clocks-unrelated")
    told(call("map", bundle, "--offset", "0", "--align", "correlate"), 2, "flags-contradict")
    found = mapped(bundle, "--align", "correlate")
    assert found["clocks"][0]["offset_ns"] * 1e-9 == pytest.approx(0.0, abs=2e-3)


def test_a_slice_beyond_the_recorded_time_is_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    bundle = imported(tmp_path, *pair, *MAP)
    document = mapped(bundle, "--offset", "0.6")
    assert {row["key"]: (row["count"], row["outside"], row["energy_j"]["value"]) for row in document["rows"]} == {
        "run": (0, 1, None),
        "conv": (0, 1, None),
    }
    assert all(row["energy_j"]["reason"] == "slices_outside_trace" for row in document["rows"])
    assert document["validity"] == "degraded"
    shown = call("map", bundle, "--offset", "0.6").out
    assert "no headline: the recording is degraded" in shown
    assert " takes " not in shown


def test_kernels_far_shorter_than_a_sample_are_refused_with_a_plan(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    events, at = [], 1_000_000
    while at < 19_000_000:
        for name in ("a", "b"):
            events.append((name, at, at + 46))
            at += 46
        at += int(rng.integers(50, 90_000))
    power = write_power(tmp_path / "p.csv", rng.normal(100, 3, 200), rate_hz=10.0)
    document = mapped(imported(tmp_path, power, write_chrome(tmp_path / "t.json", events), *MAP), "--offset", "0")
    assert [row["resolution"] for row in document["rows"]] == ["refused", "refused"]
    assert all(row["energy_j"]["value"] is None for row in document["rows"])
    assert document["total_j"]["value"] is not None
    finding = next(f for f in document["findings"] if f["slug"] == "too_short_for_samples")
    assert "0.1 s" in finding["message"]
    idle = next(line for line in call("map", tmp_path / "run.jm", "--offset", "0").out.splitlines() if "idle" in line)
    assert idle.split()[:2] == ["idle", "refused"]


def test_a_large_recording_is_referred_to_and_checked(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_recording, "EMBED_LIMIT_B", 100)
    bundle = imported(tmp_path, *pair, *MAP)
    assert not list(bundle.glob("traces/*"))
    stored = json.loads((bundle / "recordings.json").read_text())["recordings"][0]
    assert (stored["embedded"], stored["root"]) == (False, "power.csv")
    assert mapped(bundle, "--offset", "0")["total_j"]["value"] == pytest.approx(6.0)
    copied = tmp_path / "copied.jm"
    assert call("import", *pair, *MAP, "-o", copied, "--copy").code == 0
    pair[0].write_text(pair[0].read_text().replace("5.0\n", "6.0\n", 1))
    told(call("map", bundle, "--offset", "0"), 6, "recording-changed")
    pair[0].unlink()
    told(call("map", bundle, "--offset", "0"), 6, "recording-missing")
    assert mapped(copied, "--offset", "0")["total_j"]["value"] == pytest.approx(6.0)


def test_a_failed_import_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    odd = tmp_path / "in" / "odd.txt"
    odd.write_text("nothing of power here\n")
    told(call("import", odd, "-o", tmp_path / "run.jm"), 6, "format-unknown")
    told(call("import", tmp_path / "in", "-o", tmp_path / "run.jm"), 6, "format-unknown")
    told(call("import", tmp_path / "gone", "-o", tmp_path / "run.jm"), 6, "recording-unreadable")
    told(call("import", odd, "-o", tmp_path / "run.jm", "--format", "nonsense"), 2, "format-name-unknown")
    told(call("import", odd, "-o", tmp_path / "run.jm", "--column", "power"), 2, "flag-form")
    told(call("import", odd, "-o", tmp_path / "run.jm", "--utc-offset", "soon"), 2, "flag-form")
    assert leftovers(tmp_path) == ["in"]


def test_what_must_be_chosen_is_asked_for(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = write_power(tmp_path / "other.csv", np.ones(2000))
    bundle = imported(tmp_path, *pair, other, *MAP)
    told(call("map", bundle, "--offset", "0"), 2, "trace-ambiguous")
    told(call("map", bundle, "--trace", "nothing"), 2, "trace-unknown")
    told(call("map", bundle, "--trace", "power", "--timeline", "nothing"), 2, "timeline-unknown")
    told(call("map", bundle, "--rule", "mlperf"), 6, "rule-not-applicable")
    told(call("map", bundle, "--trace", "power", "--offset", "0", "--by", "kernel"), 6, "no-such-slices")
    both = mapped(bundle, "--trace", "power", "--trace", "other-power", "--offset", "0")
    assert both["total_j"]["value"] == pytest.approx(8.0)


def test_a_domain_inside_another_is_never_added(tmp_path: Path) -> None:
    folder = shared_file("mlperf_inference", "v5.1_Lenovo_SR780a_B200x8_llama3.1-8b_Server")
    bundle = imported(tmp_path, folder)
    told(call("map", bundle, "--trace", "total", "--trace", "ch1"), 2, "domains-overlap")
    parts = mapped(bundle, "--trace", "ch1", "--trace", "ch2", "--trace", "ch3")["total_j"]["value"]
    assert parts == pytest.approx(mapped(bundle)["total_j"]["value"], rel=1e-2)


def test_hosts_clocks_of_a_submission_are_related(tmp_path: Path) -> None:
    folder = shared_file("mlperf_inference", "v5.1_GATEOverflow_TRIGKEY_mobilenet128_offline")
    clocks = mapped(imported(tmp_path, folder))["clocks"]
    assert [clock["method"] for clock in clocks] == ["same", "pairs", "pairs", "pairs"]
    skew = next(c for c in clocks if (c["source"], c["target"]) == ("server wall", "client wall"))
    assert 0.1 < abs(skew["offset_ns"]) * 1e-9 < 0.4


def test_an_instrument_widens_the_interval(pair: tuple[Path, Path], tmp_path: Path) -> None:
    bundle = imported(tmp_path, *pair, *MAP, "--voltage", "3.0")
    bare = mapped(bundle, "--offset", "0")
    assert "instrument_unknown" in {f["slug"] for f in bare["findings"]}
    known = mapped(bundle, "--offset", "0", "--instrument", "hlw8012")
    rounding = 2.0 * 0.1 / math.sqrt(12)  # powers are written to 0.1 W, and neighbours repeat
    assert known["total_j"]["std"] == pytest.approx(math.hypot(6.0 * 0.015, rounding), rel=1e-3)
    assert known["meter"]["name"]
    told(call("map", bundle, "--offset", "0", "--instrument", "nothing"), 2, "instrument-name")
    record = tmp_path / "unit.toml"
    record.write_text(
        'instrument = "x"\nserial = "1"\ncalibrated = 2026-01-01\nexpires = 2027-01-01\ngain = 1.25\n'
        'gain_std = 0.00125\noffset_w = 0.0\noffset_std_w = 0.0\nreference = "y"\n'
    )
    corrected = mapped(bundle, "--offset", "0", "--calibration", str(record), "--recorded", "2026-06-01")
    assert corrected["total_j"]["value"] == pytest.approx(6.0 / 1.25)
    assert corrected["total_j"]["std"] == pytest.approx(math.hypot(4.8e-3, rounding / 1.25), rel=1e-3)


def test_a_unit_of_work_is_a_mean_with_its_repeats(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    power, events = np.ones(4000), []
    for k in range(30):
        power[100 + 100 * k : 160 + 100 * k] = 5.0 + rng.normal(0, 0.1)
        events.append(("infer", 100_000 * (k + 1), 100_000 * (k + 1) + 60_000))
    bundle = imported(tmp_path, write_power(tmp_path / "p.csv", power), write_chrome(tmp_path / "t.json", events), *MAP)
    metrics = mapped(bundle, "--offset", "0", "--per", "infer")["metrics"]
    each = metrics["energy_per_unit_j"]
    assert (metrics["units"], metrics["latency_s"]) == (30, pytest.approx(0.06))
    assert each["value"] == pytest.approx(0.3, abs=3 * each["std"])
    assert 0.06 * 0.1 / 30**0.5 * 0.5 < each["std"] < 0.06 * 0.1 / 30**0.5 * 2.5
    assert metrics["energy_delay_j_s"]["value"] == pytest.approx(each["value"] * 0.06)
    assert metrics["units_per_j"]["value"] == pytest.approx(1 / each["value"])
    told(call("map", bundle, "--offset", "0", "--per", "nothing"), 6, "no-such-slices")


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """Forty inferences of 0.2 s at 6 W every second, idle at 1 W, on a meter of 1 kHz."""
    rng = np.random.default_rng(0)
    power = np.ones(44_000)
    events = []
    for k in range(40):
        begin = 2000 + 1000 * k
        power[begin : begin + 200] = 6.0
        events += [("infer", begin * 1000, (begin + 200) * 1000)]
    power += 0.01 * rng.standard_normal(power.size)
    files = write_power(tmp_path / "power.csv", power), write_chrome(tmp_path / "trace.json", events)
    return imported(tmp_path, *files, *MAP)


def test_a_unit_of_work_has_its_figures_of_merit(bench: Path) -> None:
    document = mapped(bench, "--offset", "0", "--per", "infer", "--ops", "4e9", "--duty", "10 s")
    metrics = document["metrics"]
    assert metrics["energy_per_unit_j"]["value"] == pytest.approx(1.2, rel=1e-3)
    assert metrics["energy_above_idle_per_unit_j"]["value"] == pytest.approx(1.0, rel=1e-3)
    assert metrics["ops_per_j"]["value"] == pytest.approx(4e9 / 1.2, rel=1e-3)
    assert metrics["duty_average_w"]["value"] == pytest.approx((1.2 + 9.8) / 10, rel=1e-3)
    assert metrics["units_per_s"] == pytest.approx(40 / 39.2, rel=1e-6)
    assert metrics["units_per_s_per_w"]["value"] == pytest.approx(40 / (48 + 31.2), rel=1e-3)
    assert document["idle"]["power_w"]["value"] == pytest.approx(1.0, rel=1e-3)
    assert document["energy_above_idle_j"]["value"] == pytest.approx(40.0, rel=2e-3)
    row = document["rows"][0]
    assert row["energy_above_idle_j"]["value"] == pytest.approx(40.0, rel=1e-3)
    told_as_text = call("map", bench, "--offset", "0", "--per", "infer", "--ops", "4e9").out
    assert "op/J" in told_as_text
    assert "above idle" in told_as_text


def test_a_plan_is_printed_before_anything_is_measured_again(bench: Path) -> None:
    document = mapped(bench, "--offset", "0", "--half-width", "0.1%")
    assert document["half_width"] == pytest.approx(0.001)
    assert document["rows"][0]["runs_needed"] > 0
    assert "needs" in call("map", bench, "--offset", "0", "--half-width", "0.1%").out
    told(call("map", bench, "--offset", "0", "--half-width", "5"), 2, "flag-form")
    told(call("map", bench, "--offset", "0", "--ops", "1e9"), 2, "flags-contradict")
    told(call("map", bench, "--offset", "0", "--in-place", "{layer}"), 6, "pattern-form")
    told(call("map", bench, "--offset", "0", "--in-place", "{layer}x{k}", "--per", "infer"), 2, "flags-contradict")


def test_layers_are_mapped_by_repetition_in_place(tmp_path: Path) -> None:
    """A pass of 10 ms and 50 mJ with a layer of 2 ms and 20 mJ in it, on a meter of 10 Hz."""
    power, events, at = [1.0] * 20, [], 2.0
    for k in (1, 11, 1, 11, 6):
        pass_s, pass_j = 0.010 + (k - 1) * 0.002, 0.050 + (k - 1) * 0.020
        passes = round(6.0 / pass_s)
        events.append((f"conv x{k} n{passes}", round(at * 1e6), round((at + passes * pass_s) * 1e6)))
        power += [pass_j / pass_s] * 60 + [1.0] * 10
        at += 7.0
    files = write_power(tmp_path / "p.csv", np.array(power), rate_hz=10.0), write_chrome(tmp_path / "t.json", events)
    bundle = imported(tmp_path, *files, *MAP)
    document = mapped(bundle, "--offset", "0", "--in-place", "{layer} x{k} n{n}")
    assert document["per"] == "pass"
    assert document["total_j"]["value"] == pytest.approx(0.050, rel=2e-3)
    assert [(row["key"], row["resolution"]) for row in document["rows"]] == [("conv", "in_place")]
    assert document["rows"][0]["energy_j"]["value"] == pytest.approx(0.020, rel=2e-3)
    assert document["idle_j"]["value"] == pytest.approx(0.030, rel=2e-3)
    assert "per pass" in call("map", bundle, "--offset", "0", "--in-place", "{layer} x{k} n{n}").out
