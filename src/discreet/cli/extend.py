"""``discreet extend``: a release on one more private graph, whose aggregation is charged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.declared import Delta, Json, Release
from discreet.cli.options import ComputeOptions, GraphOptions, LedgerOptions, StatementOptions, delta_of
from discreet.cli.output import check_places, report, say, warn_of_ranges


def extend(
    release: Release,
    data: GraphOptions,
    compute: ComputeOptions,
    issued: StatementOptions,
    ledger: LedgerOptions,
    out: Annotated[Path, typer.Option(help="Write the extended release to this new folder.")],
    epsilon: Annotated[float, typer.Option(help="The budget of the new graph's aggregation.")],
    delta: Delta = "auto",
    again: Annotated[
        bool,
        typer.Option("--again", help="The release knows these nodes; their edges are others by now, and asked anew."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a release predict on one more private graph: the weights stay, the graph's edges are asked with noise."""
    from discreet.privacy.budget import Privacy
    from discreet.release.load import load_release

    check_places(out, beside=ledger.ledger)
    statement = issued.statement()
    ledger.check()
    estimator = load_release(release, compute.prepare())
    graph = data.read(estimator.schema_)
    warn_of_ranges(graph, estimator.checked_privacy().level)
    privacy = Privacy(estimator.checked_privacy().level, epsilon, delta_of(delta))
    plan = estimator.plan_extension(graph, privacy, again=again)
    entry = ledger.reserve("extend", [plan])
    say(plan, as_json)
    made = estimator.extend(graph, privacy, again=again)
    made.save(out, entry.added_to(statement))
    entry.release(out)
    result = {
        "release": str(out),
        "extends": str(release),
        "data": graph.name,
        "method": made.method,
        "level": privacy.level.spec,
        "epsilon_in_every_graph": made.epsilon_spent_,
        "delta": made.plan_.delta,
        "epsilon_in_this_graph_alone": plan.epsilon,
        "covers": made.covers,
        "ledger": entry.entry,
    }
    report(result, as_json)
