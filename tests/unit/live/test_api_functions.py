"""The Python API over functions, generators, tasks and forked children, and at the end of the program."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import joulemap
from joulemap.errors import SetupError
from joulemap.estimate import Estimate
from live_benches import METER
from program import call, leftovers


def test_a_function_is_measured_without_parentheses_too() -> None:
    @joulemap.measure
    def work() -> int:
        return 7

    with pytest.raises(SetupError) if not _has_meter() else contextlib.nullcontext():
        assert work() == 7
    assert work.__name__ == "work"


def _has_meter() -> bool:
    return call("doctor", "--target", "host", "--json").code == 0


def test_what_yields_is_measured_from_its_first_item_to_its_end() -> None:
    @joulemap.measure(meters=[METER])
    def tokens() -> Iterator[int]:
        yield 1
        time.sleep(0.2)
        yield 2

    @joulemap.measure(meters=[METER])
    async def tokens_async() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(0.2)
        yield 2

    async def collect() -> list[int]:
        return [token async for token in tokens_async()]

    assert list(tokens()) == asyncio.run(collect()) == [1, 2]
    for function in (tokens, tokens_async):
        (m,) = vars(function)["measurements"]
        assert m.duration_s >= 0.2
        assert m.energy_j.value == pytest.approx(20.0 * m.duration_s, rel=0.02)


def test_every_call_has_an_output_of_its_own(tmp_path: Path) -> None:
    @joulemap.measure(meters=[METER], output=tmp_path / "r.jm")
    def work() -> None:
        time.sleep(0.05)

    work()
    work()
    assert leftovers(tmp_path) == ["r-2.jm", "r.jm"]


def test_a_task_that_is_cancelled_while_it_enters_leaves_nothing_running() -> None:
    async def block() -> None:
        async with joulemap.measure(meters=[METER]):
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(block())
        await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with joulemap.measure(meters=[METER]) as m:
            await asyncio.sleep(0.05)
        assert isinstance(m.energy_j, Estimate)

    asyncio.run(main())


def test_a_forked_child_may_measure_itself() -> None:
    with joulemap.measure(meters=[METER], rate_hz=50.0):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                with joulemap.measure(meters=[METER]) as own:
                    time.sleep(0.1)
                code = 0 if isinstance(own.energy_j, Estimate) else 2
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0


PROGRAMS = {
    "left open": "m = joulemap.measure(meters=['{meter}'], output='r.jm'); m.__enter__(); time.sleep(0.3)",
    "an exception": (
        "m = joulemap.measure(meters=['{meter}'], output='r.jm'); m.__enter__(); time.sleep(0.3); sys.exit(3)"
    ),
    "a generator that nobody closes": (
        "def g():\n    with joulemap.measure(meters=['{meter}'], output='r.jm'): yield\n"
        "kept = g(); next(kept); time.sleep(0.3)"
    ),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_the_end_of_the_program_ends_a_measurement_and_keeps_it(what: str, tmp_path: Path) -> None:
    program = "import sys, time, joulemap\n" + PROGRAMS[what].replace("{meter}", METER)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert leftovers(tmp_path) == ["r.jm"]
    document = json.loads((tmp_path / "r.jm" / "result.json").read_text())
    assert document["energy_j"]["value"] > 0
    assert "block_raised" in {finding["slug"] for finding in document["findings"]}


def test_each_call_of_a_function_is_measured() -> None:
    @joulemap.measure(meters=[METER], rate_hz=50.0)
    def work(span_s: float) -> float:
        time.sleep(span_s)
        return span_s

    assert work(0.05) == 0.05
    assert work(0.1) == 0.1
    first, second = work.measurements  # type: ignore[attr-defined]
    assert second.energy_j.value > first.energy_j.value
    assert "work" in first.name


def test_async_code_is_measured_as_a_block_and_as_a_function() -> None:
    @joulemap.measure(meters=[METER])
    async def work() -> int:
        with joulemap.mark("inside"):
            await asyncio.sleep(0.05)
        return 5

    async def main() -> joulemap.Measurement:
        async with joulemap.measure(meters=[METER], rate_hz=50.0) as m:
            await asyncio.gather(*(asyncio.sleep(0.05) for _ in range(3)))
        return m

    assert asyncio.run(work()) == 5
    (measured,) = work.measurements  # type: ignore[attr-defined]
    assert [row.key for row in measured.rows()] == ["inside"]
    assert isinstance(asyncio.run(main()).energy_j, Estimate)


def test_a_forked_child_leaves_the_measurement_alone() -> None:
    with joulemap.measure(meters=[METER], rate_hz=50.0) as m:
        pid = os.fork()
        if pid == 0:
            try:
                with joulemap.mark("in the child"):
                    time.sleep(0.02)
                m.__exit__(None, None, None)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        time.sleep(0.1)
    assert isinstance(m.energy_j, Estimate)
    assert "in the child" in {row.key for row in m.rows()}
