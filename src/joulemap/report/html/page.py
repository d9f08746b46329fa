"""The whole page: head with a policy that forbids every request, sections, data blocks, one script, one style."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

from joulemap.report.html.assets import read_script, read_style
from joulemap.report.html.markup import element, escape, join
from joulemap.report.html.pack import encode_script_json, list_blocks, pack_scene_head
from joulemap.report.html.sections import render_sections
from joulemap.report.view.colors import PALETTE
from joulemap.report.view.page import PageView

__all__ = ["render_page"]


def render_page(view: PageView) -> str:
    """Returns the page as HTML, self-contained: it works from a file, offline, and asks for nothing."""
    scenes = [scene for scene in (view.scene, view.fold) if scene is not None]
    script, style = read_script(), read_style()
    meta = {"palette": list(PALETTE), "scenes": [pack_scene_head(scene) for scene in scenes]}
    blocks = [f'<script type="application/json" id="meta">{encode_script_json(meta)}</script>']
    for index, scene in enumerate(scenes):
        blocks += [_block(identity, text) for identity, text in list_blocks(scene, index)]
    title = f"{view.headline} {view.headline_unit}: {view.subject}" if view.headline else view.subject
    return join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            element("meta", http_equiv="Content-Security-Policy", content=_policy((script,), (style,))),
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style></head><body>",
            render_sections(view),
            *blocks,
            f"<script>{script}</script>",
            "</body></html>",
            "",
        ]
    )


def _block(identity: str, text: str) -> str:
    return f'<script type="text/plain" id="{identity}">{text}</script>'


def _policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Returns a content policy that allows this script and this style by their digests, and nothing else at all."""
    directives = [
        "default-src 'none'",
        f"script-src {' '.join(map(_digest, scripts))}",
        f"style-src {' '.join(map(_digest, styles))}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(directives)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
