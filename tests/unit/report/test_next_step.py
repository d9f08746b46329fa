"""The command that an import or a record names next."""

from __future__ import annotations

from typing import Any

from joulemap.report.view.recording.next_step import suggest_next


def recording(
    *traces: str, timelines: tuple[str, ...] = (), inner: tuple[str, ...] = (), rule: bool = False
) -> dict[str, Any]:
    return {
        "traces": [{"name": name, "channel": name.replace("-", ":")} for name in traces],
        "timelines": [{"name": name} for name in timelines],
        "overlaps": [[name.replace("-", ":"), "outer"] for name in inner],
        "published_rule": rule,
    }


def suggested(*recordings: dict[str, Any]) -> str:
    return suggest_next({"bundle": "a run.jm", "recordings": list(recordings)})


def test_what_the_map_would_ask_for_is_named() -> None:
    assert suggested(recording("p", timelines=("t",))) == "joulemap map 'a run.jm'"
    assert suggested(recording("p-0", "p-1"), recording(timelines=("t", "u"))) == (
        "joulemap map 'a run.jm' --trace p-0 --timeline t"
    )
    assert suggested(recording("p-0", "p-0-core", inner=("p-0-core",))) == "joulemap map 'a run.jm'"
    assert suggested(recording("a", "b", timelines=("t", "u"), rule=True)) == "joulemap map 'a run.jm' --rule mlperf"


def test_without_power_there_is_nothing_to_map() -> None:
    assert "together with a recording of power" in suggested(recording(timelines=("t",)))
