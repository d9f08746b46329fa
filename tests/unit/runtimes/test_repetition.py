"""Where copies of operators stand, whose weights they read, and how much there is room for."""

from __future__ import annotations

from pathlib import Path

import pytest

from joulemap.runtimes.graphs.repetition import (
    CopyLayout,
    NodeSize,
    lay_out_copies,
    read_cache_b,
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
    layouts = lay_out_copies([size(MIB), size(), size(3 * MIB)], copies, model_b=7 * MIB, cache_b=cache_b)
    assert [layout.sets for layout in layouts] == [sets, 1, sets]


def test_copies_are_read_where_they_would_fill_a_near_cache() -> None:
    assert lay_out_copies([size(outputs_b=64 * KIB)], 4, model_b=0) == (CopyLayout(sets=1, read=False),)  # 192 KiB
    assert lay_out_copies([size(outputs_b=64 * KIB)], 6, model_b=0) == (CopyLayout(sets=1, read=True),)
    many = [size(outputs_b=200 * KIB), size(outputs_b=4 * KIB), size()]
    assert [layout.read for layout in lay_out_copies(many, 3, model_b=0)] == [True, False, False]


def test_copies_may_read_as_much_as_the_model_or_half_of_the_cache() -> None:
    assert spare_weights_b(100 * MIB, cache_b=8 * MIB) == 100 * MIB
    assert spare_weights_b(MIB, cache_b=8 * MIB) == 4 * MIB


def test_a_quarter_of_the_last_level_counts(tmp_path: Path) -> None:
    for index, level, told in ((0, 1, "48K"), (1, 1, "32K"), (2, 2, "1024K"), (3, 3, "32768K")):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        (folder / "level").write_text(f"{level}\n")
        (folder / "size").write_text(f"{told}\n")
    (tmp_path / "index4").mkdir()  # tells nothing
    assert read_cache_b(tmp_path) == 8 * MIB


def test_without_a_word_from_the_system_32_mib_are_taken(tmp_path: Path) -> None:
    assert read_cache_b(tmp_path / "none") == 8 * MIB
    broken = tmp_path / "index0"
    broken.mkdir()
    (broken / "level").write_text("3")
    (broken / "size").write_text("much")
    assert read_cache_b(tmp_path) == 8 * MIB
