"""Randomised response: the truth with probability 1 − p, any of b buckets at random otherwise."""

from __future__ import annotations

import math

from dp_accounting import NeighboringRelation
from dp_accounting.dp_event import RandomizedResponseDpEvent
from dp_accounting.pld import privacy_loss_distribution as pld

from discreet.arrays import FloatArray
from discreet.privacy.events.black_box import pure_curve
from discreet.privacy.events.grids import PLD_INTERVAL


def randomized_response_pld(event: RandomizedResponseDpEvent, count: int) -> pld.PrivacyLossDistribution:
    """dp_accounting's distribution for a record that is replaced, composed with itself."""
    one = pld.from_randomized_response(
        event.noise_parameter,
        event.num_buckets,
        value_discretization_interval=PLD_INTERVAL,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,  # REPLACE_SPECIAL compares with a blank: ln 2, not ln 3
    )
    return one.self_compose(count)


def randomized_response_curve(event: RandomizedResponseDpEvent) -> FloatArray:
    """Keep with probability 1 − p(b − 1)/b against each other bucket with p/b: a quotient of 1 + (1 − p)·b/p."""
    return pure_curve(math.log1p((1 - event.noise_parameter) * event.num_buckets / event.noise_parameter))
