"""What privacy cost in accuracy: the release beside a model without the graph and one without privacy."""

from __future__ import annotations

from typing import NamedTuple

from discreet.graph.graph import Graph
from discreet.graph.parts import FEATURES, LABELS
from discreet.methods.base import NodeClassifier
from discreet.methods.metrics import majority
from discreet.methods.registry import find_method, load_method
from discreet.privacy.budget import Privacy
from discreet.release.evaluate import are_covered, evaluate

FIGURES = {"accuracy": "accuracy", "balanced-accuracy": "balanced accuracy", "macro-f1": "macro-F1"}


class Row(NamedTuple):
    """One model, its figures on the test nodes, and whether the guarantee covers them."""

    name: str
    figures: dict[str, float | None]
    covered: bool


class Paid(NamedTuple):
    """The models side by side; ``withheld`` says why some are not there."""

    rows: list[Row]
    withheld: str | None


def accuracy_paid(estimator: NodeClassifier, graph: Graph, private_figures: bool) -> Paid:
    """Figures of the release on the test nodes, of ``mlp``, and where private figures are asked for of ``gcn``.

    Guarantee: without ``private_figures`` every figure is a function of the release and of what the level takes as
    public. ``mlp`` reads no edge, but features and labels without noise, so it is there where both are public; ``gcn``
    without privacy reads all edges, and even its accuracy tells of them.
    """
    privacy = estimator.checked_privacy()
    if LABELS in privacy.level.private and not private_figures:
        return Paid([], "labels are private at this level: figures of them are for the holder's eyes")
    covered = are_covered(estimator, graph)
    rows, withheld = [], None
    if covered or private_figures:
        rows.append(Row("this release", _figures(evaluate(estimator, graph)), covered))
    else:
        withheld = "predictions are not covered for everybody: figures of them are for the holder's eyes"
    open_records = not privacy.level.private & {FEATURES, LABELS}
    if open_records or private_figures:
        rows.append(Row("no graph (mlp)", _figures(_without_privacy("mlp", graph)), open_records))
    if private_figures:
        rows.append(Row("no privacy (gcn)", _figures(_without_privacy("gcn", graph)), False))
    labels_are_open = LABELS not in privacy.level.private
    rows.append(Row("the commonest class", {"accuracy": _commonest(graph)}, labels_are_open))
    return Paid(rows, withheld)


def _without_privacy(name: str, graph: Graph) -> dict[str, dict[str, float | None]]:
    return evaluate(load_method(find_method(name))(Privacy.none()).fit(graph), graph)


def _commonest(graph: Graph) -> float | None:
    """The accuracy of naming the commonest training class on every test node."""
    if graph.train_mask is None or graph.test_mask is None:
        return None
    trained, tested = (graph.labels[mask & (graph.labels >= 0)] for mask in (graph.train_mask, graph.test_mask))
    return majority(trained, tested) if len(tested) else None


def _figures(found: dict[str, dict[str, float | None]]) -> dict[str, float | None]:
    return {key: found[key].get("test") for key in FIGURES if key in found}
