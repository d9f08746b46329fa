"""Redfish Power resource: what a server's management controller says now. No time stamp."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, source_file
from joulemap.formats.ground.json_stream import read_json
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording, StatedTotal

__all__ = ["RedfishReader"]


class RedfishReader:
    """Reads a Power resource: consumed power, the controller's own mean and extremes, and the supplies.

    One document spans no time, so everything is a stated figure. Some controllers write the rating of a supply as its
    input power; a supply that takes more than twice what it gives is said.

    References:
        DMTF DSP0268, Redfish Data Model, Power (PowerControl, PowerMetrics, PowerSupplies); a recording of an iDRAC.
    """

    name: ClassVar[str] = "redfish"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a JSON object of type Power."""
        del path
        known = b'"@odata.type"' in head and b"#Power." in head and b'"PowerControl"' in head
        return 1.0 if known and head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{") else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the stated powers.

        Raises:
            FormatError: no JSON object, or no power in it.
        """
        del options
        log = FindingLog()
        document = read_json(path)
        if not isinstance(document, dict):
            raise FormatError(f"{path.name} is no object", hint="Fetch the Power resource.", slug="json-unexpected")
        totals: list[StatedTotal] = []
        metadata: dict[str, str] = {}
        for number, control in enumerate(_objects(document.get("PowerControl"))):
            metadata[f"control_{number}_name"] = str(control.get("Name"))
            _state(totals, f"control_{number}_power_w", control.get("PowerConsumedWatts"), Boundary.NODE)
            metrics = control.get("PowerMetrics")
            if isinstance(metrics, dict):
                for key, word in (
                    ("AverageConsumedWatts", "mean"),
                    ("MinConsumedWatts", "min"),
                    ("MaxConsumedWatts", "max"),
                ):
                    _state(totals, f"control_{number}_{word}_power_w", metrics.get(key), Boundary.NODE)
                metadata[f"control_{number}_interval_min"] = str(metrics.get("IntervalInMin"))
        for number, supply in enumerate(_objects(document.get("PowerSupplies"))):
            _state(totals, f"supply_{number}_output_power_w", supply.get("PowerOutputWatts"), Boundary.NODE)
            _state(totals, f"supply_{number}_input_power_w", supply.get("PowerInputWatts"), Boundary.WALL)
            given, taken = _number(supply.get("PowerOutputWatts")), _number(supply.get("PowerInputWatts"))
            if given is not None and taken is not None and taken > 2 * given:
                log.add(
                    "stated_disagrees",
                    f"supply {number} takes {taken:g} W and gives {given:g} W: the input looks like its rating",
                    f"PowerSupplies[{number}]",
                )
        if not totals:
            raise FormatError(
                f"{path.name} states no power", hint="Fetch the Power resource of the chassis.", slug="recording-empty"
            )
        log.add("single_reading", "one document spans no time; its powers are stated figures", severity=Severity.INFO)
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            totals=tuple(totals),
            metadata=metadata,
            findings=log.findings(),
        )


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _state(totals: list[StatedTotal], key: str, value: Any, boundary: Boundary) -> None:
    number = _number(value)
    if number is not None:
        totals.append(
            StatedTotal(key=key, value=number, provenance=Provenance.MEASURED_SAMPLED, boundary=boundary, span=key)
        )
