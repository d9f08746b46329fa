"""``joulemap report`` and ``export`` of imported recordings, down to every file of the shared data."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from profile_facts import facts
from program import Called, call, leftovers
from recording_files import SHARED, shared_file
from recording_sections import write_nested, write_rails
from report_bundle import write_report_bundle

COLUMNS = ("--column", "time=moment (s)", "--column", "power=power (W)")
KINDS = (
    ("mlperf_inference", "v2.0_NVIDIA_Orin_MaxQ_bert-99_SingleStream"),
    ("mlperf_tiny", "v1.3_STM_NUCLEO-U575ZI-Q", "kws", "energy_results.json"),
    ("generated", "jls", "v2_closed.jls"),
    ("generated", "perfetto", "power_battery.pftrace"),
    ("generated", "ftrace", "ftrace_cpu_idle.txt"),
    ("handmade", "nvidia", "dmon_oDT.txt"),
    ("handmade", "powerjoular", "powerjoular.csv"),
    ("macos_powermetrics", "mock_powermetrics_log.txt"),
    ("prometheus", "node_exporter_e2e-output.txt"),
    ("redfish", "dell_power.json"),
    ("nvidia_smi", "a100-sxm4-v12.xml"),
    ("codecarbon", "emissions.csv"),
)
"""One of each kind: with and without power, timelines, counters, totals; UTC, monotonic, counted samples."""


def told(called: Called, code: int, slug: str) -> None:
    assert called.code == code, called.err
    assert f"docs/errors.md#{slug} (exit {code})" in called.err


def reported(source: Path, folder: Path) -> tuple[str, str]:
    """Imports and reports a file; returns page and Markdown."""
    bundle, page, text = folder / "run.jm", folder / "run.html", folder / "run.md"
    called = call("import", source, "-o", bundle)
    assert called.code == 0, called.err
    called = call("report", bundle, "--html", page, "--markdown", text)
    assert called.code == 0, called.err
    return page.read_text("utf-8"), text.read_text("utf-8")


def check(page: str) -> None:
    assert len(page.encode()) <= 1_000_000
    assert "default-src 'none'" in html.unescape(page)
    body = page[page.index("<body>") : page.index('<script type="application/json"')]
    assert not re.search(r"\b(?:nan|inf|None(?!\.))\b", re.sub(r"<[^>]*>", " ", body))
    assert not re.search(r"\b(?:src|href)=", body)


@pytest.mark.parametrize("parts", KINDS, ids=lambda parts: "/".join(parts[-2:]))
def test_each_kind_of_recording_has_a_page(parts: tuple[str, ...], tmp_path: Path) -> None:
    page, text = reported(shared_file(*parts), tmp_path)
    check(page)
    assert text.startswith("# ")


@pytest.mark.soak
def test_everything_that_can_be_imported_has_a_page(tmp_path: Path) -> None:
    if not SHARED.exists():
        pytest.skip("the shared recordings are not here")
    files = [path for path in sorted(SHARED.rglob("*")) if path.is_file() and path.suffix not in {".md", ".py"}]
    made = 0
    for number, source in enumerate(files):
        folder = tmp_path / str(number)
        folder.mkdir()
        if call("import", source, "-o", folder / "probe.jm").code:
            continue
        page, _ = reported(source, folder)
        check(page)
        made += 1
    assert made > 100


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    called = call("import", *write_nested(tmp_path), *COLUMNS, "-o", tmp_path / "run.jm")
    assert called.code == 0, called.err
    return tmp_path / "run.jm"


def test_the_flags_of_map_make_the_page_and_are_repeated_on_it(bundle: Path) -> None:
    page, text = bundle.with_name("a.html"), bundle.with_name("a.md")
    flags = ("--offset", "0", "--by", "path", "--per", "infer", "--split", "duration")
    called = call("report", bundle, "--html", page, "--markdown", text, *flags)
    assert called.code == 0, called.err
    written = text.read_text("utf-8")
    assert "## Hotspots by path" in written
    assert "per infer" in written
    assert "joulemap report RUN.jm --by path --per infer --split duration --offset 0.0 --html RUN.html" in written
    assert written.index("Hotspots by path") < written.index("Hotspots by name")


def test_map_and_page_say_the_same(bundle: Path) -> None:
    text = bundle.with_name("a.md")
    assert call("report", bundle, "--markdown", text, "--offset", "0").code == 0
    document = call("map", bundle, "--json", "--offset", "0").json
    rows = [line for line in text.read_text("utf-8").splitlines() if line.startswith("| conv |")]
    energy = next(row for row in document["rows"] if row["key"] == "conv")["energy_j"]
    shown, expanded = re.search(r"\| ([\d.]+) ± ([\d.]+)\u2009J \|", rows[0]).groups()  # type: ignore[union-attr]
    assert float(shown) == pytest.approx(energy["value"], abs=5e-5)
    assert float(expanded) == pytest.approx(energy["expanded"], rel=0.05)


def test_a_published_figure_stands_beside_ours(tmp_path: Path) -> None:
    source = shared_file("mlperf_inference", "v2.0_NVIDIA_Orin_MaxQ_bert-99_SingleStream")
    bundle, text = tmp_path / "run.jm", tmp_path / "run.md"
    assert call("import", source, "-o", bundle).code == 0
    called = call("report", bundle, "--markdown", text, "--rule", "mlperf")
    assert called.code == 0, called.err
    written = text.read_text("utf-8").replace("\\", "")
    assert "Published figure: 262.48847977862425 mJ" in written
    document = call("map", bundle, "--rule", "mlperf", "--json").json
    assert f"The same by exact integration: {document['metrics']['own_average_power_w']!r} W" in written


def test_an_unknown_name_is_refused_and_nothing_is_left(bundle: Path) -> None:
    page = bundle.with_name("a.html")
    told(call("report", bundle, "--html", page, "--trace", "nothing"), 2, "trace-unknown")
    told(call("report", bundle, "--html", page, "--per", "nothing", "--offset", "0"), 6, "no-such-slices")
    told(call("report", bundle, "--html", page, "--offset", "0", "--align", "correlate"), 2, "flags-contradict")
    assert leftovers(bundle.parent) == ["layers.json", "power.csv", "run.jm"]


def test_a_damaged_bundle_is_named_as_one(bundle: Path) -> None:
    (bundle / "recordings.json").write_text("{}")
    told(call("report", bundle, "--html", bundle.with_name("a.html")), 6, "bundle-damaged")


def test_a_file_that_the_bundle_refers_to_must_be_there(tmp_path: Path) -> None:
    power, _ = write_nested(tmp_path)
    bundle = tmp_path / "run.jm"
    assert call("import", power, *COLUMNS, "-o", bundle).code == 0
    document = json.loads((bundle / "recordings.json").read_text("utf-8"))
    assert document["recordings"][0]["embedded"] is True  # small ones are kept inside
    power.unlink()
    assert call("report", bundle, "--html", tmp_path / "a.html").code == 0


def test_rows_of_a_map_are_a_table_for_other_tools(bundle: Path) -> None:
    table = bundle.with_name("rows.csv")
    called = call("export", bundle, "--to", "csv", "--table", "-o", table, "--offset", "0", "--json")
    assert called.code == 0, called.err
    lines = table.read_text("utf-8").splitlines()
    assert called.json["rows"] == len(lines) - 1
    document = call("map", bundle, "--json", "--offset", "0").json
    own = [float(line.split(",")[-8]) for line in lines[1:] if not line.startswith("<script>")]
    assert len(own) == len(document["rows"])  # all names but the hostile one, and what no slice holds
    assert lines[-1].startswith("idle,,")


def test_rails_are_exported_one_by_one(tmp_path: Path) -> None:
    bundle = tmp_path / "run.jm"
    assert call("import", write_rails(tmp_path), "-o", bundle).code == 0
    called = call("export", bundle, "--to", "csv", "-o", tmp_path / "soc.csv", "--trace", "VDD_SOC")
    assert called.code == 0, called.err
    head, first = (tmp_path / "soc.csv").read_text().splitlines()[:2]
    assert head == "time_ns,power_w,energy_j,provenance"
    assert first.endswith(",measured_sampled")


def test_a_profile_takes_a_grouping_and_nothing_else(tmp_path: Path) -> None:
    profile = write_report_bundle(tmp_path / "run.jm", facts())
    text = tmp_path / "a.md"
    assert call("report", profile, "--markdown", text, "--by", "path").code == 0
    written = text.read_text("utf-8")
    assert written.index("Hotspots by path") < written.index("Hotspots by layer")
    assert call("report", profile, "--markdown", text, "--by", "op", "--force").code == 0
    assert "Hotspots by layer" in text.read_text("utf-8")  # one layer an operator: the tables are one
    told(call("report", profile, "--markdown", tmp_path / "b.md", "--rule", "mlperf"), 2, "flags-contradict")
    told(call("report", profile, "--markdown", tmp_path / "b.md", "--by", "kernel"), 2, "flags-contradict")
