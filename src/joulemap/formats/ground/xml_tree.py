"""Small XML documents as plain trees, several in one file, without entities: a recording declares none.

It knows nothing of any schema.

References:
    XML 1.0, section 4 (entities); expat's handlers. Entity declarations are refused, external ones never fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from joulemap.errors import FormatError
from joulemap.formats.ground.text import open_bytes

__all__ = ["Node", "read_documents"]

_MAX_DEPTH = 200
_LIMIT_B = 1 << 28


@dataclass(slots=True)
class Node:
    """One element: tag, attributes, children, and the text directly inside it."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Node] = field(default_factory=list)
    text: str = ""

    def find(self, path: str) -> Node | None:
        """Returns the first element at a path of tags such as ``a/b``; None when there is none."""
        node: Node | None = self
        for tag in path.split("/"):
            node = next((child for child in node.children if child.tag == tag), None) if node else None
        return node

    def read(self, path: str) -> str:
        """Returns the stripped text at a path; empty when there is none."""
        node = self.find(path)
        return node.text.strip() if node else ""


class _Builder:
    """Grows one tree from the events of one document."""

    def __init__(self, name: str, first_line: int) -> None:
        self.name = name
        self.first_line = first_line
        self.root: Node | None = None
        self.stack: list[Node] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._entity

    @property
    def line(self) -> int:
        """Line of the file that the parser stands in."""
        return self.first_line + self.parser.CurrentLineNumber - 1

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self.stack) >= _MAX_DEPTH:
            raise self.broken("elements nested too deep")
        node = Node(tag, dict(attributes), self.line)
        if self.stack:
            self.stack[-1].children.append(node)
        else:
            self.root = node
        self.stack.append(node)

    def _end(self, _tag: str) -> None:
        self.stack.pop()

    def _text(self, text: str) -> None:
        if self.stack:
            self.stack[-1].text += text

    def _entity(self, *_args: object) -> None:
        raise self.broken("it declares an entity, which no recording does")

    def broken(self, what: str) -> FormatError:
        """Returns the error at the current line."""
        return FormatError(
            f"{self.name}: not readable as XML in line {self.line}: {what}",
            hint="Export the file again, or cut it before that line.",
            slug="xml-damaged",
        )


def read_documents(path: Path) -> Iterator[tuple[Node, bool]]:
    """Yields (root, complete) of each XML document of a file; only the last can be incomplete.

    Documents follow each other where a line begins with ``<?xml``, as tools write that print one per poll; NUL bytes
    between them are dropped.

    Raises:
        FormatError: no XML, or more than 256 MB.
        InputError: the file cannot be opened.
    """
    with open_bytes(path) as handle:
        builder: _Builder | None = None
        size_b = 0
        for number, raw in enumerate(iter(lambda: handle.readline(1 << 20), b""), start=1):
            size_b += len(raw)
            line = raw.replace(b"\0", b"")
            if size_b > _LIMIT_B:
                raise FormatError(
                    f"{path.name} is larger than {_LIMIT_B} bytes", hint="Split it.", slug="recording-too-large"
                )
            if line.lstrip().startswith(b"<?xml") and builder is not None and builder.root is not None:
                yield _closed(builder)
                builder = None
            if builder is None:
                if not line.strip():
                    continue
                builder = _Builder(path.name, number)
                line = line.lstrip(b"\xef\xbb\xbf \t\r\n")
            try:
                builder.parser.Parse(line, False)
            except expat.ExpatError as error:
                raise builder.broken(expat.ErrorString(error.code)) from None
        if builder is None or builder.root is None:
            raise FormatError(
                f"{path.name} holds no XML element", hint="Check that the export finished.", slug="recording-empty"
            )
        yield _closed(builder)


def _closed(builder: _Builder) -> tuple[Node, bool]:
    assert builder.root is not None  # asked by the caller
    return builder.root, not builder.stack
