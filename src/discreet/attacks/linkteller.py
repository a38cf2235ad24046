"""LinkTeller (Wu et al. 2022): change one node's features a little, and see whose predictions move."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.arrays import BoolArray, FloatArray, IntArray, SingleArray
from discreet.attacks.pairs import TINY, is_linked
from discreet.attacks.rates import Rates, rates_of
from discreet.attacks.victim import Victim
from discreet.graph.graph import Graph

CHANGE = 1e-2
"""By how much of itself each feature is changed: far above the rounding of single precision."""
DENSITIES = (0.25, 1.0, 4.0)
"""Guesses at the number of links among the nodes, as multiples of the true number."""


def linkteller(
    victim: Victim, nodes: IntArray, progress: Callable[[str, int, int], None] | None = None
) -> Rates | None:
    """Rank all pairs of ``nodes`` by the influence of either on the other; None where the model refuses to be asked.

    ``precision`` in the result is that of the attack at each guess at the number of links, 1.0 being the true one.
    """
    answers = []
    for place, node in enumerate(nodes):
        answer = victim.answer(_changed(victim.graph, int(node)))
        if answer is None:
            return None
        answers.append(answer[nodes])
        if progress is not None:
            progress("linkteller", place + 1, len(nodes))
    scores_seen = _scores(np.array(answers))
    # most nodes do not influence a given one, so the median over all changes is the answer without a change
    influence = np.linalg.norm(scores_seen - np.median(scores_seen, axis=0), axis=2) / CHANGE
    upper = np.triu_indices(len(nodes), 1)
    scores, linked = (influence + influence.T)[upper], is_linked(victim.graph, nodes)[upper]
    if not linked.any():
        return None
    precision = {f"{guess:g}": _precision(scores, linked, guess) for guess in DENSITIES}
    return rates_of(scores, linked, precision=precision, links=int(linked.sum()))


def _scores(rows: FloatArray) -> FloatArray:
    """Log-probabilities less their mean: the scores before the softmax, which hides movement where it is sure."""
    logs = np.log(np.maximum(rows, TINY))
    found: FloatArray = logs - logs.mean(axis=2, keepdims=True)
    return found


def _changed(graph: Graph, node: int) -> Graph:
    """One node's entries made larger and smaller in turn: a row that is only scaled means the same to many models."""
    features = graph.features.copy()
    if isinstance(features, np.ndarray):
        features[node] *= _factors(features.shape[1])
    else:
        row = slice(features.indptr[node], features.indptr[node + 1])
        features.data[row] *= _factors(features.indptr[node + 1] - features.indptr[node])
    return graph.with_features(features)


def _factors(size: int) -> SingleArray:
    return (1 + CHANGE * (-1.0) ** np.arange(size)).astype(np.float32)


def _precision(scores: FloatArray, linked: BoolArray, guess: float) -> float:
    """The share of true links among as many pairs as the attacker takes to be linked."""
    taken = max(1, round(guess * int(linked.sum())))
    return float(linked[np.argsort(-scores, kind="stable")[:taken]].mean())
