"""Auditing with a single training run (Steinke, Nasr and Jagielski 2023), for methods too slow to repeat.

Many *canary* nodes are put into one graph, each present or null by a coin of its own. After one fit the auditor guesses
the coins, abstaining where it is unsure. Against an ε-private method its guesses are right no more often than
randomised response is, all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import binom
from sklearn.base import clone

from discreet.arrays import Array, BoolArray, FloatArray, IntArray
from discreet.errors import ParameterError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.mechanisms.bits import NoiseSource
from discreet.mechanisms.curator import Curator, Terms
from discreet.mechanisms.dpsgd import steps_of
from discreet.methods.base import NodeClassifier
from discreet.privacy.levels import NodeLevel
from discreet.privacy.plan import Plan, Stage

GUESSED = 0.2
"""The share of canaries whose coins are guessed: those with the highest and the lowest scores."""


# -------------------------------------------------------------------- the bound


def one_run_p_value(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """How likely an (ε, δ)-private method lets at least ``correct`` of ``guesses`` be right.

    Guarantee (theorem 5.2 of the paper). With f(v) = Pr[Bin(guesses, 1/(1 + e^−ε)) ≥ v] the probability is at most
    f(v) + 2·canaries·δ·max over i ≥ 1 of (f(v − i) − f(v))/i, whatever the auditor does with the one output, as
    long as the coins are fair, independent, and known to nobody before.
    """
    if not 0 <= correct <= guesses <= canaries:
        raise ParameterError("correct guesses cannot exceed guesses, nor guesses canaries")
    chance = 1 / (1 + np.exp(-epsilon))
    tail = float(binom.sf(correct - 1, guesses, chance))
    if delta == 0 or correct == 0:
        return min(1.0, tail)
    back = np.arange(1, correct + 1)
    gained = (binom.sf(correct - back - 1, guesses, chance) - tail) / back
    return min(1.0, tail + 2 * canaries * delta * float(gained.max()))


def one_run_lower_bound(canaries: int, guesses: int, correct: int, delta: float, alpha: float) -> float:
    """The largest ε that so many correct guesses refute at level ``alpha``; 0 if none."""
    if one_run_p_value(canaries, guesses, correct, 0.0, delta) > alpha:
        return 0.0
    low, high = 0.0, 1.0
    while one_run_p_value(canaries, guesses, correct, high, delta) <= alpha and high < 64:
        low, high = high, 2 * high
    for _ in range(50):  # halvings, to the last bit of a double
        middle = (low + high) / 2
        if one_run_p_value(canaries, guesses, correct, middle, delta) <= alpha:
            low = middle
        else:
            high = middle
    return low


def guess(scores: FloatArray, guesses: int) -> IntArray:
    """+1 (present) for the highest scores, −1 (null) for the lowest, 0 (no guess) between; as many guesses as said."""
    order = np.argsort(scores, kind="stable")
    found = np.zeros(len(scores), dtype=np.int64)
    found[order[: guesses // 2]] = -1
    found[order[len(order) - (guesses - guesses // 2) :]] = 1
    return found


@dataclass(frozen=True)
class OneRun:
    """What one fit showed: ε is at least :attr:`epsilon`, but for a probability of ``alpha``."""

    epsilon: float
    canaries: int
    guesses: int
    correct: int
    delta: float
    alpha: float

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def judge(scores: FloatArray, present: BoolArray, delta: float, alpha: float) -> OneRun:
    """Guess by scores, count, and bound."""
    guesses = max(2, round(GUESSED * len(scores)))
    guessed = guess(scores, guesses)
    correct = int(((guessed == 1) & present).sum() + ((guessed == -1) & ~present).sum())
    bound = one_run_lower_bound(len(scores), guesses, correct, delta, alpha)
    return OneRun(bound, len(scores), guesses, correct, delta, alpha)


# -------------------------------------------------------------------- canary nodes


def audit_one_run(
    estimator: NodeClassifier, *, canaries: int = 300, others: int = 50, alpha: float = 1e-4, seed: int = 0
) -> OneRun:
    """Fit once on a graph of canary nodes and guess their coins from the noisy steps.

    A canary is an isolated node in a direction of feature space of its own, so that its gradient is nearly
    orthogonal to all others. 300 of them, all guessed right, refute ε up to 3.4 at ``alpha``, which is the chance of a
    false alarm; ``others`` are ordinary nodes, so that the network learns something. ``seed`` draws features and
    labels; the coins come from the operating system.
    """
    _check_level(estimator)
    rng, coins = np.random.default_rng(seed), np.random.default_rng()
    full = canary_graph(canaries, others, rng)
    present = coins.random(canaries) < 0.5
    level = estimator.checked_privacy().level
    here, private = level.split(without_canaries(full, np.flatnonzero(~present)))
    everyone, all_private = level.split(full)
    plan = estimator.plan(here.facts)
    first = _Remembering(plan, private)
    clone(estimator)._fit_with([here], first)
    second = _Scoring(plan, all_private, first, canaries)
    clone(estimator)._fit_with([everyone], second)
    return judge(second.scores, present, plan.delta, alpha)


def _check_level(estimator: NodeClassifier) -> None:
    level = estimator.checked_privacy().level
    if not isinstance(level, NodeLevel) or level.change != "null":
        raise UnsupportedError(
            "canary nodes are present or null: auditing in one run needs level node with change=null"
        )


def canary_graph(canaries: int, others: int, rng: np.random.Generator) -> Graph:
    """Canaries first, each with a feature of its own; then ordinary nodes in a ring."""
    n, width = canaries + others, canaries + 4
    features = np.zeros((n, width))
    features[np.arange(canaries), np.arange(canaries)] = 3.0
    features[canaries:, canaries:] = rng.standard_normal((others, 4))
    ring = canaries + np.arange(others)
    labels = rng.integers(0, 2, n)
    graph = Graph.from_edges(ring, np.roll(ring, 1), features, labels, directed=False, num_classes=2)
    return graph.with_masks(np.arange(n), None, None)


def without_canaries(graph: Graph, absent: Sequence[int] | IntArray) -> Graph:
    """The same graph with these nodes null."""
    features, labels = np.array(graph.features), graph.labels.copy()
    features[absent], labels[absent] = 0.0, -1
    return graph.with_features(features).with_labels(labels)


class _Remembering(Curator):
    """Runs the plan and keeps what it answered."""

    def __init__(self, plan: Plan, private: PrivatePart) -> None:
        super().__init__(plan, NoiseSource(), [private])
        self.answers: list[Array] = []
        self.batches: list[IntArray] = []
        self.keys: list[bytes] = []

    def _answer(self, stage: Stage, run: int, value: Array) -> Array:
        self.answers.append(super()._answer(stage, run, value))
        return self.answers[-1].copy()

    def _answer_step(self, stage: Stage, run: int, batch: IntArray, value: Array, terms: Terms) -> Array:
        self.answers.append(super()._answer_step(stage, run, batch, value, terms).copy())
        return self.answers[-1].copy()

    def _batch(self, stage: Stage, run: int) -> IntArray:
        self.batches.append(super()._batch(stage, run))
        return self.batches[-1]

    def _draw_key(self, name: str, run: int) -> bytes:
        self.keys.append(super()._draw_key(name, run))
        return self.keys[-1]


class _Scoring(Curator):
    """Replays the answers on the graph where all canaries are present, and estimates which of them were.

    Given all terms, a noisy sum is a linear regression on the coins, and so are all steps together; with the prior
    variance 1/4 of a coin its solution is the best linear estimate. The auditor knows neither batches nor coins.
    """

    def __init__(self, plan: Plan, private: PrivatePart, recorded: _Remembering, canaries: int) -> None:
        super().__init__(plan, NoiseSource(), [private])
        self._answers, self._batches = iter(recorded.answers), iter(recorded.batches)
        self._keys = iter(recorded.keys)
        self._gram, self._moment = np.zeros((canaries, canaries)), np.zeros(canaries)

    @property
    def scores(self) -> FloatArray:
        """One number a canary, the higher the likelier that it was there."""
        return np.asarray(np.linalg.solve(self._gram + 4 * np.eye(len(self._gram)), self._moment))

    def _answer(self, stage: Stage, run: int, value: Array) -> Array:
        return next(self._answers).copy()

    def _answer_step(self, stage: Stage, run: int, batch: IntArray, value: Array, terms: Terms) -> Array:
        answer, found, query = next(self._answers), terms().astype(np.float64), steps_of(stage)
        rate = query.batch_size / query.num_examples
        own, rest = rate * found[: len(self._moment)], rate * found[len(self._moment) :].sum(axis=0)
        self._gram += own @ own.T / stage.noise_std**2
        self._moment += own @ (answer - rest) / stage.noise_std**2
        return answer.copy()

    def _batch(self, stage: Stage, run: int) -> IntArray:
        return next(self._batches)

    def _draw_key(self, name: str, run: int) -> bytes:
        return next(self._keys)
