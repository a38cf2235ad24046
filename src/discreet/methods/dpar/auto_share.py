"""``structure_share="auto"``: what picking gets of the budget, decided from public facts alone."""

from __future__ import annotations

import math

from discreet.privacy.events.gaussian import gaussian_mu
from discreet.privacy.events.node_sampling import before_sampling
from discreet.queries.picks import TopPicks

TRIAL_SHARE = 0.5
"""The share at which ``auto`` asks whether structure would survive, and that it takes if so."""


def auto_share(query: TopPicks, epsilon: float, delta: float, node_rate: float) -> float:
    """The trial share, if picks at that share would tell anything of the graph; else nothing."""
    mu = gaussian_mu(*before_sampling(epsilon, delta, node_rate)) * math.sqrt(TRIAL_SHARE)
    return TRIAL_SHARE if structure_survives(mu, query) else 0.0


def structure_survives(mu: float, query: TopPicks) -> bool:
    """Whether the largest possible score would stand above the largest noise among all candidates.

    ``mu`` is the privacy loss (of a Gaussian, or √2ρ) that all rows may spend. With Gumbel noise one row's score at its
    clip bound is mu/√(MK) noise scales high (``em1`` halves the squared loss), and the largest of n noises about ln n;
    with Gaussian noise it is mu/√(2M) deviations, against √(2 ln n).
    """
    log_candidates = math.log(max(query.candidates, 2))
    if query.selection == "gm":
        return mu / math.sqrt(2 * query.rows) >= math.sqrt(2 * log_candidates)
    halves = 2 if query.selection == "em1" else 1
    return mu / math.sqrt(halves * query.rows * query.picks) >= log_candidates
