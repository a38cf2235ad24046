"""The Gaussian mechanism on arrays: exact noise on a public grid."""

from __future__ import annotations

import math

from discreet.arrays import Array
from discreet.mechanisms.bits import Randomness, bits_of
from discreet.mechanisms.grid import Grid
from discreet.privacy.plan import Stage

ROUNDING_ROOM = 2.0**-20
"""Of the sensitivity, for rounding in the query's own sums. Sums over edges without weights (up to 2³⁰ of them) and the
table of links (2²⁹) are exact: ``ops.rows.on_lattice``. Elsewhere a row of D terms of length 1, added in double
precision, errs by at most D²·2⁻⁵³, and rows that no change touches are the same bits: for D up to 2¹⁵ this is ample."""


def release(value: Array, stage: Stage, randomness: Randomness) -> Array:
    """``value`` on the stage's grid plus exact noise on every entry.

    Guarantee: if values on neighbouring graphs are within ``stage.sensitivity`` in ℓ2, the result has the
    privacy of ``stage.event``, rounding included: see ``mechanisms.grid``.
    """
    if stage.noise_std == 0:
        return value.copy()
    return grid_of(stage).release(value, bits_of(randomness))


def grid_of(stage: Stage) -> Grid:
    """The public grid of a stage with Gaussian noise."""
    moved = stage.sensitivity * (1 + ROUNDING_ROOM)
    return Grid.for_release(moved, stage.noise_std / stage.sensitivity, math.prod(stage.shape))
