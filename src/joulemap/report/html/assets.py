"""The script and the style of the page, as they go into it: modules joined in the order in which they need each other.

Each ES module under ``assets/`` becomes a function that returns what it exports, so that names stay apart; comments
and indentation stay behind. Nothing is fetched, nothing is rewritten beyond ``import`` and ``export``.
"""

from __future__ import annotations

import functools
import re
from importlib.resources import files

__all__ = ["join_modules", "read_script", "read_style"]

_IMPORT = re.compile(r"^import \{([^}]*)\} from '\./([\w-]+)\.js';\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)
_BLOCK_COMMENT = re.compile(r"^[ \t]*/\*\*.*?\*/\n", re.MULTILINE | re.DOTALL)
_LINE_COMMENT = re.compile(r"^[ \t]*//.*\n", re.MULTILINE)


@functools.cache
def read_script() -> str:
    """Returns the script of the page."""
    return join_modules("main", _read)


@functools.cache
def read_style() -> str:
    """Returns the style sheet of the page."""
    text = (files(__package__) / "assets" / "page.css").read_text("utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"\n\s*", "\n", text).strip() + "\n"


def join_modules(entry: str, read: object) -> str:
    """Returns one script for a module and all that it imports.

    Args:
        entry: name of the module, without suffix.
        read: returns the text of a module by name.

    Raises:
        ValueError: modules import each other in a circle, or with a form of import that is not known here.
    """
    assert callable(read)
    done: dict[str, str] = {}
    open_: list[str] = []

    def add(name: str) -> None:
        if name in done:
            return
        if name in open_:
            raise ValueError(f"modules import each other: {' > '.join([*open_, name])}")
        open_.append(name)
        text = str(read(name))
        for _, needed in _IMPORT.findall(text):
            add(needed)
        done[name] = _wrap(name, text)
        open_.pop()

    add(entry)
    return "'use strict';\n" + "".join(done.values())


def _read(name: str) -> str:
    return (files(__package__) / "assets" / f"{name}.js").read_text("utf-8")


def _wrap(name: str, text: str) -> str:
    text = _LINE_COMMENT.sub("", _BLOCK_COMMENT.sub("", text))
    exported = _EXPORTED.findall(text)
    body = _IMPORT.sub(lambda m: f"const {{{' '.join(m[1].split())}}} = ${m[2]};\n", text)
    body = _EXPORT.sub("", body)
    left = re.search(r"^(?:import|export)\b.*", body, re.MULTILINE)
    if left:
        raise ValueError(f"{name}.js: cannot join {left[0]!r}")
    lines = [line.strip() for line in body.splitlines()]
    returned = f"return {{ {', '.join(exported)} }};\n" if exported else ""
    return f"const ${name} = (() => {{\n" + "\n".join(line for line in lines if line) + f"\n{returned}}})();\n"
