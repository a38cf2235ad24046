"""The noise inside the objective: whole numbers from an exact sampler, within a known distance of the ideal noise.

**The law.** A column b of the tilt has a density proportional to exp(−β‖b‖) on ℝᵈ. With independent standard normals n
in ℝᵈ and m in ℝᵈ⁺¹, **b = ‖m‖·n/β has exactly that density.** *Proof.* v = ‖m‖² is χ² with d + 1 degrees of freedom, so
βb has the density ∫ (2πv)^(−d/2)·exp(−r²/2v)·C·v^((d−1)/2)·exp(−v/2) dv at distance r, and that is C′·∫
v^(−1/2)·exp(−r²/2v − v/2) dv. With v = w² it is 2C′·∫ exp(−(r/w − w)²/2 − r) dw, over w > 0, and the integral of
exp(−(r/w − w)²/2) does not depend on r (Cauchy and Schlömilch). So it is proportional to exp(−r). ∎ (The radius is
Erlang(d, β), the direction uniform; neither is drawn, and nothing is divided by a number that may be small.)

**The machine** draws whole numbers z, one for each of the (2d + 1)c normals, with P(z) ∝ exp(−z²/2σ²), σ = 2⁴⁴, exactly
(``mechanisms.discrete_gaussian``), and computes b̂ = ‖z_m‖·z_n/(βσ²) in double precision.

**Coupling.** By the grid lemma (``mechanisms.gaussian``, r = 2) the law of z gives every outcome a probability within
e^(±(2d+1)cη), η ≤ 2.1e-34, of what the following gives it: draw normals y of variance s² = σ² − 4, and round each at
random to an integer z with weight exp(−(z − y)²/8). There b = ‖y_m‖·y_n/(βs²) is the ideal tilt. For every T ≥ 7, with
probability at least 1 − (2d + 3)c·exp(−T²/2), all of this holds: |z − y| ≤ 2T for every number, and ‖y_n‖ ≤ s(√d + T)
and ‖y_m‖ ≤ s(√(d+1) + T) for every class. *Proof.* The weights of one y sum to at least 5 (Poisson summation, as in the
lemma), and those beyond 2T to at most 2·exp(−T²/2)/(1 − exp(−T/2)) ≤ 2.1·exp(−T²/2). A norm is 1-Lipschitz and its mean
at most the root of the number of normals, so Gaussian concentration gives exp(−T²/2) for each of 2c norms. ∎

**Distance.** Then, with ρ = √(d+1) + T and u = 2⁻⁵³, in each class ‖b‖ and ‖b̂‖ are at most (1 + 2⁻²⁰)ρ²/β, and ‖b̂ −
b‖ ≤ ρ·(4T√(d+1)·2⁻⁴⁴·(1 + 2⁻²⁰) + (d + 12)·u·ρ·(1 + 2⁻²⁰))/β. *Proof.* ‖ ‖z_m‖z_n − ‖y_m‖y_n ‖ ≤ ‖z_n − y_n‖·‖z_m‖ +
‖y_n‖·‖z_m − y_m‖ ≤ 2T√d·(sρ + 2T√(d+1)) + sρ·2T√(d+1), divided by s², and s is 2⁴⁴ but for a relative 2⁻⁸⁷. In doubles,
z is exact (below 2⁵³), the sum of d + 1 squares errs by a relative (d + 1)u, its root and the four operations that
follow by a few u. ∎
"""

from __future__ import annotations

import math

import numpy as np

from discreet.arrays import FloatArray
from discreet.mechanisms.bits import Randomness, bits_of
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian

STEPS = 2.0**44
"""σ: the largest that the sampler takes, for whole numbers are what is lost."""
UNIT = 2.0**-53
"""u: what one operation in double precision rounds away, relative."""
NEARLY = 1 + 2.0**-20
"""Times a bound of which terms of second order were left out."""


def noise_matrix(width: int, classes: int, rate: float, randomness: Randomness) -> FloatArray:
    """B (14), one column per class, of density ∝ exp(−β‖b‖) up to the distance that is proved above.

    The density says that shifting a column by t changes its logarithm by at most βt.
    """
    drawn = DiscreteGaussian(STEPS).draw(bits_of(randomness), (2 * width + 1, classes)).astype(np.float64)
    lengths = np.sqrt(np.square(drawn[width:] / STEPS).sum(axis=0))
    return np.asarray(drawn[:width] / STEPS * (lengths / rate))


def tail_reach(width: int, classes: int, log_chance: float) -> float:
    """T, such that the coupling fails with probability at most exp(``log_chance``), which is below exp(−25)."""
    return math.sqrt(2 * (math.log((2 * width + 3) * classes) - log_chance)) * NEARLY


def tilt_norm(width: int, rate: float, reach: float) -> float:
    """At least ‖b‖ and ‖b̂‖ for every class, where the coupling holds."""
    return (math.sqrt(width + 1) + reach) ** 2 / rate * NEARLY


def tilt_error(width: int, rate: float, reach: float) -> float:
    """At least ‖b̂ − b‖ for every class, where the coupling holds."""
    root = math.sqrt(width + 1)
    radius = root + reach
    return radius * (4 * reach * root / STEPS + (width + 12) * UNIT * radius) / rate * NEARLY
