"""``joulemap watch`` and ``export-metrics`` as a user calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from program import PROGRAM, call, leftovers
from record_program import METER

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("what", ["watch", "measure"])
def test_nothing_stays_in_the_temporary_folder_of_a_program_that_is_killed(what: str, tmp_path: Path) -> None:
    block = "print('on', flush=True); time.sleep(60)"
    measure = f"import joulemap, time\nwith joulemap.measure(meters=[{METER!r}]):\n    {block}"
    watch = [*PROGRAM, "watch", "--meter", METER, "--interval", "0.1"]
    killed = subprocess.Popen(
        watch if what == "watch" else [sys.executable, "-c", measure],
        env={**os.environ, "TMPDIR": str(tmp_path)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert killed.stdout is not None
    assert killed.stdout.readline()
    assert len(leftovers(tmp_path)) == 1
    killed.kill()
    killed.communicate()
    until = time.monotonic() + 30
    while leftovers(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    assert leftovers(tmp_path) == []


def test_a_profile_that_is_killed_before_its_windows_leaves_no_temporary_folder(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "examples" / "make_onnx.py", tmp_path], check=True)
    (temporary := tmp_path / "tmp").mkdir()
    model = ["attention.onnx", "--target", "host", "--batch", "1", "-o", "r.jm"]
    killed = subprocess.Popen(
        [*PROGRAM, "profile", *model, "--meter", METER],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not list(tmp_path.glob(".r.jm.*.partial")):  # the meter has been chosen then, and nothing has run
        assert killed.poll() is None
        time.sleep(0.005)
    killed.kill()
    killed.communicate()
    assert not list(temporary.glob("joulemap*"))  # ONNX Runtime leaves a file of its own there


def test_a_watch_shows_every_domain(tmp_path: Path) -> None:
    once = call("watch", "--meter", METER, "--once", "--interval", "0.3")
    assert once.code == 0
    assert "simulated:rail" in once.out
    assert "W" in once.out
    lines = call("watch", "--meter", METER, "--seconds", "0.7", "--interval", "0.3", "--json").out.splitlines()
    assert len(lines) >= 2
    (domain,) = json.loads(lines[-1])["domains"]
    assert 5.0 < domain["power_w"] < 35.0
    assert domain["energy_j"] > json.loads(lines[0])["domains"][0]["energy_j"]
    assert leftovers(tmp_path) == []


def test_metrics_are_served_on_loopback(tmp_path: Path) -> None:
    exporter = subprocess.Popen(
        [*PROGRAM, "export-metrics", "--meter", METER, "--prometheus", "0"],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert exporter.stderr is not None
        url = exporter.stderr.readline().split()[-1]
        assert url.startswith("http://127.0.0.1:")
        time.sleep(0.4)
        with urllib.request.urlopen(url, timeout=10) as answer:
            text = answer.read().decode()
        assert 'provenance="simulated"' in text
        assert "# TYPE hw_energy_joules_total counter" in text
        first = float(next(line for line in text.splitlines() if line.startswith("hw_power_watts{")).split()[-1])
        assert 5.0 < first < 35.0
    finally:
        exporter.send_signal(signal.SIGINT)
        exporter.communicate(timeout=30)
        assert exporter.returncode == 0


def test_exporting_to_nobody_is_refused() -> None:
    assert call("export-metrics", "--meter", METER).code == 2
