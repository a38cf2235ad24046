"""``discreet evaluate``: how well a release predicts; free where covered, with noise where labels are private."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.declared import BesideMlp, Delta, Json, Release
from discreet.cli.options import NOTHING_TO_MEASURE, ComputeOptions, LedgerOptions, MeasuredDataOptions, delta_of
from discreet.cli.output import LOG, check_places, figures_text, print_json, report, say, table_text, warn_of_ranges
from discreet.errors import ParameterError

NODES = ("test", "val", "train", "all")

if TYPE_CHECKING:
    from discreet.graph.graph import Graph
    from discreet.methods.base import NodeClassifier


def evaluate(
    release: Release,
    data: MeasuredDataOptions,
    compute: ComputeOptions,
    ledger: LedgerOptions,
    epsilon: Annotated[
        float | None, typer.Option(help="Release the figures with noise, at this cost, where labels are private.")
    ] = None,
    delta: Delta = "auto",
    nodes: Annotated[str, typer.Option(help="test, val, train, or all: every node with a label.")] = "test",
    bins: Annotated[int, typer.Option(help="With --epsilon: bins of scores for ROC-AUC; 0 leaves it out.")] = 20,
    out: Annotated[
        Path | None, typer.Option(help="With --epsilon: write figures and certificate to this file.")
    ] = None,
    beside_mlp: BesideMlp = False,
    as_json: Json = False,
) -> None:
    """Measure a release on labelled data: covered, certified with --epsilon, or for research only; it says which."""
    from discreet.graph.splits import refuse_unlabelled
    from discreet.release.evaluate import (
        are_covered,
        check_features_alone,
        features_alone,
        figures_of_fit,
        is_another_graph,
    )
    from discreet.release.load import load_release

    check_out(out, ledger.ledger, epsilon)
    if nodes not in NODES:
        raise ParameterError(f"--nodes is one of {', '.join(NODES)}, not {nodes!r:.60}")
    ledger.check()
    check_places(out, beside=ledger.ledger)
    estimator = load_release(release, compute.prepare())
    level = estimator.checked_privacy().level
    if beside_mlp:
        check_features_alone(estimator)
    graph = data.load_for(estimator, every_node=nodes == "all" and not beside_mlp)
    warn_of_ranges(graph, level)
    if epsilon is not None and level.kind != "none" and not are_covered(estimator, graph):
        _with_noise(estimator, graph, epsilon, delta, nodes, bins, out, ledger, as_json)
        return
    refuse_unlabelled(graph, NOTHING_TO_MEASURE)  # what follows is covered, or for the holder's eyes
    if epsilon is not None:
        _say_free(out, ledger)
    if nodes != "all" and is_another_graph(estimator, graph):
        LOG.warning(
            "the release was not made for this graph: if it holds nodes of training, in another order for instance, "
            f"some of its {nodes} nodes were trained on"
        )
    result = {"release": str(release), "data": graph.name, "nodes": nodes}
    found = figures_of_fit(estimator, graph, private=True, ids=nodes)
    found |= {"features_alone": features_alone(estimator, graph, nodes)} if beside_mlp else {}
    if as_json:
        print_json({**result, **found})
        return
    report(result, as_json)
    print(f"\n{figures_text(found)}")


def check_out(out: Path | None, ledger: Path | None, epsilon: float | None) -> None:
    """A file of figures without a guarantee would look like one with it, and so would an entry in a ledger."""
    if out is not None and epsilon is None:
        raise ParameterError("--out writes certified figures: it goes with --epsilon")
    if ledger is not None and epsilon is None:
        raise ParameterError("--ledger enters what figures cost: it goes with --epsilon")


def _say_free(out: Path | None, ledger: LedgerOptions) -> None:
    """Say that nothing is spent; refuse to enter or to certify what costs nothing."""
    if out is not None or ledger.ledger is not None:
        raise ParameterError(
            "figures of this release are exact and cost nothing, so there is nothing to certify and to enter: leave "
            "--epsilon, --out and --ledger out"
        )
    LOG.warning("figures of this release are exact and cost nothing: --epsilon is not spent")


def _with_noise(
    estimator: NodeClassifier,
    graph: Graph,
    epsilon: float,
    delta: str,
    nodes: str,
    bins: int,
    out: Path | None,
    ledger: LedgerOptions,
    as_json: bool,
) -> None:
    from discreet.files import write_whole
    from discreet.release.certified_figures import as_file, certified_figures, plan_figures

    options: Any = {"ids": nodes, "bins": bins}
    plan = plan_figures(estimator, graph, epsilon, delta_of(delta), **options)
    entry = ledger.reserve("evaluate", [plan])
    say(plan, as_json)
    found = certified_figures(estimator, graph, epsilon, delta_of(delta), **options)
    if out is not None:
        text = as_file(found)
        write_whole(out, text)
        entry.settle(str(json.loads(text)["digest"]))
    if as_json:
        print_json({**found, "out": None if out is None else str(out), "ledger": entry.entry})
    else:
        print(f"\n{table_text(found)}")
