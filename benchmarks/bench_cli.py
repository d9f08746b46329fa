"""How long ``joulemap --help`` takes beyond a bare interpreter: median of interleaved rounds, ms. Target: <= 100."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from ratios import print_ratio

ROUNDS = 15
LIMIT_MS = 100.0
PROGRAMS = {
    "python -c pass": ["-c", "pass"],
    "joulemap --help": ["-c", "from joulemap.cli.main import main; main()", "--help"],
}


def elapsed_ms(arguments: list[str]) -> float:
    start_s = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return 1e3 * (time.perf_counter() - start_s)


def main() -> None:
    for arguments in PROGRAMS.values():
        elapsed_ms(arguments)  # fills the page cache and writes the byte code
    times_ms: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(ROUNDS):
        for name, arguments in PROGRAMS.items():
            times_ms[name].append(elapsed_ms(arguments))
    medians_ms = {name: statistics.median(values) for name, values in times_ms.items()}
    for name, median_ms in medians_ms.items():
        print(f"{name:<18} {median_ms:7.1f} ms (median of {ROUNDS})")
    bare_ms, help_ms = medians_ms.values()
    ratio = (help_ms - bare_ms) / LIMIT_MS
    print_ratio(f"joulemap --help less a bare start / {LIMIT_MS:.0f} ms", ratio, target="<= 1", met=ratio <= 1)


if __name__ == "__main__":
    main()
