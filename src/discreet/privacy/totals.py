"""What the entries of a ledger spend together, by population and level.

Two figures, because they rest on different things. *Fixed beforehand*: the composition of all events by the tightest
accountant; it holds if the runs, their number and their budgets were settled before any result was seen. *Whatever was
chosen*: the sum of the ε at the sum of the δ (basic composition), which holds for adaptively chosen runs too (Rogers,
Roth, Ullman and Vadhan 2016); where a limit was fixed, its filter gives more: the limit itself (see
:mod:`discreet.privacy.filter`).

Levels do not mix: a release at another level says nothing of this one, so the total here is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dp_accounting.dp_event import DpEvent

from discreet.privacy import events
from discreet.privacy.accountants import spend
from discreet.privacy.ledger import Entry, Ledger, Limit, spent_of


class Run(Protocol):
    """What a run cost: an entry of a ledger, or a certificate."""

    @property
    def epsilon(self) -> float:
        """Its ε at :attr:`delta`."""

    @property
    def delta(self) -> float:
        """Its δ."""

    @property
    def event(self) -> DpEvent:
        """Everything that it ran."""


@dataclass(frozen=True)
class Total:
    """The releases of one population at one level, and what they spend together.

    ``alone`` is their own ε at ``delta``, ``total`` that of the population at this level: infinite where ``others``,
    the releases at other levels, is not empty.
    """

    population: str
    relation: str
    entries: tuple[Entry, ...]
    others: tuple[Entry, ...]
    alone: float
    delta: float
    summed: tuple[float, float]
    limit: Limit | None

    @property
    def total(self) -> float:
        """ε of the population at this level."""
        return math.inf if self.others else self.alone

    @property
    def room(self) -> float | None:
        """The ε of a further run that the limit would admit; None without a limit."""
        if self.limit is None:
            return None
        return self.limit.filter.room(spent_of(self.limit, [*self.entries, *self.others]))


def totals(ledger: Ledger) -> list[Total]:
    """What every population spent at every level that was used for it or has a limit."""
    entries, limits = ledger.entries(), ledger.limits()
    keys = dict.fromkeys([(e.population, e.relation) for e in entries] + [(x.population, x.relation) for x in limits])
    return [_total(*key, entries, limits) for key in sorted(keys)]


def _total(population: str, relation: str, entries: Sequence[Entry], limits: Sequence[Limit]) -> Total:
    theirs = [entry for entry in entries if entry.population == population]
    own = tuple(entry for entry in theirs if entry.relation == relation)
    others = tuple(entry for entry in theirs if entry.relation != relation)
    limit = next((x for x in limits if (x.population, x.relation) == (population, relation)), None)
    epsilon, delta = compose_runs(own)
    summed = math.fsum(e.epsilon for e in own), min(1.0, math.fsum(e.delta for e in own))
    return Total(population, relation, own, others, epsilon, delta, summed, limit)


def compose_runs(runs: Sequence[Run]) -> tuple[float, float]:
    """ε and δ of runs that were fixed beforehand, by composing their events.

    δ is the largest of theirs; a run that samples nodes first can only be composed as the black box that its own ε and
    δ make of it, and its δ comes on top.
    """
    if any(math.isinf(run.epsilon) for run in runs):
        return math.inf, max(run.delta for run in runs)
    whole = [run for run in runs if not _samples_first(run.event)]
    boxes = [run for run in runs if _samples_first(run.event)]
    if len(runs) == 1:
        return runs[0].epsilon, runs[0].delta
    delta = max((run.delta for run in whole), default=0.0) + math.fsum(run.delta for run in boxes)
    parts: list[DpEvent] = [run.event for run in whole]
    parts += [events.ApproximateDpEvent(run.epsilon, run.delta) for run in boxes]
    composed = min(spend(events.compose(parts), delta).values(), default=math.inf)
    if math.isfinite(composed):
        return composed, delta
    return math.fsum(run.epsilon for run in runs), math.fsum(run.delta for run in runs)


def _samples_first(event: DpEvent) -> bool:
    return any(events.kind_of(leaf).sampling is not None for leaf, _ in events.leaves(event))
