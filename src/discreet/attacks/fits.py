"""Many fits of one configuration, here or in worker processes, each keeping only what an attacker would look at."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

from sklearn.base import clone

from discreet.arrays import FloatArray
from discreet.attacks.victim import Victim
from discreet.graph.graph import Graph
from discreet.methods.base import NodeClassifier
from discreet.workers import map_in_workers

Progress = Callable[[str, int, int], None]


class Fit(Protocol):
    """One fit, and what is kept of it."""

    def run(self) -> FloatArray:
        """Fit with fresh noise."""


@dataclass(frozen=True)
class FitRows:
    """A fit on a graph, and what an attacker then reads or computes of every node."""

    estimator: NodeClassifier
    graph: Graph
    uncovered: bool = False

    def run(self) -> FloatArray:
        """Class probabilities of every node, or those that the weights give without any edge."""
        fitted = clone(self.estimator).fit(self.graph)
        return visible_rows(Victim(fitted, self.graph, uncovered=self.uncovered))


def visible_rows(victim: Victim) -> FloatArray:
    """The predictions that anyone may read, or what anyone can compute from the weights."""
    rows = victim.rows()
    return victim.rows_from_weights() if rows is None else rows


def run_fits(fits: Sequence[Fit], workers: int, title: str, progress: Progress | None = None) -> list[FloatArray]:
    """What each fit gave, in order. ``workers=0`` stays in this process."""
    found = []
    with closing(_results(fits, workers)) as results:  # its processes end with it
        for number, kept in enumerate(results):
            found.append(kept)
            if progress is not None:
                progress(title, number + 1, len(fits))
    return found


def _results(fits: Sequence[Fit], workers: int) -> Generator[FloatArray, None, None]:
    if workers == 0:
        yield from (fit.run() for fit in fits)
    else:
        yield from map_in_workers(_run, fits, workers)


def _run(fit: Fit) -> FloatArray:
    return fit.run()
