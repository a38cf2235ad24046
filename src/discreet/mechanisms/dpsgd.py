"""DP-SGD steps: one object says how batches are drawn, how terms are clipped, and what a step costs.

A step adds the clipped terms of a random batch of examples, and noise. :func:`dpsgd_stage` writes a stage whose event
follows from how batches are drawn; :func:`draw_batch` draws them as that event says, and reads nothing else. So
what is accounted and what is done cannot part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from dp_accounting.dp_event import DpEvent

from discreet.errors import GraphError, ParameterError, PlanViolationError
from discreet.privacy import events
from discreet.privacy.group_sampling import GroupFixedSampledGaussianDpEvent, GroupSampledGaussianDpEvent
from discreet.privacy.levels import Level, NodeLevel
from discreet.privacy.plan import Stage

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]
Sampling = Literal["poisson", "fixed"]
Change = Literal["null", "replace"]

MECHANISM = "dpsgd"
METRIC = "examples"


class ClippedTerms(Protocol):
    """What a method lets the curator ask in a step: sums of clipped terms, one term an example."""

    def total(self, batch: IntArray) -> Array:
        """The sum of the clipped terms of these examples, flat. An empty batch gives zero."""

    def terms(self) -> Array:
        """The clipped terms of all examples, one row each: for audits alone."""


@dataclass(frozen=True)
class Touch:
    """How many examples one protected unit can change, under which kind of change, and why.

    Under *null* one of them, the unit's own example, has the zero term on one of the two sides.
    """

    examples: int
    change: Change
    why: str


def change_of(level: Level) -> Change:
    """The change that the level's relation makes to a record."""
    return level.change if isinstance(level, NodeLevel) else "replace"


def dpsgd_stage(
    name: str,
    query: str,
    *,
    num_parameters: int,
    num_examples: int,
    batch_size: int | None,
    sampling: Sampling,
    clip_norm: float,
    touch: Touch,
    steps: int,
    noise_multiplier: float = 1.0,
) -> Stage:
    """The stage of ``steps`` noisy steps over ``num_examples`` public example ids.

    ``batch_size`` is the expected (Poisson) or exact (fixed) size of a batch; None takes every example in every
    step, which is a plain Gaussian: the sum moves by at most (2k − 1)C under null and 2kC under replace.
    ``noise_multiplier`` is relative: σ over the clip norm C, before calibration.

    Guarantee: if one unit changes at most ``touch.examples`` terms, each of norm at most ``clip_norm`` on both sides
    (and under null its own term is zero on one), a run has the privacy of the stage's event.
    """
    size = checked_batch_size(batch_size, num_examples)
    touch = _among(touch, num_examples)
    k = touch.examples
    if not 0 < clip_norm < np.inf:
        raise ParameterError(f"a clip norm must be a positive number, not {clip_norm!r}")
    sensitivity, event = clip_norm, _event(k, touch.change, size, num_examples, sampling, noise_multiplier)
    if isinstance(event, events.GaussianDpEvent):
        sensitivity *= _full_shift(k, touch.change)
    return Stage(
        name=name,
        query=query,
        mechanism=MECHANISM,
        sensitivity=sensitivity,
        metric=METRIC,
        why=touch.why,
        event=event,
        shape=(num_parameters,),
        runs=steps,
        parameters={
            "clip_norm": clip_norm,
            "touched": k,
            "change": touch.change,
            "examples": num_examples,
            "batch_size": size,
            "sampling": "all" if size == num_examples else sampling,
        },
    )


def _among(touch: Touch, num_examples: int) -> Touch:
    """No more terms can change than there are; but then all of them may belong to others, and go anywhere.

    (A unit outside the training set has no example of its own: it touches k − 1 of others'. Cutting k down to the
    number of examples and still counting one of them as the unit's own would be wrong.)
    """
    if touch.examples <= num_examples:
        return touch
    return Touch(num_examples, "replace", f"{touch.why}; there are only {num_examples} examples")


def checked_batch_size(batch_size: int | None, num_examples: int) -> int:
    """The size of a batch; an error where it cannot be."""
    if num_examples < 1:
        raise GraphError("the graph has no training node: give it a train mask, for example with discreet.split")
    if batch_size is not None and batch_size > num_examples:
        raise ParameterError(f"batch_size {batch_size} is larger than the training set of {num_examples} nodes")
    return num_examples if batch_size is None else batch_size


def _event(k: int, change: Change, size: int, examples: int, sampling: Sampling, multiplier: float) -> DpEvent:
    if size == examples:
        return events.GaussianDpEvent(multiplier / _full_shift(k, change))
    if sampling == "fixed":
        return GroupFixedSampledGaussianDpEvent(multiplier, examples, size, k, change)
    return GroupSampledGaussianDpEvent(multiplier, size / examples, k, change)


def _full_shift(k: int, change: Change) -> int:
    """By how many clip norms the sum over all examples can move."""
    return 2 * k - 1 if change == "null" else 2 * k


def draw_batch(stage: Stage, rng: np.random.Generator) -> IntArray:
    """Positions of the batch among the example ids, drawn as the stage's event says.

    Guarantee: fresh coins of the event's own rate (Poisson), or a uniform subset of its own size (fixed), or all
    examples where the event claims no sampling. Without privacy the parameters decide, for there is no claim.
    """
    examples, event = int(stage.parameters["examples"]), stage.event
    if isinstance(event, GroupSampledGaussianDpEvent):
        return np.flatnonzero(rng.random(examples) < event.sampling_probability)
    if isinstance(event, GroupFixedSampledGaussianDpEvent):
        return np.sort(rng.choice(event.dataset_size, size=event.batch_size, replace=False))
    if not isinstance(event, events.GaussianDpEvent | events.NonPrivateDpEvent):
        raise PlanViolationError(f"stage {stage.name!r} has an event that says nothing of batches")
    size = int(stage.parameters["batch_size"])
    if size == examples or isinstance(event, events.GaussianDpEvent):
        return np.arange(examples)
    return np.flatnonzero(rng.random(examples) < size / examples)


def release(value: Array, stage: Stage, standard_normal: npt.NDArray[np.float64]) -> Array:
    """``value`` plus σ times the noise, σ = ``stage.noise_std`` on every coordinate; added in double precision."""
    if stage.noise_std == 0:
        return value.copy()
    noisy: Array = value + stage.noise_std * standard_normal
    return noisy.astype(value.dtype)


# -------------------------------------------------------------------- what the replay audit compares


def term_distance(stage: Stage, one: Array, two: Array, tolerance: float) -> tuple[float, str | None]:
    """How near two sets of terms come to what the stage allows (1 is all of it), and what is wrong, or None.

    At most ``touched`` terms may differ, none may be longer than the clip norm, and under null, if as many as
    ``touched`` differ, one of them must be zero on one side. Where every step takes every example, their sum may
    not move further than the sensitivity that the noise is made for.
    """
    clip, touched = float(stage.parameters["clip_norm"]), int(stage.parameters["touched"])
    longest = max(_longest(one), _longest(two)) / clip
    if longest > 1 + tolerance:
        return longest, f"stage {stage.name!r} has a term of {longest:.6g} times its clip norm"
    differs = np.linalg.norm((one - two).astype(np.float64), axis=1) > tolerance * clip
    count = int(differs.sum())
    if count > touched:
        return count / touched, f"stage {stage.name!r} changed {count} terms, but one unit touches at most {touched}"
    if count == touched and stage.parameters["change"] == "null" and not _one_is_zero(one[differs], two[differs]):
        return 1.0, f"stage {stage.name!r}: the own term of the unit must be zero on the side where it is null"
    moved = _moved_in_all(stage, one, two)
    if moved > 1 + tolerance:
        return moved, f"stage {stage.name!r} moved by {moved:.6g} times its declared sensitivity"
    return count / touched, None


def _moved_in_all(stage: Stage, one: Array, two: Array) -> float:
    """How far the sum of all terms moved, over the declared sensitivity; 0 where batches are drawn."""
    if stage.parameters["sampling"] != "all":
        return 0.0
    return float(np.linalg.norm((one - two).astype(np.float64).sum(axis=0))) / stage.sensitivity


def _longest(terms: Array) -> float:
    return float(np.linalg.norm(terms.astype(np.float64), axis=1).max(initial=0.0))


def _one_is_zero(one: Array, two: Array) -> bool:
    return bool(((one == 0).all(axis=1) | (two == 0).all(axis=1)).any())
