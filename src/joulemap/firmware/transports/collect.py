"""Waits for the terminal record on any link: lets the board run, reads, parses, and tells late from missing.

A transport brings a reader. Nothing here resets the target.
"""

from __future__ import annotations

from joulemap.errors import PowerError
from joulemap.firmware.boards.base import StopReason
from joulemap.firmware.transports.base import LinkContext, PowerTerminalReader
from joulemap.firmware.wire.terminal import PowerTerminalParser
from joulemap.records.firmware import ArtifactRole
from joulemap.records.power import PowerTerminalEnvelope

__all__ = ["POLL_S", "SilentReader", "collect_record"]

POLL_S = 0.01
"""Board time between two looks at a link on which nothing has come."""
_GRACE_S = 2.0
"""A record that comes this long after the time-out is called late; after that it is missing."""


class SilentReader:
    """The reader of an image that has no diagnostics."""

    def read(self) -> bytes:
        """Returns nothing."""
        return b""


def collect_record(reader: PowerTerminalReader, context: LinkContext, timeout_s: float) -> PowerTerminalEnvelope:
    """Returns the record that came within ``timeout_s`` of board time after the context's ``since_ns``.

    Raises:
        PowerError: ``terminal-missing``, ``terminal-late``, or a reason of the parser.
    """
    parser = PowerTerminalParser()
    received = b""
    while True:
        stop = context.session.run()
        waited_s = (stop.time_ns - context.since_ns) * 1e-9
        received += reader.read()
        complete = parser.is_complete(received)
        if complete and waited_s > timeout_s:
            raise PowerError(
                f"the terminal record came {waited_s:.3f} s after GATE, {timeout_s:.3f} s are allowed",
                hint="the firmware was held up after GATE; its record is not used",
                slug="terminal-late",
                phase="power",
                artifact_role=ArtifactRole.POWER,
            )
        if complete or stop.reason is not StopReason.IDLE or waited_s > timeout_s + _GRACE_S:
            return parser.parse(received)
        context.session.advance(POLL_S)
