"""What to do about each finding, in the very words of docs/findings.md (a test holds the two together). Data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["CURES"]

CURES: Mapping[str, str] = MappingProxyType(
    {
        "captures_dropped": "Look at the findings of each capture; run again, perhaps with more `--repeats`.",
        "count_inferred": "Nothing, when the transport was left out on purpose; else see the finding beside it.",
        "output_unchecked": (
            "Check one run with the terminal transport connected, or with a model that the oracle takes."
        ),
        "elapsed_unavailable": "Nothing: GATE is compared with the reference alone.",
        "samples_lost": "Use a shorter cable, another port or a lower sample rate.",
        "counter_overflow": (
            "Nothing, unless a single layer takes more than 2^32 cycles: then profile at a lower clock."
        ),
        "mark_exceeds_layer": "Nothing: such a layer is too short to matter.",
        "board_lost": "Check power and cable of board and probe.",
        "probe_lost": "Check its cable and start the run again.",
        "capture_empty": "Check that it was armed before the reset.",
        "instrument_lost": "Check its cable and power.",
        "hard_fault": "A stack or arena that is too small is the usual cause.",
        "brown_out": "Raise its current limit or the voltage.",
        "terminal_error": "See the code in docs/wire.md.",
        "count_mismatch": "Deploy the image of this plan again.",
        "output_differs": "Rebuild the firmware; check memory and clock.",
        "no_ready": "Check the READY wire, or run with `--no-lockstep`.",
        "firmware_stuck": "Look at what the reported phase runs.",
        "nothing_observed": "Check the GATE wire and the terminal transport.",
        "no_gate_rise": "Check the GATE wire to the instrument.",
        "no_gate_fall": "Check the GATE wire to the instrument.",
        "throttled": "Let the board cool, or lower clock or load.",
        "count_unknown": "Check the terminal transport.",
        "gate_disagrees": "See the message: it says which differs, and by how much.",
        "terminal_missing": "Check the terminal transport.",
        "terminal_truncated": "Raise the size of the transport's buffer.",
        "terminal_version": "Build firmware and joulemap from one version.",
        "terminal_late": "Find what holds the firmware up after GATE.",
        "single_capture": "Leave `--repeats` at 5, or give at least 2.",
        "layers_grouped": (
            "None is needed to rely on the sums. To split them take a faster instrument, more inferences "
            "(`--window-s`) or more `--repeats`."
        ),
        "layers_refused": "Take a faster instrument, more inferences (`--window-s`) or more `--repeats`.",
        "sampling_locked": "Change the sample rate a little, away from a multiple of the inference.",
        "edges_too_coarse": "Take an instrument with faster logic inputs.",
        "gate_aligned": "None is needed.",
        "residuals_not_white": "A faster instrument needs no such model.",
        "closure_failed": "Look at the profile run: its layer times do not describe the power run.",
        "gate_unresolved": "Take an instrument with more samples per second, or a longer gate (`--window-s`).",
        "slices_thinned": (
            "Nothing: the windows that the page opens on and the worst windows are whole. For every slice, read"
            " `timeline.parquet` of the bundle."
        ),
    }
)
