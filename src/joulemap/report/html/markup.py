"""Markup from text: the one place where anything becomes HTML, and where everything from data is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable

__all__ = ["element", "escape", "join"]

_VOID = frozenset({"input", "meta", "link", "rect", "line"})


def escape(text: str) -> str:
    """Returns text that means itself in HTML, between tags and inside quoted attributes."""
    return html.escape(text, quote=True)


def element(tag: str, *children: str, **attributes: str | float | bool | None) -> str:
    """Returns an element. Children are markup already: pass text through :func:`escape`.

    Args:
        tag: name.
        children: markup inside.
        attributes: name -> value; ``class_`` stands for ``class``, ``_`` inside a name for ``-``. False and None leave
            an attribute out, True writes its bare name; every other value is escaped.
    """
    written = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return f"<{tag}{written}>" if tag not in {"rect", "line"} else f"<{tag}{written}/>"
    return f"<{tag}{written}>{''.join(children)}</{tag}>"


def join(parts: Iterable[str]) -> str:
    """Returns the parts, one a line, so that a page can be read as text."""
    return "\n".join(parts)


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
