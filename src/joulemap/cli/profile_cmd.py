"""``joulemap profile MODEL``: flags to a request, the outcome to text or JSON and an exit code."""

from __future__ import annotations

import functools
import json
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from joulemap.cli.host.flags import choose_run, host_options
from joulemap.cli.invocation import Invocation, check_finite, is_unicode, output_options
from joulemap.cli.streams import tell, write_result
from joulemap.errors import UsageError
from joulemap.records.fault import Fault, FaultPlan, FaultSlug
from joulemap.records.run import ProfileRequest
from joulemap.report.console.failure import render_failure
from joulemap.report.console.profile import render_profile
from joulemap.report.console.progress import HpxConsole
from joulemap.report.console.style import Style
from joulemap.report.view.profile import build_profile_view
from joulemap.workflow.journal import RunJournal
from joulemap.workflow.profile import ProfileOutcome, profile

__all__ = ["command"]

_PROFILE_FAULTS = frozenset(
    {FaultSlug.PROFILE_TRUNCATED, FaultSlug.PROFILE_CORRUPT, FaultSlug.COUNTER_OVERFLOW, FaultSlug.PROBE_LOST}
)
_POWER_FLAGS = {
    "count": "--count",
    "window_s": "--window-s",
    "repeats": "--repeats",
    "instrument": "--instrument",
    "lockstep": "--lockstep/--no-lockstep",
    "contrast": "--contrast",
}


@click.command("profile", context_settings={"show_default": True})
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--target", default="virtual-m33", metavar="NAME", help="Board to run on, or host for this machine.")
@click.option("--engine", default="aot", metavar="NAME", help="Inference engine.")
@click.option("--power/--no-power", default=True, help="Measure power too, or profile cycles alone.")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Inferences inside the gate.")
@click.option(
    "--window-s",
    type=click.FloatRange(min=0, min_open=True),
    callback=check_finite,
    metavar="T",
    help="Wanted gate length, s.",
)
@click.option("--repeats", type=click.IntRange(min=1), default=5, metavar="R", help="Repeated captures.")
@click.option(
    "--input", "input_", type=click.Path(path_type=Path), metavar="FILE.npz", help="Model input; else seeded random."
)
@click.option("--transport", default="rtt", metavar="NAME", help="Link of the terminal record.")
@click.option("--lockstep/--no-lockstep", default=True, help="Host waits for READY and gives GO.")
@click.option("--instrument", metavar="NAME|FILE.toml", help="Power meter; else the target's own.")
@click.option(
    "--fault", "faults", multiple=True, metavar="SLUG[@K]", help="Plant a fault (virtual targets), in repeat K only."
)
@click.option("--contrast", is_flag=True, help="Multiply each layer's power by a seeded factor (virtual targets).")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, help="Drives input, run factors, instrument and contrast."
)
@host_options
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="RUN.jm", help="Bundle; else ./MODEL-UTCTIME.jm."
)
@click.option("--force", is_flag=True, help="Replace an existing bundle.")
@output_options
@click.pass_context
def command(context: click.Context, /, model: Path, output: Path | None, *, force: bool, **flags: Any) -> int:
    """Profile MODEL (.tflite, .onnx on the host): joules per inference and per layer, each with its uncertainty."""
    invocation = context.ensure_object(Invocation)
    invocation.check()
    run = choose_run(context, model, flags)
    if run is None:
        request = _build_request(context, model, flags)
        run = functools.partial(profile, request)
    if output is None:
        output = Path(f"{model.stem or 'model'}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jm")
    style = Style(color=invocation.color(sys.stderr), unicode=is_unicode(sys.stderr))
    live = sys.stderr.isatty() and not invocation.quiet
    with HpxConsole(sys.stderr, style=style, verbosity=invocation.verbosity, live=live) as console:
        journal = RunJournal(None if invocation.quiet else console)
        invocation.report_failure = journal.report_failure
        outcome = run(output, force=force, journal=journal)
    _show(outcome, invocation)
    return outcome.exit_code


def _show(outcome: ProfileOutcome, invocation: Invocation) -> None:
    if outcome.failure is not None:
        tell(render_failure(outcome.failure))
    if invocation.json:
        write_result(json.dumps(outcome.document, indent=2, allow_nan=False) + "\n")
        return
    style = Style(color=invocation.color(sys.stdout), unicode=is_unicode(sys.stdout))
    width = shutil.get_terminal_size(fallback=(80, 24)).columns
    view = build_profile_view(outcome.document)
    write_result(render_profile(view, width=width, style=style, bundle=str(outcome.bundle)))


def _build_request(context: click.Context, model: Path, flags: dict[str, Any]) -> ProfileRequest:
    """Returns the request; flags that contradict each other are refused before anything starts.

    Raises:
        UsageError: two flags contradict each other, or a fault is unknown.
    """
    if flags["count"] is not None and flags["window_s"] is not None:
        raise UsageError(
            "--count and --window-s contradict each other", hint="give one of the two", slug="flags-contradict"
        )
    faults = tuple(_parse_fault(text) for text in flags["faults"])
    for fault in faults:
        if fault.repeat is not None and fault.repeat > flags["repeats"]:
            raise UsageError(
                f"--fault {fault.slug}@{fault.repeat}: there are only {flags['repeats']} repeats",
                hint="name a repeat that is run, or raise --repeats",
                slug="flags-contradict",
            )
    if not flags["power"]:
        _refuse_power_flags(context, faults)
    return ProfileRequest(
        model=model,
        target=flags["target"],
        engine=flags["engine"],
        power=flags["power"],
        count=flags["count"],
        window_s=flags["window_s"],
        repeats=flags["repeats"],
        input=flags["input_"],
        transport=flags["transport"],
        lockstep=flags["lockstep"],
        instrument=flags["instrument"],
        faults=FaultPlan(faults=faults),
        contrast=flags["contrast"],
        seed=flags["seed"],
    )


def _refuse_power_flags(context: click.Context, faults: tuple[Fault, ...]) -> None:
    default = click.core.ParameterSource.DEFAULT
    given = [flag for name, flag in _POWER_FLAGS.items() if context.get_parameter_source(name) is not default]
    given += [f"--fault {fault.slug}" for fault in faults if fault.slug not in _PROFILE_FAULTS]
    if given:
        raise UsageError(
            f"--no-power and {', '.join(given)} contradict each other: nothing of the power phase would run",
            hint="leave one of them out",
            slug="flags-contradict",
        )


def _parse_fault(text: str) -> Fault:
    slug, at, repeat = text.partition("@")
    try:
        return Fault(slug=FaultSlug(slug), repeat=int(repeat) if at else None)
    except ValueError:
        known = " ".join(FaultSlug)
        raise UsageError(
            f"--fault {text}: not SLUG or SLUG@K with K counted from 1", hint=f"slugs are {known}", slug="unknown-fault"
        ) from None
