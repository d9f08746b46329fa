"""The two stages that end a run: ``attribute_energy`` and ``generate_report``."""

from __future__ import annotations

from dataclasses import dataclass, replace

from joulemap.analysis.attribute import account_energy
from joulemap.errors import PipelineError, PowerError
from joulemap.estimate import Unavailable
from joulemap.firmware.stages.context import PowerDone, ProfileDone, advance, require
from joulemap.formats.bundle_writer import BundleWriter
from joulemap.records.energy import EnergyAccount
from joulemap.records.finding import Finding, Validity
from joulemap.records.progress import Phase
from joulemap.records.rail import BoardTruth
from joulemap.workflow.journal import RunJournal
from joulemap.workflow.result import ProfileFacts
from joulemap.workflow.save import write_sections
from joulemap.workflow.trace_statistics import build_trace_statistics

__all__ = ["EnergyAttributed", "Report", "Reported", "attribute_energy"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnergyAttributed(PowerDone):
    """The power run and what the analysis says of it; ``account`` is None when no headline may be made of it."""

    account: EnergyAccount | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reported:
    """The bundle is written.

    Args:
        facts: what is in it.
        failure: what ends a run without headline; None for one with a headline.
    """

    facts: ProfileFacts
    failure: PipelineError | None


def attribute_energy(context: PowerDone) -> EnergyAttributed:
    """Returns the context with the energy account of a valid run; of any other nothing is computed."""
    done = require(context, PowerDone, "attribute_energy")
    account: EnergyAccount | None = None
    if done.power_validity is Validity.VALID:
        summary = done.prepared.summary
        account = account_energy(
            done.profile.result,
            done.power,
            layers=summary.layers,
            ops_per_inference=summary.ops,
            boundary=done.target.boundary,
        )
    return advance(done, EnergyAttributed, account=account)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """Where a run's report goes.

    Args:
        writer: of the bundle in the making.
        run_id: of the run.
        name: of the bundle.
        journal: of the run.
    """

    writer: BundleWriter
    run_id: str
    name: str
    journal: RunJournal

    def generate_report(self, context: ProfileDone) -> Reported:
        """Writes the bundle and returns what is in it.

        Raises:
            ReportError: the file system refused.
            UsageError: something came to the target meanwhile.
        """
        done = require(context, ProfileDone, "generate_report")
        facts = self._facts(done)
        write_sections(
            self.writer,
            facts,
            done.request,
            truths=_truths(done),
            timings=self.journal.timings,
            log=self.journal.lines,
            name=self.name,
        )
        self.writer.commit(validity=str(facts.validity))
        done.bench.checkpoint(Phase.REPORT, "report_written", f"report written: {self.name}", bundle=self.name)
        return Reported(facts=facts, failure=_failure(done))

    def _facts(self, done: ProfileDone) -> ProfileFacts:
        power = done if isinstance(done, PowerDone) else None
        account = done.account if isinstance(done, EnergyAttributed) else None
        validity = power.power_validity if power else Validity.VALID
        if _unresolved(done) is not None:
            validity = Validity.DEGRADED
        return ProfileFacts(
            run_id=self.run_id,
            target=done.target,
            model=done.prepared.summary,
            memory=done.memory,
            profile=done.profile,
            power=power.power if power else None,
            account=account,
            validity=validity,
            reason=_reason(done),
            findings=_findings(done, account),
            checkpoints=self.journal.checkpoints,
            oracle=done.prepared.oracle,
            oracle_crc32=done.prepared.reference_crc32,
            trace_statistics=_statistics(power) if power and validity is Validity.DEGRADED else None,
        )


def _unresolved(done: ProfileDone) -> str | None:
    """Returns why the analysis of a valid run has no headline all the same; None when it has one or was not asked."""
    if not isinstance(done, EnergyAttributed) or done.account is None:
        return None
    headline = done.account.energy_per_inference_j
    return headline.reason if isinstance(headline, Unavailable) else None


def _failure(done: ProfileDone) -> PipelineError | None:
    """Returns what ends a run without a headline; None for one that has it or never asked for it."""
    if not isinstance(done, PowerDone):
        return None
    reason = _unresolved(done)
    if done.power_failure is not None or reason is None:
        return done.power_failure
    return PowerError(
        f"the recording does not support an energy per inference ({reason})",
        hint="use an instrument with more samples per second, or a longer gate (--window-s)",
        slug="gate-unresolved",
        phase="report",
        artifact_role=str(done.power.firmware.role),
        details={"reason": reason},
    )


def _reason(done: ProfileDone) -> str:
    """Returns the slug of why there is no headline; empty when there is one or none was asked for."""
    failure = _failure(done)
    return "" if failure is None else failure.slug.replace("-", "_")


def _findings(done: ProfileDone, account: EnergyAccount | None) -> tuple[Finding, ...]:
    """Returns every finding once, in the order in which it was made; those of a capture say which."""
    found = [*done.findings, *done.profile.result.findings]
    if isinstance(done, PowerDone):
        found += done.power.findings
        for capture in done.power.captures:
            place = f"capture {capture.index}"
            for finding in capture.observation.findings:
                found.append(replace(finding, span=f"{place}: {finding.span}" if finding.span else place))
    if account is not None:
        found += account.findings
    return tuple(dict.fromkeys(found))


def _statistics(power: PowerDone) -> dict[str, object] | None:
    blocks = (build_trace_statistics(capture) for capture in power.power.captures)
    return next((block for block in blocks if block is not None), None)


def _truths(done: ProfileDone) -> dict[int, BoardTruth]:
    if not isinstance(done, PowerDone) or done.truth is None:
        return {}
    return {capture.index: capture.truth for capture in done.truth.captures}
