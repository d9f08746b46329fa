"""Bench multimeters and source meters that speak SCPI, through PyVISA: one reading per query.

An overload (9.9E37) is no number. A supply of a known voltage needs the current alone.

References:
    IEEE 488.2; SCPI-1999 volume 2, 3.4 (MEASure) and volume 1, 7.2.1.4 (9.9E37 stands for infinity).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import SetupError, UsageError
from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.losses import lost_meter, refused_meter, try_meter
from joulemap.meters.live.ground.options import check_options, machine_option, number_option
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "ScpiMeter", "build_meter", "discover_meters"]

SUMMARY = "bench multimeters and source meters that speak SCPI (PyVISA)"
EXAMPLE = "scpi:resource=TCPIP0::192.0.2.5::INSTR,current_query=MEAS:CURR?,voltage_query=MEAS:VOLT?"
_NAME = "scpi"
_OPTIONS = (
    "resource", "library", "power_query", "voltage_query", "current_query", "volts", "timeout_s", "setup",
    "read_termination", "write_termination", "machine",
)  # fmt: skip
_OVERLOAD = 9.0e37
_MOST_FAILURES = 3


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns the instrument that was named; nothing when none was: instruments are not asked unasked.

    Raises:
        UsageError: an option is wrong or missing (``meter-option``).
    """
    if options is None:
        return ()
    return (try_meter(build_meter(MeterAddress(driver=_NAME, options=options))),)


def build_meter(address: MeterAddress) -> ScpiMeter:
    """Returns the meter of one instrument, not yet opened.

    Raises:
        UsageError: an option is wrong or missing (``meter-option``).
    """
    return ScpiMeter(address)


class ScpiMeter:
    """Reads one instrument.

    Args:
        address: ``resource`` of VISA; ``library`` of PyVISA (``@py``, a path, ``file.yaml@sim``); either
            ``power_query``, or ``current_query`` (MEAS:CURR?) with ``voltage_query`` or ``volts``, a constant;
            ``setup``, commands joined by ``;`` that are sent first; ``timeout_s`` (5); ``read_termination`` and
            ``write_termination`` (lf, crlf); ``machine`` that it feeds (``this``; default: one of its own).

    Raises:
        UsageError: an option is wrong or missing (``meter-option``).
    """

    def __init__(self, address: MeterAddress) -> None:
        check_options(address, _OPTIONS)
        self._address = address
        self._resource = address.options.get("resource", "")
        if not self._resource:
            raise UsageError(f"meter {_NAME} needs a resource", hint=f"write {EXAMPLE}", slug="meter-option")
        self._timeout_s = number_option(address, "timeout_s", 5.0, exclusive=True)
        self._volts = number_option(address, "volts", math.nan)
        self._ends = {key: _ending(address, key) for key in ("read_termination", "write_termination")}
        power = address.options.get("power_query", "")
        current = address.options.get("current_query", "MEAS:CURR?")
        voltage = address.options.get("voltage_query", "")
        if not power and not voltage and math.isnan(self._volts):
            voltage = "MEAS:VOLT?"
        self._queries = (power,) if power else tuple(query for query in (current, voltage) if query)
        self._manager: Any = None
        self._instrument: Any = None
        self._failures = 0
        self._identity = ""
        self.name = f"{_NAME}:{self._resource}"

    @property
    def address(self) -> MeterAddress:
        """What opens it again."""
        return self._address

    @property
    def domains(self) -> tuple[LiveDomain, ...]:
        """One domain, ``output``."""
        return (
            LiveDomain(
                name="output",
                reading=DomainReading.POWER,
                unit="W",
                scale=1.0,
                provenance=Provenance.MEASURED_SAMPLED,
                boundary=Boundary.RAIL,
                machine=machine_option(self._address, self.name),
                source=f"SCPI {' '.join(self._queries)}; {self._identity or self._resource}",
            ),
        )

    def open(self) -> None:
        """Opens the instrument, sets it up and takes one reading; no effect when it is open.

        Raises:
            SetupError: PyVISA is missing (``missing-extra``), or the instrument does not answer (``meter-unusable``).
        """
        if self._instrument is not None:
            return
        try:
            import pyvisa  # noqa: PLC0415  the vendor's module, only here
        except ImportError as error:
            raise SetupError(
                "PyVISA is not installed", hint="pip install 'joulemap[scpi]'", slug="missing-extra"
            ) from error
        try:
            self._manager = pyvisa.ResourceManager(self._address.options.get("library", ""))
            instrument = self._manager.open_resource(self._resource)
            instrument.timeout = self._timeout_s * 1e3
            for key, ending in self._ends.items():
                if ending is not None:
                    setattr(instrument, key, ending)
            self._instrument = instrument
            self._identity = self._query("*IDN?")
            for command in filter(None, self._address.options.get("setup", "").split(";")):
                instrument.write(command)
            answered = [self._ask(query) for query in self._queries]
        except (pyvisa.errors.Error, OSError, ValueError) as error:
            self.close()
            raise refused_meter(self.name, f"the instrument does not answer ({error})", _FIX) from error
        if not self._identity:
            self.close()
            raise refused_meter(self.name, "the instrument does not answer *IDN?", _FIX)
        if any(value is None for value in answered):
            self.close()
            raise refused_meter(self.name, f"{' '.join(self._queries)} gives no number", "name the queries it knows")

    def read(self, raw: NDArray[np.float64]) -> None:
        """Writes the power, W.

        Raises:
            PowerError: three readings in a row failed (``meter-lost``).
        """
        import pyvisa  # noqa: PLC0415  loaded by open already

        try:
            values = [self._ask(query) for query in self._queries]
        except (pyvisa.errors.Error, OSError) as error:
            self._failures += 1
            raw[0] = math.nan
            if self._failures >= _MOST_FAILURES:
                raise lost_meter(self.name, f"no answer three times ({error})") from error
            return
        self._failures = 0
        raw[0] = math.prod(math.nan if value is None else value for value in values)
        if len(values) == 1 and not self._address.options.get("power_query"):
            raw[0] *= self._volts

    def close(self) -> None:
        """Closes the instrument; idempotent."""
        instrument, self._instrument = self._instrument, None
        manager, self._manager = self._manager, None
        if instrument is not None:
            instrument.close()
        if manager is not None:
            manager.close()

    def _query(self, text: str) -> str:
        self._instrument.write(text)
        answer: bytes = self._instrument.read_raw()
        return answer.decode("ascii", "replace").strip()

    def _ask(self, query: str) -> float | None:
        text = self._query(query).split(",")[0]
        try:
            value = float(text.rstrip("ADCVW "))  # some answer with a unit behind the number
        except ValueError:
            return None
        return value if math.isfinite(value) and abs(value) < _OVERLOAD else None


_FIX = "check the cable and the resource: python -m visa info, pyvisa-shell list"
_ENDINGS = {"lf": "\n", "crlf": "\r\n", "cr": "\r", "none": ""}


def _ending(address: MeterAddress, key: str) -> str | None:
    text = address.options.get(key)
    if text is not None and text not in _ENDINGS:
        raise UsageError(
            f"meter {_NAME} cannot take {key}={text}", hint=f"one of {', '.join(_ENDINGS)}", slug="meter-option"
        )
    return None if text is None else _ENDINGS[text]
