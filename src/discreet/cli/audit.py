"""``discreet audit``: run both halves of an audit, print and write what they found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.declared import Delta, Json, Threads, Workers
from discreet.cli.options import ComputeOptions, MethodOptions
from discreet.cli.output import check_places, print_json, print_rows, progress_bars
from discreet.errors import ParameterError
from discreet.limits import SAMPLES, SEED

if TYPE_CHECKING:
    from discreet.audit.report import AuditReport, Effort
    from discreet.audit.subjects import Subject

OF_A_RELEASE = ("method", "level", "epsilon", "delta", "settings")


@dataclass(frozen=True)
class AuditedMethod(MethodOptions):
    """A method on graphs of a few nodes, where one thread is quickest and a larger delta shows."""

    method: Annotated[str, typer.Option(help="One of `discreet methods`.")] = "gap"
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget.")] = 1.0
    delta: Delta = "0.001"
    seed: Annotated[
        int,
        typer.Option(
            min=SEED.low, max=SEED.high, help="Seeds the graphs, their neighbours and training, never the noise."
        ),
    ] = 0
    threads: Threads = 1


@dataclass(frozen=True)
class EffortOptions:
    """How hard to try."""

    pairs: Annotated[int, typer.Option(min=1, max=SAMPLES.high, help="Pairs of neighbouring graphs to replay.")] = 100
    fits: Annotated[
        int, typer.Option(min=0, max=SAMPLES.high, help="Whole fits on each graph of the worst pair; 0 for none.")
    ] = 200
    samples: Annotated[
        int,
        typer.Option(min=0, max=SAMPLES.high, help="Runs of the curator on each side of its worst inputs; 0 for none."),
    ] = 20_000
    canaries: Annotated[
        int,
        typer.Option(
            min=0, max=SAMPLES.high, help="Canary nodes for an audit in one fit (node level, change=null); 0 for none."
        ),
    ] = 0
    workers: Workers = 0
    alpha: Annotated[float, typer.Option(help="How often an honest method may be called a violation.")] = 1e-4

    def effort(self, seed: int) -> Effort:
        """Checked."""
        from discreet.audit.report import Effort

        return Effort(
            self.pairs,
            self.fits,
            self.samples,
            canaries=self.canaries,
            workers=self.workers,
            alpha=self.alpha,
            seed=seed,
        )


def audit(
    context: typer.Context,
    method: AuditedMethod,
    effort: EffortOptions,
    release: Annotated[
        Path | None, typer.Argument(help="Audit the configuration of this release instead of --method and --level.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the report to this new JSON file.")] = None,
    attach: Annotated[
        bool, typer.Option("--attach", help="Write the report into the release, where verify checks it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Try to refute a guarantee: replay on neighbouring graphs, then attacks on the answers of many runs.

    Replay sees sensitivities; statistics see the scale, reuse and dependence of noise, and what reaches a release
    past all stages. Exit code 1 on a violation.
    """
    from discreet.audit.report import run_audit, write_report
    from discreet.release.attach import attach_report

    wanted = effort.effort(method.seed)
    _check_targets(release, out, attach)
    subject = _of_method(method) if release is None else _of_release(release, method, context)
    with progress_bars() as progress:
        found = run_audit(subject, wanted, progress)
    written = []
    if out is not None:
        write_report(found, out)
        written.append(out)
    if attach and release is not None:
        written.append(attach_report(release, found.to_bytes()))
    if as_json:
        print_json({**found.to_json(), "out": [str(path) for path in written]})
    else:
        _print(found)
    if not found.passed:
        raise typer.Exit(1)


def _check_targets(release: Path | None, out: Path | None, attach: bool) -> None:
    """Where the report goes; nothing may be there."""
    from discreet.release.attach import check_attachable

    if attach and release is None:
        raise ParameterError("--attach needs a release to attach the report to")
    check_places(out)
    if attach and release is not None:
        check_attachable(release)


def _of_method(method: AuditedMethod) -> Subject:
    from discreet.audit.subjects import method_subject

    return method_subject(method.estimator(), [text.partition("=")[0] for text in method.settings or ()])


def _of_release(release: Path, method: AuditedMethod, context: typer.Context) -> Subject:
    from discreet.audit.subjects import release_subject

    if any(_was_given(context, name) for name in OF_A_RELEASE):
        raise ParameterError("a release brings its own method, level, budget and parameters: leave those out")
    subject, compute = release_subject(release), ComputeOptions(method.device, method.threads).prepare()
    for estimator in (subject.planned, subject.fitted):
        estimator.set_params(compute=compute)
    return subject


def _was_given(context: typer.Context, name: str) -> bool:
    """Whether the option was on the command line, even with the value that it has anyway."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _print(found: AuditReport) -> None:
    """The table, what was found against the guarantee, and how often that would be wrong."""
    subject = found.subject
    budget = f"epsilon {subject['epsilon']:g}, delta {subject['delta']:g}"
    print(f"audit of {subject['method']} at level {subject['level']}, {budget}\n")
    print_rows(found.rows(), as_json=False)
    print()
    for violation in found.violations:
        print(f"VIOLATION  {violation}")
    for note in found.statistical.notes:
        print(f"note       {note}")
    verdict = "nothing found against the guarantee" if found.passed else "THE GUARANTEE DOES NOT HOLD"
    print(f"{verdict} (an honest method is called a violation with probability at most {found.statistical.alpha:g})")
