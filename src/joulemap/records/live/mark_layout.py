"""Layout of mark files: named stretches of a program's own time, written into mapped memory and so safe from a kill.

A program writes ``<token>-<k>.marks``, k = 0, 1, ..., each of :data:`SLOTS` slots of five int64 in native order, and
``<token>.names``, one JSON value a line: first ``{"pid", "program", "clock",
"base"}``, then ``[id, name, kind]``.

A slot holds start and end on the monotonic clock (ns; an end of 0: still open), the id of its name, where the mark
around it stands (its place, -1 for none), and the thread of a mark that has none
around it. A start of 0 is a slot that was never filled. A place counts words, so slot s of file k is at
``base + (k * SLOTS + s) * WORDS``.

After the slots of each file stands one more that is no mark: in file 0 its word :data:`END` counts the marks for which
there was no room. A names file without a file 0 is of a process that had no room for any. This module touches no file.
"""

from __future__ import annotations

from typing import Final

__all__ = ["END", "FOLDER_VARIABLE", "NAME", "PARENT", "SLOTS", "START", "THREAD", "WORDS"]

WORDS: Final = 5
"""int64 per slot."""
START, END, NAME, PARENT, THREAD = range(WORDS)
SLOTS: Final = 1 << 15
"""Slots of one file: 1.25 MiB, of which the system keeps what was written."""
FOLDER_VARIABLE: Final = "JOULEMAP_MARKS"
"""Environment variable that tells a recorded program, and all that it starts, where to put its marks."""
