"""Where copies of operators stand, whose weights they read, and how much there is room for."""

from __future__ import annotations

from pathlib import Path

import pytest

from joulemap.runtimes.graphs.repetition import (
    Caches,
    CopyLayout,
    NodeSize,
    lay_out_copies,
    read_caches,
    spare_weights_b,
)

KIB, MIB = 1 << 10, 1 << 20


def size(weights_b: int = 0, unread_b: int = 0) -> NodeSize:
    return NodeSize(weights_b=weights_b, unread_b=unread_b)


CACHES = Caches(near_b=512 * KIB, last_b=8 * MIB, whole_b=32 * MIB)


@pytest.mark.parametrize(
    ("model_b", "weights_b", "copies", "sets"),
    [
        (20 * MIB, 5 * MIB, 10, 4),  # from memory: as much is read between two uses of a set as in the model
        (20 * MIB, 5 * MIB, 3, 3),
        (20 * MIB, 20 * MIB, 10, 1),
        (20 * MIB, 0, 10, 1),
        (7 * MIB, 256 * KIB, 20, 8),  # from the last cache: 2 MiB leave nothing in the one before
        (7 * MIB, 5 * MIB, 20, 1),
        (MIB, 256 * KIB, 20, 4),
        (400 * KIB, 32 * KIB, 20, 4),  # from the near cache: 128 KiB leave nothing in the first
        (100 * KIB, 50 * KIB, 20, 2),
    ],
)
def test_executions_take_turns_with_as_many_weights_as_leave_the_nearer_cache(
    model_b: int, weights_b: int, copies: int, sets: int
) -> None:
    assert lay_out_copies([size(weights_b)], copies, model_b=model_b, caches=CACHES)[0].sets == sets
    halves = lay_out_copies(
        [size(weights_b // 2), size(), size(weights_b // 2)], copies, model_b=model_b, caches=CACHES
    )
    assert [layout.sets for layout in halves] == [sets, 1, sets]  # of a pass: together


def test_copies_are_read_where_they_would_fill_a_near_cache() -> None:
    assert lay_out_copies([size(unread_b=64 * KIB)], 4, model_b=0) == (CopyLayout(sets=1, read=False),)  # 192 KiB
    assert lay_out_copies([size(unread_b=64 * KIB)], 6, model_b=0) == (CopyLayout(sets=1, read=True),)
    many = [size(unread_b=200 * KIB), size(unread_b=4 * KIB), size()]
    assert [layout.read for layout in lay_out_copies(many, 3, model_b=0)] == [True, False, False]


@pytest.mark.parametrize(
    ("model_b", "spare_b", "fast_b"),
    [
        (300 * KIB, 4 * MIB, 212 * KIB),  # all of it stays in the near cache
        (3 * MIB, 4 * MIB, 5 * MIB),
        (7 * MIB, 7 * MIB, MIB),
        (100 * MIB, 100 * MIB, 100 * MIB),  # from memory, in the model and in copies
    ],
)
def test_copies_read_as_much_as_leaves_the_model_in_its_cache(model_b: int, spare_b: int, fast_b: int) -> None:
    assert spare_weights_b(model_b, CACHES) == spare_b
    assert spare_weights_b(model_b, CACHES, fast=True) == fast_b


def write_caches(folder: Path, *told: tuple[int, str]) -> Path:
    for index, (level, size_kib) in enumerate(told):
        (folder / f"index{index}").mkdir()
        (folder / f"index{index}" / "level").write_text(f"{level}\n")
        (folder / f"index{index}" / "size").write_text(f"{size_kib}\n")
    (folder / "index9").mkdir()  # tells nothing
    return folder


def test_half_of_the_near_cache_and_a_quarter_of_the_last_one_count(tmp_path: Path) -> None:
    folder = write_caches(tmp_path, (1, "48K"), (1, "32K"), (2, "2048K"), (3, "32768K"))
    assert read_caches(folder) == Caches(near_b=MIB, last_b=8 * MIB, whole_b=32 * MIB)


def test_a_machine_without_a_third_level_has_its_second_as_the_last(tmp_path: Path) -> None:
    assert read_caches(write_caches(tmp_path, (1, "64K"), (2, "512K"))) == Caches(
        near_b=256 * KIB, last_b=256 * KIB, whole_b=512 * KIB
    )


def test_caches_that_the_system_does_not_tell_are_taken_for_usual_ones(tmp_path: Path) -> None:
    usual = Caches(near_b=512 * KIB, last_b=8 * MIB, whole_b=32 * MIB)
    assert read_caches(tmp_path / "none") == usual
    assert read_caches(write_caches(tmp_path, (3, "much"))) == usual
