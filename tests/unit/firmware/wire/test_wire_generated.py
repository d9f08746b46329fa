"""Header and reference page are what the vocabulary says, and the C uses no word of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from joulemap.firmware.wire import vocabulary
from joulemap.firmware.wire.generate import format_header, format_reference
from joulemap.records.fault import FaultSlug
from joulemap.records.power import FirmwarePhase

ROOT = Path(__file__).parents[4]
TARGET = ROOT / "src" / "joulemap" / "firmware" / "csrc" / "target"
REGENERATE = "run `python -m joulemap.firmware.wire`"


@pytest.mark.parametrize(
    ("path", "text"),
    [(TARGET / "hpx_wire.h", format_header()), (ROOT / "docs" / "wire.md", format_reference())],
    ids=["header", "page"],
)
def test_generated_files_are_fresh(path: Path, text: str) -> None:
    assert path.read_text(encoding="utf-8") == text, REGENERATE


def test_names_and_numbers_are_unique() -> None:
    for keys in (vocabulary.PROFILE_KEYS, (*vocabulary.POWER_KEYS, *vocabulary.MONITOR_KEYS)):
        names = [key.name for key in keys]
        assert len(set(names)) == len(names)
        assert not any(name.startswith(vocabulary.EXTENSION_PREFIX) for name in names)
    bits = list(vocabulary.FAULT_BITS.values())
    assert sorted(bits) == list(range(len(bits)))
    assert set(vocabulary.ERROR_CODES) == set(vocabulary.FirmwareErrorCode)


def test_phases_are_numbered_from_one_in_their_order() -> None:
    assert [vocabulary.PHASE_NUMBERS[phase] for phase in FirmwarePhase] == list(range(1, len(FirmwarePhase) + 1))
    assert vocabulary.phase_of(6) is FirmwarePhase.RUN_FIXED_N
    assert vocabulary.phase_of(0) is None
    assert vocabulary.phase_of(99) is None


def test_every_fault_is_planted_by_firmware_or_by_the_host() -> None:
    by_host = {"no_go", "gate_disconnected", "capture_empty", "capture_lossy", "instrument_lost", "probe_lost"}
    by_board = {"brown_out", "throttle"}
    assert {str(slug) for slug in FaultSlug} == {str(slug) for slug in vocabulary.FAULT_BITS} | by_host | by_board


def test_the_c_spells_no_key_or_marker_itself() -> None:
    words = [key.name for key in (*vocabulary.PROFILE_KEYS, *vocabulary.POWER_KEYS, *vocabulary.MONITOR_KEYS)]
    words += [vocabulary.PROFILE_START, vocabulary.PROFILE_END, vocabulary.POWER_BEGIN, vocabulary.POWER_END]
    for path in TARGET.glob("*.c"):
        text = path.read_text(encoding="utf-8")
        quoted = re.findall(r'"([^"\n]*)"', text)
        assert not [word for word in words for literal in quoted if literal.startswith(word)], path.name


def test_every_key_that_is_not_a_monitors_is_printed_by_the_c() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in TARGET.glob("*.c"))
    for key in (*vocabulary.PROFILE_KEYS, *vocabulary.POWER_KEYS):
        assert f"HPX_KEY_{key.name}" in text
    for slug in vocabulary.FAULT_BITS:
        assert f"HPX_FAULT_{slug.upper()}" in text
