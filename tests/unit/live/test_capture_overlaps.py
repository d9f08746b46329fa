"""Meters of one capture that measure the same thing, or a part of what another measures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from joulemap.estimate import Boundary
from joulemap.formats.live.overlaps import list_overlaps, list_twins
from joulemap.records.live.capture_header import CaptureHeader, CaptureStream
from joulemap.records.live.capture_layout import MAGIC, BlockKind, encode_block, encode_clocks
from live_captures import COUNTER, POWER, STEP_UJ, clocks_at, header_block, ramp, read_bytes, rows_of, slugs


def two_meters(first: CaptureStream, second: CaptureStream) -> CaptureHeader:
    return CaptureHeader(session="s", rate_hz=10.0, streams=(first, second))


def test_overlaps_are_declared_or_follow_from_the_whole_machine() -> None:
    core = replace(COUNTER, name="package-0/core", inside=("package-0",))
    rapl = CaptureStream(meter="powercap", driver="powercap", period_s=0.1, domains=(COUNTER, core))
    battery = replace(POWER, name="BAT0", boundary=Boundary.NODE)
    wall = replace(battery, name="plug", boundary=Boundary.WALL)
    node = CaptureStream(meter="battery", driver="battery", period_s=0.1, domains=(battery,))
    plug = CaptureStream(meter="shelly", driver="prometheus", period_s=0.1, domains=(wall,))
    assert ("powercap:package-0/core", "powercap:package-0") in list_overlaps(two_meters(rapl, node))
    assert ("powercap:package-0", "battery:BAT0") in list_overlaps(two_meters(rapl, node))
    assert list_overlaps(two_meters(node, plug)) == (("battery:BAT0", "shelly:plug"),)


def test_of_two_views_of_one_counter_the_declared_one_is_inside_whatever_their_order() -> None:
    perf = CaptureStream(
        meter="perf", driver="perf", period_s=0.1, domains=(replace(COUNTER, inside=("powercap:package-0",)),)
    )
    rapl = CaptureStream(meter="powercap", driver="powercap", period_s=0.1, domains=(COUNTER,))
    for first, second in ((perf, rapl), (rapl, perf)):
        assert list_overlaps(two_meters(first, second)) == (("perf:package-0", "powercap:package-0"),)


def test_two_meters_of_one_thing_are_compared_and_one_counts(tmp_path: Path) -> None:
    first = CaptureStream(meter="powercap", driver="powercap", period_s=0.1, domains=(COUNTER,))
    second = CaptureStream(meter="perf", driver="perf", period_s=0.1, domains=(replace(COUNTER, inside=()),))
    header = two_meters(first, second)
    assert list_twins(header) == (("powercap:package-0", "perf:package-0"),)
    assert list_overlaps(header) == (("perf:package-0", "powercap:package-0"),)
    from joulemap.records.live.capture_layout import encode_samples

    data = b"".join(
        [
            MAGIC,
            header_block(header),
            encode_clocks(clocks_at([10**9])[0]),
            encode_samples(rows_of(ramp(40)), 0),
            encode_samples(rows_of(ramp(40, step=1.5 * STEP_UJ)), 1),
            encode_block(BlockKind.END, b"{}"),
        ]
    )
    recording = read_bytes(data, tmp_path)
    assert slugs(recording) == ["meters_disagree"]
    assert recording.metadata["began"].startswith("2001-09-09")


def test_two_devices_of_one_driver_are_added_and_never_taken_as_one() -> None:
    cards = [
        CaptureStream(meter=f"nvml:{at}", driver="nvml", period_s=0.1, domains=(replace(COUNTER, name="energy"),))
        for at in range(2)
    ]
    header = two_meters(*cards)
    assert list_twins(header) == ()
    assert list_overlaps(header) == ()
