"""Small pictures of the page as SVG: bars with whiskers, the icicle, the stacked budget. Sizes come as per cent."""

from __future__ import annotations

from collections.abc import Sequence

from joulemap.report.html.markup import element, escape
from joulemap.report.view.colors import NEUTRAL, PALETTE
from joulemap.report.view.page import BudgetShare, FlameNode

__all__ = ["budget_color", "render_bar", "render_budget", "render_icicle", "render_swatch"]

_ROW = 24
_LONG_NAME = 30  # characters; keys of links go by number beyond
_LABEL = 0.05  # share of the width below which no label is tried
_BUDGET_COLORS = (0, 3, 2, 5, 4, 1, 6)


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def _ink(color: int) -> str:
    return "neutral" if color == NEUTRAL else "light" if color == 0 else "dark"


def paint(color: int) -> dict[str, str]:
    """Returns the attributes that colour a shape: grey follows the theme, the colours of operations never do."""
    return {"class_": "neutral"} if color == NEUTRAL else {"fill": PALETTE[color]}


def render_swatch(color: int) -> str:
    """Returns a small square of a colour of the palette."""
    square = element("rect", width="9", height="9", rx="2", **paint(color))
    return element("svg", square, width="9", height="9", aria_hidden="true")


def render_bar(value: float, expanded: float, largest: float, color: int) -> str:
    """Returns a bar of the value with its interval as a whisker.

    Args:
        value: >= 0 or below, of the row.
        expanded: U of it.
        largest: value plus U that fills the width, > 0.
        color: index into the palette.
    """
    left, right = (max(0.0, min(1.0, end / largest)) for end in (value - expanded, value + expanded))
    middle = {"y1": "7", "y2": "7", "class_": "whisker"}
    caps = "".join(
        element("line", x1=_percent(x), x2=_percent(x), y1="2", y2="12", class_="whisker") for x in (left, right)
    )
    return element(
        "svg",
        element("rect", x="0", y="2", width=_percent(max(0.0, value / largest)), height="10", rx="2", **paint(color)),
        element("line", x1=_percent(left), x2=_percent(right), **middle),
        caps,
        class_="bar",
        width="100%",
        height="14",
        aria_hidden="true",
    )


def render_icicle(root: FlameNode, whole: str) -> str:
    """Returns the icicle: one row per depth, width is joules, every box a button that highlights its slices.

    Args:
        root: outermost box.
        whole: what it stands for.
    """
    boxes: list[str] = []
    depth = _place(root, (0.0, 1.0, 0), boxes, "")
    return element(
        "svg",
        *boxes,
        id="icicle",
        width="100%",
        height=str(_ROW * (depth + 1)),
        role="group",
        aria_label=f"Energy of {whole}; wider boxes hold more joules",
    )


def _place(node: FlameNode, at: tuple[float, float, int], boxes: list[str], path: str) -> int:
    left, width, depth = at
    key = f"{path}/{node.name if len(node.name) <= _LONG_NAME else len(boxes)}"
    boxes.append(_box(node, at, key))
    deepest = depth
    for child in node.children:
        share = width * child.energy_j / node.energy_j
        deepest = max(deepest, _place(child, (left, share, depth + 1), boxes, key))
        left += share
    return deepest


def _box(node: FlameNode, at: tuple[float, float, int], key: str) -> str:
    left, width, depth = at
    text = f"{node.name}: {node.text}"
    label = escape(node.name) if width >= _LABEL else ""  # the script tries the others: it can measure them
    inner = element(
        "svg",
        element("title", escape(text)),
        element("rect", width="100%", height=str(_ROW - 2), rx="2", **paint(node.color)),
        element("text", label, x="5", y="15", class_=f"ink-{_ink(node.color)}"),
        x=_percent(left),
        y=str(_ROW * depth),
        width=_percent(width),
        height=str(_ROW),
    )
    return element(
        "g",
        inner,
        class_="box",
        role="button",
        tabindex="0",
        aria_pressed="false",
        aria_label=text,
        data_label=node.name,
        data_key=f"flame:{key}",
        data_names=",".join(map(str, node.names)),
    )


def render_budget(shares: Sequence[BudgetShare]) -> str:
    """Returns the contributions to u² of the headline as one stacked bar; the list beside it names them."""
    left, parts = 0.0, []
    for share, color in zip(shares, _cycle(len(shares)), strict=True):
        parts.append(element("rect", x=_percent(left), width=_percent(share.share), height="16", **paint(color)))
        left += share.share
    spoken = ", ".join(f"{share.name} {share.share_text}" for share in shares)
    return element(
        "svg",
        *parts,
        class_="stack",
        width="100%",
        height="16",
        role="img",
        aria_label=f"Shares of u squared: {spoken}",
    )


def budget_color(index: int) -> int:
    """Returns the palette index of the k-th contribution."""
    return _BUDGET_COLORS[index] if index < len(_BUDGET_COLORS) else NEUTRAL


def _cycle(count: int) -> list[int]:
    return [budget_color(k) for k in range(count)]
