"""The fields of Perfetto's trace protos that carry power, clocks, names and slices; text dumps use the same names.

References:
    google/perfetto protos/perfetto/trace (trace_packet, power_rails, battery_counters,
    android_energy_estimation_breakdown, clock_snapshot, track_event, interned_data, ftrace); PyPI perfetto 0.59.1.
"""

from __future__ import annotations

from typing import Final

from joulemap.formats.ground.protobuf import Schema

__all__ = ["BOOTTIME", "CLOCK_NAMES", "PACKET", "SCHEMA"]

PACKET: Final = "TracePacket"
BOOTTIME: Final = 6
CLOCK_NAMES: Final = {1: "realtime", 2: "realtime_coarse", 3: "monotonic", 4: "monotonic_coarse", 5: "monotonic_raw",
                      6: "boottime"}  # fmt: skip

SCHEMA: Final[Schema] = {
    "Trace": {1: ("packet", PACKET)},
    PACKET: {
        8: ("timestamp", "uint"),
        58: ("timestamp_clock_id", "uint"),
        10: ("trusted_packet_sequence_id", "uint"),
        6: ("clock_snapshot", "ClockSnapshot"),
        38: ("battery", "BatteryCounters"),
        40: ("power_rails", "PowerRails"),
        77: ("android_energy_estimation_breakdown", "EnergyBreakdown"),
        11: ("track_event", "TrackEvent"),
        60: ("track_descriptor", "TrackDescriptor"),
        12: ("interned_data", "InternedData"),
        13: ("sequence_flags", "uint"),
        41: ("incremental_state_cleared", "bool"),
        59: ("trace_packet_defaults", "PacketDefaults"),
        1: ("ftrace_events", "FtraceBundle"),
        50: ("compressed_packets", "bytes"),
    },
    "ClockSnapshot": {1: ("clocks", "SnapshotClock"), 2: ("primary_trace_clock", "enum")},
    "SnapshotClock": {
        1: ("clock_id", "uint"),
        2: ("timestamp", "uint"),
        3: ("is_incremental", "bool"),
        4: ("unit_multiplier_ns", "uint"),
    },
    "BatteryCounters": {
        1: ("charge_counter_uah", "int"),
        2: ("capacity_percent", "float"),
        3: ("current_ua", "int"),
        4: ("current_avg_ua", "int"),
        5: ("name", "string"),
        6: ("energy_counter_uwh", "int"),
        7: ("voltage_uv", "int"),
    },
    "PowerRails": {1: ("rail_descriptor", "Rail"), 2: ("energy_data", "RailEnergy"), 3: ("session_uuid", "uint")},
    "Rail": {
        1: ("index", "uint"),
        2: ("rail_name", "string"),
        3: ("subsys_name", "string"),
        4: ("sampling_rate", "uint"),
    },
    "RailEnergy": {1: ("index", "uint"), 2: ("timestamp_ms", "uint"), 3: ("energy", "uint")},
    "EnergyBreakdown": {
        1: ("energy_consumer_descriptor", "ConsumerTable"),
        2: ("energy_consumer_id", "int"),
        3: ("energy_uws", "int"),
        4: ("per_uid_breakdown", "UidEnergy"),
    },
    "ConsumerTable": {1: ("energy_consumers", "Consumer")},
    "Consumer": {1: ("energy_consumer_id", "int"), 2: ("ordinal", "int"), 3: ("type", "string"), 4: ("name", "string")},
    "UidEnergy": {1: ("uid", "int"), 2: ("energy_uws", "int")},
    "TrackEvent": {
        9: ("type", "enum"),
        10: ("name_iid", "uint"),
        23: ("name", "string"),
        11: ("track_uuid", "uint"),
        3: ("category_iids", "uint"),
        22: ("categories", "string"),
        30: ("counter_value", "int"),
        44: ("double_counter_value", "double"),
        1: ("timestamp_delta_us", "int"),
        16: ("timestamp_absolute_us", "int"),
    },
    "TrackDescriptor": {
        1: ("uuid", "uint"),
        5: ("parent_uuid", "uint"),
        2: ("name", "string"),
        10: ("static_name", "string"),
        3: ("process", "Process"),
        4: ("thread", "Thread"),
        8: ("counter", "Counter"),
    },
    "Process": {1: ("pid", "int"), 6: ("process_name", "string")},
    "Thread": {1: ("pid", "int"), 2: ("tid", "int"), 5: ("thread_name", "string")},
    "Counter": {
        3: ("unit", "enum"),
        6: ("unit_name", "string"),
        4: ("unit_multiplier", "int"),
        5: ("is_incremental", "bool"),
    },
    "InternedData": {1: ("event_categories", "Named"), 2: ("event_names", "Named")},
    "Named": {1: ("iid", "uint"), 2: ("name", "string")},
    "PacketDefaults": {58: ("timestamp_clock_id", "uint"), 11: ("track_event_defaults", "EventDefaults")},
    "EventDefaults": {11: ("track_uuid", "uint")},
    "FtraceBundle": {1: ("cpu", "uint"), 2: ("event", "FtraceEvent")},
    "FtraceEvent": {1: ("timestamp", "uint"), 11: ("cpu_frequency", "CpuState"), 13: ("cpu_idle", "CpuState")},
    "CpuState": {1: ("state", "uint"), 2: ("cpu_id", "uint")},
}
