"""Areas, rates and ceilings against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.dp_event import GaussianDpEvent
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from discreet.attacks.rates import proportion_interval, rates_of
from discreet.errors import ParameterError
from discreet.privacy.tradeoff import TradeOff


def test_area_and_advantage_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    positive = rng.random(500) < 0.4
    scores = np.round(rng.standard_normal(500) + positive, 1)  # with ties
    found = rates_of(scores, positive)
    assert found.auc == pytest.approx(roc_auc_score(positive, scores))
    assert found.auc_interval[0] < found.auc < found.auc_interval[1]
    cuts = np.unique(scores)
    best = max((scores[positive] > c).mean() - (scores[~positive] > c).mean() for c in cuts)
    assert found.advantage == pytest.approx(best)


def test_true_positive_rate_keeps_to_its_false_positive_rate() -> None:
    scores = np.concatenate([np.full(10, 5.0), np.arange(200.0)])
    found = rates_of(scores, np.arange(210) < 10)
    assert found.tpr_at_fpr[0.01][0] == 0.0  # two of 200 may lie above: the threshold is 197
    assert rates_of(scores + 1000 * (np.arange(210) < 10), np.arange(210) < 10).tpr_at_fpr[0.001][0] == 1.0


def test_intervals_cover() -> None:
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(400):
        low, high = proportion_interval(int(rng.binomial(60, 0.2)), 60)
        missed += not low <= 0.2 <= high
    assert missed <= 0.05 * 400


def test_one_kind_of_score_is_refused() -> None:
    with pytest.raises(ParameterError, match="both kinds"):
        rates_of(np.zeros(3), np.ones(3, dtype=bool))


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_the_ceiling_is_just_above_the_exact_curve_of_a_gaussian(mu: float) -> None:
    curve = TradeOff.of(GaussianDpEvent(1 / mu))
    for rate in (0.001, 0.01, 0.1, 0.5, 0.9):
        exact = norm.cdf(norm.ppf(rate) + mu)
        assert exact <= curve.true_positive_rate(rate) + 1e-12
        assert curve.true_positive_rate(rate) <= exact + 0.02
    assert norm.cdf(mu / math.sqrt(2)) <= curve.area() <= norm.cdf(mu / math.sqrt(2)) + 0.03


def test_no_noise_has_no_ceiling() -> None:
    assert TradeOff(((math.inf, 1e-5),)).true_positive_rate(0.01) == 1.0
