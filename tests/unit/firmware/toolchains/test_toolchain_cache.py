"""The build cache: nothing twice, nothing half, nothing damaged."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from joulemap.errors import SetupError
from joulemap.firmware.toolchains.cache import BuildCache, default_cache_dir, digest_of


def _write(text: str, calls: list[str] | None = None) -> Callable[[Path], None]:
    def make(work: Path) -> None:
        if calls is not None:
            calls.append(text)
        (work / "out.bin").write_text(text)

    return make


def test_an_entry_is_built_once(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    calls: list[str] = []
    first, reused = cache.build("kind", "key", "out.bin", _write("a", calls))
    again, reused_again = BuildCache(tmp_path).build("kind", "key", "out.bin", _write("a", calls))
    assert (first, reused, reused_again, calls) == (again, False, True, ["a"])
    assert first.read_text() == "a"


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "no digest", "bad digest"])
def test_a_damaged_entry_is_built_again(tmp_path: Path, damage: str) -> None:
    cache = BuildCache(tmp_path)
    calls: list[str] = []
    path, _ = cache.build("kind", "key", "out.bin", _write("content", calls))
    digest = path.with_name("sha256")
    damages: dict[str, Callable[[], object]] = {
        "flip": lambda: path.write_text("contend"),
        "truncate": lambda: path.write_text("cont"),
        "remove": path.unlink,
        "no digest": digest.unlink,
        "bad digest": lambda: digest.write_bytes(b"\xff\xfe"),
    }
    damages[damage]()
    assert cache.find("kind", "key") is None
    path, reused = cache.build("kind", "key", "out.bin", _write("content", calls))
    assert (path.read_text(), reused, len(calls)) == ("content", False, 2)


def test_a_failed_or_interrupted_build_leaves_nothing(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)

    def interrupted(work: Path) -> None:
        (work / "out.bin").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.build("kind", "key", "out.bin", interrupted)
    assert cache.find("kind", "key") is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_builds_of_one_key_may_race(tmp_path: Path) -> None:
    gate = threading.Barrier(4)
    results: list[tuple[Path, bool]] = []

    def slow(work: Path) -> None:
        gate.wait()
        (work / "out.bin").write_text("same")

    def build() -> None:
        results.append(BuildCache(tmp_path).build("kind", "key", "out.bin", slow))

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {path.read_text() for path, _ in results} == {"same"}
    assert len({path for path, _ in results}) == 1
    assert not list((tmp_path / "scratch").iterdir())


def test_a_workspace_of_a_killed_build_is_swept_a_day_later(tmp_path: Path) -> None:
    BuildCache(tmp_path)
    old, fresh = tmp_path / "scratch" / "old", tmp_path / "scratch" / "fresh"
    for folder in (old, fresh):
        folder.mkdir()
    two_days_ago = time.time() - 2 * 86400
    os.utime(old, (two_days_ago, two_days_ago))
    BuildCache(tmp_path)
    assert not old.exists()
    assert fresh.exists()


def test_a_folder_that_cannot_be_made_is_a_setup_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SetupError) as caught:
        BuildCache(tmp_path / "file" / "cache")
    assert caught.value.slug == "cache-unwritable"
    assert "JOULEMAP_CACHE_DIR" in caught.value.hint


@pytest.mark.parametrize("damage", ["a file for the kind", "no scratch", "gone while it builds"])
def test_a_cache_that_is_taken_away_is_a_setup_error(damage: str, tmp_path: Path) -> None:
    root = tmp_path / "cache"
    cache = BuildCache(root)

    def make(work: Path) -> None:
        (work / "out.bin").write_text("content")
        if damage == "gone while it builds":
            shutil.rmtree(root)

    if damage == "a file for the kind":
        (root / "kind").write_text("in the way")
    elif damage == "no scratch":
        shutil.rmtree(root / "scratch")
    with pytest.raises(SetupError) as caught:
        cache.build("kind", "key", "out.bin", make)
    assert caught.value.slug == "cache-unwritable"
    assert str(root) in caught.value.message


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("JOULEMAP_CACHE_DIR", raising=False)
    assert default_cache_dir() == tmp_path / "xdg" / "joulemap"
    monkeypatch.setenv("JOULEMAP_CACHE_DIR", str(tmp_path / "own"))
    assert default_cache_dir() == tmp_path / "own"


def test_a_relative_xdg_folder_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JOULEMAP_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / ".cache" / "joulemap"


def test_a_home_that_nobody_has_is_a_setup_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOULEMAP_CACHE_DIR", "~no-such-user-here/cache")
    with pytest.raises(SetupError) as caught:
        default_cache_dir()
    assert caught.value.slug == "cache-unwritable"


def test_a_digest_keeps_its_parts_apart() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert digest_of("ab", "c") == digest_of("ab", "c")
