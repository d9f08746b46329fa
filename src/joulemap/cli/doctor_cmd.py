"""``joulemap doctor``: what this machine is like for measurements, what each target and meter lacks, and the fixes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from joulemap.cli.document import document_head
from joulemap.cli.invocation import Invocation, is_unicode, output_options
from joulemap.cli.streams import write_result
from joulemap.errors import SetupError
from joulemap.records.host.machine import FactState, MachineFact
from joulemap.report.console.style import Style
from joulemap.workflow.machine.doctor import HOST, Check, Verdict, diagnose

__all__ = ["command"]


@click.command("doctor", context_settings={"show_default": True})
@click.option("--target", metavar="NAME", help="Target that is to run, host or a board; all of them without it.")
@output_options
@click.pass_context
def command(context: click.Context, /, target: str | None) -> int:
    """Say whether targets can run here; exit 3 and the fix when the named one, or every one, cannot."""
    invocation = context.ensure_object(Invocation)
    invocation.check()
    verdicts, facts = diagnose(target)
    if invocation.json:
        write_result(json.dumps(_document(target, verdicts, facts), indent=2) + "\n")
    else:
        style = Style(color=invocation.color(sys.stdout), unicode=is_unicode(sys.stdout))
        shown = facts if target in (None, HOST) else ()
        write_result(style.encode(_text(verdicts, shown, style)))
    return 0 if any(verdict.runnable for verdict in verdicts) else SetupError.exit_code


def _text(verdicts: Sequence[Verdict], facts: Sequence[MachineFact], style: Style) -> str:
    parts = []
    if facts:
        parts.append(style.bold("this machine") + "\n" + "".join(map(_fact_line, facts)))
    for verdict in verdicts:
        end = f"{verdict.target} can run here" if verdict.runnable else f"{verdict.target} cannot run here"
        width = max(len(check.name) for check in verdict.checks)
        parts.append("".join(_line(check, width) for check in verdict.checks) + style.bold(end) + "\n")
    return "\n".join(parts)


def _fact_line(fact: MachineFact) -> str:
    name = fact.key.replace("_", " ")
    plain = fact.value is None or fact.detail.startswith(str(fact.value))  # the detail says the value itself
    value = "" if plain else f"{fact.value}: "
    return _row(str(fact.state), f"{name:<21} {value}{fact.detail}", fact.fix, indent=31)


def _line(check: Check, width: int) -> str:
    if check.ok is None:
        state = "unknown"
    elif check.ok:
        state = "ok"
    elif check.required:
        state = "missing"
    else:
        state = "slower" if check.name == "fast kernels" else "absent"
    return _row(state, f"{check.name:<{width}} {check.detail}", check.fix, indent=width + 10)


def _row(state: str, text: str, fix: str, *, indent: int) -> str:
    line = f"{state:<8} {text}"
    return f"{line}\n{'':{indent}}fix: {fix}\n" if fix else f"{line}\n"


def _document(target: str | None, verdicts: Sequence[Verdict], facts: Sequence[MachineFact]) -> dict[str, object]:
    first = verdicts[0]
    shown = next((v for v in verdicts if v.runnable), first)
    return {
        **document_head("joulemap.doctor"),
        "target": target or shown.target,
        "runnable": shown.runnable,
        "checks": [_check(check) for check in shown.checks],
        "targets": [
            {
                "name": verdict.target,
                "runnable": verdict.runnable,
                "checks": [_check(check) for check in verdict.checks],
            }
            for verdict in verdicts
        ],
        "machine": [
            {
                "key": fact.key,
                "value": fact.value,
                "state": str(fact.state),
                "detail": fact.detail,
                "fix": fact.fix or None,
            }
            for fact in facts
        ],
        "unknown": [fact.key for fact in facts if fact.state is FactState.UNKNOWN],
    }


def _check(check: Check) -> dict[str, object]:
    return {
        "name": check.name,
        "ok": check.ok,
        "required": check.required,
        "detail": check.detail,
        "fix": check.fix or None,
    }
