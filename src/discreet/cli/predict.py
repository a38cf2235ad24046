"""``discreet predict``: a class for every node, by a release."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.declared import Json, Release
from discreet.cli.options import ComputeOptions, GraphOptions
from discreet.cli.output import LOG, check_places, report, warn_of_ranges
from discreet.errors import DataNotFoundError, ParameterError, UncoveredReleaseError

if TYPE_CHECKING:
    from discreet.methods.base import NodeClassifier

_OWN_ROWS = ("own-prediction", "weights+others-predictions")


@dataclass(frozen=True)
class ShownOptions:
    """Which predictions are written, and how."""

    nodes: Annotated[
        list[str] | None,
        typer.Option(help="Only these node ids: ID,ID,… or @FILE with one id per line. Repeatable."),
    ] = None
    top: Annotated[
        str | None,
        typer.Option(help="K: the K most probable classes of each node. K:CLASS: the K nodes most probably of CLASS."),
    ] = None
    per_owner: Annotated[
        bool, typer.Option("--per-owner", help="Write --out as a folder with one file per node, for its owner.")
    ] = False

    def any(self) -> bool:
        """Whether any of these was given."""
        return self.nodes is not None or self.top is not None or self.per_owner

    def wanted(self) -> list[str] | None:
        """The ids asked for, in their order."""
        if self.nodes is None:
            return None
        found: list[str] = []
        for text in self.nodes:
            if text.startswith("@"):
                found += _lines(Path(text[1:]))
            else:
                found += [part.strip() for part in text.split(",") if part.strip()]
        if not found:
            raise ParameterError("--nodes names no node")
        return found


def predict(
    release: Release,
    data: GraphOptions,
    compute: ComputeOptions,
    shown: ShownOptions,
    out: Annotated[
        Path,
        typer.Option(
            help="Write id, prediction and the probability of every class to this new CSV or Parquet; for data in "
            "partitions, a name without an ending is a folder of partitions."
        ),
    ],
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
    """Predict the class of every node, within what the release's guarantee covers, or not at all.

    Tables are read by the schema of the release, column by column name; labels are not needed.
    """
    import numpy as np

    from discreet.files import expand_home
    from discreet.graph.partitions import has_partitions
    from discreet.graph.parts import EDGES
    from discreet.privacy.coverage import READS
    from discreet.release.load import load_release
    from discreet.release.predictions import (
        Top,
        check_file_type,
        find_nodes,
        prediction_table,
        write_for_owners,
        write_predictions,
    )

    check_places(out)
    if not shown.per_owner:
        check_file_type(out)
    top, wanted = None if shown.top is None else Top.parse(shown.top), shown.wanted()
    estimator = load_release(release, compute.prepare())
    _warn_of_claims(estimator)
    if top is not None and top.of_class is not None and not (public_graph or uncovered):
        _refuse_ranking(estimator)
    if has_partitions(expand_home(data.data)) and not out.suffix and not shown.any():
        rows_written = _predict_blocks(estimator, Path(data.data), out, audience, public_graph, uncovered)
        report({"release": str(release), "nodes": rows_written, "covers": estimator.covers, "out": str(out)}, as_json)
        return
    graph = data.read(estimator.schema_)
    warn_of_ranges(graph, estimator.checked_privacy().level)
    rows = np.arange(graph.num_nodes) if wanted is None else find_nodes(graph, wanted)
    found = estimator.predict_proba(graph, nodes=rows, audience=audience, public=public_graph, uncovered=uncovered)
    table = prediction_table(graph, rows, found, _classes_written(estimator), top)
    if shown.per_owner:
        write_for_owners(out, table)
    else:
        _warn_of_many_owners(estimator, audience, len(table))
        write_predictions(out, table)
    closed = EDGES in estimator.checked_privacy().level.private - READS[estimator.covers]
    if closed and not (public_graph or uncovered):
        LOG.info(f"edges of {graph.name} are not read: predictions rest on what the release holds")
    report({"release": str(release), "nodes": len(table), "covers": estimator.covers, "out": str(out)}, as_json)


def _classes_written(estimator: NodeClassifier) -> list[str | int]:
    """Names of classes as text, also where they are numbers; numbers where there are no names."""
    names = estimator.schema_.classes
    return estimator.classes_.tolist() if names is None else list(names)


def _predict_blocks(
    estimator: NodeClassifier, folder: Path, out: Path, audience: str, public_graph: bool, uncovered: bool
) -> int:
    """Predictions in the partitions of the graph, whose edges are not read."""
    import numpy as np

    from discreet.graph.partitions import PartitionedGraph
    from discreet.release.predictions import prediction_table, write_prediction_blocks

    with PartitionedGraph(folder) as opened:
        graph = opened.graph()
        found = estimator.predict_proba(graph, audience=audience, public=public_graph, uncovered=uncovered)
        _warn_of_many_owners(estimator, audience, len(found))
        rows = (np.arange(block.rows.start, block.rows.stop) for block in opened.manifest.blocks)
        classes = _classes_written(estimator)
        return write_prediction_blocks(out, (prediction_table(graph, ids, found[ids], classes) for ids in rows))


def _warn_of_claims(estimator: NodeClassifier) -> None:
    claim = estimator.certificate_.get("claim")
    if claim is not None:
        LOG.warning(
            f"this release covers nothing: its epsilon is {claim['status']} ({claim['by']}), and predictions are as "
            "open as the data"
        )


def _refuse_ranking(estimator: NodeClassifier) -> None:
    """Who is among the first K follows from everybody's rows, and each row is covered for its own node alone."""
    if estimator.covers in _OWN_ROWS:
        raise UncoveredReleaseError(
            f"{estimator.method}: --top K:CLASS compares nodes with one another, and each prediction is covered only "
            "for its own node: leave :CLASS out; --uncovered predicts outside the guarantee"
        )


def _warn_of_many_owners(estimator: NodeClassifier, audience: str, rows: int) -> None:
    if audience == "owner" and rows > 1 and estimator.covers in _OWN_ROWS:
        LOG.warning(
            f"each of these {rows} rows is covered for its own node alone, and the file holds all of them: hand every "
            "owner their own row; --per-owner writes one file per owner"
        )


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise DataNotFoundError(f"there is no file {path} with node ids")
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ParameterError(f"{path} is not a text file of node ids") from error
