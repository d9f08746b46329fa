"""nvidia-smi -q -x: one XML document per poll, with readings whose element names changed over the drivers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar

from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import local_clock, parse_asctime, read_quantity
from joulemap.formats.ground.sampling import Domain, SampleBook, recording_of
from joulemap.formats.ground.xml_tree import Node, read_documents
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording

__all__ = ["NvidiaSmiXmlReader"]

_BLOCKS = ("gpu_power_readings", "power_readings")
_READINGS = {"power_draw": "", "average_power_draw": " average", "instant_power_draw": " instant"}
_LIMITS = ("current_power_limit", "power_limit")
_EXTRA_BLOCKS = {"module_power_readings": "module", "gpu_memory_power_readings": "memory"}
_LANES = {
    "utilization/gpu_util": ("utilisation", "1"),
    "utilization/memory_util": ("memory utilisation", "1"),
    "temperature/gpu_temp": ("temperature", "degC"),
    "clocks/sm_clock": ("sm clock", "Hz"),
    "clocks/mem_clock": ("memory clock", "Hz"),
}


class NvidiaSmiXmlReader:
    """Reads the XML of nvidia-smi, one document or many in a file.

    Drivers before 570 write ``power_draw``, later ones ``average_power_draw`` and ``instant_power_draw``; the block
    was called ``power_readings`` before 535; its limit is ``power_limit``, later ``current_power_limit``.
    Any reading may be N/A: missing, never 0.

    References:
        FORMATS 3 (nvidia-smi XML), 4 (report 30); recordings of drivers with DTD v10, v12 and v13.
    """

    name: ClassVar[str] = "nvidia-smi-xml"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the root element of nvidia-smi's documents."""
        del path
        return 1.0 if b"<nvidia_smi_log" in head[:4096] else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per card and reading; of a single document, stated figures.

        Raises:
            FormatError: the XML is broken or holds no reading.
        """
        log = FindingLog()
        clock, shift_ns = local_clock(options, log, resolution_ns=1e9)
        book = SampleBook(clock, log)
        domain = Domain(boundary=boundary_of(options.boundary, Boundary.BOARD), polled=True, resolution_w=0.01)
        metadata: dict[str, str] = {}
        overlaps: set[tuple[str, str]] = set()
        for root, complete in read_documents(path):
            if not complete:
                log.add("tail_cut", "the last document is not closed; what it holds was read", f"line {root.line}")
            time_ns = self._time(root, log) + shift_ns
            for key in ("driver_version", "cuda_version"):
                if root.read(key):
                    metadata[key] = root.read(key)
            for position, gpu in enumerate(node for node in root.children if node.tag == "gpu"):
                card = f"gpu{position}"
                metadata[f"{card}_product"] = gpu.read("product_name")
                metadata[f"{card}_uuid"] = gpu.read("uuid")
                metadata[f"{card}_bus"] = gpu.attributes.get("id", "")
                _read_power(gpu, card, (book, domain, log), time_ns)
                overlaps |= {(card + suffix, card) for suffix in (" average", " instant", " memory")}
                overlaps |= {(card + " instant", card + " average"), (card, card + " module")}
                if gpu.read("mig_mode/current_mig") == "Enabled":
                    log.add(
                        "mig_whole_device",
                        f"{card} is split into MIG instances; its power is that of the whole card",
                        f"line {gpu.line}",
                        Severity.INFO,
                    )
                for at, (lane, unit) in _LANES.items():
                    text = gpu.read(at)
                    value = read_quantity(log, text.replace(" C", " degC"), gpu.line)
                    book.lane(f"{card} {lane}", unit, time_ns, value)
        return recording_of(self.name, path, book, overlaps=sorted(overlaps), metadata=metadata)

    @staticmethod
    def _time(root: Node, log: FindingLog) -> int:
        try:
            return parse_asctime(root.read("timestamp")).ns
        except ValueError:
            log.add("stamp_unreadable", "the document has no time stamp", f"line {root.line}")
            return 0


def _read_power(gpu: Node, card: str, sink: tuple[SampleBook, Domain, FindingLog], time_ns: int) -> None:
    book, domain, log = sink
    for tag, extra in (*((tag, "") for tag in _BLOCKS), *_EXTRA_BLOCKS.items()):
        block = gpu.find(tag)
        if block is None:
            continue
        for reading, suffix in _READINGS.items():
            node = block.find(reading)
            if node is None:
                continue
            power_w = read_quantity(log, node.text, node.line, "W")
            if extra and math.isnan(power_w):
                continue  # boards without that sensor write N/A in every document
            name = f"{card} {extra}{suffix}" if extra else card + suffix
            book.series(name, domain).add(time_ns, power_w, node.line)
        for node in filter(None, map(block.find, () if extra else _LIMITS)):
            book.lane(f"{card} power limit", "W", time_ns, read_quantity(log, node.text, node.line, "W"))
