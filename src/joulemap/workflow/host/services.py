"""Runtime and meter of a request: chosen and checked before anything is started."""

from __future__ import annotations

from pathlib import Path

from joulemap.errors import InputError
from joulemap.records.host.request import HostRequest
from joulemap.runtimes.base import Runtime
from joulemap.runtimes.registry import choose_runtime
from joulemap.runtimes.simulated.activity import ActivityHost, WatchedRuntime
from joulemap.runtimes.simulated.runtime import SimulatedRuntime
from joulemap.runtimes.simulated.virtual_host import VirtualHost
from joulemap.workflow.host.live_access import open_live_access
from joulemap.workflow.host.meter_access import MeterAccess, simulated_access

__all__ = ["open_services"]

_SIMULATED = "simulated"


def open_services(request: HostRequest) -> tuple[Runtime, MeterAccess]:
    """Returns the runtime and the meter.

    The simulated runtime has a meter of its own, on its virtual clock. The meter ``simulated`` beside a real runtime
    samples one power while it runs and another while it does not; all that comes of it is labelled simulated.

    Raises:
        UsageError: an unknown name, or a file that the runtime does not load.
        InputError: the model is no file (``model-unreadable``).
        SetupError: the runtime is not installed (``missing-extra``), or no meter can be read (``no-live-meter``).
    """
    chosen = choose_runtime(request.runtime, request.session.model)
    if chosen.traits.simulated:
        host = VirtualHost()
        return SimulatedRuntime(host, seed=request.seed), simulated_access(host, seed=request.seed, rest=host.rest)
    _require_file(request.session.model)
    chosen.version()
    if request.meters == (_SIMULATED,):
        activity = ActivityHost()
        return WatchedRuntime(chosen, activity), simulated_access(activity, seed=request.seed)
    return chosen, open_live_access(request)


def _require_file(model: Path) -> None:
    """Refuses what is no regular file: a pipe or a device may never end.

    Raises:
        InputError: it is none, or not there (``model-unreadable``).
    """
    if not model.is_file():
        what = "is no regular file" if model.exists() else "there is no such file"
        raise InputError(f"{model}: {what}", hint="give the path of a model file", slug="model-unreadable")
