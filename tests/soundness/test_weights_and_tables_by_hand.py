"""Class weights and tables of figures, attacked by hand: every small case, neighbours made here and not by the levels.

What is expected is computed once more from the definition: clipped gradients one by one, moments by dense matrices,
counts by hand.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from discreet.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.mechanisms.objective import perturbation as objective
from discreet.mechanisms.objective.losses import SoftMargin
from discreet.privacy.levels import EdgeLevel, Level, parse_level
from discreet.queries.class_counts import ClassCounts
from discreet.queries.confusion import ConfusionTable, PredictionCounts, ScoreTable
from discreet.queries.gradients import OwnRecordSteps, StepRule
from discreet.queries.moments import SmoothedFeatureMoments
from discreet.queries.propagated import INFINITE, restart_sensitivity
from tests.mechanisms.objective.test_perturbation import exact_epsilon, facts

NULL, REPLACE = "node:owned,max_degree=3,change=null", "node:owned,max_degree=3,change=replace"
RECORDS = [(x, y) for x in (-2.0, 0.0, 3.0) for y in (-1, 0, 1, 2)]
"""A feature and a label, −1 for none."""
GONE = (0.0, -1)
PAIRS = list(itertools.combinations(range(3), 2))


def part_of(records: tuple[tuple[float, int], ...], level: Level, edges: Any = ((0, 1),)) -> PrivatePart:
    ends = np.array(list(edges), dtype=np.int64).reshape(-1, 2)
    features, labels = (np.array(column) for column in zip(*records, strict=True))
    graph = Graph.from_edges(
        ends[:, 0], ends[:, 1], features.astype(np.float32)[:, None], labels, directed=False, num_classes=3
    )
    return level.split(graph.with_masks(np.arange(len(records)), None, None))[1]


Records = tuple[tuple[float, int], tuple[float, int]]


@cache
def both(records: Records, spec: str, gone: bool = False) -> PrivatePart:
    """Two nodes and the edge between them, which goes with a node."""
    return part_of(records, parse_level(spec), () if gone else ((0, 1),))


def neighbours(spec: str) -> Iterator[tuple[Records, Records, int]]:
    """Two nodes with every pair of records, one of them replaced by every other record, or gone."""
    for records in itertools.product(RECORDS, repeat=2):
        for unit in range(2):
            for other in [GONE] if spec == NULL else RECORDS:
                yield records, (other, records[1]) if unit == 0 else (records[0], other), unit


# -------------------------------------------------------------------- tables


class Thresholds:
    """A released model whose probabilities come from a table of features; some are no numbers."""

    def __init__(self, hostile: bool) -> None:
        self.table = {
            -2.0: [0.7, 0.2, 0.1],
            0.0: [0.1, 0.1, 0.8],
            3.0: [math.nan, math.inf, 0.5] if hostile else [0, 1, 0],
        }

    def predict_proba(self, graph: Graph, **options: Any) -> np.ndarray:
        return np.array([self.table[float(x)] for x in np.asarray(graph.features)[:, 0]])


@pytest.mark.parametrize("spec", [NULL, REPLACE])
@pytest.mark.parametrize("kind", ["confusion", "scores", "counts"])
def test_tables_of_all_small_graphs_move_by_what_is_declared_and_no_less(kind: str, spec: str) -> None:
    level = parse_level(spec)
    made: dict[str, PredictionCounts | ClassCounts] = {
        "confusion": ConfusionTable(level, "weights+others-predictions", 3, "all"),
        "scores": ScoreTable(level, "weights+others-predictions", 3, "all", 2),
        "counts": ClassCounts(level, 3),
    }
    query, worst = made[kind], 0.0
    for hostile in (False, True):
        model = Thresholds(hostile)
        answer = cache(lambda records, gone, model=model: query.answer(both(records, spec, gone), model=model))
        for one, two, _ in neighbours(spec):
            tables = [answer(one, False), answer(two, spec == NULL)]
            worst = max(worst, float(np.linalg.norm(tables[0] - tables[1])))
            labelled = sum(label >= 0 for _, label in one)
            assert tables[0].sum() == labelled * (3 if kind == "scores" else 1)
    assert worst == pytest.approx(query.bound().sensitivity)


# -------------------------------------------------------------------- class weights inside clipping

SHARES = [None, [0.0, 0.4, 1.0], [5.0, -3.0, math.nan], [math.inf, -math.inf, 1e300]]


def by_hand(network: nn.Linear, record: tuple[float, int], clip: float, shares: list[float] | None) -> np.ndarray:
    """The clipped gradient of one record, times its share brought into [0, 1]."""
    x, y = record
    if y < 0:
        return np.zeros(6)
    copy = nn.Linear(1, 3).double()
    copy.load_state_dict(network.state_dict())
    nn.functional.cross_entropy(copy(torch.tensor([[x]]).double()), torch.tensor([y])).backward()  # type: ignore[no-untyped-call]
    flat = torch.cat([copy.weight.grad.ravel(), copy.bias.grad.ravel()]).numpy()  # type: ignore[union-attr]
    share = 1.0 if shares is None else shares[y]
    share = 0.0 if math.isnan(share) else min(max(share, 0.0), 1.0)
    return np.asarray(share * flat * min(1.0, clip / np.linalg.norm(flat)))


@pytest.mark.parametrize("shares", SHARES, ids=str)
@pytest.mark.parametrize("spec", [NULL, REPLACE])
def test_weighed_terms_of_all_small_graphs_keep_to_the_clip_norm(spec: str, shares: list[float] | None) -> None:
    clip = 0.3
    torch.manual_seed(0)
    network = nn.Linear(1, 3)
    query = OwnRecordSteps(parse_level(spec), "steps", 6, 2, StepRule(clip))
    inputs = {"network": network, "class_shares": shares}

    @cache
    def terms(records: Records, gone: bool) -> np.ndarray:
        part = both(records, spec, gone)
        found = query.terms(part, **inputs)
        np.testing.assert_allclose(query.answer(part, batch=np.arange(2), **inputs), found.sum(axis=0), atol=1e-7)
        return found

    for one, two, unit in neighbours(spec):
        before, after = terms(one, False), terms(two, spec == NULL)
        assert np.linalg.norm(before, axis=1).max() <= clip
        np.testing.assert_array_equal(before[1 - unit], after[1 - unit])
        if spec == NULL:
            assert not after[unit].any()
        moved = np.linalg.norm(before.sum(axis=0) - after.sum(axis=0))
        assert moved <= query.bound().sensitivity * (1 + 1e-12)
    for record in RECORDS:
        np.testing.assert_allclose(terms((record, GONE), False)[0], by_hand(network, record, clip, shares), atol=1e-5)


# -------------------------------------------------------------------- class weights inside moments


def walks(edges: set[tuple[int, int]], alpha: float) -> np.ndarray:
    """R_∞ of three nodes, by inverting a matrix."""
    a = np.eye(3)
    for i, j in edges:
        a[i, j] = a[j, i] = 1
    return np.asarray(alpha * np.linalg.inv(np.eye(3) - (1 - alpha) * a / a.sum(axis=1, keepdims=True)))


def test_weighed_moments_of_all_small_graphs_move_by_no_more_than_declared() -> None:
    alpha, gram = 0.8, 0.7
    query = SmoothedFeatureMoments(EdgeLevel(), alpha, (INFINITE,), True, 2, 3, gram_weight=gram)
    rows = [np.array(found) for found in ([1.0, 0.0], [-1.0, 0.0], [0.6, -0.8])]
    hostile = (None, np.array([5.0, -1.0, math.nan]), np.array([0.5, 1.0, 1.0]))

    @cache
    def answer(number: int, picked: tuple[int, ...], which: int) -> np.ndarray:
        edges = {pair for place, pair in enumerate(PAIRS) if number >> place & 1}
        x, labels, shares = np.array([rows[place] for place in picked]), np.eye(3)[list(picked)] - 1 / 3, hostile[which]
        found = query.answer(part_of((GONE,) * 3, query.level, edges), rows=x, labels=labels, shares=shares)
        u = np.ones(3) if shares is None else np.clip(np.nan_to_num(shares), 0, 1)
        z = walks(edges, alpha) @ x
        np.testing.assert_allclose(found[:6].reshape(2, 3), z.T @ (u[:, None] * labels), atol=1e-8)
        return found

    worst = 0.0
    for number, edge in itertools.product(range(8), range(3)):
        for picked, which in itertools.product(itertools.product(range(3), repeat=3), range(3)):
            moved = answer(number, picked, which) - answer(number | 1 << edge, picked, which)
            worst = max(worst, float(np.linalg.norm(moved)))
    assert 0.6 * query.bound().sensitivity < worst <= query.bound().sensitivity


# -------------------------------------------------------------------- class weights inside the objective


@pytest.mark.parametrize("shares", [np.ones(3), np.array([1.0, 0.2, 0.2]), np.array([0.0, 1.0, 0.5])], ids=str)
def test_the_weighed_minimiser_of_all_graphs_of_three_nodes_keeps_its_epsilon(shares: np.ndarray) -> None:
    """Rows of one dimension, so that the density of what is released can be integrated."""
    alpha, worst = 0.5, 0.0
    psi = restart_sensitivity(alpha, [INFINITE])
    x, targets = np.array([1.0, -1.0, 1.0]), np.eye(2)[[0, 1, 0]]
    q = facts(rows=3, width=1, classes=2, sensitivity=psi, loss=SoftMargin(2), delta=1e-2, bounds="sharp")
    ridge = 20 * objective.ridge_floor(q)
    for number, edge in itertools.product(range(8), range(3)):
        edges = {pair for place, pair in enumerate(PAIRS) if number >> place & 1}
        if PAIRS[edge] not in edges:
            one, two = (walks(sides, alpha) @ x for sides in (edges, edges | {PAIRS[edge]}))
            worst = max(worst, exact_epsilon(one, two, targets, q, ridge, shares=shares))
    assert 0.2 < worst <= 1.0
