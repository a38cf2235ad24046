"""Statistical audit of noisy steps: the worst pair, many runs through the real curator, an attack on the answers.

Replay cannot see the scale of noise, its reuse, or how batches are drawn; this can.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from discreet.mechanisms import curator as curators
from discreet.mechanisms.dpsgd import Touch, dpsgd_stage
from discreet.mechanisms.noise import NoiseSource
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import NodeLevel
from discreet.privacy.plan import Plan, make_plan

CLIP, EXAMPLES, TOUCHED, STEPS, RUNS = 0.5, 10, 3, 2, 2500
EPSILON, DELTA = 1.0, 0.1  # a large δ puts the worst event where a few thousand runs can see it


class Terms:
    """All touched examples at one end of the clip ball, the others zero."""

    def __init__(self, value: float) -> None:
        self._rows = np.zeros((EXAMPLES, 1), dtype=np.float32)
        self._rows[:TOUCHED] = value

    def total(self, batch):
        return self._rows[batch].sum(axis=0)

    def terms(self):
        return self._rows


def plan_of(batch_size: int | None) -> Plan:
    stage = dpsgd_stage(
        "steps",
        "a sum",
        num_parameters=1,
        num_examples=EXAMPLES,
        batch_size=batch_size,
        sampling="poisson",
        clip_norm=CLIP,
        touch=Touch(TOUCHED, "replace", "worst pair"),
        steps=STEPS,
    )
    return make_plan("audit", Privacy(NodeLevel(1, change="replace"), EPSILON, DELTA), 10, [stage], "weights")


def answers(plan: Plan, value: float, offset: int) -> np.ndarray:
    """RUNS × STEPS answers of curators with fresh noise."""
    found = np.empty((RUNS, STEPS))
    for run in range(RUNS):
        curator = curators.Curator(plan, NoiseSource(insecure_seed=offset + run))
        found[run] = [curator.step("steps", Terms(value))[0] for _ in range(STEPS)]
        curator.finish()
    return found


def log_ratio(seen: np.ndarray, plan: Plan) -> np.ndarray:
    """Sum over steps of the log-likelihood ratio of the two worst laws."""
    stage = plan.stages[0]
    rate = stage.parameters["batch_size"] / EXAMPLES
    hits = np.arange(TOUCHED + 1)
    weights = binom.pmf(hits, TOUCHED, rate)
    up, down = ((weights * norm.pdf(seen[..., None], sign * hits * CLIP, stage.noise_std)).sum(-1) for sign in (1, -1))
    return np.log(up / down).sum(axis=1)


def lower_bound(plan: Plan) -> float:
    """ε that a test of the log-ratio, against ε or against 0, proves with 95 % confidence (Clopper–Pearson)."""
    one, two = (log_ratio(answers(plan, sign * CLIP, offset), plan) for sign, offset in ((1, 0), (-1, 10**6)))
    return max(_proved(int((one > cut).sum()), int((two > cut).sum())) for cut in (EPSILON, 0.0))


def _proved(hits: int, alarms: int) -> float:
    true_rate = beta.ppf(0.0125, hits, RUNS - hits + 1) if hits else 0.0
    false_rate = beta.ppf(0.9875, alarms + 1, RUNS - alarms)
    return float(np.log(max(true_rate - DELTA, 1e-12) / false_rate))


@pytest.mark.parametrize("batch_size", [5, None])
def test_the_attack_stays_below_epsilon_and_comes_near(batch_size) -> None:
    found = lower_bound(plan_of(batch_size))
    assert 0.6 * EPSILON < found <= EPSILON


def test_noise_for_one_term_is_caught(monkeypatch) -> None:
    """Noise scaled to a single term, as if the group were one record."""
    real = curators.dpsgd.release

    def too_little(value, stage, standard_normal):
        return real(value, stage, standard_normal / TOUCHED)

    monkeypatch.setattr(curators.dpsgd, "release", too_little)
    assert lower_bound(plan_of(5)) > EPSILON


def test_sampling_more_often_than_accounted_is_caught(monkeypatch) -> None:
    """All examples in every step while amplification by sampling is claimed."""
    monkeypatch.setattr(curators.dpsgd, "draw_batch", lambda stage, rng: np.arange(EXAMPLES))
    assert lower_bound(plan_of(1)) > EPSILON
