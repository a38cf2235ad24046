"""Poisson sampling of nodes before anything else: what it does to the ε of all that follows.

Each public node id tosses a secret coin of probability q; an id that loses counts as *null* from then on: no
features, no label, no edge. Everything after that sees the sampled graph only. In a composition the marker
:class:`SampledNodesDpEvent` stands first and speaks for all that follows it.

Guarantee. If what follows is (ε₀, δ₀)-private, the whole is (ln(1 + q(e^{ε₀} − 1)), q·δ₀)-private. For let v be the
protected node, on graphs G and G′, and condition on the coins of all others. Where v loses, both graphs have become
the same graph H, in which v is null; so the output on G has law (1 − q)A + qB and on G′ (1 − q)A + qB′, where A, B, B′
are the laws of what follows on H, on the sampled G and on the sampled G′. H, G and G′ differ in the record and the
edges of v alone, so A, B and B′ are within (ε₀, δ₀) of each other, *provided* that what follows is private for any
change of v's record and of all edges at v (on the owned basis too, for an edge into v vanishes with v). Put
γ = 1 + q(e^{ε₀} − 1) and β = γ/e^{ε₀}. Advanced joint convexity (Balle, Barthe and Gaboardi 2018, theorem 2) gives
H_γ = q·H_{e^{ε₀}}(B ‖ (1 − β)A + βB′) ≤ q[(1 − β)·H_{e^{ε₀}}(B‖A) + β·H_{e^{ε₀}}(B‖B′)] ≤ q·δ₀, in both orders and both
for *null* and for *replace*; averaging over the coins of others keeps it, by convexity. ∎ It is tight for null, where
B′ = A. It is never qε₀: with q = 0.09 and ε₀ = 8/0.09, qε₀ is 8 and the true figure 86.5.

Edge cases: who was sampled must stay secret, so coins come from the curator and shapes must not tell how many won; ids
that lose stay in every public range (as candidates of a selection, as examples of a step), or A and B could be
told apart by shape. n is public and does not change.
"""

from __future__ import annotations

import math

import attr
from dp_accounting.dp_event import DpEvent

from discreet.errors import PrivacyError
from discreet.privacy.events.fields import check_probability


@attr.s(frozen=True, slots=True, auto_attribs=True)
class SampledNodesDpEvent(DpEvent):  # type: ignore[misc]
    """Everything after it runs on a Poisson sample of the nodes. It costs nothing itself; it has no noise."""

    sampling_probability: float = attr.ib(validator=check_probability)


def sampled_nodes_for_two(event: SampledNodesDpEvent) -> SampledNodesDpEvent:
    """Two units are not both missed with probability 1 − (1 − q)²."""
    return SampledNodesDpEvent(1 - (1 - event.sampling_probability) ** 2)


_LARGEST_EXPONENT = 500.0
"""The exponential of 709 overflows; this leaves room to divide by a probability. Beyond it, 1 is less than rounding."""


def amplified(epsilon: float, probability: float) -> float:
    """ln(1 + q(e^ε − 1)), without overflow."""
    if epsilon > _LARGEST_EXPONENT:
        return epsilon + math.log(probability)
    return math.log1p(probability * math.expm1(epsilon))


def before_sampling(epsilon: float, delta: float, probability: float) -> tuple[float, float]:
    """The (ε₀, δ₀) that sampling turns into (ε, δ)."""
    if delta >= probability:
        raise PrivacyError(f"delta {delta:g} is not below the sampling probability {probability:g}: sample more nodes")
    if epsilon > _LARGEST_EXPONENT:
        return epsilon - math.log(probability), delta / probability
    return math.log1p(math.expm1(epsilon) / probability), delta / probability
