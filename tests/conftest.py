"""Settings of the whole suite: property tests draw the same examples every time and assert no timing."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", _UNTIMED, derandomize=True)
settings.register_profile("explore", _UNTIMED)
settings.load_profile("explore" if os.environ.get("JOULEMAP_EXPLORE") else "repeatable")
