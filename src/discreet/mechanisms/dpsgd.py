"""Noisy steps: batches drawn as the stage's event says. (The noise on their sums is ``mechanisms.noise_ahead``'s.)"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Array, IntArray
from discreet.errors import PlanViolationError
from discreet.mechanisms.bits import Randomness, bits_of
from discreet.privacy import events
from discreet.privacy.plan import Stage
from discreet.queries.gradients import GradientSteps

MECHANISM = GradientSteps.mechanism


def steps_of(stage: Stage) -> GradientSteps:
    """The query of a stage of noisy steps."""
    if not isinstance(stage.query, GradientSteps):
        raise PlanViolationError(f"stage {stage.name!r} does not take steps")
    return stage.query


def draw_batch(stage: Stage, randomness: Randomness) -> IntArray:
    """Positions of the batch among the example ids, drawn as the stage's event says.

    Guarantee: fresh, exact coins of the event's own rate (Poisson), or a uniform subset of its own size (fixed), or all
    examples where the event claims no sampling. Without privacy the parameters decide, for there is no claim.
    """
    query, event = steps_of(stage), stage.event
    examples, bits = query.num_examples, bits_of(randomness)
    if isinstance(event, events.GroupSampledGaussianDpEvent):
        return np.flatnonzero(bits.coins(event.sampling_probability, examples))
    if isinstance(event, events.GroupFixedSampledGaussianDpEvent):
        return bits.choice_without_replacement(event.dataset_size, event.batch_size)
    if not isinstance(event, events.GaussianDpEvent | events.NonPrivateDpEvent):
        raise PlanViolationError(f"stage {stage.name!r} has an event that says nothing of batches")
    if query.takes_all or isinstance(event, events.GaussianDpEvent):
        return np.arange(examples)
    return np.flatnonzero(bits.coins(query.batch_size / examples, examples))


# -------------------------------------------------------------------- what the replay audit compares


def term_distance(stage: Stage, one: Array, two: Array, tolerance: float) -> tuple[float, str | None]:
    """How near two sets of terms come to what the stage allows (1 is all of it), and what is wrong, or None.

    At most ``touched`` terms may differ, none may be longer than the clip norm, and under null, if as many as
    ``touched`` differ, one of them must be zero on one side. Where every step takes every example, their sum may
    not move further than the sensitivity that the noise is made for.
    """
    query = steps_of(stage)
    clip, touched = query.clip_norm, query.touched.examples
    longest = max(_longest(one), _longest(two)) / clip
    if longest > 1 + tolerance:
        return longest, f"stage {stage.name!r} has a term of {longest:.6g} times its clip norm"
    differs = np.linalg.norm((one - two).astype(np.float64), axis=1) > tolerance * clip
    count = int(differs.sum())
    if count > touched:
        return count / touched, f"stage {stage.name!r} changed {count} terms, but one unit touches at most {touched}"
    if count == touched and query.touched.change == "null" and not _one_is_zero(one[differs], two[differs]):
        return 1.0, f"stage {stage.name!r}: the own term of the unit must be zero on the side where it is null"
    moved = _moved_in_all(stage, one, two)
    if moved > 1 + tolerance:
        return moved, f"stage {stage.name!r} moved by {moved:.6g} times its declared sensitivity"
    return count / touched, None


def _moved_in_all(stage: Stage, one: Array, two: Array) -> float:
    """How far the sum of all terms moved, over the declared sensitivity; 0 where batches are drawn."""
    if not steps_of(stage).takes_all:
        return 0.0
    return float(np.linalg.norm((one - two).astype(np.float64).sum(axis=0))) / stage.sensitivity


def _longest(terms: Array) -> float:
    return float(np.linalg.norm(terms.astype(np.float64), axis=1).max(initial=0.0))


def _one_is_zero(one: Array, two: Array) -> bool:
    return bool(((one == 0).all(axis=1) | (two == 0).all(axis=1)).any())
