"""Which metrics of Prometheus exporters are power, energy or their company, and what each one measures.

It knows names and units, not the text format.

References:
    prometheus/node_exporter (rapl and hwmon collectors); NVIDIA/dcgm-exporter d5e5f510, etc/default-counters.csv;
    sustainable-computing-io/kepler 13944a69, docs/user/metrics.md; hubblo-org/scaphandre 04cc6ec9,
    docs_src/references/metrics.md; triton-inference-server/server 067c1e96, docs/user_guide/metrics.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from joulemap.estimate import Boundary

__all__ = ["Metric", "MetricSample", "find_metric", "inside"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric.

    Args:
        source: exporter, first word of the channel name.
        kind: what is measured, second word.
        keys: labels that tell its series apart.
        scale: SI units in one written unit.
        counter: True for a cumulative energy.
        boundary: what the power feeds.
        estimated: True for a model of the exporter (shares of processes and containers).
        lane: unit when it is no power; empty otherwise.
    """

    source: str
    kind: str
    keys: tuple[str, ...] = ()
    scale: float = 1.0
    counter: bool = False
    boundary: Boundary = Boundary.RAIL
    estimated: bool = False
    lane: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSample:
    """One sample of a known metric, with the labels it had."""

    metric: Metric
    labels: Mapping[str, str]
    value: float
    line: int

    @property
    def channel(self) -> str:
        """Name of the channel: exporter, kind and the labels that tell series apart; counters of a gauge say so."""
        words = [self.metric.source, self.metric.kind]
        words += [self.labels[key].rsplit("/", 1)[-1] for key in self.metric.keys if self.labels.get(key)]
        if self.metric.counter and (self.metric.source, self.metric.kind) in _BOTH:
            words.append("counter")
        return " ".join(word for word in words if word)


_GPU_KEYS = ("UUID", "gpu_uuid", "uuid")
_ZONES = {"package": Boundary.PACKAGE, "psys": Boundary.NODE, "platform": Boundary.NODE}
_EXACT: Final[dict[str, Metric]] = {
    "scaph_host_power_microwatts": Metric(source="scaphandre", kind="host", scale=1e-6, boundary=Boundary.NODE),
    "scaph_host_energy_microjoules": Metric(
        source="scaphandre", kind="host", scale=1e-6, boundary=Boundary.NODE, counter=True
    ),
    "scaph_socket_power_microwatts": Metric(
        source="scaphandre", kind="socket", keys=("socket_id",), scale=1e-6, boundary=Boundary.PACKAGE
    ),
    "scaph_domain_power_microwatts": Metric(
        source="scaphandre", kind="domain", keys=("socket_id", "domain_name", "domain_id"), scale=1e-6
    ),
    "scaph_process_power_consumption_microwatts": Metric(
        source="scaphandre", kind="process", keys=("exe", "pid"), scale=1e-6, boundary=Boundary.NODE, estimated=True
    ),
    "DCGM_FI_DEV_POWER_USAGE": Metric(source="dcgm", kind="gpu", keys=_GPU_KEYS, boundary=Boundary.BOARD),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": Metric(
        source="dcgm", kind="gpu", keys=_GPU_KEYS, boundary=Boundary.BOARD, scale=1e-3, counter=True
    ),
    "DCGM_FI_DEV_GPU_UTIL": Metric(source="dcgm", kind="gpu utilisation", keys=_GPU_KEYS, scale=0.01, lane="1"),
    "DCGM_FI_DEV_GPU_TEMP": Metric(source="dcgm", kind="gpu temperature", keys=_GPU_KEYS, lane="degC"),
    "DCGM_FI_DEV_SM_CLOCK": Metric(source="dcgm", kind="gpu sm clock", keys=_GPU_KEYS, scale=1e6, lane="Hz"),
    "nv_gpu_power_usage": Metric(source="triton", kind="gpu", keys=_GPU_KEYS, boundary=Boundary.BOARD),
    "nv_energy_consumption": Metric(source="triton", kind="gpu", keys=_GPU_KEYS, boundary=Boundary.BOARD, counter=True),
    "nv_gpu_utilization": Metric(source="triton", kind="gpu utilisation", keys=_GPU_KEYS, lane="1"),
    "node_hwmon_power_watt": Metric(source="hwmon", kind="power", keys=("chip", "sensor")),
    "node_hwmon_power_average_watt": Metric(source="hwmon", kind="average power", keys=("chip", "sensor")),
    "node_hwmon_energy_joule_total": Metric(source="hwmon", kind="energy", keys=("chip", "sensor"), counter=True),
    "node_hwmon_in_volts": Metric(source="hwmon", kind="voltage", keys=("chip", "sensor"), lane="V"),
    "node_hwmon_curr_amps": Metric(source="hwmon", kind="current", keys=("chip", "sensor"), lane="A"),
    "node_hwmon_temp_celsius": Metric(source="hwmon", kind="temperature", keys=("chip", "sensor"), lane="degC"),
}
_BOTH = {("scaphandre", "host"), ("dcgm", "gpu"), ("triton", "gpu")}
_RAPL = re.compile(r"^node_rapl_(\w+)_joules_total$")
_KEPLER_OLD = re.compile(r"^kepler_node_(package|core|uncore|dram|platform|other|gpu)_joules_total$")
_KEPLER_NEW = re.compile(r"^kepler_(node|process|container|pod|vm)_(cpu|gpu)_(joules_total|watts)$")


def find_metric(name: str, labels: Mapping[str, str]) -> Metric | None:
    """Returns the metric of a name; None when it is no power, energy or company of them."""
    exact = _EXACT.get(name)
    if exact is not None:
        return exact
    rapl = _RAPL.match(name)
    if rapl is not None:
        zone = _zone(rapl.group(1))
        return Metric(
            source="rapl", kind=zone, keys=("path", "index"), counter=True, boundary=_ZONES.get(zone, Boundary.RAIL)
        )
    old = _KEPLER_OLD.match(name)
    if old is not None:
        zone = old.group(1)
        own = Boundary.BOARD if zone == "gpu" else _ZONES.get(zone, Boundary.RAIL)
        return Metric(source="kepler", kind=zone, keys=("instance", "package"), counter=True, boundary=own)
    new = _KEPLER_NEW.match(name)
    if new is None:
        return None
    scope, device, quantity = new.groups()
    zone = labels.get("zone", "")
    own = Boundary.BOARD if device == "gpu" else _ZONES.get(_zone(zone), Boundary.RAIL)
    share = ("comm", "pid", "container_id", "pod_name", "vm_id") if scope != "node" else ()
    kind = "gpu" if device == "gpu" else "cpu"
    return Metric(
        source="kepler",
        kind=kind if scope == "node" else f"{scope} {kind}",
        keys=("zone", "path", "node_name", "gpu_uuid", *share),
        counter=quantity != "watts",
        boundary=own,
        estimated=scope != "node",
    )


def _zone(text: str) -> str:
    """Returns the kind of a RAPL zone: ``package-0`` is ``package``."""
    return re.sub(r"[-_:]?\d+$", "", text.lower())


def inside(sample: MetricSample) -> set[tuple[str, str]]:
    """Returns pairs of a channel and a pattern of channels that contain it."""
    metric, name = sample.metric, sample.channel
    if metric.source == "scaphandre" and metric.kind != "host":
        return {(name, r"scaphandre host( counter)?"), (name, r"scaphandre socket .*")}
    if metric.source == "rapl":
        return _rapl_pairs(name, metric.kind, sample.labels)
    if metric.source == "kepler":
        zone = _zone(sample.labels.get("zone", metric.kind))
        pairs = {(name, r"kepler cpu package.*|kepler package.*")} if zone in ("core", "uncore") else set()
        if zone not in ("psys", "platform", "gpu", "other"):
            pairs.add((name, r"kepler cpu (psys|platform).*|kepler platform.*"))
        if metric.estimated:
            pairs.add((name, r"kepler (cpu|package|core|dram|gpu)( .*)?"))
        return pairs
    return set()


def _rapl_pairs(name: str, zone: str, labels: Mapping[str, str]) -> set[tuple[str, str]]:
    pairs: set[tuple[str, str]] = set()
    if zone in ("core", "uncore"):
        pairs.add((name, r"rapl package.*"))
    if zone != "psys":
        pairs.add((name, r"rapl psys.*"))
    if "mmio" in labels.get("path", ""):
        pairs.add((name, r"rapl package (?!.*mmio).*"))
    return pairs
