"""What picking gets of the budget where nothing is said."""

from __future__ import annotations

import math

import numpy as np

from discreet.methods.dpar.estimator import TRIAL_SHARE, auto_share, structure_survives
from tests.queries.test_picks import picks_of


def test_the_rule_is_about_the_largest_noise():
    """At the rule's edge a score at its clip bound is the largest of all in about half of the draws."""
    rng, candidates = np.random.default_rng(0), 2000
    em0, em1, gm = (picks_of(selection, rows=5, candidates=candidates) for selection in ("em0", "em1", "gm"))
    edge = math.log(candidates)
    assert structure_survives(edge * math.sqrt(10), em0)
    assert not structure_survives(edge * math.sqrt(10) * 0.99, em0)
    assert not structure_survives(edge * math.sqrt(10), em1)
    wins = edge + rng.gumbel(size=400) > rng.gumbel(size=(400, candidates)).max(axis=1)
    assert 0.4 < wins.mean() < 0.6
    wins = math.sqrt(2 * edge) + rng.standard_normal(400) > rng.standard_normal((400, candidates)).max(axis=1)
    assert 0.4 < wins.mean() < 0.85
    assert structure_survives(1.001 * math.sqrt(2 * edge) * math.sqrt(10), gm)


def test_all_or_nothing():
    one_row, many = (picks_of(rows=rows, candidates=95, picks=1) for rows in (1, 96))
    assert auto_share(one_row, 60.0, 1e-3, 1.0) == TRIAL_SHARE
    assert auto_share(many, 60.0, 1e-3, 1.0) == 0.0
    assert auto_share(one_row, 1.0, 1e-3, 1.0) == 0.0
