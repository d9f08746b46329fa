"""Bundles: what is written is read, what is damaged is named, what was killed looks like nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from joulemap.errors import FormatError, InputError, JoulemapError, ReportError, SetupError, UsageError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.bundle import MANIFEST, Bundle, check_section_path, digest, read_bundle
from joulemap.formats.bundle_writer import BundleWriter
from joulemap.formats.registry import (
    LAYERS,
    LOG,
    RUN,
    add_table,
    add_timeline,
    add_trace,
    list_traces,
    load_table,
    load_timeline,
    load_trace,
)
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

CLOCK = Clock(name="instrument", kind=ClockKind.LOCAL, rate_std_ppm=10.0)
TRUTH = "truth/truth.json"


def build_trace(n: int = 5000) -> EnergyTrace:
    return EnergyTrace(
        clock=CLOCK,
        channel=Channel(
            name="rail",
            boundary=Boundary.RAIL,
            provenance=Provenance.SIMULATED,
            kernel=SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1e-6, quantum_w=1e-7),
        ),
        power_w=np.random.default_rng(1).random(n).astype(np.float32),
        start_ns=-250,
        period_s=1e-6,
        gaps=np.array([[3, 9]]),
    )


def open_writer(target: Path, *, force: bool = False, run_id: str = "run-1") -> BundleWriter:
    return BundleWriter(
        target,
        kind="profile",
        run_id=run_id,
        tool={"name": "joulemap", "version": "0"},
        created="2026-01-02T03:04:05Z",
        force=force,
    )


def write(target: Path, *, force: bool = False, run_id: str = "run-1") -> Path:
    with open_writer(target, force=force, run_id=run_id) as writer:
        writer.write_json(RUN, {"seed": 0, "x": 0.1}, schema="joulemap.run")
        add_trace(
            writer, "capture-1", build_trace(), markers=[Marker(time_ns=5, name="gate", direction=EdgeDirection.RISE)]
        )
        add_timeline(writer, Timeline.from_slices(CLOCK, [Slice(name="a", start_ns=0, end_ns=5, kind="layer")]))
        add_table(writer, LAYERS, {"index": [0, 1], "energy_j": [1.5, None]}, schema="joulemap.layers")
        writer.write_json(TRUTH, {"gate_j": 1.0}, schema="joulemap.truth", optional=True)
        writer.write_text(LOG, "all is well\n", schema="joulemap.log")
        return writer.commit(validity="valid")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write(tmp_path / "RUN.jm")


def edit_manifest(bundle: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((bundle / MANIFEST).read_text())
    change(manifest)
    (bundle / MANIFEST).write_text(json.dumps(manifest))


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refuse(bundle: Path) -> JoulemapError:
    with pytest.raises(InputError) as caught:
        read_bundle(bundle)
    assert caught.value.exit_code == 6
    assert caught.value.hint
    return caught.value


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


def test_missing_optional_sections_are_fine_and_others_are_named(bundle: Path) -> None:
    shutil.rmtree(bundle / "truth")
    got = read_bundle(bundle)
    assert not got.has(TRUTH)
    with pytest.raises(FormatError, match=r"truth\.json"):
        got.read_json(TRUTH, schema="joulemap.truth")
    (bundle / "traces/capture-1.json").unlink()
    error = refuse(bundle)
    assert error.slug == "bundle-damaged"
    assert "capture-1.json" in error.message


@pytest.mark.parametrize("change", ["flip", "cut", "grow", "folder"])
def test_every_change_to_any_section_is_found_and_named(bundle: Path, change: str) -> None:
    sections = list(read_bundle(bundle).sections)
    for path in sections:
        file = bundle / path
        data = file.read_bytes()
        if change == "folder":
            file.unlink()
            file.mkdir()
        else:
            changed = {"flip": bytes([data[0] ^ 1]) + data[1:], "cut": data[:-1], "grow": data + b"\n"}[change]
            file.write_bytes(changed)
        error = refuse(bundle)
        assert error.slug == "bundle-damaged"
        assert str(file) in error.message
        if change == "folder":
            file.rmdir()
        file.write_bytes(data)
    read_bundle(bundle)


def test_what_is_no_bundle_says_so(tmp_path: Path, bundle: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    empty = tmp_path / "empty"
    empty.mkdir()
    (bundle / MANIFEST).unlink()
    for path in (tmp_path / "nowhere", file, empty, bundle):
        assert refuse(path).slug == "not-a-bundle"


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("", "bundle-damaged"),
        ("{", "bundle-damaged"),
        ("[]", "bundle-damaged"),
        ("[" * 100_000, "bundle-damaged"),
        ('{"schema": "joulemap.bundle", "schema_version": NaN}', "bundle-damaged"),
        ('{"schema": "joulemap.bundle", "schema_version": true}', "bundle-damaged"),
        ('{"schema": "other"}', "not-a-bundle"),
        ("{}", "not-a-bundle"),
        ('{"schema": "joulemap.bundle", "schema_version": 1, "sections": {}}', "bundle-damaged"),
        ('{"schema": "joulemap.bundle", "schema_version": 1, "sections": [3]}', "bundle-damaged"),
        ('{"schema": "joulemap.bundle", "schema_version": 1, "sections": []}', "bundle-damaged"),
        ('{"schema": "joulemap.bundle", "schema_version": 2}', "bundle-version"),
    ],
)
def test_manifests_that_are_none_are_refused(bundle: Path, text: str, slug: str) -> None:
    (bundle / MANIFEST).write_text(text)
    assert refuse(bundle).slug == slug


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "a/../../secret", "traces\\x", "log.txt\0", "\ud800", 300 * "x"]
)
def test_a_manifest_that_points_outside_is_refused(bundle: Path, path: str) -> None:
    (bundle.parent / "secret").write_text("x")
    edit_manifest(bundle, lambda manifest: manifest["sections"][0].update(path=path))
    assert refuse(bundle).slug == "bundle-path"


def test_symbolic_links_are_not_followed(bundle: Path) -> None:
    outside = bundle.parent / "outside"
    shutil.move(bundle / LOG, outside)
    (bundle / LOG).symlink_to(outside)
    assert refuse(bundle).slug == "bundle-path"
    (bundle / LOG).unlink()
    shutil.move(outside, bundle / LOG)
    shutil.move(bundle / "traces", bundle.parent / "traces")
    (bundle / "traces").symlink_to(bundle.parent / "traces")
    assert refuse(bundle).slug == "bundle-path"


def test_a_section_named_twice_is_refused(bundle: Path) -> None:
    edit_manifest(bundle, lambda manifest: manifest["sections"].append(manifest["sections"][0]))
    assert refuse(bundle).slug == "bundle-damaged"


@pytest.mark.parametrize("key", ["path", "media_type", "schema", "version", "size_b", "sha256"])
@pytest.mark.parametrize("value", [None, [], -1.5])
def test_a_section_without_a_sound_description_is_refused(bundle: Path, key: str, value: object) -> None:
    edit_manifest(bundle, lambda manifest: manifest["sections"][0].update({key: value}))
    assert refuse(bundle).slug == "bundle-damaged"


def test_unknown_fields_are_ignored(bundle: Path) -> None:
    def grow(manifest: dict[str, Any]) -> None:
        manifest["novelty"] = {"a": 1}
        manifest["sections"][0]["novelty"] = 2

    edit_manifest(bundle, grow)
    assert isinstance(read_bundle(bundle), Bundle)


def test_a_newer_section_is_refused_where_it_is_used(bundle: Path) -> None:
    def renew(manifest: dict[str, Any]) -> None:
        next(s for s in manifest["sections"] if s["path"] == RUN)["version"] = 2

    edit_manifest(bundle, renew)
    got = read_bundle(bundle)
    with pytest.raises(FormatError) as caught:
        got.read_json(RUN, schema="joulemap.run")
    assert caught.value.slug == "bundle-version"
    with pytest.raises(FormatError):
        got.read_json(RUN, schema="joulemap.other", version=2)


_WRITER = """
import sys, time
from pathlib import Path
from joulemap.formats.bundle_writer import BundleWriter
target, run_id = Path(sys.argv[1]), sys.argv[2]
print("go", flush=True)
while True:
    with BundleWriter(target, kind="profile", run_id=run_id, tool={}, created="", force=True) as writer:
        for k in range(20):
            writer.write_bytes(f"firmware/{k}.elf", bytes(20000), media_type="x", schema="")
        writer.commit(validity="valid")
"""


def test_a_killed_writer_leaves_the_old_bundle_or_the_new_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    target = write(tmp_path / "RUN.jm", run_id="old")
    for round_ in range(12):
        writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(target), f"new-{round_}"], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(float(rng.uniform(0, 0.03)))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        got = read_bundle(target)  # whole, whichever it is
        assert got.run_id == "old" or got.run_id.startswith("new-")
        visible = [name for name in list_names(tmp_path) if not name.startswith(".")]
        assert visible == ["RUN.jm"]
    write(target, force=True, run_id="last")
    assert list_names(tmp_path) == ["RUN.jm"]  # what the killed ones left was swept


def test_a_killed_first_writer_leaves_nothing_that_looks_like_a_bundle(tmp_path: Path) -> None:
    program = _WRITER.replace("writer.commit", "time.sleep(60); writer.commit")
    target = tmp_path / "RUN.jm"
    writer = subprocess.Popen([sys.executable, "-c", program, str(target), "x"], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.readline()
    while not list(tmp_path.rglob("19.elf")):
        time.sleep(0.01)
    assert not target.exists()
    living = write(tmp_path / "RUN.jm")  # another writer of the same target leaves the living one's folder alone
    assert list(tmp_path.rglob("19.elf"))
    shutil.rmtree(living)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    assert not list(tmp_path.rglob(MANIFEST))
    with open_writer(target):
        assert not list(tmp_path.rglob("19.elf"))
    assert list_names(tmp_path) == []


def test_a_bundle_that_was_set_aside_comes_back(bundle: Path) -> None:
    # where the file system cannot exchange two folders in one step, a kill can strike between two renames
    partial = bundle.parent / ".RUN.jm.abc.partial"
    partial.mkdir()
    (partial / "lock").touch()
    bundle.rename(partial / "replaced")
    with pytest.raises(UsageError):
        write(bundle, run_id="run-2")
    assert read_bundle(bundle).run_id == "run-1"
    assert list_names(bundle.parent) == ["RUN.jm"]
