"""The profile stream: counters without marks, and an error that names the line for whatever is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from joulemap.errors import CaptureError
from joulemap.firmware.wire.profile_stream import is_profile_complete, parse_profile_stream
from joulemap.records.profile import PmuResult
from wire_text import profile_stream


def parse(stream: bytes, layers: int = 2) -> PmuResult:
    return parse_profile_stream(stream, counter_source="dwt", layer_count=layers)


def refusal(stream: bytes, layers: int = 2) -> CaptureError:
    with pytest.raises(CaptureError) as caught:
        parse(stream, layers)
    assert caught.value.exit_code == 4
    assert caught.value.phase == "profile"
    assert caught.value.hint
    return caught.value


def test_marks_are_taken_out_and_the_return_stays_with_the_layer() -> None:
    result = parse(profile_stream())
    assert result.mark_cycles == 13
    assert result.layer_cycles.tolist() == [[359, 18965], [359, 18965]]
    assert result.head_cycles.tolist() == [122, 122]
    assert result.instrumented_cycles.tolist() == [19481, 19481]
    assert result.clean_latency_s == pytest.approx(194.65e-6)
    assert result.output_crc32 == 7
    assert result.counter_source == "dwt"
    assert not result.findings


def test_noise_before_the_start_marker_is_passed_over() -> None:
    assert parse(b"boot\xff\n" + profile_stream()).mark_cycles == 13


def test_an_extension_key_is_passed_over() -> None:
    assert parse(profile_stream(extra=["X_BOARD_MOOD=fine"])).mark_cycles == 13


def test_a_layer_shorter_than_the_mark_becomes_zero_with_a_finding() -> None:
    result = parse(profile_stream(layers=[[10, 500], [10, 500]]))
    assert result.layer_cycles.tolist() == [[0, 487], [0, 487]]
    assert [finding.slug for finding in result.findings] == ["mark_exceeds_layer"]


@pytest.mark.parametrize("cut", [1, 40, 200, 400])
def test_a_truncated_stream_names_its_last_line(cut: int) -> None:
    stream = profile_stream()[:-cut]
    error = refusal(stream)
    assert error.slug == "profile-truncated"
    assert repr(stream.rstrip(b"\n").split(b"\n")[-1].decode())[1:-1] in str(error)
    assert not is_profile_complete(stream)


def test_a_changed_digit_is_found_by_the_checksum() -> None:
    error = refusal(profile_stream().replace(b"CLEAN_CYCLES.0=19465", b"CLEAN_CYCLES.0=19464"))
    assert error.slug == "profile-corrupt"
    assert "STREAM_CRC32" in str(error)


def test_a_broken_line_is_named() -> None:
    error = refusal(profile_stream().replace(b"LAYERS=2", b"LAY\xc5RS=2"))
    assert error.slug == "profile-corrupt"
    assert "line 3" in str(error)


@pytest.mark.parametrize(
    ("stream", "slug"),
    [
        (b"", "profile-missing"),
        (b"nothing of ours\n", "profile-missing"),
        (b"HPX_STARTLE VERSION=1\n", "profile-missing"),
        (profile_stream(extra=["CORE_HZ=5"]), "profile-duplicate-key"),
        (profile_stream(extra=["TEMPERATURE=5"]), "profile-unknown-key"),
        (profile_stream(extra=["CLEAN_CYCLES.9=5"]), "profile-incomplete"),
        (profile_stream(extra=["CLEAN_CYCLES=5"]), "profile-corrupt"),
        (profile_stream(CLEAN_PASSES=3), "profile-incomplete"),
        (profile_stream(CLEAN_PASSES=0), "profile-incomplete"),
        (profile_stream(CORE_HZ=0), "profile-corrupt"),
        (profile_stream(CORE_HZ=2**32), "profile-corrupt"),
        (profile_stream(INIT_CODE=3), "profile-model-init"),
        (profile_stream(totals=[19480, 19481]), "profile-corrupt"),
        (profile_stream().replace(b"VERSION=1", b"VERSION=2"), "profile-version"),
        (profile_stream().replace(b"VERSION=1", b"VERSION=one"), "profile-corrupt"),
    ],
)
def test_each_defect_has_its_own_slug(stream: bytes, slug: str) -> None:
    assert refusal(stream).slug == slug


def test_another_image_is_refused() -> None:
    assert refusal(profile_stream(), layers=3).slug == "profile-corrupt"


def test_a_hostile_count_costs_nothing() -> None:
    assert refusal(profile_stream(CLEAN_PASSES=2**32 - 1)).slug == "profile-incomplete"


def test_a_wrapped_total_is_healed_from_its_parts() -> None:
    long = 3_000_000_000
    result = parse(profile_stream(head=[131, 131], layers=[[long, long]] * 2, clean=[2 * long + 100] * 2))
    assert [finding.slug for finding in result.findings] == ["counter_overflow"]
    assert result.instrumented_cycles.tolist() == [2 * long + 131] * 2
    assert result.clean_cycles.tolist() == [2 * long + 100] * 2
    assert result.clean_latency_s == pytest.approx(60.000001)


def test_one_overflowed_pass_does_not_move_the_medians() -> None:
    calm = [372, 18978]
    result = parse(
        profile_stream(
            head=[131, 131 + 0xC0000000, 131],
            layers=[calm, [372 + 0xC0000000, 18978], calm],
            clean=[19465] * 3,
        )
    )
    assert [finding.slug for finding in result.findings] == ["counter_overflow"]
    assert "pass 1" in result.findings[0].message
    assert result.clean_cycles.tolist() == [19465] * 3
    assert np.allclose(result.layer_duration_s, [3.59e-6, 189.65e-6])
