"""The flags of ``profile`` that only this machine has, and those that it does not have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from joulemap.errors import UsageError
from joulemap.records.host.request import HostRequest, SessionRequest

__all__ = ["HOST", "build_host_request", "choose_run", "host_options"]

HOST = "host"
_HOST_ONLY = frozenset({".onnx", ".pt2"})
_OWN = {
    "runtime": "--runtime",
    "meters": "--meter",
    "batch": "--batch",
    "threads": "--threads",
    "precision": "--precision",
    "provider": "--provider",
    "operators": "--operators",
    "tokens": "--tokens",
}
_BOARDS = {
    "engine": "--engine",
    "power": "--power/--no-power",
    "count": "--count",
    "transport": "--transport",
    "lockstep": "--lockstep/--no-lockstep",
    "instrument": "--instrument",
    "faults": "--fault",
    "contrast": "--contrast",
}


def host_options(command: Any) -> Any:
    """Adds the flags of a run on this machine."""
    for option in reversed(
        (
            click.option(
                "--runtime",
                default="",
                show_default=False,
                metavar="NAME",
                help="Host: runtime; else the first for the file.",
            ),
            click.option(
                "--meter", "meters", multiple=True, metavar="NAME", help="Host: meter; else the first usable one."
            ),
            click.option(
                "--batch", type=click.IntRange(min=1), metavar="N", help="Host: value of an open first dimension."
            ),
            click.option("--threads", type=click.IntRange(1, 1024), metavar="N", help="Host: threads of the runtime."),
            click.option(
                "--precision",
                default="",
                show_default=False,
                metavar="NAME",
                help="Host: precision that the run is held to; no conversion.",
            ),
            click.option(
                "--provider",
                default="",
                show_default=False,
                metavar="NAME",
                help="Host: execution provider or delegate.",
            ),
            click.option(
                "--operators",
                type=click.IntRange(min=0),
                default=12,
                metavar="N",
                help="Host: loads with repeated operators at most (the last one holds the small ones).",
            ),
            click.option(
                "--tokens", type=click.IntRange(min=1), metavar="N", help="Host: tokens that one inference yields."
            ),
        )
    ):
        command = option(command)
    return command


def choose_run(context: click.Context, model: Path, flags: dict[str, Any]) -> Callable[..., Any] | None:
    """Returns the run on this machine; None for a board, whose flags then are left without those of the host.

    Raises:
        UsageError: a flag that the target does not have (``flags-contradict``), or a file that no board runs
            (``runtime-file``).
    """
    target = flags["target"]
    refused = _BOARDS if target == HOST else _OWN
    default = click.core.ParameterSource.DEFAULT
    given = [flag for name, flag in refused.items() if context.get_parameter_source(name) is not default]
    if given:
        raise UsageError(
            f"--target {target} and {', '.join(given)} contradict each other",
            hint="leave them out, or name another target",
            slug="flags-contradict",
        )
    if target != HOST:
        if model.suffix in _HOST_ONLY:
            raise UsageError(
                f"{model.name}: boards run .tflite models",
                hint="add --target host to run it on this machine",
                slug="runtime-file",
            )
        for name in _OWN:
            flags.pop(name)
        return None
    from joulemap.workflow.host.profile_host import profile_host  # noqa: PLC0415  only a host needs it

    return functools.partial(profile_host, build_host_request(model, flags))


def build_host_request(model: Path, flags: dict[str, Any]) -> HostRequest:
    """Returns the request of the flags.

    Raises:
        UsageError: a single repeat (``too-few-repeats``).
    """
    if flags["repeats"] < 2:
        raise UsageError(
            "--repeats 1: a run on this machine needs two or more, to tell its noise",
            hint="leave --repeats out for 5",
            slug="too-few-repeats",
        )
    return HostRequest(
        session=SessionRequest(
            model=model,
            batch=flags["batch"],
            threads=flags["threads"],
            precision=flags["precision"].lower(),
            provider=flags["provider"],
        ),
        runtime=flags["runtime"],
        meters=flags["meters"],
        input=flags["input_"],
        window_s=flags["window_s"],
        repeats=flags["repeats"],
        operators=flags["operators"],
        tokens=flags["tokens"],
        seed=flags["seed"],
    )
