"""Picks of the largest entries: bounds of clipped rows, what a stage costs, and what cannot be picked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.errors import ParameterError
from discreet.privacy import events
from discreet.privacy.levels import NodeLevel, NoPrivacy
from discreet.queries.picks import Selection, TopPicks, clip_entries, clip_norms


@dataclass(frozen=True)
class GivenScores(TopPicks):
    """Picks of scores that come as an input."""

    @property
    def words(self) -> str:
        """Rows."""
        return "rows"

    def scores(self, private: Any, *, given: Any = None, **inputs: Any) -> sp.csr_array:
        """As they come."""
        return given


def picks_of(
    selection: Selection = "em0", rows: int = 1, candidates: int = 6, picks: int = 2, clip: float = 1.0
) -> GivenScores:
    """A query of these figures."""
    return GivenScores(NodeLevel(), selection, rows, candidates, picks, clip)


def pagerank_of(edges, n, source):
    from discreet.ops.ppr import appr_rows

    both = np.array([*edges, *[(v, u) for u, v in edges]]).reshape(-1, 2)
    graph = sp.csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(n, n))
    return appr_rows(graph, [source], alpha=0.05, rho=1e-9)


def test_two_pagerank_rows_are_sqrt_two_clip_norms_apart(record_property):
    """The path source–hub–crowd: with the hub's edges the row lies on the crowd, without on the source alone."""
    n = 40
    edges = [(0, 1), *((1, other) for other in range(2, n))]
    with_hub, without = pagerank_of(edges, n, 0), pagerank_of([], n, 0)
    clip = 0.01
    apart = np.linalg.norm((clip_norms(with_hub, clip) - clip_norms(without, clip)).toarray())
    one, two = pagerank_of([(0, 1)], 4, 0)[:, [1]], pagerank_of([(0, 2)], 4, 0)[:, [2]]
    assert one.nnz == two.nnz == 1  # own entry left out, as the method does: disjoint candidates
    exact = np.linalg.norm([clip_norms(one, clip).data[0], -clip_norms(two, clip).data[0]])
    assert exact == pytest.approx(math.sqrt(2) * clip)
    assert clip < apart <= math.sqrt(2) * clip * (1 + 1e-12)
    record_property("gaussian rows", exact / (math.sqrt(2) * clip))


def test_no_two_clipped_rows_are_further_apart(record_property):
    """Random non-negative rows: never beyond √2·C in ℓ2 and C in ℓ∞; taking C for the ℓ2 distance would fail."""
    rng = np.random.default_rng(0)
    furthest = {"l2": 0.0, "linf": 0.0}
    for _ in range(300):
        one, two = (sp.csr_array(rng.pareto(1, (4, 9)) * (rng.random((4, 9)) < 0.3)) for _ in range(2))
        l2 = np.linalg.norm((clip_norms(one, 0.1) - clip_norms(two, 0.1)).toarray(), axis=1) / 0.1
        linf = np.abs((clip_entries(one, 0.1) - clip_entries(two, 0.1)).toarray()).max() / 0.1
        furthest = {"l2": max(furthest["l2"], l2.max()), "linf": max(furthest["linf"], float(linf))}
    assert 1.3 < furthest["l2"] <= math.sqrt(2) + 1e-12
    assert furthest["linf"] == pytest.approx(1.0)
    record_property("clip_norms", furthest["l2"] / math.sqrt(2))


@pytest.mark.parametrize("selection", ["em0", "gm"])
def test_any_scores_end_within_the_clip(selection):
    """Negative, huge and none at all: nothing reaches the mechanism that it would refuse."""
    scores = sp.csr_array(np.array([[np.nan, np.inf, 0.5, 1e300, -np.inf, -1.0], [1e-320, 0, 0, 0, 0, 2.0]]))
    found = picks_of(selection, rows=2, clip=0.1).answer(None, given=scores).toarray()
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert (np.linalg.norm(found, axis=1) if selection == "gm" else found).max() <= 0.1 * (1 + 1e-12)


def test_the_bound_is_the_clip():
    assert picks_of("em1", rows=7, clip=0.1).bound().sensitivity == 0.1
    assert picks_of("gm", rows=8, clip=0.1).bound().sensitivity == pytest.approx(0.4)
    assert picks_of("gm").bound().metric == "l2"
    assert picks_of("em0").bound().metric == "linf"
    assert GivenScores(NoPrivacy(), "gm", 1, 6, 2, 1.0).bound().sensitivity == math.inf


def test_the_two_costs_of_em1_and_the_one_of_em0_add_up_alike():
    """Squared loss: MK/λ² for indices, as much for values; the stage's cost is their sum."""
    (one, count), *_ = events.leaves(picks_of("em0", rows=7, picks=3).event(0.5, 1))
    assert (count, one.picks) == (7, 3)
    assert count * one.picks / one.noise_multiplier**2 == pytest.approx(0.5)
    (index, rows), (value, values) = events.leaves(picks_of("em1", rows=7, picks=3).event(0.5, 1))
    assert (rows, values) == (7, 21)
    assert rows * 3 / index.noise_multiplier**2 + values / value.noise_multiplier**2 == pytest.approx(0.5)


@pytest.mark.parametrize("bad", [{"picks": 7}, {"picks": 0}, {"clip": 0.0}, {"clip": math.inf}])
def test_what_cannot_be_picked(bad):
    with pytest.raises(ParameterError):
        picks_of(**bad)
