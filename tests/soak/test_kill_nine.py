"""kill -9 of the sampling process, the recorder or the command, at random moments: little lost, nothing left over."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from killed_recordings import VICTIMS, KilledRun, kill_one

_LOST_LIMIT_S = 1.0


def run_all(folder: Path, kills: int, at_once: int) -> list[KilledRun]:
    rng = random.Random(kills)
    plans = [(VICTIMS[k % len(VICTIMS)], random.Random(rng.random())) for k in range(kills)]

    def one(number: int) -> KilledRun:
        own = folder / str(number)
        own.mkdir()
        return kill_one(own, *plans[number])

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, range(kills)))


def check(runs: list[KilledRun]) -> None:
    assert not [run for run in runs if run.lost_s > _LOST_LIMIT_S]
    assert not [run for run in runs if run.orphans]
    expected = {"parent": -9, "child": 137, "sampler": 143}
    assert not [run for run in runs if run.status != expected[run.victim]]
    said = {"parent": "capture_unfinished", "sampler": "sampler_restarted"}
    assert not [run for run in runs if run.victim in said and said[run.victim] not in run.findings]


def test_a_few_kills_lose_less_than_a_second(tmp_path: Path) -> None:
    check(run_all(tmp_path, kills=6, at_once=3))


@pytest.mark.soak
def test_two_hundred_kills_lose_less_than_a_second(tmp_path: Path) -> None:
    check(run_all(tmp_path, kills=200, at_once=3))
