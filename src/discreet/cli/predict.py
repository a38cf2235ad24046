"""``discreet predict``: a class for every node, by a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import ComputeOptions, GraphOptions, Json, Release
from discreet.cli.output import report


def predict(
    release: Release,
    data: GraphOptions,
    compute: ComputeOptions,
    out: Annotated[Path, typer.Option(help="Write node, predicted class and probability to this new CSV file.")],
    audience: Annotated[
        str, typer.Option(help="anyone, or owner where each prediction goes to its node alone.")
    ] = "anyone",
    public_graph: Annotated[
        bool,
        typer.Option("--public-graph", help="Nothing in this graph is private: apply the weights freely."),
    ] = False,
    uncovered: Annotated[
        bool, typer.Option(help="Predict outside the guarantee; what you publish is then not private.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Predict the class of every node, within what the release's guarantee covers, or not at all."""
    from discreet.files import check_output
    from discreet.release.load import load_release
    from discreet.release.predictions import write_predictions

    check_output(out)
    estimator = load_release(release, compute.prepare())
    graph = data.read()
    probabilities = estimator.predict_proba(graph, audience=audience, public=public_graph, uncovered=uncovered)
    write_predictions(out, graph, probabilities)
    report({"release": str(release), "nodes": graph.num_nodes, "covers": estimator.covers, "out": str(out)}, as_json)
