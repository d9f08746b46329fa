"""What the headline of a recording is made of: the widest boundary, what was named, or all that no other contains."""

from __future__ import annotations

import pytest

from joulemap.analysis.recorded.headline import WIDEST_FIRST, choose_headline
from joulemap.estimate import Boundary

PACKAGE, DRAM, CORE = ("rapl:package-0", "rapl:package-0/dram", "rapl:package-0/core")
RAPL = {PACKAGE: Boundary.PACKAGE, DRAM: Boundary.RAIL, CORE: Boundary.RAIL}
INSIDE = ((CORE, PACKAGE),)


def test_every_boundary_has_a_place_in_the_order() -> None:
    assert set(WIDEST_FIRST) == set(Boundary)


def test_the_widest_boundary_is_the_headline_and_what_it_leaves_out_is_named() -> None:
    found = choose_headline(RAPL, INSIDE)
    assert (found.rule, found.domains, found.boundary) == ("widest", (PACKAGE,), "package")
    assert found.left_out == (DRAM,)


def test_all_domains_of_one_boundary_are_added() -> None:
    two = {"rapl:package-0": Boundary.PACKAGE, "rapl:package-1": Boundary.PACKAGE}
    found = choose_headline(two, ())
    assert (found.rule, found.domains, found.left_out) == ("only", tuple(two), ())


def test_a_sum_names_every_boundary_and_holds_nothing_twice() -> None:
    found = choose_headline(RAPL, INSIDE, ("sum",))
    assert (found.rule, found.domains, found.boundary) == ("sum", (PACKAGE, DRAM), "package + rail")
    assert choose_headline({PACKAGE: Boundary.PACKAGE}, (), ("sum",)).boundary == "package"


@pytest.mark.parametrize(
    ("asked", "domains", "boundary"),
    [
        ((DRAM,), (DRAM,), "rail"),
        ((CORE, DRAM), (CORE, DRAM), "rail"),
        ((PACKAGE, DRAM), (PACKAGE, DRAM), "package + rail"),
    ],
)
def test_named_domains_are_the_headline(asked: tuple[str, ...], domains: tuple[str, ...], boundary: str) -> None:
    found = choose_headline(RAPL, INSIDE, asked)
    assert (found.rule, found.domains, found.boundary) == ("named", domains, boundary)


def test_a_named_domain_that_was_lost_leaves_no_headline() -> None:
    assert choose_headline({DRAM: Boundary.RAIL}, (), (PACKAGE, DRAM)).domains == ()
    assert choose_headline({}, ()).domains == ()


def test_a_wide_domain_that_was_lost_leaves_the_headline_to_the_next() -> None:
    assert choose_headline({PACKAGE: Boundary.PACKAGE}, ()).domains == (PACKAGE,)
