"""``discreet train``: fit within a budget, report, and release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.config import Config, SaveConfig, config_text
from discreet.cli.declared import Also, BesideMlp, Json, PrivateFigures
from discreet.cli.options import (
    DataOptions,
    EngineOptions,
    LedgerOptions,
    MethodOptions,
    StatementOptions,
    prepare,
    read_like,
)
from discreet.cli.output import (
    LOG,
    check_places,
    figures_text,
    print_json,
    printable,
    progress_bars,
    report,
    say,
    warn_of_tables,
)

MASKS = ("train", "val", "test")
MOST_NAMES = 6
"""Names of classes in the line that says what was read."""

if TYPE_CHECKING:
    from discreet.graph.graph import Graph


def train(
    context: typer.Context,
    data: DataOptions,
    method: MethodOptions,
    issued: StatementOptions,
    ledger: LedgerOptions,
    engine: EngineOptions,
    also: Also = None,
    out: Annotated[Path | None, typer.Option(help="Write the release to this new folder.")] = None,
    private_figures: PrivateFigures = False,
    beside_mlp: BesideMlp = False,
    config: Config = None,
    save_config: SaveConfig = None,
    as_json: Json = False,
) -> None:
    """Train a model within a budget and, with --out, release it with a certificate."""
    from discreet.files import write_whole
    from discreet.graph.account import summary_of
    from discreet.graph.splits import OWN
    from discreet.mechanisms.curator import check_blocks
    from discreet.release.evaluate import FIGURES, check_features_alone, features_alone, report_of_fit

    check_places(out, save_config, beside=ledger.ledger)
    options = None if save_config is None else config_text(context, epsilon=method.privacy().epsilon)
    statement = issued.statement()
    ledger.check()
    with engine.running() as running:
        graph, estimator, recommendation = prepare(data, method, running)
        if beside_mlp:
            check_features_alone(estimator)
        extra = [read_like(graph, data, name, running) for name in also or ()]
        LOG.debug("planning")
        plan = estimator.plan_for(graph, extra)
        if running is not None:  # it reads edges in blocks
            check_blocks(plan, [graph, *extra])
        if graph.schema is not None:  # it came from tables
            for line in summary_of(graph):
                LOG.info(line)
            warn_of_tables(graph, plan.privacy.level)
        entry = ledger.reserve("train", [plan])
        say(f"{printable(_summary(graph))}\n", as_json)
        if recommendation is not None:
            say(f"{recommendation}\n", as_json)
        say(plan, as_json)
        LOG.debug("fitting")
        with progress_bars() as progress:
            if running is not None:
                running.progress = progress
            estimator.fit(graph, extra_graphs=extra, progress=progress)
        if out is not None:  # saved before anything is reported, so that a fit is never lost to a report
            estimator.save(out, entry.added_to(statement))
            entry.release(out)
        if save_config is not None and options is not None:
            write_whole(save_config, options)
        result = report_of_fit(estimator, graph, private_figures=private_figures)
        result |= {"features_alone": features_alone(estimator, graph)} if beside_mlp else {}
    result |= {"seed": data.seed, "split": OWN if graph.split_by is None else graph.split_by.spec}
    result["release"] = None if out is None else str(out)
    result["ledger"] = entry.entry
    if recommendation is not None:
        result["recommendation"] = recommendation.to_json()
    if as_json:
        print_json(result)
        return
    report(
        {
            key: value
            for key, value in result.items()
            if key not in (*FIGURES, "features_alone", "note", "recommendation")
        },
        as_json,
    )
    print(f"\n{figures_text(result)}")


def _summary(graph: Graph) -> str:
    """What was read, as far as it is public at every level."""
    facts = graph.public
    held = [f"{int(mask.sum())} {name}" for name in MASKS if (mask := getattr(graph, f"{name}_mask")) is not None]
    names = "" if graph.class_names is None else f" ({', '.join(graph.class_names[:MOST_NAMES])}{_more(graph)})"
    return (
        f"{graph.name}: {facts.num_nodes} nodes ({', '.join(held)}), {facts.num_features} features, "
        f"{facts.num_classes} classes{names}, {'directed' if facts.directed else 'undirected'}"
    )


def _more(graph: Graph) -> str:
    return ", …" if graph.num_classes > MOST_NAMES else ""
