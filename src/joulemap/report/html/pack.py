"""Scenes as data blocks: heads as JSON, arrays as base64. What may end a script element is written as an escape.

A value is stored in 16 bits of the range of its track: the error is at most 1/131068 of that range, and the page says
so. 65535 stands for what was not seen. Times of slices are whole ticks of span / 2^31; U of a slice is stored as the
logarithm of its share of the energy.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.report.view.scene import Excerpt, Origin, PowerUncertainty, Scene, SliceTable, Track

__all__ = ["MISSING", "encode_script_json", "list_blocks", "pack_scene_head"]

MISSING = 65535
_TICKS = 2**31
_OCTAVES = 32  # below 1 at which the scale of relative uncertainties begins
_HEADROOM = 0.06  # above the highest value of the first track, so that it does not touch the rows above


def encode_script_json(document: object) -> str:
    """Returns JSON that can stand inside a script element: no ``<``, ``>``, ``&`` and no separator of lines."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def pack_scene_head(scene: Scene) -> dict[str, Any]:
    """Returns everything of a scene but its arrays."""
    ranges = _ranges(scene)
    return {
        "label": scene.label,
        "span": scene.span_s,
        "bins": scene.tracks[0].mean.size,
        "period": scene.period_s,
        "open": list(scene.open_s),
        "tracks": [_track_head(track, low, high) for track, (low, high) in zip(scene.tracks, ranges, strict=True)],
        "bands": [{"label": band.label, "start": band.start_s, "end": band.end_s} for band in scene.bands],
        "marks": _marks_head(scene),
        "level": None if scene.level is None else {"label": scene.level.label, "value": scene.level.value},
        "excerpts": [_excerpt_head(excerpt) for excerpt in scene.excerpts],
        "origin": _origin_head(scene.origin),
        "slices": {
            "count": len(scene.slices),
            "expanded": scene.slices.expanded_j is not None,
            "tick": scene.span_s / _TICKS,
            "lanes": list(scene.slices.lanes),
            "names": [
                {
                    "name": name.name,
                    "op": name.op,
                    "color": name.color,
                    "facts": list(name.facts),
                    **({"none": name.no_energy} if name.no_energy else {}),
                }
                for name in scene.slices.names
            ],
        },
    }


def _marks_head(scene: Scene) -> dict[str, Any]:
    labels = list(dict.fromkeys(mark.label for mark in scene.marks))
    index = {label: k for k, label in enumerate(labels)}
    at = [round(mark.at_s, 9) for mark in scene.marks]
    return {"labels": labels, "index": [index[mark.label] for mark in scene.marks], "at": at}


def _origin_head(origin: Origin | None) -> dict[str, Any] | None:
    if origin is None:
        return None
    utc = None if origin.utc_ns is None else list(divmod(origin.utc_ns, 1_000_000_000))  # a float holds no ns of UTC
    return {"label": origin.label, "utc": utc}


def list_blocks(scene: Scene, index: int) -> Iterable[tuple[str, str]]:
    """Yields id and base64 of the arrays of a scene.

    Args:
        scene: what to pack.
        index: of the scene in the page.
    """
    ranges = _ranges(scene)
    tracks = [_quantize((t.low, t.high, t.mean), *ranges[k]) for k, t in enumerate(scene.tracks)]
    yield f"envelope-{index}", _base64(tracks)
    yield f"excerpts-{index}", _base64([_pack_excerpt(excerpt, ranges[excerpt.track]) for excerpt in scene.excerpts])
    yield f"slices-{index}", _base64(_slice_columns(scene.slices, scene.span_s))


def _base64(arrays: Sequence[NDArray[Any]]) -> str:
    return base64.b64encode(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).decode("ascii")


def _ranges(scene: Scene) -> list[tuple[float, float]]:
    """Returns lowest and highest stored value of each track; the first one's range holds 0."""
    ranges = []
    for k, track in enumerate(scene.tracks):
        parts = [track.low, track.high, *(part for e in scene.excerpts if e.track == k for part in (e.low, e.high))]
        seen = [part[np.isfinite(part)] for part in parts]
        low = min((float(part.min()) for part in seen if part.size), default=0.0)
        high = max((float(part.max()) for part in seen if part.size), default=1.0)
        if k == 0:
            low, high = min(low, 0.0), max(high, 0.0) + _HEADROOM * (max(high, 0.0) - min(low, 0.0))
        ranges.append((low, high if high > low else low + max(abs(low), 1.0)))
    return ranges


def _quantize(columns: Sequence[NDArray[np.float64]], low: float, high: float) -> NDArray[np.uint16]:
    """Returns the columns side by side, row by row, in steps of the range."""
    values = np.stack(columns, axis=-1)
    steps = np.rint((np.nan_to_num(values, nan=low) - low) * ((MISSING - 1) / (high - low)))
    steps[~np.isfinite(values)] = MISSING
    return np.asarray(np.clip(steps, 0, MISSING), "<u2")


def _pack_excerpt(excerpt: Excerpt, limits: tuple[float, float]) -> NDArray[np.uint16]:
    columns = (excerpt.mean,) if excerpt.raw else (excerpt.low, excerpt.high, excerpt.mean)
    return _quantize(columns, *limits)


def _track_head(track: Track, low: float, high: float) -> dict[str, Any]:
    return {
        "name": track.name,
        "unit": track.unit,
        "low": low,
        "high": high,
        "spread": track.spread,
        "note": track.note,
        "uncertainty": None if track.uncertainty is None else _limits(track.uncertainty),
    }


def _limits(uncertainty: PowerUncertainty) -> dict[str, float]:
    return {
        "gain": uncertainty.gain_std,
        "clock": uncertainty.clock_std,
        "offset": uncertainty.offset_std_w,
        "noise": uncertainty.noise_std_w,
        "rate": uncertainty.rate_hz,
    }


def _excerpt_head(excerpt: Excerpt) -> dict[str, Any]:
    return {
        "label": excerpt.label,
        "track": excerpt.track,
        "start": excerpt.start_s,
        "step": excerpt.step_s,
        "count": excerpt.mean.size,
        "raw": excerpt.raw,
    }


def _slice_columns(slices: SliceTable, span_s: float) -> list[NDArray[Any]]:
    tick_s = span_s / _TICKS
    start = np.clip(np.rint(slices.start_s / tick_s), 0, 2**32 - 1)
    end = np.clip(np.rint((slices.start_s + slices.duration_s) / tick_s), 0, 2**32 - 1)
    columns = [
        start.astype("<u4"),
        (end - start).astype("<u4"),
        slices.energy_j.astype("<f4"),
        slices.name_index.astype("<u2"),
    ]
    if slices.expanded_j is not None:
        columns.append(_code_ratio(slices.expanded_j, slices.energy_j))
    return [*columns, np.minimum(slices.lane_index, 255).astype("u1")]


def _code_ratio(expanded_j: NDArray[np.float64], energy_j: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Returns U over the energy on a scale of powers of two, 1024 steps each: within 0.04 % of it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        code = np.rint((np.log2(expanded_j / np.abs(energy_j)) + _OCTAVES) * 1024)
    code[~np.isfinite(code)] = MISSING
    return np.asarray(np.clip(code, 0, MISSING), "<u2")
