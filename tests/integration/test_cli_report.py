"""``joulemap report`` as people and scripts call it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from profile_facts import degraded_facts, facts
from program import call, leftovers
from report_bundle import write_report_bundle


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_report_bundle(tmp_path / "run.jm", facts())


def told(error: str, code: int, slug: str) -> bool:
    return f"docs/errors.md#{slug} (exit {code})" in error and "Traceback" not in error


def test_page_and_markdown_are_written_and_named(bundle: Path) -> None:
    page, text = bundle.parent / "run.html", bundle.parent / "run.md"
    called = call("report", bundle, "--html", page, "--markdown", text)
    assert called.code == 0
    assert called.err == ""
    assert str(page) in called.out
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert text.read_text("utf-8").startswith("# three on virtual-m33")
    assert leftovers(bundle.parent) == ["run.html", "run.jm", "run.md"]


def test_the_same_bundle_gives_the_same_page(bundle: Path) -> None:
    pages = [bundle.parent / name for name in ("a.html", "b.html")]
    for page in pages:
        assert call("report", bundle, "--html", page).code == 0
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_the_page_does_not_depend_on_the_truth(bundle: Path) -> None:
    page = bundle.parent / "a.html"
    assert call("report", bundle, "--html", page).code == 0
    assert "truth" not in page.read_text("utf-8")


def test_json_names_the_files_and_their_sizes(bundle: Path) -> None:
    page = bundle.parent / "run.html"
    called = call("report", bundle, "--html", page, "--json")
    assert called.json["schema"] == "joulemap.report"
    assert called.json["files"] == [{"form": "html", "path": str(page), "size_b": page.stat().st_size}]


def test_a_file_that_is_there_stays_unless_forced(bundle: Path) -> None:
    page = bundle.parent / "run.html"
    page.write_text("mine")
    called = call("report", bundle, "--html", page)
    assert called.code == 2
    assert told(called.err, 2, "output-exists")
    assert page.read_text() == "mine"
    assert call("report", bundle, "--html", page, "--force").code == 0
    assert page.read_text("utf-8") != "mine"


def test_something_must_be_asked_for(bundle: Path) -> None:
    called = call("report", bundle)
    assert called.code == 2
    assert told(called.err, 2, "no-output")


def test_a_folder_that_is_not_there_cannot_be_written(bundle: Path) -> None:
    called = call("report", bundle, "--html", bundle.parent / "none" / "run.html")
    assert called.code == 3
    assert told(called.err, 3, "output-unwritable")


def test_a_folder_in_the_place_of_the_page_is_not_replaced(bundle: Path) -> None:
    target = bundle.parent / "run.html"
    target.mkdir()
    called = call("report", bundle, "--html", target, "--force")
    assert called.code == 3
    assert told(called.err, 3, "output-unwritable")
    assert leftovers(bundle.parent) == ["run.html", "run.jm"]


def test_what_is_no_bundle_has_no_page(tmp_path: Path) -> None:
    called = call("report", tmp_path, "--html", tmp_path / "x.html")
    assert called.code == 6
    assert told(called.err, 6, "not-a-bundle")
    assert leftovers(tmp_path) == []


def test_a_bundle_of_an_unknown_kind_is_refused(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text("utf-8"))
    (bundle / "manifest.json").write_text(json.dumps(manifest | {"kind": "horoscope"}))
    called = call("report", bundle, "--html", bundle.parent / "x.html")
    assert called.code == 6
    assert told(called.err, 6, "no-page")


def test_a_damaged_bundle_is_refused(bundle: Path) -> None:
    (bundle / "result.json").write_text("{}")
    called = call("report", bundle, "--html", bundle.parent / "x.html")
    assert called.code == 6
    assert told(called.err, 6, "bundle-damaged")


def test_a_degraded_run_has_a_page_and_the_command_succeeds(tmp_path: Path) -> None:
    bundle = write_report_bundle(tmp_path / "run.jm", degraded_facts())
    page = tmp_path / "run.html"
    assert call("report", bundle, "--html", page).code == 0
    assert "No headline" in page.read_text("utf-8")


def test_the_bundle_is_left_as_it_was(bundle: Path) -> None:
    copy = bundle.parent / "copy.jm"
    shutil.copytree(bundle, copy)
    assert call("report", bundle, "--html", bundle.parent / "x.html").code == 0
    files = sorted(path.relative_to(bundle) for path in bundle.rglob("*") if path.is_file())
    assert all((bundle / file).read_bytes() == (copy / file).read_bytes() for file in files)
