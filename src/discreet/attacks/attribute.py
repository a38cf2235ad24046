"""Attribute inference: the label or one feature of a training node, from what is released."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from discreet.arrays import FloatArray, IntArray
from discreet.attacks.fits import visible_rows
from discreet.attacks.pairs import TINY
from discreet.attacks.rates import Rates, rates_of
from discreet.attacks.victim import Victim
from discreet.errors import ParameterError


def label_inference(victim: Victim, wanted: int, rng: np.random.Generator) -> Rates:
    """Whether a class is the node's: its own label against one other, by the probability that the model gives."""
    graph = victim.graph
    if graph.num_classes < 2:
        raise ParameterError("there is one class only: no label to guess")
    nodes = _training_nodes(victim, wanted, rng)
    labels = graph.labels[nodes]
    other = (labels + rng.integers(1, graph.num_classes, len(nodes))) % graph.num_classes
    rows = visible_rows(victim)
    scores = np.concatenate([rows[nodes, labels], rows[nodes, other]])
    return rates_of(scores, np.arange(2 * len(nodes)) < len(nodes))


def feature_inference(victim: Victim, wanted: int, rng: np.random.Generator) -> Rates | None:
    """Whether one feature of a node is there, by which value makes the model surer of the node's label.

    The attacker has the weights and knows all else about the node. None where no feature is zero for one node and not
    for another.
    """
    graph = victim.graph
    nodes = _training_nodes(victim, wanted, rng)
    dense = sp.csr_array(graph.features)[nodes].toarray()
    columns = np.array([_column(row, rng) for row in dense])
    usable = columns >= 0
    nodes, columns, dense = nodes[usable], columns[usable], dense[usable]
    if len(nodes) < 2:
        return None
    there = dense[np.arange(len(nodes)), columns] != 0
    if there.all() or not there.any():
        return None
    value = np.abs(dense).max() or 1.0
    surer = _confidence(victim, nodes, columns, value) - _confidence(victim, nodes, columns, 0.0)
    return rates_of(surer, there)


def _training_nodes(victim: Victim, wanted: int, rng: np.random.Generator) -> IntArray:
    nodes = np.flatnonzero(victim.graph.mask("train") & (victim.graph.labels >= 0))
    if not len(nodes):
        raise ParameterError("attribute inference needs labelled training nodes")
    return rng.permutation(nodes)[:wanted]


def _column(row: FloatArray, rng: np.random.Generator) -> int:
    """A column that holds something, or one that holds nothing, by the toss of a coin; -1 where there is no such."""
    places = np.flatnonzero(row != 0) if rng.integers(2) else np.flatnonzero(row == 0)
    return int(rng.choice(places)) if len(places) else -1


def _confidence(victim: Victim, nodes: IntArray, columns: IntArray, value: float) -> FloatArray:
    """The probability of each node's label with its feature set to ``value``, from the weights alone."""
    features = sp.lil_array(victim.graph.features)
    features[nodes, columns] = value
    graph = victim.graph.with_features(sp.csr_array(features))
    rows = Victim(victim.estimator, graph, victim.name).rows_from_weights()
    label = victim.graph.labels[nodes]
    found: FloatArray = np.log(np.maximum(rows[nodes, label], TINY))
    return found
