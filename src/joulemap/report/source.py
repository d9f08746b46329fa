"""A bundle as a page: reads the sections, hands them to the builder of its kind. The only reader of files here.

A kind whose figures must be computed first (a recording's map) is built above, by a builder that is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from joulemap.errors import FormatError, InputError
from joulemap.formats.bundle import MANIFEST, Bundle, digest, read_bundle
from joulemap.formats.registry import RESULT, RUN, TIMELINE, list_traces, load_timeline, load_trace
from joulemap.report.view.page import PageView
from joulemap.report.view.profile_page import ProfileSections, build_profile_page
from joulemap.report.view.profile_scene import Waveform

__all__ = ["load_page"]

_RETAKE = "take the bundle again from where it was made, or measure again"


def load_page(folder: Path, builders: Mapping[str, Callable[[Bundle], PageView]] | None = None) -> PageView:
    """Returns the page of a bundle.

    Args:
        folder: the bundle.
        builders: kind -> builder, for kinds whose numbers come from above this room.

    Raises:
        InputError: not a bundle, or of a kind that has no page (``no-page``).
        FormatError: a section is damaged.
    """
    bundle = read_bundle(folder)
    known = {**_BUILDERS, **(builders or {})}
    builder = known.get(bundle.kind)
    if builder is None:
        raise InputError(
            f"{folder}: a bundle of kind {bundle.kind!r} has no page",
            hint=f"kinds with a page are {', '.join(known)}; update joulemap for newer ones",
            slug="no-page",
        )
    try:
        return builder(bundle)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, ArithmeticError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise FormatError(
            f"{folder}: its documents do not describe a run: {what}", hint=_RETAKE, slug="bundle-damaged"
        ) from error


def _load_profile(bundle: Bundle) -> PageView:
    images = sorted(path for path, section in bundle.sections.items() if section.schema == "joulemap.firmware")
    return build_profile_page(
        ProfileSections(
            result=bundle.read_json(RESULT, schema="joulemap.profile"),
            run=bundle.read_json(RUN, schema="joulemap.run"),
            firmware=[bundle.read_json(path, schema="joulemap.firmware") for path in images],
            created=bundle.created,
            digest=digest(bundle.folder / MANIFEST),
            waveform=_load_waveform(bundle),
        )
    )


def _load_waveform(bundle: Bundle) -> Waveform | None:
    """Returns the first valid capture with its timeline, else the first that left samples."""
    result = bundle.read_json(RESULT, schema="joulemap.profile")
    names = [name for name in list_traces(bundle) if name.rpartition("-")[2].isdecimal()]
    recorded = {int(name.rpartition("-")[2]): name for name in names}
    captures = [capture for capture in result["captures"] if capture["index"] in recorded]
    valid = [capture for capture in captures if capture["observation"]["integrity"] == "valid"]
    if not captures:
        return None
    index = (valid or captures)[0]["index"]
    trace, edges = load_trace(bundle, recorded[index])
    timeline = load_timeline(bundle) if valid and bundle.has(TIMELINE) else None
    return Waveform(capture=index, trace=trace, timeline=timeline, edges=edges) if trace.n else None


_BUILDERS: Mapping[str, Callable[[Bundle], PageView]] = {"profile": _load_profile}
