"""Damaged bundles: every change is found and named, and nothing outside the folder is read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from bundle_bench import TRUTH, edit_manifest, refuse, write
from joulemap.errors import FormatError
from joulemap.formats.bundle import MANIFEST, Bundle, read_bundle
from joulemap.formats.registry import (
    LOG,
    RUN,
)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write(tmp_path / "RUN.jm")


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
