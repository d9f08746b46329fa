"""The C interface of NVIDIA's management library that the driver uses, loaded by ``ctypes`` when it is first asked for.

A call that the device does not support gives None; a device that fell off the bus raises. Must not know a meter.

References:
    NVIDIA NVML API reference: nvmlReturn_t, nvmlFieldValue_t, field identifiers 83, 185, 186, nvmlDeviceArchitecture_t,
    nvmlClocksThrottleReasons.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_longlong, c_uint, c_ulonglong, c_void_p
from typing import Any

__all__ = ["FIELD_POWER_AVERAGE", "FIELD_POWER_INSTANT", "Nvml", "NvmlError", "NvmlLostError"]

FIELD_POWER_AVERAGE = 185
FIELD_POWER_INSTANT = 186
_LOST = frozenset({15})
_UUID_B = 96
_FIELD_NUMBERS = {0: "f64", 1: "u32", 2: "u64", 3: "u64"}


_MARK = "joulemapNothingIsMeasured"
"""A symbol that only the stand-in of the test kit has."""


class NvmlError(Exception):
    """A call failed; the text is the library's own.

    Args:
        code: of the library.
        text: what it says.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class NvmlLostError(NvmlError):
    """The device fell off the bus."""


class _FieldNumber(ctypes.Union):
    _fields_ = (("f64", ctypes.c_double), ("u32", c_uint), ("u64", c_ulonglong), ("i64", c_longlong))


class _FieldValue(ctypes.Structure):
    _fields_ = (
        ("field_id", c_uint),
        ("scope_id", c_uint),
        ("timestamp", c_longlong),
        ("latency_us", c_longlong),
        ("kind", c_uint),
        ("result", c_uint),
        ("number", _FieldNumber),
    )


class _Utilisation(ctypes.Structure):
    _fields_ = (("gpu", c_uint), ("memory", c_uint))


class Nvml:
    """The library, initialised.

    Args:
        path: of the shared library.

    Raises:
        OSError: there is none.
        NvmlError: it does not start (no driver, a version that does not fit).
    """

    def __init__(self, path: str = "libnvidia-ml.so.1") -> None:
        self._library: Any = ctypes.CDLL(path)
        self.made_up = hasattr(self._library, _MARK)
        self._library.nvmlErrorString.restype = c_char_p
        self._check(self._library.nvmlInit_v2())

    def close(self) -> None:
        """Shuts the library down for this user of it."""
        self._library.nvmlShutdown()

    def count(self) -> int:
        """Returns the number of whole devices; slices of one device are no devices."""
        number = c_uint()
        self._check(self._library.nvmlDeviceGetCount_v2(byref(number)))
        return number.value

    def by_index(self, index: int) -> c_void_p:
        """Returns a device."""
        handle = c_void_p()
        self._check(self._library.nvmlDeviceGetHandleByIndex_v2(c_uint(index), byref(handle)))
        return handle

    def by_uuid(self, uuid: str) -> c_void_p:
        """Returns the whole device of a UUID, also when it names a slice of it (``MIG-...``)."""
        handle = c_void_p()
        self._check(self._library.nvmlDeviceGetHandleByUUID(uuid.encode("ascii", "replace"), byref(handle)))
        if uuid.startswith("MIG-"):
            parent = c_void_p()
            self._check(self._library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle, byref(parent)))
            return parent
        return handle

    def text(self, function: str, device: c_void_p) -> str:
        """Returns a name or UUID; empty when there is none."""
        buffer = ctypes.create_string_buffer(_UUID_B)
        code = getattr(self._library, function)(device, buffer, c_uint(_UUID_B))
        return buffer.value.decode("utf-8", "replace") if code == 0 else ""

    def number(self, function: str, device: c_void_p, *before: int, wide: bool = False) -> int | None:
        """Returns what a function writes through its last argument; None when the device does not support it.

        Args:
            function: of the library; one that the library lacks is not supported.
            device: asked.
            before: whole arguments between device and result.
            wide: the result has 64 bits.
        """
        call = getattr(self._library, function, None)
        if call is None:
            return None
        result = c_ulonglong() if wide else c_uint()
        code = call(device, *(c_uint(argument) for argument in before), byref(result))
        return result.value if self._supported(code) else None

    def field(self, device: c_void_p, field_id: int) -> float | None:
        """Returns a field of the device; None when it has none."""
        value = _FieldValue(field_id=field_id)
        call = getattr(self._library, "nvmlDeviceGetFieldValues", None)
        if call is None or not self._supported(call(device, c_int(1), byref(value))) or value.result != 0:
            return None
        if value.kind not in _FIELD_NUMBERS:
            return None
        return float(getattr(value.number, _FIELD_NUMBERS[value.kind]))

    def utilisation(self, device: c_void_p) -> tuple[int, int] | None:
        """Returns percent of time that kernels ran and that memory moved; None when not supported."""
        rates = _Utilisation()
        if not self._supported(self._library.nvmlDeviceGetUtilizationRates(device, byref(rates))):
            return None
        return rates.gpu, rates.memory

    def sliced(self, device: c_void_p) -> bool:
        """Returns whether the device is cut into slices (MIG)."""
        current, pending = c_uint(), c_uint()
        call = getattr(self._library, "nvmlDeviceGetMigMode", None)
        return call is not None and self._supported(call(device, byref(current), byref(pending))) and current.value == 1

    def limits_mw(self, device: c_void_p) -> tuple[int, int] | None:
        """Returns least and highest power limit, mW; None when not supported."""
        least, highest = c_uint(), c_uint()
        call = getattr(self._library, "nvmlDeviceGetPowerManagementLimitConstraints", None)
        if call is None or not self._supported(call(device, byref(least), byref(highest))):
            return None
        return least.value, highest.value

    def _supported(self, code: int) -> bool:
        if code in _LOST:
            raise NvmlLostError(code, self._say(code))
        return code == 0

    def _check(self, code: int) -> None:
        if code in _LOST:
            raise NvmlLostError(code, self._say(code))
        if code != 0:
            raise NvmlError(code, self._say(code))

    def _say(self, code: int) -> str:
        text: bytes | None = self._library.nvmlErrorString(c_int(code))
        return (text or b"").decode("utf-8", "replace") or f"error {code}"
