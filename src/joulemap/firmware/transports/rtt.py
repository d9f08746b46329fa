"""RTT: a ring in target RAM that is read through memory access, for the profile stream and for the terminal record."""

from __future__ import annotations

from joulemap.errors import CaptureError, PowerError
from joulemap.firmware.boards.base import StopReason
from joulemap.firmware.transports.base import LinkContext, ProfileDelivery
from joulemap.firmware.transports.collect import POLL_S, SilentReader, collect_record
from joulemap.firmware.transports.ring import RING_SYMBOL, RingDefectError, RttRing, forget_ring
from joulemap.firmware.wire.profile_stream import is_profile_complete
from joulemap.records.firmware import ArtifactRole
from joulemap.records.power import PowerTerminalEnvelope

__all__ = ["RttProfileTransport", "RttTerminalTransport"]

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
                fresh = ring.read()
                received += fresh
                if stop.reason is not StopReason.IDLE or not fresh or is_profile_complete(bytes(received)):
                    return ProfileDelivery(stream=bytes(received), stop=stop)
                context.session.advance(POLL_S)  # a full ring: the core looks again after its own wake-up
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

    def arm(self, context: LinkContext) -> None:
        """Erases the control block of an earlier run; an image without diagnostics has none."""
        if RING_SYMBOL in context.symbols:
            forget_ring(context.memory, context.symbols[RING_SYMBOL][0])

    def collect(self, context: LinkContext, timeout_s: float) -> PowerTerminalEnvelope:
        """Lets the board run and returns the record that came within ``timeout_s`` of board time after ``since_ns``.

        Raises:
            PowerError: ``terminal-missing``, ``terminal-late``, ``rtt-corrupt`` or a reason of the parser.
        """
        try:
            reader = RttRing(context) if RING_SYMBOL in context.symbols else SilentReader()
            return collect_record(reader, context, timeout_s)
        except RingDefectError as error:
            raise PowerError(
                f"RTT ring: {error}",
                hint=_HINT,
                slug="rtt-corrupt",
                phase="power",
                artifact_role=ArtifactRole.POWER,
            ) from error
