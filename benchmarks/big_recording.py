"""The large recording of the benchmarks: a JLS of current and voltage, and ten million nested slices of the same time.

Every file is written by a process of its own, so that making it does not count in what is measured afterwards. Slices
nest as those of a profiler do: inferences, layers inside them, kernels inside these.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RATE_HZ = 2_000_000
STEP_NS = 500
JLS_EPOCH_NS = 1_514_764_800 * 10**9
START_NS = 1_700_000_000 * 10**9
PER_INFERENCE = 500
LAYERS = 50
Ints = NDArray[np.int64]


def write_jls(path: Path, pairs: int, *, seed: int = 1) -> None:
    """Writes current and voltage as an instrument does: noise, and a load that comes and goes."""
    import pyjls

    rng = np.random.default_rng(seed)
    writer = pyjls.Writer(str(path))
    writer.source_def(1, name="bench", vendor="simulated", model="two channels", version="1", serial_number="0001")
    for key, (name, unit) in {1: ("current", "A"), 2: ("voltage", "V")}.items():
        writer.signal_def(
            key, source_id=1, signal_type=pyjls.SignalType.FSR, data_type=pyjls.DataType.F32, sample_rate=RATE_HZ,
            name=name, units=unit,
        )  # fmt: skip
    ticks = ((START_NS - JLS_EPOCH_NS) // 10**9) << 30
    chunk = 1 << 20
    load = np.repeat(np.array([0.0, 0.3, 0.1, 0.6], np.float32), 5_000)
    for at in range(0, pairs, chunk):
        n = min(chunk, pairs - at)
        current = rng.random(n, dtype=np.float32) * np.float32(0.05) + np.float32(0.4)
        current += load[(at + np.arange(n)) % load.size]
        voltage = rng.random(n, dtype=np.float32) * np.float32(0.02) + np.float32(3.3)
        writer.fsr_f32(1, at, current)
        writer.fsr_f32(2, at, voltage)
        if at % (16 * chunk) == 0:
            stamp = ticks + (at << 30) // RATE_HZ
            writer.utc(1, at, stamp)
            writer.utc(2, at, stamp)
    writer.close()


def draw_slices(count: int, pairs: int, *, seed: int = 2) -> tuple[Ints, Ints, Ints]:
    """Returns start and end, ns from the start of the recording, and the number of the name, in order of start."""
    rng = np.random.default_rng(seed)
    runs = max(count // PER_INFERENCE, 1)
    span_ns = int(pairs * STEP_NS * 0.98)
    period = span_ns / runs
    start = np.empty((runs, PER_INFERENCE), np.int64)
    end, name = np.empty_like(start), np.empty_like(start)
    begin = (np.arange(runs) * period).astype(np.int64) + span_ns // 100
    length = (period * rng.uniform(0.85, 0.95, runs)).astype(np.int64)  # no two inferences take the same time
    start[:, 0], end[:, 0], name[:, 0] = begin, begin + length, 0
    share = rng.uniform(0.5, 1.5, LAYERS)
    borders = np.concatenate([[0.0], np.cumsum(share) / share.sum()])
    edges = (length[:, None] * borders).astype(np.int64)
    column = 1
    for layer in range(LAYERS):
        first, last = edges[:, layer], edges[:, layer + 1]
        start[:, column], end[:, column], name[:, column] = begin + first, begin + last - 5, 1 + layer
        column += 1
        kernels = 9 if layer < LAYERS - 1 else PER_INFERENCE - column
        inner = (first[:, None] + (last - first - 10)[:, None] * np.linspace(0.0, 1.0, kernels + 1)).astype(np.int64)
        inner[:, 1:-1] += rng.integers(-200, 200, (runs, kernels - 1))
        inner.sort(axis=1)
        for k in range(kernels):
            start[:, column], end[:, column] = begin + inner[:, k], begin + np.maximum(inner[:, k + 1] - 2, inner[:, k])
            name[:, column] = 1 + LAYERS + (layer * 7 + k) % 40
            column += 1
    return start.ravel(), end.ravel(), name.ravel()


def name_slices() -> tuple[list[str], list[str]]:
    """Returns the names by number, and the kind of each."""
    names = ["inference"]
    names += [f"layer_{k:02d}/conv2d" for k in range(LAYERS)] + [f"kernel_{k:02d}_implicit_gemm" for k in range(40)]
    return names, ["run"] + ["layer"] * LAYERS + ["kernel"] * 40


def write_chrome(path: Path, slices: tuple[Ints, Ints, Ints]) -> None:
    """Writes complete events of about 130 bytes each, on UTC by their base."""
    names, kinds = name_slices()
    heads = [
        f'{{"ph":"X","cat":"{kind}","name":"{name}","pid":4711,"tid":7,"ts":'
        for name, kind in zip(names, kinds, strict=True)
    ]
    tail = f'}},"baseTimeNanoseconds":{START_NS}}}'
    with path.open("w", encoding="ascii") as file:
        file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        for at in range(0, slices[0].size, 1 << 18):
            part = [column[at : at + (1 << 18)].tolist() for column in slices]
            rows = [
                f'{heads[n]}{s // 1000}.{s % 1000:03d},"dur":{(e - s) // 1000}.{(e - s) % 1000:03d}'
                f',"args":{{"id":{k},"stream":7}}}}'
                for k, (s, e, n) in enumerate(zip(*part, strict=True), at)
            ]
            file.write((",\n" if at else "") + ",\n".join(rows))
        file.write("\n]" + tail[1:])


def write_csv(path: Path, slices: tuple[Ints, Ints, Ints]) -> None:
    """Writes a plain table of slices on UTC."""
    names, kinds = name_slices()
    with path.open("w", encoding="ascii") as file:
        file.write("start_ns,end_ns,name,track,kind\n")
        for at in range(0, slices[0].size, 1 << 18):
            part = [column[at : at + (1 << 18)].tolist() for column in slices]
            file.writelines(
                f"{s + START_NS},{e + START_NS},{names[n]},gpu 7,{kinds[n]}\n" for s, e, n in zip(*part, strict=True)
            )


if __name__ == "__main__":
    what, target, size, slice_count = sys.argv[1], Path(sys.argv[2]), int(float(sys.argv[3])), int(float(sys.argv[4]))
    if what == "jls":
        write_jls(target, size)
    elif what == "chrome":
        write_chrome(target, draw_slices(slice_count, size))
    else:
        write_csv(target, draw_slices(slice_count, size))
