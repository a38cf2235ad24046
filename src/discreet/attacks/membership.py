"""Membership of a node (LiRA, Carlini et al. 2022): was its label used in training? Judged by shadow models."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from discreet.arrays import BoolArray, FloatArray, IntArray
from discreet.attacks.fits import FitRows, Progress, run_fits, visible_rows
from discreet.attacks.rates import Rates, rates_of
from discreet.attacks.victim import Victim
from discreet.errors import ParameterError
from discreet.graph.graph import Graph

LEAST_SHADOWS = 4
"""Two with the node and two without: the fewest that have a spread."""
_SPREAD = 1e-3
"""The least standard deviation of a confidence: fits that agree to the last bit say nothing about theirs."""


def membership(
    victim: Victim, shadows: int, rng: np.random.Generator, *, workers: int = 0, progress: Progress | None = None
) -> dict[str, Rates]:
    """Training nodes against test nodes, by what ``shadows`` fits of the same configuration say of each.

    Every shadow model is trained on a random choice of as many of these nodes as the victim was. *online* compares
    with models that were and were not trained on the node, *offline* with the latter alone, and *neighbourhood* is
    online over the mean confidence in the node and its neighbours, whose predictions carry its label on.
    """
    if shadows < LEAST_SHADOWS:
        raise ParameterError(f"membership needs at least {LEAST_SHADOWS} shadow models, not {shadows}")
    graph = victim.graph
    nodes, member = _candidates(graph)
    chosen = [_random_half(len(nodes), int(member.sum()), rng) for _ in range(shadows)]
    fits = [
        FitRows(clone(victim.estimator), _trained_on(graph, nodes[taken]), victim.is_open and victim.uncovered)
        for taken in chosen
    ]
    shadow_rows = run_fits(fits, workers, "shadow models", progress)
    inside = np.array(chosen)
    own = np.array([_confidence(rows, graph)[nodes] for rows in [visible_rows(victim), *shadow_rows]])
    around = np.array(
        [_mean_with_neighbours(_confidence(rows, graph), graph)[nodes] for rows in [visible_rows(victim), *shadow_rows]]
    )
    return {
        "online": rates_of(_online(own[0], own[1:], inside), member),
        "offline": rates_of(_offline(own[0], own[1:], inside), member),
        "neighbourhood": rates_of(_online(around[0], around[1:], inside), member),
    }


def _candidates(graph: Graph) -> tuple[IntArray, BoolArray]:
    """Labelled training and test nodes, and which of them were trained on."""
    known = graph.labels >= 0
    nodes = np.flatnonzero((graph.mask("train") | graph.mask("test")) & known)
    member = graph.mask("train")[nodes]
    if member.all() or not member.any():
        raise ParameterError("membership needs labelled training nodes and labelled test nodes")
    return nodes, member


def _random_half(size: int, taken: int, rng: np.random.Generator) -> BoolArray:
    found = np.zeros(size, dtype=np.bool_)
    found[rng.choice(size, taken, replace=False)] = True
    return found


def _trained_on(graph: Graph, nodes: IntArray) -> Graph:
    train = np.isin(np.arange(graph.num_nodes), nodes)
    val = graph.val_mask
    return graph.with_masks(train, None if val is None else val & ~train, None)


def _confidence(rows: FloatArray, graph: Graph) -> FloatArray:
    """log p/(1 − p) of each node's own label; 0 where it has none."""
    label = np.maximum(graph.labels, 0)
    p = np.clip(rows[np.arange(len(rows)), label], 1e-6, 1 - 1e-6)
    return np.where(graph.labels >= 0, np.log(p / (1 - p)), 0.0)


def _mean_with_neighbours(confidence: FloatArray, graph: Graph) -> FloatArray:
    """The mean over a node and its neighbours."""
    found: FloatArray = (confidence + graph.adjacency @ confidence) / (1 + graph.in_degree())
    return found


def _online(seen: FloatArray, shadows: FloatArray, inside: BoolArray) -> FloatArray:
    """The log-likelihood ratio of two normal distributions with one spread per node group."""
    centre_in, centre_out = _centre(shadows, inside), _centre(shadows, ~inside)
    spread = [_spread(shadows - centre, mask) for centre, mask in ((centre_in, inside), (centre_out, ~inside))]
    ratio: FloatArray = -(((seen - centre_in) / spread[0]) ** 2) + ((seen - centre_out) / spread[1]) ** 2
    return ratio


def _offline(seen: FloatArray, shadows: FloatArray, inside: BoolArray) -> FloatArray:
    centre = _centre(shadows, ~inside)
    found: FloatArray = (seen - centre) / _spread(shadows - centre, ~inside)
    return found


def _centre(shadows: FloatArray, mask: BoolArray) -> FloatArray:
    """The mean over the models in the mask, by node; over all models where there is none."""
    count = mask.sum(axis=0)
    mean = (shadows * mask).sum(axis=0) / np.maximum(count, 1)
    return np.where(count > 0, mean, shadows.mean(axis=0))


def _spread(apart: FloatArray, mask: BoolArray) -> float:
    return max(_SPREAD, float(np.sqrt((apart[mask] ** 2).mean())))
