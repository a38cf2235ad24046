"""EdgeRand and LapGraph: the law of every cell, the number of edges, and nothing of n²."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binomtest

from discreet.errors import ParameterError
from discreet.mechanisms import noisy_graph
from discreet.mechanisms.bits import BitStream, NoiseSource, exp_bounds
from discreet.ops.cells import Cells
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel
from discreet.privacy.plan import Stage, make_plan
from discreet.queries.edge_cells import FlippedCells, LargestCells

RUNS = 1500


def _stage(query: FlippedCells | LargestCells, epsilon: float) -> Stage:
    plan = make_plan(
        "none", Privacy(EdgeLevel(), epsilon, 1e-5), query.num_nodes, [Stage.of("graph", query)], "weights"
    )
    return plan.stages[0]


def _streams(runs: int) -> list[BitStream]:
    noise = NoiseSource(insecure_seed=3)
    return [noise.stream("graph", run) for run in range(runs)]


def _value(query: FlippedCells | LargestCells, cells: list[int]) -> sp.csr_array:
    found = np.zeros(query.shape)
    found[0, cells] = 1
    return sp.csr_array(found)


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1.0, 4.0, 12.0, 30.0])
def test_a_flip_is_never_rarer_than_epsilon_allows(epsilon: float) -> None:
    scale = noisy_graph.flip_scale(epsilon)
    _, kept = exp_bounds(1 / scale, 200)  # above 2²⁰⁰(1 − p)
    least, _ = exp_bounds(Fraction(epsilon), 200)  # below 2²⁰⁰·e^−ε
    assert ((1 << 200) - kept) << 200 >= least * kept  # p ≥ e^−ε(1 − p)
    assert -math.expm1(-1 / scale) == pytest.approx(1 / (1 + math.exp(epsilon)))


@pytest.mark.parametrize("epsilon", [0.0, 31.0])
def test_no_sampler_no_plan(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="EdgeRand"):
        noisy_graph.flip_scale(epsilon)


def test_every_cell_is_flipped_equally_often_and_independently() -> None:
    query = FlippedCells(EdgeLevel(), 5, False, 1.0)
    stage, value = _stage(query, 1.0), _value(query, [0, 3, 9])
    flips = np.array([(stage_answer(value, stage, bits) != value.toarray())[0] for bits in _streams(RUNS)])
    for cell in flips.T:
        assert binomtest(int(cell.sum()), RUNS, query.flip_rate).pvalue > 1e-5
    pairs = np.corrcoef(flips.T.astype(float))[np.triu_indices(10, 1)]
    assert np.abs(pairs).max() < 4.5 / math.sqrt(RUNS)


def stage_answer(value: sp.csr_array, stage: Stage, bits: BitStream) -> np.ndarray:
    answer = noisy_graph.release_flipped(value, stage, bits)
    assert (np.diff(answer.indices) > 0).all()
    return answer.toarray()


def test_lap_graph_against_noise_on_every_cell() -> None:
    """How often an edge and an empty cell are kept, beside the mechanism as it is written, cell by cell."""
    query = LargestCells(EdgeLevel(), 40, False, 0.5)
    stage, edges, rng = _stage(query, 2.0), list(range(0, 780, 39)), np.random.default_rng(0)
    value, cells = _value(query, edges), query.cells.count
    ours = np.zeros(cells)
    for bits in _streams(RUNS):
        ours += noisy_graph.release_largest(value, stage, bits).toarray()[0]
    theirs, scale = np.zeros(cells), stage.noise_std
    for _ in range(RUNS):
        wanted = int(np.clip(np.rint(len(edges) + rng.laplace(0, scale)), 0, cells))
        noisy = value.toarray()[0] + rng.laplace(0, scale, cells)
        theirs[np.argsort(-noisy)[:wanted]] += 1
    kept, false = ours[edges].sum() / RUNS, np.delete(ours, edges).sum() / RUNS
    assert kept == pytest.approx(theirs[edges].sum() / RUNS, abs=0.5)
    assert false == pytest.approx(np.delete(theirs, edges).sum() / RUNS, abs=0.5)
    empty = np.delete(ours, edges)  # all alike
    assert ((empty - empty.mean()) ** 2).sum() / empty.mean() == pytest.approx(len(empty), rel=0.25)


def test_work_goes_by_the_edges_of_the_noisy_graph() -> None:
    """A graph of two million nodes has 2·10¹² cells; a few thousand of them are looked at."""
    nodes = 2_000_000
    for query, release, epsilon in (
        (FlippedCells(EdgeLevel(), nodes, False, 20.0), noisy_graph.release_flipped, 20.0),
        (LargestCells(EdgeLevel(), nodes, False), noisy_graph.release_largest, 2.0),
    ):
        sources = np.arange(3000)
        found = np.sort(Cells(nodes, False).numbers(sources, sources + 7))
        value = sp.csr_array((np.ones(3000), found, np.array([0, 3000])), shape=query.shape)
        started = time.process_time()
        answer = release(value, _stage(query, epsilon), BitStream(bytes(32)))
        assert time.process_time() - started < 5
        assert 2000 < answer.nnz < 12_000


def test_thinning_coin_is_below_one() -> None:
    """What encloses it must close in on a probability, for rare and for frequent cells."""
    for depth in (Fraction(1, 10**6), Fraction(3), Fraction(25)):
        wider = 1 / Fraction(-math.log1p(-math.exp(-float(depth)) / 2) * noisy_graph._THINNED)
        low, high = noisy_graph._quotient(depth, wider)(64)
        assert (1 << 64) - (1 << 26) < low <= high < 1 << 64
