"""What an adversary does with the answers of each mechanism: inputs that are worst for it, and likelihoods.

An :class:`Attack` belongs to a mechanism, not to a method, so every method whose stages use known mechanisms
is attacked without any code of its own. A package that registers a mechanism adds its attack with
:func:`register_attack`; without one, audits fall back on tests that they learn from the answers.

Nothing here decides a verdict: a statistic may be as wrong as it likes, and can only make a bound weaker.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from scipy.special import logsumexp
from scipy.stats import gamma, norm

from discreet.arrays import Array, BoolArray, FloatArray, IntArray
from discreet.mechanisms import dpsgd
from discreet.mechanisms.objective.losses import loss_by_name
from discreet.mechanisms.objective.minimise import Problem, gradient
from discreet.mechanisms.objective.perturbation import minimiser_of
from discreet.privacy import events
from discreet.privacy.plan import Stage
from discreet.queries.propagated import ON_A_GRID


@dataclass(frozen=True)
class Seen:
    """Answers of one run of a stage in many trials, one row per trial, and the batches behind them, if any."""

    answers: FloatArray
    batches: BoolArray | None = None


@dataclass(frozen=True)
class Attack:
    """How to attack one mechanism.

    Parameters
    ----------
    worst
        ``worst(stage)`` gives two inputs as far apart as the stage declares, where its answers differ most.
    log_ratio
        ``log_ratio(stage, seen, one, two)`` gives one number per trial: the logarithm of how much likelier the
        answer is from input ``one`` than from ``two``, to an adversary who knows everything but the noise.
    noise
        ``noise(stage, seen, value)`` gives what was added, in units in which it follows ``law``; one row per trial.
    law
        ``law(stage, noise)`` is the distribution function that each entry of the noise should follow, at its entries.
    continuous
        Whether two equal answers give away that noise was repeated.
    far
        ``far(stage)`` gives an input as far from zero as answers come: noise must follow the same law there.
    """

    worst: Callable[[Stage], tuple[Array, Array]]
    log_ratio: Callable[[Stage, Seen, Array, Array], FloatArray]
    noise: Callable[[Stage, Seen, Array], FloatArray] | None = None
    law: Callable[[Stage, FloatArray], FloatArray] | None = None
    continuous: bool = True
    far: Callable[[Stage], Array] | None = None


_ATTACKS: dict[str, Attack] = {}


def register_attack(mechanism: str, attack: Attack) -> None:
    """Let audits attack a mechanism by name."""
    _ATTACKS[mechanism] = attack


def attack_on(stage: Stage) -> Attack | None:
    """The attack on a stage's mechanism, or None where none is known."""
    _register_own()
    return _ATTACKS.get(stage.mechanism)


@cache
def _register_own() -> None:
    """Attacks in files of their own register themselves when they are imported."""
    for module in ("attacks_counts", "attacks_local", "attacks_selection"):
        importlib.import_module(f"discreet.audit.{module}")


# -------------------------------------------------------------------- Gaussian


def _spread_apart(stage: Stage) -> tuple[Array, Array]:
    """Nothing, against the whole sensitivity in a direction of the stage's own.

    Stages with directions of their own give away noise that two of them share.
    """
    return np.zeros(stage.shape), stage.sensitivity * _direction(stage).reshape(stage.shape)


def _direction(stage: Stage) -> FloatArray:
    drawn = np.random.default_rng(list(stage.name.encode())).standard_normal(math.prod(stage.shape))
    return np.asarray(drawn / np.linalg.norm(drawn))


def _gaussian_log_ratio(stage: Stage, seen: Seen, one: Array, two: Array) -> FloatArray:
    a, b = one.reshape(-1).astype(np.float64), two.reshape(-1).astype(np.float64)
    return np.asarray((seen.answers - (a + b) / 2) @ (a - b) / stage.noise_std**2)


def _gaussian_noise(stage: Stage, seen: Seen, value: Array) -> FloatArray:
    return np.asarray((seen.answers - value.reshape(-1)) / stage.noise_std)


def _standard_normal(stage: Stage, noise: FloatArray) -> FloatArray:
    return np.asarray(norm.cdf(noise))


def _far_both_ways(stage: Stage) -> Array:
    """Every other entry a thousand σ above zero, the rest as far below."""
    signs = np.where(np.arange(math.prod(stage.shape)) % 2, -1.0, 1.0)
    return 1e3 * stage.noise_std * signs.reshape(stage.shape)


register_attack(
    "gaussian", Attack(_spread_apart, _gaussian_log_ratio, _gaussian_noise, _standard_normal, far=_far_both_ways)
)


# -------------------------------------------------------------------- noisy steps


def _opposite_terms(stage: Stage) -> tuple[Array, Array]:
    """All touched terms at one end of the clip ball, against the other; under null the unit's own goes to zero.

    Other examples are zero: they are known to the adversary anyway.
    """
    query = dpsgd.steps_of(stage)
    one = np.zeros((query.num_examples, stage.shape[0]))
    one[: query.touched.examples] = query.clip_norm * _direction(stage)
    two = -one
    if query.touched.change == "null":
        two[0] = 0.0
    return one, two


def _steps_log_ratio(stage: Stage, seen: Seen, one: Array, two: Array) -> FloatArray:
    """The mixture over which of the touched examples the batch holds; the coins of all others are known.

    That is what privacy by sampling hides and all that it hides: with fixed-size batches it does not even
    hide *how many* of them the batch holds.
    """
    assert seen.batches is not None
    touched = np.flatnonzero((one != two).any(axis=1))
    others = np.delete(np.arange(len(one)), touched)
    rest = seen.answers - seen.batches[:, others].astype(np.float64) @ one[others].astype(np.float64)
    if isinstance(stage.event, events.GaussianDpEvent):
        a, b = (terms[touched].astype(np.float64).sum(axis=0) for terms in (one, two))
        return np.asarray((rest - (a + b) / 2) @ (a - b) / stage.noise_std**2)
    weights = _batch_weights(stage, seen.batches, touched)
    return _mixture(stage, rest, one[touched], weights) - _mixture(stage, rest, two[touched], weights)


def _batch_weights(stage: Stage, batches: BoolArray, touched: IntArray) -> FloatArray:
    """Logarithm of the probability of each subset of the touched examples, one row per trial (or one for all)."""
    sizes = _subsets(len(touched)).sum(axis=1)
    if isinstance(stage.event, events.GroupFixedSampledGaussianDpEvent):
        held = batches[:, touched].sum(axis=1)
        return np.where(sizes == held[:, None], 0.0, -np.inf)
    query = dpsgd.steps_of(stage)
    rate = query.batch_size / query.num_examples
    weights = sizes * math.log(rate) + (len(touched) - sizes) * math.log1p(-rate)
    return np.asarray(weights[None, :], dtype=np.float64)


def _mixture(stage: Stage, rest: FloatArray, terms: Array, weights: FloatArray) -> FloatArray:
    """Log-likelihood of the rest under a mixture over subsets, up to what all mixtures share."""
    means = _subsets(len(terms)) @ terms.astype(np.float64)
    loglik = (rest @ means.T - 0.5 * (means**2).sum(axis=1)) / stage.noise_std**2
    return np.asarray(logsumexp(loglik + weights, axis=1))


def _subsets(size: int) -> FloatArray:
    """All subsets as rows of zeros and ones. Audits run on small graphs, so there are few."""
    return np.array(list(product((0.0, 1.0), repeat=size))).reshape(2**size, size)


def _steps_noise(stage: Stage, seen: Seen, value: Array) -> FloatArray:
    assert seen.batches is not None
    return np.asarray((seen.answers - seen.batches.astype(np.float64) @ value) / stage.noise_std)


def _all_one_way(stage: Stage) -> Array:
    """The terms of all examples at one end of the clip ball: no sum is longer."""
    query = dpsgd.steps_of(stage)
    return np.tile(query.clip_norm * _direction(stage), (query.num_examples, 1))


register_attack(
    dpsgd.MECHANISM, Attack(_opposite_terms, _steps_log_ratio, _steps_noise, _standard_normal, far=_all_one_way)
)


# -------------------------------------------------------------------- objective perturbation


def _opposite_rows(stage: Stage) -> tuple[Array, Array]:
    """As many unit rows turned round as Ψ allows (each costs 2), the last by as much as is left."""
    rows, width = stage.shape
    classes = minimiser_of(stage).classes
    one = np.zeros((rows, width))
    one[:, 0] = 1.0
    one[:, -classes] = 1.0
    two = one.copy()
    left = stage.sensitivity
    for row in range(rows):
        two[row, 0] = 1.0 - min(left, 2.0)
        left -= 1.0 - two[row, 0]
    return one, two


def _objective_log_ratio(stage: Stage, seen: Seen, one: Array, two: Array) -> FloatArray:
    """From Θ one can read the tilt B that made it: the density is that of B times the Jacobian of Θ → B."""
    shape = stage.query.answer_shape or ()
    thetas = [answer.reshape(shape) for answer in seen.answers]
    return np.array([_log_density(stage, theta, one) - _log_density(stage, theta, two) for theta in thetas])


def _log_density(stage: Stage, theta: FloatArray, value: Array) -> float:
    plain = _unperturbed(stage, value)
    total = -minimiser_of(stage).noise_rate * np.linalg.norm(_tilt(plain, theta), axis=0).sum()
    curvature = plain.loss.curvature(plain.rows @ theta, plain.targets)
    for column in range(theta.shape[1]):
        hessian = plain.rows.T @ (plain.rows * curvature[:, [column]])
        total += np.linalg.slogdet(hessian + len(plain.rows) * plain.ridge * np.eye(len(theta)))[1]
    return float(total)


def _unperturbed(stage: Stage, value: Array) -> Problem:
    query = minimiser_of(stage)
    classes = query.classes
    z, y = value[:, :-classes].astype(np.float64), value[:, -classes:].astype(np.float64)
    loss = loss_by_name(query.loss, classes, query.loss_width)
    return Problem(z, y, query.ridge + query.extra_ridge, np.zeros((z.shape[1], classes)), loss)


def _tilt(plain: Problem, theta: FloatArray) -> FloatArray:
    return np.asarray(-len(plain.rows) * gradient(plain, theta))


def _radii(stage: Stage, seen: Seen, value: Array) -> FloatArray:
    """The length of each column of the tilt, times its rate."""
    plain, shape = _unperturbed(stage, value), stage.query.answer_shape or ()
    lengths = [np.linalg.norm(_tilt(plain, answer.reshape(shape)), axis=0) for answer in seen.answers]
    return np.array(lengths) * minimiser_of(stage).noise_rate


def _erlang(stage: Stage, noise: FloatArray) -> FloatArray:
    return np.asarray(gamma.cdf(noise, (stage.query.answer_shape or (1,))[0]))


register_attack(ON_A_GRID, Attack(_opposite_rows, _objective_log_ratio, _radii, _erlang))
