"""Attacks on counts with Laplace noise, and on noisy graphs: one entry moved as far as the stage declares."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import laplace

from discreet.arrays import Array, FloatArray
from discreet.audit.attacks import Attack, Seen, register_attack
from discreet.privacy.plan import Stage
from discreet.queries.edge_cells import FLIPPED, LARGEST, FlippedCells


def _one_entry(stage: Stage) -> tuple[Array, Array]:
    """Nothing, against the whole sensitivity at an entry of the stage's own."""
    one, two = np.zeros(stage.shape), np.zeros(stage.shape)
    two.reshape(-1)[sum(stage.name.encode()) % max(1, math.prod(stage.shape))] = stage.sensitivity
    return one, two


# -------------------------------------------------------------------- Laplace


def _laplace_log_ratio(stage: Stage, seen: Seen, one: Array, two: Array) -> FloatArray:
    near, far = (np.abs(seen.answers - value.reshape(-1)).sum(axis=1) for value in (one, two))
    return np.asarray((far - near) / stage.noise_std)


def _laplace_noise(stage: Stage, seen: Seen, value: Array) -> FloatArray:
    return np.asarray((seen.answers - value.reshape(-1)) / stage.noise_std)


def _laplace_law(stage: Stage, noise: FloatArray) -> FloatArray:
    return np.asarray(laplace.cdf(noise))


register_attack("laplace", Attack(_one_entry, _laplace_log_ratio, _laplace_noise, _laplace_law))


# -------------------------------------------------------------------- noisy graphs


def _present_log_ratio(stage: Stage, seen: Seen, one: Array, two: Array) -> FloatArray:
    """What the cells that differ say: exact for flips; for the largest cells a function of the same facts."""
    epsilon = stage.query.epsilon if isinstance(stage.query, FlippedCells) else 1 / stage.noise_std
    changed = (one - two).reshape(-1)
    return np.asarray((2 * seen.answers - 1) @ changed * epsilon)


def _flips(stage: Stage, seen: Seen, value: Array) -> FloatArray:
    """Whether each cell was flipped, as a uniform number: its place in the distribution, spread over its atom."""
    assert isinstance(stage.query, FlippedCells)
    rate, spread = stage.query.flip_rate, np.random.default_rng().random(seen.answers.shape)
    return np.asarray(np.where(seen.answers != value.reshape(-1), 1 - rate * spread, (1 - rate) * spread))


def _as_it_is(stage: Stage, noise: FloatArray) -> FloatArray:
    return noise


register_attack(FLIPPED, Attack(_one_entry, _present_log_ratio, _flips, _as_it_is, continuous=False))
register_attack(LARGEST, Attack(_one_entry, _present_log_ratio, continuous=False))
