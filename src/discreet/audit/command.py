"""``discreet audit``: read options, run both halves, print and write what they found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.command_output import print_json, print_rows, progress_bars
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.audit.report import AuditReport
    from discreet.audit.subjects import Subject


def audit(
    release: Annotated[
        Path | None, typer.Argument(help="Audit the configuration of this release instead of --method and --level.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="One of `discreet methods`; gap unless given.")] = None,
    level: Annotated[str | None, typer.Option(help="What is protected; edge unless given.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget; 1 unless given.")] = None,
    delta: Annotated[str | None, typer.Option(help="A number or auto; 0.001 unless given, so that it shows.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the method, KEY=VALUE. Repeatable.")
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of neighbouring graphs to replay.")] = 100,
    fits: Annotated[int, typer.Option(min=0, help="Whole fits on each graph of the worst pair; 0 for none.")] = 200,
    samples: Annotated[
        int, typer.Option(min=0, help="Runs of the curator on each side of its worst inputs; 0 for none.")
    ] = 20_000,
    canaries: Annotated[
        int,
        typer.Option(min=0, help="Canary nodes for an audit in one fit (node level, change=null); 0 for none."),
    ] = 0,
    workers: Annotated[int, typer.Option(min=0, help="Worker processes; 0 works in this one.")] = 0,
    alpha: Annotated[float, typer.Option(help="How often an honest method may be called a violation.")] = 1e-4,
    seed: Annotated[int, typer.Option(help="Seeds the graphs and their neighbours, never the noise.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the report to this new JSON file.")] = None,
    attach: Annotated[
        bool, typer.Option("--attach", help="Write the report into the release, where verify checks it.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on standard output, everything else on standard error.")
    ] = False,
) -> None:
    """Try to refute a guarantee: replay on neighbouring graphs, then attacks on the answers of many runs.

    Replay sees sensitivities; statistics see the scale, reuse and dependence of noise, and what reaches a release
    past all stages. Exit code 1 on a violation.
    """
    from discreet.audit.report import Effort, run_audit, write_report
    from discreet.methods.release import check_free
    from discreet.privacy.certificate import AUDIT

    effort = Effort(pairs, fits, samples, canaries=canaries, workers=workers, alpha=alpha, seed=seed)
    if attach and release is None:
        raise ParameterError("--attach needs a release to attach the report to")
    targets = [path for path in (out, release / AUDIT if release and attach else None) if path is not None]
    for path in targets:
        check_free(path)
    subject = _subject(release, method, level, epsilon, delta, settings)
    with progress_bars() as progress:
        found = run_audit(subject, effort, progress)
    for path in targets:
        write_report(found, path)
    if as_json:
        print_json({**found.to_json(), "out": [str(path) for path in targets]})
    else:
        _print(found)
    if not found.passed:
        raise typer.Exit(1)


def _subject(
    release: Path | None,
    method: str | None,
    level: str | None,
    epsilon: float | None,
    delta: str | None,
    settings: list[str] | None,
) -> Subject:
    from discreet.audit.subjects import method_subject, release_subject
    from discreet.methods.by_options import estimator_from_options

    if release is not None:
        if any(value is not None for value in (method, level, epsilon, delta, settings)):
            raise ParameterError("a release brings its own method, level, budget and parameters: leave those out")
        return release_subject(release)
    budget = 1.0 if epsilon is None else epsilon, delta or "0.001"
    estimator = estimator_from_options(method or "gap", level or "edge", *budget, settings, 0, "cpu", 1)
    return method_subject(estimator, [text.partition("=")[0] for text in settings or ()])


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
