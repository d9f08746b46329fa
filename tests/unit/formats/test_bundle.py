"""Bundles: what is written is read, and the target of a failed write stays as it was."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from bundle_bench import CLOCK, build_trace, list_names, open_writer, write
from joulemap.errors import InputError, ReportError, SetupError, UsageError
from joulemap.formats.bundle import MANIFEST, check_section_path, digest, read_bundle
from joulemap.formats.registry import (
    LAYERS,
    LOG,
    RUN,
    add_table,
    list_traces,
    load_table,
    load_timeline,
    load_trace,
)
from joulemap.trace import (
    EdgeDirection,
    Marker,
)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write(tmp_path / "RUN.jm")


def test_what_was_written_is_read(bundle: Path) -> None:
    got = read_bundle(bundle)
    assert (got.kind, got.run_id, got.validity, got.created) == ("profile", "run-1", "valid", "2026-01-02T03:04:05Z")
    assert got.read_json(RUN, schema="joulemap.run") == {"seed": 0, "x": 0.1}
    assert got.read_text(LOG, schema="joulemap.log") == "all is well\n"
    assert list_traces(got) == ("capture-1",)
    trace, markers = load_trace(got, "capture-1")
    assert trace.power_w.tobytes() == build_trace().power_w.tobytes()
    assert (trace.clock, trace.channel, trace.start_ns, trace.period_s) == (CLOCK, build_trace().channel, -250, 1e-6)
    assert trace.gaps.tolist() == [[3, 9]]
    assert markers == (Marker(time_ns=5, name="gate", direction=EdgeDirection.RISE),)
    assert [s.name for s in load_timeline(got)] == ["a"]
    assert load_table(got, LAYERS, schema="joulemap.layers") == {"index": [0, 1], "energy_j": [1.5, None]}


def test_a_uniform_trace_has_no_time_column(bundle: Path) -> None:
    import pyarrow.parquet as pq

    assert pq.ParquetFile(bundle / "traces/capture-1.parquet").schema_arrow.names == ["power_w"]


def test_a_column_without_any_value_keeps_its_type(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    with open_writer(tmp_path / "RUN.jm") as writer:
        columns = {"energy_j": [None, None], "op": ["ADD", None], "macs": [1, 2]}
        add_table(writer, LAYERS, columns, schema="joulemap.layers", types={"energy_j": "float64", "op": "string"})
        got = pq.read_table(writer.commit(validity="valid") / LAYERS)
    assert [str(got.schema.field(name).type) for name in ("energy_j", "op", "macs")] == ["double", "string", "int64"]
    assert got.to_pydict() == columns


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = write(tmp_path / "A.jm"), write(tmp_path / "B.jm")
    files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert len(files) == 8
    for file in files:
        assert (first / file).read_bytes() == (second / file).read_bytes(), file


def test_nothing_but_the_bundle_is_left(bundle: Path) -> None:
    assert list_names(bundle.parent) == ["RUN.jm"]


def test_an_existing_target_is_kept_unless_forced(bundle: Path) -> None:
    before = digest(bundle / MANIFEST)
    with pytest.raises(UsageError) as caught:
        write(bundle, run_id="run-2")
    assert (caught.value.slug, caught.value.exit_code) == ("bundle-exists", 2)
    assert digest(bundle / MANIFEST) == before
    write(bundle, force=True, run_id="run-2")
    assert read_bundle(bundle).run_id == "run-2"
    assert list_names(bundle.parent) == ["RUN.jm"]


def test_force_replaces_a_damaged_bundle_but_nothing_else(bundle: Path, tmp_path: Path) -> None:
    (bundle / LOG).unlink()
    write(bundle, force=True, run_id="run-2")
    assert read_bundle(bundle).run_id == "run-2"
    folder, file, link = tmp_path / "home", tmp_path / "notes.txt", tmp_path / "link.jm"
    folder.mkdir()
    (folder / "precious").write_text("x")
    file.write_text("x")
    link.symlink_to(bundle)
    for target in (folder, file, link):
        with pytest.raises(UsageError) as caught:
            write(target, force=True)
        assert caught.value.slug == "bundle-exists"
    assert (folder / "precious").read_text() == "x"
    assert list_names(tmp_path) == ["RUN.jm", "home", "link.jm", "notes.txt"]


def test_a_target_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "RUN.jm"
    with open_writer(target) as writer:
        writer.write_text(LOG, "mine", schema="joulemap.log")
        target.mkdir()
        (target / "other").write_text("x")
        with pytest.raises(UsageError):
            writer.commit(validity="valid")
    assert list_names(tmp_path) == ["RUN.jm"]
    assert list_names(target) == ["other"]


def fail_half_way(target: Path, error: BaseException) -> None:
    with open_writer(target, force=True) as writer:
        writer.write_text(LOG, "half", schema="joulemap.log")
        raise error


def test_a_failed_run_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fail_half_way(tmp_path / "RUN.jm", KeyboardInterrupt())
    assert list_names(tmp_path) == []


def test_a_failed_replacement_leaves_the_old_one(bundle: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_half_way(bundle, ZeroDivisionError())
    assert read_bundle(bundle).run_id == "run-1"
    assert list_names(bundle.parent) == ["RUN.jm"]


def test_a_folder_that_cannot_be_written_is_a_setup_error(tmp_path: Path) -> None:
    for target in (tmp_path / "missing" / "RUN.jm", Path("/proc/RUN.jm")):
        with pytest.raises(SetupError) as caught:
            open_writer(target)
        assert (caught.value.slug, caught.value.exit_code) == ("output-unwritable", 3)


def test_an_error_of_the_file_system_is_a_report_error(tmp_path: Path) -> None:
    with open_writer(tmp_path / "RUN.jm") as writer:
        writer.write_text("a", "x", schema="")
        with pytest.raises(ReportError) as caught:
            writer.write_text("a/b", "x", schema="")  # a file stands where a folder should
    assert (caught.value.slug, caught.value.exit_code) == ("output-unwritable", 3)


@pytest.mark.parametrize(
    "path",
    [
        *("", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "a\\b", "C:/x", "a\0b", MANIFEST),
        *("\ud800", "traces/" + 256 * "x", "a/" + 128 * "\u00fc"),
    ],
)
def test_paths_that_are_no_section_are_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a path"):
        check_section_path(path)
    with open_writer(tmp_path / "RUN.jm") as writer, pytest.raises(ValueError, match="not a path"):
        writer.place(path, media_type="x", schema="")


def test_a_section_is_placed_once(tmp_path: Path) -> None:
    with open_writer(tmp_path / "RUN.jm") as writer:
        writer.write_text(LOG, "x", schema="")
        with pytest.raises(ValueError, match="already"):
            writer.write_text(LOG, "y", schema="")


@pytest.mark.parametrize("document", [{"a": float("nan")}, [float("inf")], {"a": {"b": (1, -float("inf"))}}])
def test_json_never_holds_what_json_does_not_have(document: object, tmp_path: Path) -> None:
    with open_writer(tmp_path / "RUN.jm") as writer, pytest.raises(ValueError, match=r"\$.*no such number"):
        writer.write_json(RUN, document, schema="joulemap.run")
    assert list_names(tmp_path) == []


def test_a_name_that_is_no_text_is_written_as_json_writes_it(tmp_path: Path) -> None:
    document = {"name": os.fsdecode(b"caf\xe9.tflite"), "\udc80": 1}
    with open_writer(tmp_path / "RUN.jm") as writer:
        writer.write_json(RUN, document, schema="joulemap.run")
        writer.commit(validity="valid")
    assert read_bundle(tmp_path / "RUN.jm").read_json(RUN, schema="joulemap.run") == document


def test_a_bundle_may_have_a_name_that_is_no_text(tmp_path: Path) -> None:
    bundle = read_bundle(write(tmp_path / os.fsdecode(b"caf\xe9:a?b.jm")))
    np.testing.assert_array_equal(load_trace(bundle, "capture-1")[0].power_w, build_trace().power_w)
    assert load_table(bundle, LAYERS, schema="joulemap.layers")["index"] == [0, 1]
    assert load_timeline(bundle).names == ("a",)


def test_a_file_that_the_system_does_not_give_is_an_input_error(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bundle.parent)
    deep = Path(*(["x" * 200] * 30))  # longer than any path may be
    with pytest.raises(InputError) as caught:
        read_bundle(deep)
    assert caught.value.slug in {"not-a-bundle", "input-unreadable"}
