"""What a test does to a page in the browser: point at an instant, read the tooltip, see that all was quiet."""

from __future__ import annotations

from pathlib import Path

from chromium import Chromium

__all__ = ["SIZES", "box", "hover", "quiet", "row_middle", "tip"]

SIZES = [(1280, 800, "light"), (1280, 800, "dark"), (390, 844, "light")]


def box(browser: Chromium) -> tuple[float, float]:
    left, top = browser.evaluate(
        "(() => { scrollTo(0, 0); const b = document.querySelector('#map').getBoundingClientRect();"
        " return [b.left, b.top]; })()"
    )
    return left, top


def row_middle(browser: Chromium, kind: str, index: int) -> float:
    """Middle of a row of the map, from the top of the canvas."""
    y: float = browser.evaluate(
        f"(() => {{ const r = joulemap.layout.rows.find(r => r.{kind} === {index}); return r.y + r.height / 2; }})()"
    )
    return y


def tip(browser: Chromium) -> list[str]:
    lines: list[str] = browser.evaluate("document.getElementById('tip').innerText.split('\\n')")
    return lines


def hover(browser: Chromium, time_s: float, kind: str, index: int) -> list[str]:
    """Points at an instant in a row and returns the tooltip."""
    left, top = box(browser)
    x = browser.evaluate(
        f"(() => {{ const s = joulemap.state, l = joulemap.layout; return l.gutter + ({time_s} - s.view[0])"
        " / (s.view[1] - s.view[0]) * (l.width - l.gutter - 12); })()"
    )
    browser.move(left + x, top + row_middle(browser, kind, index))
    browser.settle()
    return tip(browser)


def quiet(browser: Chromium, page: Path) -> None:
    """Nothing was complained about and nothing was asked for but the file itself."""
    assert browser.complaints == []
    assert {url.split("#")[0] for url in browser.requests} == {page.resolve().as_uri()}
