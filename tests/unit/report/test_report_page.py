"""The page and its Markdown: what they say, that everything from data is text, that nothing is asked for, sizes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import FormatError
from joulemap.report.html.assets import join_modules, read_script, read_style
from joulemap.report.html.markup import element
from joulemap.report.html.pack import MISSING, encode_script_json, list_blocks, pack_scene_head
from joulemap.report.html.page import render_page
from joulemap.report.markdown import render_markdown
from joulemap.report.source import load_page
from joulemap.report.view.cures import CURES
from joulemap.report.view.page import PageView
from joulemap.report.view.scene import Scene, Track
from joulemap.report.view.slices import empty_slices
from joulemap.report.view.text import format_supported
from joulemap.workflow.result import ProfileFacts
from profile_facts import LAYER_J, TOTAL_J, account, degraded_facts, facts, profile_only_facts
from report_bundle import HOSTILE, hostile_facts, large_page, shaped_facts, write_report_bundle


class Tags(HTMLParser):
    """Every tag of a page with its attributes, and the text of its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.text = ""
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002  the base class names it
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in {"script", "style"}:
            self.raw.append((self._open, data))
        else:
            self.text += data


def page_of(folder: Path, run: ProfileFacts) -> PageView:
    return load_page(write_report_bundle(folder / "run.jm", run))


@pytest.fixture
def shaped(tmp_path: Path) -> PageView:
    return page_of(tmp_path, shaped_facts())


def test_the_answer_comes_first(shaped: PageView) -> None:
    assert shaped.headline == "448.30 ± 0.65\u2009µJ"
    assert shaped.hotspot == "CONV_2D #0 takes 76.3\u2009% (342.10 ± 0.71\u2009µJ)."
    assert [badge.word for badge in shaped.badges] == ["simulated", "valid"]
    text = Tags(render_page(shaped)).text
    order = [text.index(word) for word in ("448.30", "Where the energy went", "Hotspots", "Doubt", "Provenance")]
    assert order == sorted(order)


def test_hotspots_are_ranked_and_add_up_to_the_headline(shaped: PageView) -> None:
    layers, ops, paths = shaped.tables[0], *shaped.tables[1:], None
    assert paths is None
    assert [row.name for row in layers.rows] == [
        "CONV_2D #0",
        "DEPTHWISE_CONV_2D #1",
        "FULLY_CONNECTED #2",
        "between layers",
    ]
    assert sum(row.energy_j or 0.0 for row in layers.rows) == pytest.approx(TOTAL_J)
    assert layers.rows[-1].cumulative == "100.0\u2009%"
    assert layers.rows[0].per_mac == "1.0691\u2009nJ"
    assert layers.rows[0].count == "50"
    assert ops.key == "path"
    assert sum(row.energy_j or 0.0 for row in ops.rows) == pytest.approx(TOTAL_J)


def test_a_sum_of_layers_never_claims_less_doubt_than_its_parts(shaped: PageView) -> None:
    model = next(row for row in shaped.tables[1].rows if row.name == "model")
    parts = [row for row in shaped.tables[0].rows if row.name != "between layers"]
    assert model.energy_j == pytest.approx(sum(LAYER_J))
    assert model.expanded_j == pytest.approx(sum(row.expanded_j or 0.0 for row in parts))


def test_a_group_stands_once_with_its_sum_and_its_members_say_so(tmp_path: Path) -> None:
    view = page_of(tmp_path, facts(account=account(grouped=True)))
    rows = {row.name: row for row in view.tables[0].rows}
    group = rows["g1: DEPTHWISE_CONV_2D + FULLY_CONNECTED #1\u20132 + gap"]
    assert group.energy == "106.20 ± 0.88\u2009µJ"
    assert rows["DEPTHWISE_CONV_2D #1"].energy == "in g1"
    assert "between layers" not in rows
    assert sum(row.energy_j or 0.0 for row in rows.values()) == pytest.approx(TOTAL_J)
    assert view.refused[0] == ("DEPTHWISE_CONV_2D #1", "only the sum of g1 can be told")


def test_boxes_of_the_icicle_fill_their_parent_and_never_more(shaped: PageView) -> None:
    assert shaped.flame is not None
    children = shaped.flame.children
    assert sum(child.energy_j for child in children) == pytest.approx(shaped.flame.energy_j)
    assert [child.energy_j for child in children] == sorted((c.energy_j for c in children), reverse=True)


def test_the_budget_is_shares_of_the_variance(shaped: PageView) -> None:
    assert sum(share.share for share in shaped.budget) == pytest.approx(1.0)


def test_a_degraded_run_has_no_headline_and_says_what_was_seen(tmp_path: Path) -> None:
    finding = replace(degraded_facts().findings[0], slug="no_gate_fall")
    view = page_of(tmp_path, replace(degraded_facts(), findings=(finding,), reason="no_gate_fall"))
    page = render_page(view)
    assert view.headline is None
    assert view.next_step == CURES["no_gate_fall"]
    assert view.flame is None
    text = Tags(page).text
    assert "No headline" in text
    assert "GATE rose and was not seen to fall" in text
    assert "whole trace, not one inference" in text
    assert "per inference (" not in text
    assert view.scene is not None  # what was recorded is still shown
    assert all(row.energy_j is None for row in view.tables[0].rows)
    assert "µJ per inference" not in render_markdown(view)


def test_a_run_without_power_has_no_map_and_no_energy(tmp_path: Path) -> None:
    view = page_of(tmp_path, profile_only_facts())
    assert view.scene is None
    assert [badge.word for badge in view.badges] == ["modelled", "valid"]
    page = Tags(render_page(view))
    assert "No waveform: the run had no power phase." in page.text
    assert not [tag for tag, _ in page.tags if tag == "canvas"]


def test_names_from_data_are_text_wherever_they_stand(tmp_path: Path) -> None:
    page = Tags(render_page(page_of(tmp_path, hostile_facts())))
    assert not [tag for tag, _ in page.tags if tag in {"img", "iframe", "object", "embed", "a", "form", "base", "link"}]
    code = [attributes for tag, attributes in page.tags if tag == "script" and "type" not in attributes]
    assert len(code) == 1
    for name in HOSTILE[:2]:
        assert name in page.text
    assert "\u202e" not in page.text  # a sign that turns the direction of text is shown as its escape
    assert "\\u202e" in page.text


def test_nothing_is_asked_for_and_the_policy_allows_this_script_alone(shaped: PageView) -> None:
    page = Tags(render_page(shaped))
    policy = next(
        a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    scripts = [text for tag, text in page.raw if tag == "script" and text.startswith("'use strict'")]
    styles = [text for tag, text in page.raw if tag == "style"]
    digests = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in (*scripts, *styles)]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}';"
        " base-uri 'none'; form-action 'none'"
    )
    for tag, attributes in page.tags:
        loading = {"src", "href", "style", "srcset", "action", "background", "poster"} & attributes.keys()
        assert not loading, f"<{tag}> has {loading}"
        assert not [name for name in attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import|https?://|fetch\(|XMLHttpRequest|eval\(", read_script() + read_style())


def test_a_large_page_stays_below_a_megabyte(shaped: PageView) -> None:
    assert len(render_page(large_page(shaped)).encode()) <= 1_000_000


@pytest.mark.parametrize("lost", ["all", "one sample"])
def test_a_waveform_with_nothing_in_it_is_no_trouble(tmp_path: Path, lost: str) -> None:
    run = shaped_facts()
    assert run.power is not None
    captures = []
    for taken in run.power.captures:
        result = taken.observation.result
        assert result is not None
        trace = result.recording.trace
        changed = (
            replace(trace, gaps=np.array([[0, trace.n]]))
            if lost == "all"
            else replace(trace, power_w=trace.power_w[:1], gaps=np.empty((0, 2), np.int64))
        )
        recording = replace(result.recording, trace=changed)
        captures.append(
            replace(taken, observation=replace(taken.observation, result=replace(result, recording=recording)))
        )
    view = page_of(tmp_path, replace(run, power=replace(run.power, captures=tuple(captures))))
    assert view.scene is not None
    assert np.isnan(view.scene.slices.energy_j).all()  # missing is never 0
    assert render_page(view)


def resign(bundle: Path, name: str) -> None:
    """Makes the manifest agree with a section that was changed."""
    manifest = json.loads((bundle / "manifest.json").read_text("utf-8"))
    data = (bundle / name).read_bytes()
    for section in manifest["sections"]:
        if section["path"] == name:
            section |= {"size_b": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (bundle / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


_ODD: tuple[object, ...] = ("missing", None, "odd", -1, [], {}, [None])


@pytest.mark.parametrize("name", ["result.json", "run.json"])
def test_a_document_with_anything_missing_or_odd_gives_a_page_or_a_typed_error(tmp_path: Path, name: str) -> None:
    bundle = write_report_bundle(tmp_path / "run.jm", shaped_facts())
    whole = json.loads((bundle / name).read_text("utf-8"))
    outcomes = set()
    for key in whole:
        for odd in _ODD:
            changed = {k: v for k, v in whole.items() if k != key}
            if odd != "missing":
                changed[key] = odd
            (bundle / name).write_text(json.dumps(changed), encoding="utf-8")
            resign(bundle, name)
            try:
                render_page(load_page(bundle))
                outcomes.add("page")
            except FormatError as error:
                outcomes.add(error.slug)
    assert outcomes == {"page", "bundle-damaged"}


def test_json_in_a_script_cannot_end_it() -> None:
    text = encode_script_json({"a": "</script><!--\u2028&"})
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text) == {"a": "</script><!--\u2028&"}


def test_values_come_back_within_the_error_that_the_page_says() -> None:
    rng = np.random.default_rng(1)
    mean = rng.uniform(0.002, 0.05, 100)
    mean[7] = np.nan
    track = Track(name="p", unit="W", low=mean * 0.9, high=mean * 1.1, mean=mean)
    scene = Scene(
        label="",
        span_s=1.0,
        tracks=(track,),
        slices=empty_slices(),
        bands=(),
        level=None,
        excerpts=(),
        open_s=(0.0, 1.0),
        period_s=None,
    )
    head = pack_scene_head(scene)["tracks"][0]
    stored = np.frombuffer(base64.b64decode(dict(list_blocks(scene, 0))["envelope-0"]), "<u2").reshape(-1, 3)
    assert (stored[7] == MISSING).all()
    quantum = (head["high"] - head["low"]) / (MISSING - 1)
    back = head["low"] + stored * quantum
    seen = np.isfinite(mean)
    for column, values in enumerate((track.low, track.high, track.mean)):
        assert np.abs(back[seen, column] - values[seen]).max() <= quantum / 2 * (1 + 1e-9)
    assert head["low"] == 0.0  # the power axis holds 0


def test_modules_are_joined_in_order_and_circles_are_refused() -> None:
    modules = {
        "main": "// says a\nimport { a } from './a.js';\nimport { b } from './b.js';\na(b);\n",
        "a": "import { b } from './b.js';\n/** Says b. */\nexport function a() { return b; }\n",
        "b": "export const b = 1;\n",
    }
    joined = join_modules("main", modules.__getitem__)
    assert joined.index("$b = ") < joined.index("$a = ") < joined.index("$main = ")
    assert "says a" not in joined
    assert "export" not in joined
    with pytest.raises(ValueError, match="x > y > x"):
        join_modules("x", {"x": "import { a } from './y.js';\n", "y": "import { b } from './x.js';\n"}.__getitem__)
    with pytest.raises(ValueError, match="cannot join"):
        join_modules("x", {"x": "export default 1;\n"}.__getitem__)


def test_markup_escapes_attributes_and_leaves_out_what_is_false() -> None:
    assert (
        element("i", "x", title='"<&', hidden=False, data_x=None, disabled=True)
        == '<i title="&quot;&lt;&amp;" disabled>x</i>'
    )


def test_markdown_shields_every_sign_of_its_own(tmp_path: Path) -> None:
    text = render_markdown(page_of(tmp_path, hostile_facts()))
    assert "<script>" not in re.sub(r"\\.", "", text)
    table = [line for line in text.splitlines() if line.startswith("| ")]
    cells = {len(re.sub(r"\\.", "", line).split("|")) for line in table if "CONV" not in line}
    assert cells == {6, 10}  # budget and hotspots: a bar inside a name opens no column
    assert "](javascript" not in re.sub(r"\\.", "", text)


@pytest.mark.parametrize(
    ("value", "expanded", "text"),
    [
        (1.9006e-4, 1.9e-7, "190.06\u2009µJ"),
        (0.0, 0.0, "0\u2009J"),
        (5e-3, 2.0, "0.0\u2009J"),
        (1.5, 0.0, "1.50000\u2009J"),
    ],
)
def test_a_value_shows_the_digits_that_its_doubt_supports(value: float, expanded: float, text: str) -> None:
    assert format_supported(value, expanded, "J") == text
