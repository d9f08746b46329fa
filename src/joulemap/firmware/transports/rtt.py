"""RTT: a ring in target RAM that is read through memory access, for the profile stream and for the terminal record."""

from __future__ import annotations

from joulemap.errors import CaptureError, PowerError
from joulemap.firmware.boards.base import StopReason
from joulemap.firmware.transports.base import LinkContext, ProfileDelivery
from joulemap.firmware.transports.ring import RING_SYMBOL, RingDefectError, RttRing, forget_ring
from joulemap.firmware.wire.profile_stream import is_profile_complete
from joulemap.firmware.wire.terminal import PowerTerminalParser
from joulemap.records.firmware import ArtifactRole
from joulemap.records.power import PowerTerminalEnvelope

__all__ = ["RttProfileTransport", "RttTerminalTransport"]

_POLL_S = 0.01
_GRACE_S = 2.0  # a record that comes this long after the time-out is called late, not missing
_HINT = "the firmware may have overwritten its own RAM: check arena and stack in the memory plan (-v)"


class RttProfileTransport:
    """Drains the ring whenever the core sleeps, until the end marker is there."""

    name = "rtt"

    def capture(self, context: LinkContext) -> ProfileDelivery:
        """Runs the board and returns what it printed until it parked, faulted or met its deadline.

        Raises:
            CaptureError: the image has no ring, or the ring is nonsense (``rtt-corrupt``).
        """
        received = bytearray()
        try:
            ring = RttRing(context)
            while True:
                stop = context.session.run()
                fresh = ring.drain()
                received += fresh
                if stop.reason is not StopReason.IDLE or not fresh or is_profile_complete(bytes(received)):
                    return ProfileDelivery(stream=bytes(received), stop=stop)
                context.session.advance(_POLL_S)  # a full ring: the core looks again after its own wake-up
        except RingDefectError as error:
            raise CaptureError(
                f"RTT ring: {error}",
                hint=_HINT,
                slug="rtt-corrupt",
                phase="profile",
                artifact_role=ArtifactRole.PROFILE,
            ) from error


class RttTerminalTransport:
    """Looks into the ring of a parked core; attaches without reset and shares nothing with the profile capture."""

    name = "rtt"

    def __init__(self) -> None:
        self._parser = PowerTerminalParser()

    def arm(self, context: LinkContext) -> None:
        """Erases the control block of an earlier run; an image without diagnostics has none."""
        if RING_SYMBOL in context.symbols:
            forget_ring(context.memory, context.symbols[RING_SYMBOL][0])

    def collect(self, context: LinkContext, timeout_s: float) -> PowerTerminalEnvelope:
        """Lets the board run and returns the record that came within ``timeout_s`` of board time after ``since_ns``.

        Raises:
            PowerError: ``terminal-missing``, ``terminal-late``, ``rtt-corrupt`` or a reason of the parser.
        """
        received = bytearray()
        try:
            ring = RttRing(context) if RING_SYMBOL in context.symbols else None
            while True:
                stop = context.session.run()
                waited_s = (stop.time_ns - context.since_ns) * 1e-9
                received += ring.drain() if ring is not None else b""
                complete = self._parser.is_complete(bytes(received))
                if complete and waited_s > timeout_s:
                    raise _error(
                        f"the terminal record came {waited_s:.3f} s after GATE, {timeout_s:.3f} s are allowed",
                        "terminal-late",
                        "the firmware was held up after GATE; its record is not used",
                    )
                if complete or stop.reason is not StopReason.IDLE or waited_s > timeout_s + _GRACE_S:
                    return self._parser.parse(bytes(received))
                context.session.advance(_POLL_S)
        except RingDefectError as error:
            raise _error(f"RTT ring: {error}", "rtt-corrupt", _HINT) from error


def _error(message: str, slug: str, hint: str) -> PowerError:
    return PowerError(message, hint=hint, slug=slug, phase="power", artifact_role=ArtifactRole.POWER)
