"""Noisy selection: the law of what is picked, and noise that follows the event."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chisquare, ks_2samp

from discreet.errors import PlanViolationError
from discreet.graph.synthetic import csbm
from discreet.mechanisms import exact_picks, gaussian, topk
from discreet.mechanisms.bits import BitStream, NoiseSource
from discreet.mechanisms.curator import Curator
from discreet.privacy import events
from discreet.privacy.budget import Privacy
from discreet.privacy.events.top_k import OneShotTopKDpEvent
from discreet.privacy.levels import NodeLevel
from discreet.privacy.plan import Stage, make_plan
from discreet.queries.picks import gumbel_event
from tests.privacy.events.test_top_k import top_k_law
from tests.queries.test_picks import picks_of


def stage_of(selection="em0", rows=1, candidates=6, picks=2, clip=1.0):
    return Stage.of("rows", picks_of(selection, rows, candidates, picks, clip))


# -------------------------------------------------------------------- the law of the picks


@pytest.mark.parametrize("stored", [6, 3, 0])
def test_gumbel_picks_have_the_law_of_exponential_mechanisms(stored):
    """Ordered pairs out of six candidates, with 6, 3 or no scores stored; the rest is one group."""
    scores = np.zeros(6)
    scores[:stored] = np.linspace(1.0, 0.2, 6)[:stored]
    stage = replace(stage_of(rows=8_000), event=events.repeat(OneShotTopKDpEvent(0.7, 2), 8_000))
    value = sp.csr_array(np.tile(scores, (8_000, 1)))
    answer = topk.release_gumbel(value, stage, np.random.default_rng(1))
    outcomes = list(itertools.permutations(range(6), 2))
    counts = dict.fromkeys(outcomes, 0)
    for pair in answer[:, :, 0].astype(int):
        counts[tuple(pair)] += 1
    expected = 8_000 * top_k_law(scores, 0.7, 2)
    assert chisquare(list(counts.values()), expected).pvalue > 1e-4
    assert (answer[:, :, 1] == 0.5).all()


def test_gaussian_picks_have_the_law_of_dense_noise():
    """Against noise on every entry, in which the two largest are looked up."""
    rows = 8_000
    scores = np.array([0.6, 0.3] + [0.0] * 18)
    stage = replace(stage_of("gm", rows=rows, candidates=20), event=events.GaussianDpEvent(0.5 / math.sqrt(2 * rows)))
    assert stage.noise_std == pytest.approx(0.5)
    answer = topk.release_gaussian(sp.csr_array(np.tile(scores, (rows, 1))), stage, np.random.default_rng(2))
    dense = scores + 0.5 * np.random.default_rng(3).standard_normal((rows, 20))
    best = np.argsort(-dense, axis=1)[:, :2]
    for slot in range(2):
        values = np.take_along_axis(dense, best, axis=1)[:, slot]
        assert ks_2samp(answer[:, slot, 1], values).pvalue > 1e-4
        seen, expected = (np.bincount(ids.astype(int), minlength=20) for ids in (answer[:, slot, 0], best[:, slot]))
        assert abs(seen[0] - expected[0]) < 5 * math.sqrt(2 * expected[0])
    assert (answer[:, 0, 0] != answer[:, 1, 0]).all()
    steps = answer[:, :, 1] / gaussian.grid_of(stage).step
    assert np.array_equal(steps, np.rint(steps))  # on the public grid, whatever the scores


def test_laplace_values_are_of_the_true_scores():
    rows, scores = 8_000, np.array([0.9, 0.4, 0.0])
    event = gumbel_event(0.05, 0.3, rows, 2)
    stage = replace(stage_of("em1", rows=rows, candidates=3), event=event)
    answer = topk.release_gumbel(sp.csr_array(np.tile(scores, (rows, 1))), stage, np.random.default_rng(4))
    error = answer[:, :, 1] - scores[answer[:, :, 0].astype(int)]
    assert np.abs(error).mean() == pytest.approx(0.3, rel=0.02)
    assert abs(error.mean()) < 0.02


@pytest.mark.parametrize("scale", [0.07, 0.7, 30.0])
@pytest.mark.parametrize("certain", [True, False])
def test_picks_have_their_law_where_doubles_decide_and_where_they_do_not(certain, scale, monkeypatch):
    """Three picks out of seven candidates, four of them stored; with slack 1 whole numbers decide every pick."""
    if not certain:
        monkeypatch.setattr(exact_picks, "_slack", lambda count: 1.0)
    rows = 8_000 if certain else 1_500
    scores = np.array([0.3, 1.0, 0.0, 0.9, 0.0, 0.0, 0.0])
    value = sp.csr_array(np.tile(scores, (rows, 1)))
    chosen, true = exact_picks.exponential_picks(value, 3, scale, BitStream(bytes(32)))
    assert np.array_equal(true, scores[chosen])
    outcomes = {triple: place for place, triple in enumerate(itertools.permutations(range(7), 3))}
    counts = np.bincount([outcomes[tuple(triple)] for triple in chosen.tolist()], minlength=len(outcomes))
    expected = rows * top_k_law(scores, scale, 3)
    often = expected > 5
    seen, law = (np.append(part[often], part[~often].sum()) for part in (counts, expected))
    assert chisquare(seen + 1e-9, law + 1e-9, sum_check=False).pvalue > 1e-4


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1])
def test_doubles_and_whole_numbers_decide_alike(word):
    """Wherever doubles decide at all; words at both ends are left to whole numbers."""
    rng = np.random.default_rng(word % 997)
    for _ in range(200):
        scores = np.append(rng.random(rng.integers(0, 6)), 0.0)
        copies = np.append(np.ones(len(scores) - 1), float(rng.integers(1, 50)))
        near = (word + int(rng.integers(2**62))) % 2**64
        by_doubles = exact_picks._pick(scores, copies, 0.3, near, BitStream(bytes(32)))
        best = scores.max()
        assert by_doubles == exact_picks._decide(scores, copies, best, 0.3, near, BitStream(bytes(32)))


@pytest.mark.parametrize(("stored", "count"), [((), 3), ((0, 5), 3), (tuple(range(9)), 1), (tuple(range(95)), 5)])
def test_others_are_different_and_not_stored(stored, count):
    bits = BitStream(bytes(32))
    width = 10 if len(stored) < 20 else 100
    seen = set()
    for _ in range(200):
        found = exact_picks._others(np.array(stored, dtype=np.int64), width, count, bits)
        assert len(set(found.tolist())) == count
        assert not set(found.tolist()) & set(stored)
        seen |= set(found.tolist())
    assert seen == set(range(width)) - set(stored)


# -------------------------------------------------------------------- the stage


@pytest.mark.parametrize("selection", ["em0", "em1", "gm"])
def test_the_plan_answers_through_the_curator(selection):
    privacy = Privacy(NodeLevel(), 2.0, 1e-4)
    plan = make_plan("test", privacy, 100, [stage_of(selection, rows=5, clip=0.1)], "weights")
    assert 1.9 < plan.epsilon <= 2.0
    _, private = privacy.level.split(csbm(num_nodes=100, seed=0))
    curator = Curator(plan, NoiseSource(insecure_seed=0), [private])
    answer = curator.ask("rows", given=sp.csr_array(np.random.default_rng(0).random((5, 6))))
    assert answer.shape == plan.stages[0].query.answer_shape == (5, 2, 2)
    assert ((answer[:, :, 0] >= 0) & (answer[:, :, 0] < 6)).all()
    curator.finish()
    assert plan.stages[0].noise_std > 0
    assert "rows" in str(plan)


def test_without_privacy_the_largest_come_back():
    stage = replace(stage_of("em1", rows=2, picks=2), event=events.NonPrivateDpEvent())
    value = sp.csr_array(np.array([[0, 0.2, 0, 0.9, 0.5, 0], [0, 0, 0.3, 0, 0, 0]]))
    answer = topk.release_gumbel(value, stage, np.random.default_rng(0))
    assert answer[0].tolist() == [[3, 0.9], [4, 0.5]]
    assert answer[1].tolist() == [[2, 0.3], [0, 0]]


def test_values_beyond_the_clip_are_refused():
    rng = np.random.default_rng(0)
    for bad in (1.1, -0.1):
        with pytest.raises(PlanViolationError, match="scores between 0 and 1"):
            topk.release_gumbel(sp.csr_array(np.full((1, 6), bad)), stage_of(), rng)
    with pytest.raises(PlanViolationError, match="norm at most 1"):
        topk.release_gaussian(sp.csr_array(np.ones((1, 6))), stage_of("gm"), rng)
