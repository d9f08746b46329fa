"""The two ways in which a meter fails as a whole, said the same by every driver. Knows no driver."""

from __future__ import annotations

from joulemap.errors import PowerError, SetupError

__all__ = ["lost_meter", "refused_meter"]


def lost_meter(name: str, what: str) -> PowerError:
    """Returns the error of a meter that went away while it was read."""
    return PowerError(
        f"{name}: {what}", hint="plug it in or load its driver again; readings go on when it is back",
        slug="meter-lost", phase="power",
    )  # fmt: skip


def refused_meter(name: str, problem: str, fix: str) -> SetupError:
    """Returns the error of a meter that cannot be opened, with the step that mends it."""
    return SetupError(
        f"{name}: {problem}", hint=fix or "joulemap meters lists what can be read here", slug="meter-unusable"
    )
