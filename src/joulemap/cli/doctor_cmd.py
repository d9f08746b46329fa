"""``joulemap doctor``: what the chosen target lacks here, each with the exact fix."""

from __future__ import annotations

import json
import sys

import click

from joulemap.cli.document import document_head
from joulemap.cli.invocation import Invocation, is_unicode, output_options
from joulemap.cli.streams import write_result
from joulemap.errors import SetupError
from joulemap.report.console.style import Style
from joulemap.workflow.doctor import Check, check_environment

__all__ = ["command"]


@click.command("doctor", context_settings={"show_default": True})
@click.option("--target", default="virtual-m33", metavar="NAME", help="Board that is to run.")
@output_options
@click.pass_context
def command(context: click.Context, /, target: str) -> int:
    """Say whether the target can run here; exit 3 and the fix when it cannot."""
    invocation = context.ensure_object(Invocation)
    invocation.check()
    checks = check_environment(target)
    broken = [check for check in checks if check.required and not check.ok]
    if invocation.json:
        write_result(json.dumps(_document(target, checks), indent=2) + "\n")
    else:
        style = Style(color=invocation.color(sys.stdout), unicode=is_unicode(sys.stdout))
        verdict = f"{target} cannot run here" if broken else f"{target} can run here"
        write_result(style.encode("".join(_line(check) for check in checks) + style.bold(verdict) + "\n"))
    return SetupError.exit_code if broken else 0


def _line(check: Check) -> str:
    state = "ok" if check.ok else ("missing" if check.required else "slower")
    fix = f"\n{'':23}fix: {check.fix}" if check.fix else ""
    return f"{state:<8} {check.name:<13} {check.detail}{fix}\n"


def _document(target: str, checks: tuple[Check, ...]) -> dict[str, object]:
    return {
        **document_head("joulemap.doctor"),
        "target": target,
        "runnable": all(check.ok for check in checks if check.required),
        "checks": [
            {
                "name": check.name,
                "ok": check.ok,
                "required": check.required,
                "detail": check.detail,
                "fix": check.fix or None,
            }
            for check in checks
        ],
    }
