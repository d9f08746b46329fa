"""How text may look on a stream: colour or none, Unicode or ASCII."""

from __future__ import annotations

from dataclasses import dataclass

import click

__all__ = ["Style"]

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_ASCII = str.maketrans(
    {"µ": "u", "±": "+-", "\u2009": " ", "—": "-", "\u2013": "-", "·": ".", "\u00d7": "x", "Ω": "Ohm", "\u2212": "-"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """What a stream takes.

    Args:
        color: ANSI attributes.
        unicode: signs beyond ASCII.
    """

    color: bool
    unicode: bool

    def bold(self, text: str) -> str:
        """Returns the text in bold."""
        return click.style(text, bold=True) if self.color else text

    def dim(self, text: str) -> str:
        """Returns the text dimmed."""
        return click.style(text, dim=True) if self.color else text

    def warn(self, text: str) -> str:
        """Returns the text in the colour of a warning; the word that warns stands in the text itself."""
        return click.style(text, fg="yellow") if self.color else text

    def bar(self, fill: float, width: int) -> str:
        """Returns a bar of ``fill`` (0..1) of ``width`` cells."""
        if not self.unicode:
            return "#" * round(fill * width)
        eighths = round(fill * width * 8)
        return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()

    def encode(self, text: str) -> str:
        """Returns the text in the character set of the stream; what ASCII lacks becomes its escape."""
        if self.unicode:
            return text
        return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")
