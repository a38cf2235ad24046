"""Tests of what was added: does the noise of many trials follow its distribution, fresh and independent every time?

The privacy bounds of ``audit.bounds`` assume nothing but see only gross faults. These tests take the plan at its
word (this mechanism, this scale, independent draws) and see small ones. Each gives a probability: how often an
honest library would look at least this odd.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest, chi2, hypergeom, ks_2samp, kstest, norm
from scipy.stats import t as student

from discreet.arrays import BoolArray, FloatArray
from discreet.audit.attacks import attack_on
from discreet.audit.trials import Index, Trials
from discreet.mechanisms.dpsgd import steps_of
from discreet.privacy import events
from discreet.privacy.plan import Plan, Stage

_LARGEST_MATRIX = 80
"""Columns that are compared pairwise: cost grows with their square, and a fault shows in few of them."""
_MOST_COINS, _LEAST_RUNS = 12, 30
"""Examples whose coins are held against the noise, and runs with and without them that it takes."""


@dataclass(frozen=True)
class NoiseCheck:
    """One property of the noise, and how likely an honest library is to look at least as odd."""

    name: str
    stage: str
    p_value: float
    detail: str

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def noise_checks(plan: Plan, trials: Trials) -> list[NoiseCheck]:
    """Every test of these trials' noise. Reject where a p-value is below alpha over their number (Bonferroni)."""
    return [
        repeats(trials.prints),
        *law_checks(plan, trials.noise),
        *_dependence(plan, trials.noise),
        *_batches(plan, trials.batches),
        *_batches_and_noise(trials.batches, trials.noise),
    ]


def law_checks(plan: Plan, noise: Mapping[Index, FloatArray]) -> list[NoiseCheck]:
    """The law and the scale of the noise of each stage by itself."""
    return [check for index, drawn in noise.items() for check in _law(plan.stage(index[0]), index, drawn)]


def repeats(prints: npt.NDArray[np.uint64]) -> NoiseCheck:
    """Answers of continuous mechanisms and secret keys never agree: of a million 64-bit hashes two do once in 4e7."""
    repeated = len(prints) - len(np.unique(prints))
    detail = f"{repeated} of {len(prints)} answers and keys occur twice"
    return NoiseCheck("fresh noise", "all", 0.0 if repeated else 1.0, detail)


# -------------------------------------------------------------------- one stage by itself


def _law(stage: Stage, index: Index, noise: FloatArray) -> Iterator[NoiseCheck]:
    attack = attack_on(stage)
    if attack is None or attack.law is None or not noise.size:
        return
    name = f"{stage.name}, run {index[1]}" if stage.runs > 1 else stage.name
    uniform = np.clip(attack.law(stage, noise.reshape(-1)), 1e-300, 1 - 1e-16)
    yield NoiseCheck("law of noise", name, float(kstest(uniform, "uniform").pvalue), "Kolmogorov–Smirnov")
    # Squared normal scores add up to a χ²: far sharper than Kolmogorov–Smirnov where only the scale is wrong.
    scores = norm.ppf(uniform)
    total, count = float((scores**2).sum()), scores.size
    tail = 2 * min(chi2.cdf(total, count), chi2.sf(total, count))
    yield NoiseCheck("scale of noise", name, float(tail), f"variance {total / count:.4f} of what is declared")


# -------------------------------------------------------------------- stages, entries and trials together


def _dependence(plan: Plan, noise: dict[Index, FloatArray]) -> Iterator[NoiseCheck]:
    if not noise:
        return
    scores = np.hstack([_scores(plan.stage(index[0]), values) for index, values in noise.items()])
    scores = scores[:, :_LARGEST_MATRIX] if scores.shape[1] > _LARGEST_MATRIX else scores
    yield _worst_correlation("independent entries and stages", scores, scores, skip_own=True)
    yield _worst_correlation("independent trials", scores[:-1], scores[1:], skip_own=False)


def _scores(stage: Stage, noise: FloatArray) -> FloatArray:
    attack = attack_on(stage)
    assert attack is not None
    if attack.law is None:
        return np.empty((len(noise), 0))
    uniform = np.clip(attack.law(stage, noise.reshape(-1)), 1e-12, 1 - 1e-12)
    return np.asarray(norm.ppf(uniform).reshape(noise.shape))


def _worst_correlation(name: str, one: FloatArray, two: FloatArray, *, skip_own: bool) -> NoiseCheck:
    """The largest of all correlations between columns, corrected for their number.

    Of independent normal scores r·√((n − 2)/(1 − r²)) has Student's law, exactly, so that tails mean what they say
    however few the runs are.
    """
    runs, columns = one.shape
    if runs < 30 or columns < 1 + skip_own:
        return NoiseCheck(name, "all", 1.0, "too few to say")
    with np.errstate(invalid="ignore", divide="ignore"):
        standard = [(side - side.mean(axis=0)) / side.std(axis=0) for side in (one, two)]
    found = np.nan_to_num(np.abs(standard[0].T @ standard[1]) / runs, nan=1.0)
    if skip_own:
        found = found[np.triu_indices(columns, k=1)]
    largest = float(np.clip(found.max(), 0.0, 1 - 1e-15))
    tail = 2 * float(student.sf(largest * np.sqrt((runs - 2) / (1 - largest**2)), runs - 2)) * found.size
    return NoiseCheck(name, "all", min(1.0, tail), f"largest correlation {largest:.4f} of {found.size}")


# -------------------------------------------------------------------- batches


def _batches(plan: Plan, batches: dict[Index, BoolArray]) -> Iterator[NoiseCheck]:
    for (name, run), masks in batches.items():
        stage = plan.stage(name)
        query = steps_of(stage)
        rate = query.batch_size / query.num_examples
        if rate == 1:
            yield NoiseCheck("whole batches", f"{name}, run {run}", float(masks.all()), "every example, every step")
            continue
        counts, worst = masks.sum(axis=0), 1.0
        for count in counts:
            worst = min(worst, float(binomtest(int(count), len(masks), rate).pvalue))
        detail = f"rates {counts.min() / len(masks):.4f} to {counts.max() / len(masks):.4f}, declared {rate:.4f}"
        yield NoiseCheck("rate of batches", f"{name}, run {run}", min(1.0, worst * len(counts)), detail)
        if isinstance(stage.event, events.GroupFixedSampledGaussianDpEvent):
            right = (masks.sum(axis=1) == stage.event.batch_size).all()
            yield NoiseCheck("size of batches", f"{name}, run {run}", float(right), "the same size in every step")
        else:
            yield _worst_overlap("independent coins", masks, masks, skip_own=True)
    for before, after in pairwise(batches):
        if before[0] == after[0] and not batches[before].all():
            yield _worst_overlap("fresh batches", batches[before], batches[after], skip_own=False)


def _worst_overlap(name: str, one: BoolArray, two: BoolArray, *, skip_own: bool) -> NoiseCheck:
    """How often two coins fell alike, for all pairs of columns, corrected for their number.

    Given how often each fell heads, the number of runs in which independent coins both did is hypergeometric, exactly:
    a correlation would call rare coins dependent far too often.
    """
    runs = len(one)
    both = one.T.astype(np.int64) @ two.astype(np.int64)
    heads, others = np.broadcast_arrays(one.sum(axis=0)[:, None], two.sum(axis=0)[None, :])
    if skip_own:
        pairs = np.triu_indices(len(both), k=1)
        both, heads, others = both[pairs], heads[pairs], others[pairs]
    if not both.size:
        return NoiseCheck(name, "all", 1.0, "too few to say")
    tails = np.minimum(hypergeom.cdf(both, runs, heads, others), hypergeom.sf(both - 1, runs, heads, others))
    worst = np.unravel_index(int(np.argmin(tails)), both.shape)
    expected = heads[worst] * others[worst] / runs
    detail = f"{both[worst]} of {runs} runs with both, {expected:.1f} expected, the oddest of {both.size} pairs"
    return NoiseCheck(name, "all", min(1.0, 2 * float(tails[worst]) * both.size), detail)


def _batches_and_noise(batches: Mapping[Index, BoolArray], noise: Mapping[Index, FloatArray]) -> Iterator[NoiseCheck]:
    """Who stands in a batch says nothing of the noise of its step: amplification by sampling rests on that."""
    for index, masks in batches.items():
        pairs = [
            (entry[coins], entry[~coins])
            for coins in masks.T[:_MOST_COINS]
            for entry in noise.get(index, np.empty((len(masks), 0))).T
            if min(coins.sum(), (~coins).sum()) >= _LEAST_RUNS
        ]
        if pairs:  # any dependence, not correlation alone: which bits noise is made of is the sampler's affair
            worst = min(float(ks_2samp(*pair, method="asymp").pvalue) for pair in pairs)
            detail = f"least of {len(pairs)} Kolmogorov–Smirnov"
            name = f"{index[0]}, run {index[1]}"
            yield NoiseCheck("noise apart from batches", name, min(1.0, worst * len(pairs)), detail)
