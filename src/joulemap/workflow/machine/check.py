"""One thing that the doctor looked at."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Check"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at.

    Args:
        name: what, in two or three words.
        ok: it is as it should be; None when it could not be read: that is never taken for ok.
        required: without it the target cannot run.
        detail: what was found.
        fix: the exact command or step when it is not ok; empty otherwise.
    """

    name: str
    ok: bool | None
    required: bool
    detail: str
    fix: str = ""
