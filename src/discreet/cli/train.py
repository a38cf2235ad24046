"""``discreet train``: fit within a budget, report, and release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import DataOptions, Json, MethodOptions, StatementOptions, prepare
from discreet.cli.output import NOTE, progress_bars, report, say


def train(
    data: DataOptions,
    method: MethodOptions,
    issued: StatementOptions,
    out: Annotated[Path | None, typer.Option(help="Write the release to this new folder.")] = None,
    as_json: Json = False,
) -> None:
    """Train a model within a budget and, with --out, release it with a certificate."""
    from discreet.files import check_free
    from discreet.release.evaluate import report_of_fit

    if out is not None:
        check_free(out)
    statement = issued.statement()
    graph, estimator, recommendation = prepare(data, method)
    if recommendation is not None:
        say(f"{recommendation}\n", as_json)
    say(estimator.plan_for(graph), as_json)
    with progress_bars() as progress:
        estimator.fit(graph, progress=progress)
    if out is not None:  # saved before anything is reported, so that a fit is never lost to a report
        estimator.save(out, statement)
    result = {**report_of_fit(estimator, graph), "seed": data.seed, "split": data.split}
    result |= {"release": None if out is None else str(out), "note": NOTE}
    if recommendation is not None:
        result["recommendation"] = recommendation.to_json()
    report(result, as_json)
