"""Perfetto's android.power in binary and text, track events, and batterystats."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from host_reading import energy_j, lane, read, slugs, total, trace
from joulemap.errors import FormatError
from joulemap.estimate import Provenance
from joulemap.trace import ClockKind
from recording_files import shared_file
from wire_fields import wire

BOOT = 10_000_000_000


def packet(*fields: bytes, sequence: int = 1, at_ns: int | None = BOOT) -> bytes:
    stamp = b"" if at_ns is None else wire(8, at_ns)
    return wire(1, stamp + b"".join(fields) + wire(10, sequence))


def rail(index: int, name: str) -> bytes:
    return wire(40, wire(1, wire(1, index) + wire(2, name)))


def energy(index: int, ms: int, uws: int) -> bytes:
    return wire(40, wire(2, wire(1, index) + wire(2, ms) + wire(3, uws)))


def test_rails_are_cumulative_energies_and_their_own_time_counts() -> None:
    found = read("perfetto", shared_file("generated", "perfetto", "power_battery.pftrace"), Path())
    tpu = trace(found, "S1M_VDD_TPU")
    assert tpu.power_w.tolist() == pytest.approx([1.5, 1.5, 1.5, 1.5])
    assert tpu.start_ns == BOOT  # not the packet's 5 ms later
    assert energy_j(trace(found, "S2M_VDD_CPUCL2")) == pytest.approx(0.5)
    assert tpu.channel.provenance is Provenance.MEASURED_COUNTER
    assert found.metadata["realtime_minus_boot_ns"] == "1767323035000000000"


def test_battery_is_lanes_and_no_power_since_the_sign_of_its_current_has_no_meaning() -> None:
    found = read("perfetto", shared_file("generated", "perfetto", "power_battery.pftrace"), Path())
    assert lane(found, "battery current").value[:2].tolist() == pytest.approx([-0.42, -0.421])
    assert lane(found, "battery voltage").value[0] == pytest.approx(4.105)
    assert lane(found, "battery charge").value[0] == pytest.approx(3.0 * 3600)
    assert lane(found, "battery capacity").value[0] == pytest.approx(0.87)
    assert not any("battery" in t.channel.name for t in found.traces)
    assert "battery_sign" in slugs(found)


def test_energy_breakdown_is_an_estimate_with_a_share_per_user() -> None:
    found = read("perfetto", shared_file("generated", "perfetto", "power_battery.pftrace"), Path())
    wifi = trace(found, "consumer WIFI")
    assert energy_j(wifi) == pytest.approx(2.5e-3)
    assert wifi.channel.provenance is Provenance.ESTIMATED
    assert total(found, "consumer_wifi_uid_10123_energy_j") == pytest.approx(0.002)


def test_text_dump_of_perfettos_own_test_holds_its_joules() -> None:
    found = read("perfetto", shared_file("android", "perfetto_energy_breakdown.textproto"), Path())
    assert total(found, "consumer_cpucl0_energy_j") == pytest.approx(98.567522, abs=1e-12)
    assert "single_reading" in slugs(found)


def test_two_streams_with_one_rail_index_are_two_rails(tmp_path: Path) -> None:
    body = (
        packet(rail(0, "VDD_A"), sequence=1)
        + packet(rail(0, "VDD_B"), sequence=2)
        + packet(rail(0, "VDD_A"), sequence=3)
    )
    for k in range(3):
        body += packet(energy(0, 10_000 + 1000 * k, 1_000_000 * k), sequence=1)
        body += packet(energy(0, 10_000 + 1000 * k, 2_000_000 * k), sequence=2)
        body += packet(energy(0, 10_000 + 1000 * k, 3_000_000 * k), sequence=3)
    found = read("perfetto", body, tmp_path)
    assert {t.channel.name: t.power_w.tolist() for t in found.traces} == {
        "VDD_A": [1.0, 1.0], "VDD_B": [2.0, 2.0], "VDD_A (sequence 3)": [3.0, 3.0],
    }  # fmt: skip


def test_voltage_in_millivolts_is_told_from_microvolts(tmp_path: Path) -> None:
    body = b"".join(packet(wire(38, wire(7, 4105)), at_ns=BOOT + k) for k in range(2))
    found = read("perfetto", body, tmp_path)
    assert lane(found, "battery voltage").value.tolist() == pytest.approx([4.105, 4.105])
    assert "battery_millivolts" in slugs(found)


def test_packets_that_are_compressed_cut_or_damaged(tmp_path: Path) -> None:
    body = packet(rail(0, "VDD")) + b"".join(packet(energy(0, 10_000 + 1000 * k, 10**6 * k)) for k in range(3))
    packed = wire(1, wire(50, zlib.compress(body)))
    assert trace(read("perfetto", packed, tmp_path), "VDD").power_w.tolist() == [1.0, 1.0]
    cut = read("perfetto", body + packet(energy(0, 14_000, 5))[:-3], tmp_path)
    assert "tail_cut" in slugs(cut)
    damaged = read("perfetto", body + wire(1, b"\x42\xff\xff"), tmp_path)
    assert "packet_damaged" in slugs(damaged)
    with pytest.raises(FormatError) as caught:
        read("perfetto", body + b"\x55rest of nothing", tmp_path)
    assert caught.value.slug == "protobuf-damaged"


def test_rail_without_descriptor_is_numbered_and_said(tmp_path: Path) -> None:
    body = b"".join(packet(energy(7, 10_000 + 1000 * k, 10**6 * k)) for k in range(3))
    found = read("perfetto", body, tmp_path)
    assert [t.channel.name for t in found.traces] == ["rail 7"]
    assert "rail_unnamed" in slugs(found)


def snapshot() -> bytes:
    clocks = b"".join(wire(1, wire(1, n) + wire(2, t)) for n, t in ((6, 1000), (1, 17 * 10**17 + 1000), (3, 500)))
    return wire(6, clocks)


def event(kind: int, name: str | None = None, track: int | None = None) -> bytes:
    return wire(11, wire(9, kind) + (wire(23, name) if name else b"") + (wire(11, track) if track else b""))


def test_slices_on_a_sequences_own_clock_and_default_track(tmp_path: Path) -> None:
    thread = wire(60, wire(1, 99) + wire(4, wire(1, 1) + wire(2, 2) + wire(5, "worker")))
    defaults = wire(59, wire(58, 3) + wire(11, wire(11, 99)))
    interned = wire(12, wire(2, wire(1, 5) + wire(2, "conv")))
    body = packet(snapshot(), at_ns=1000, sequence=7) + packet(thread, sequence=7)
    body += packet(defaults, wire(13, 1), at_ns=None, sequence=7)
    for at, fields in ((600, event(1, "outer")), (700, interned + wire(11, wire(9, 1) + wire(10, 5))), (800, event(2)),
                       (850, event(3, "now")), (900, event(2)), (950, event(1, "never"))):  # fmt: skip
        body += packet(fields, at_ns=at, sequence=7)
    found = read("perfetto", body, tmp_path)
    assert [(p.name, p.start_ns, p.end_ns, p.track) for p in found.timelines[0]] == [
        ("outer", 1100, 1400, "worker"), ("conv", 1200, 1300, "worker"),
    ]  # fmt: skip
    assert [mark.time_ns for mark in found.markers[0].markers] == [1350]
    assert found.timelines[0].clock.kind is ClockKind.MONOTONIC
    assert "slice_unclosed" in slugs(found)


def test_a_clock_that_no_snapshot_ties_is_said(tmp_path: Path) -> None:
    body = packet(rail(0, "VDD")) + b"".join(packet(energy(0, 10_000 + 1000 * k, 10**6 * k)) for k in range(3))
    body += packet(wire(58, 3), event(3, "lost"))
    found = read("perfetto", body, tmp_path)
    assert found.markers == ()
    assert "clock_unknown" in slugs(found)


def test_incremental_clocks_of_a_sequence_add_up(tmp_path: Path) -> None:
    clocks = wire(1, wire(1, 6) + wire(2, 5000)) + wire(1, wire(1, 64) + wire(2, 10) + wire(3, 1) + wire(4, 100))
    body = packet(wire(6, clocks), at_ns=5000, sequence=4)
    for step, kind in ((3, 1), (2, 2)):
        body += packet(wire(58, 64), event(kind, "op", 8), at_ns=step, sequence=4)
    piece = next(iter(read("perfetto", body, tmp_path).timelines[0]))
    assert (piece.start_ns, piece.end_ns) == (5300, 5500)


def test_batterystats_is_charge_and_energy_only_with_a_voltage() -> None:
    path = shared_file("handmade", "android", "batterystats_checkin.txt")
    found = read("batterystats", path, Path())
    assert total(found, "computed_charge_c") == pytest.approx(120.5 * 3.6)
    assert total(found, "uid_10123_com_example_bench_charge_c") == pytest.approx(35.2 * 3.6)
    assert total(found, "user_10_uid_10123_com_example_bench_charge_c") == pytest.approx(1.5 * 3.6)
    assert not any(figure.key.endswith("_j") for figure in found.totals)
    assert "voltage_needed" in slugs(found)
    powered = read("batterystats", path, Path(), voltage_v=3.85)
    assert total(powered, "part_scrn_energy_j") == pytest.approx(40.1 * 3.6 * 3.85)
    piece = next(iter(found.timelines[0]))
    assert (piece.start_ns, piece.end_ns - piece.start_ns) == (1767322445 * 10**9, 600 * 10**9)


def test_batterystats_lines_that_an_app_forged_are_left_out(tmp_path: Path) -> None:
    text = "9,0,i,vers,36,200,A,B\n9,0,l,pws,3000,120.5,90,150\nhello,9,0,l,pws,1,1,1,1\n9,10001,l,pwi,uid,nonsense\n9,10002,l,pwi,uid,-5\n"  # noqa: E501  # as its tool writes it
    found = read("batterystats", text, tmp_path)
    assert len(found.totals) == 4
    assert "line_unreadable" in slugs(found)
