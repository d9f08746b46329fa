"""rocm-smi --json and --csv: one snapshot of all cards, values as strings, keys that changed over the versions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.json_stream import read_json
from joulemap.formats.ground.logs import index_clock, read_quantity
from joulemap.formats.ground.sampling import Domain, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_head, read_lines, split_fields
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["RocmSmiReader"]

_POWER = ("Average Graphics Package Power (W)", "Current Socket Graphics Package Power (W)")
_LANES = {
    "GPU use (%)": ("utilisation", "1", "%"),
    "Temperature (Sensor edge) (C)": ("temperature", "degC", "degC"),
    "Max Graphics Package Power (W)": ("power limit", "W", "W"),
    "Temperature (Sensor junction) (C)": ("junction temperature", "degC", "degC"),
}
_SECOND_DIE = "secondary die"


class RocmSmiReader:
    """Reads rocm-smi's JSON and CSV. Neither holds a time: a snapshot gives stated powers, a loop needs its rate.

    On MI250 the power of both dies stands with the even card; the odd one says ``N/A (Secondary die)``.

    References:
        ROCm/amdsmi 0ceca28f, rocm_smi.py formatCsv and showPower; recordings of ROCm 5.7, 6.0 and 6.1; FORMATS 4
        (reports 28, 29).
    """

    name: ClassVar[str] = "rocm-smi"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for rocm-smi's CSV header, or JSON whose first key is a card with its keys."""
        del path
        lines = head_lines(head, 3)
        if not lines:
            return 0.0
        if lines[0].startswith("device,"):
            return 0.95 if "Power (W)" in lines[0] or "GPU use (%)" in lines[0] else 0.0
        opening = b"".join(head[:4096].split())
        known = any(key.encode() in head for key in _POWER) or b"Temperature (Sensor edge)" in head
        return 0.95 if opening.startswith((b'{"card', b'{"system')) and known else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the power of each card.

        Raises:
            FormatError: no card with a reading.
            InputError: several snapshots follow each other and no rate was stated.
        """
        log = FindingLog()
        table = not read_head(path).lstrip().startswith(b"{")
        cards = list(_csv_cards(path, log) if table else _json_cards(path))
        repeats = len({card for _, card, _ in cards}) < len(cards)
        clock, period_ns = (
            index_clock(options, path.name) if repeats else (Clock(name="poll", kind=ClockKind.SAMPLE_INDEX), 1)
        )
        book = SampleBook(clock, log)
        domain = Domain(boundary=boundary_of(options.boundary, Boundary.BOARD))
        polls: dict[str, int] = {}
        for line, card, values in cards:
            polls[card] = polls.get(card, -1) + 1
            time_ns = polls[card] * period_ns
            written = [values[key] for key in _POWER if key in values]
            if any(_SECOND_DIE in text.lower() for text in written):
                log.add(
                    "second_die",
                    f"{card} is the second die of a card; the first holds the power of both",
                    f"line {line}",
                )
                continue
            readings = [value for value in (read_quantity(log, text, line) for text in written) if math.isfinite(value)]
            if readings:
                book.series(card, domain).add(time_ns, readings[0], line)
            for key, (lane, unit, bare) in _LANES.items():
                if key in values:
                    book.lane(f"{card} {lane}", unit, time_ns, read_quantity(log, values[key], line, bare))
        return recording_of(self.name, path, book)


def _json_cards(path: Path) -> Iterator[tuple[int, str, dict[str, str]]]:
    document = read_json(path)
    if not isinstance(document, dict):
        raise FormatError(f"{path.name} is no object of cards", hint="Use rocm-smi --json.", slug="json-unexpected")
    for card, values in document.items():
        if isinstance(values, dict) and card.startswith("card"):
            yield 1, card, {str(key): str(value) for key, value in values.items()}


def _csv_cards(path: Path, log: FindingLog) -> Iterator[tuple[int, str, dict[str, str]]]:
    header: list[str] = []
    for line, text in read_lines(path):
        if not text.strip():
            continue
        fields = split_fields(text)
        if fields[0] == "device":
            header = fields
        elif fields[0].startswith("card") and header:
            if len(fields) != len(header):
                log.add("row_ragged", f"{len(fields)} fields where the header has {len(header)}", f"line {line}")
            yield line, fields[0], dict(zip(header, fields, strict=False))
