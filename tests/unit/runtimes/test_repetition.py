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


def size(weights_b: int = 0, outputs_b: int = 0) -> NodeSize:
    return NodeSize(weights_b=weights_b, outputs_b=outputs_b)


@pytest.mark.parametrize(
    ("weights_b", "copies", "sets"),
    [
        (2 * MIB, 10, 4),  # a model of 7 MiB is read once between two uses of a set
        (2 * MIB, 3, 3),
        (7 * MIB, 10, 1),
        (0, 10, 1),
    ],
)
def test_a_lone_operator_takes_turns_with_as_many_weights_as_the_model_has(
    weights_b: int, copies: int, sets: int
) -> None:
    (layout,) = lay_out_copies([size(weights_b)], copies, model_b=7 * MIB)
    assert layout.sets == sets


@pytest.mark.parametrize(
    ("cache_b", "copies", "sets"), [(6 * MIB, 5, 5), (8 * MIB, 5, 3), (8 * MIB, 3, 2), (8 * MIB, 2, 2)]
)
def test_copies_of_several_operators_have_weights_of_their_own_or_half_of_them(
    cache_b: int, copies: int, sets: int
) -> None:
    layouts = lay_out_copies(
        [size(MIB), size(), size(3 * MIB)],
        copies,
        model_b=7 * MIB,
        caches=Caches(near_b=KIB, last_b=cache_b, whole_b=4 * cache_b),
    )
    assert [layout.sets for layout in layouts] == [sets, 1, sets]


def test_copies_are_read_where_they_would_fill_a_near_cache() -> None:
    assert lay_out_copies([size(outputs_b=64 * KIB)], 4, model_b=0) == (CopyLayout(sets=1, read=False),)  # 192 KiB
    assert lay_out_copies([size(outputs_b=64 * KIB)], 6, model_b=0) == (CopyLayout(sets=1, read=True),)
    many = [size(outputs_b=200 * KIB), size(outputs_b=4 * KIB), size()]
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
    caches = Caches(near_b=512 * KIB, last_b=8 * MIB, whole_b=32 * MIB)
    assert spare_weights_b(model_b, caches) == spare_b
    assert spare_weights_b(model_b, caches, fast=True) == fast_b


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
