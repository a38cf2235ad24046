"""One protected unit is there or not, by the toss of a coin, and everything else stays: what can be told of the coin?

This is the game that (ε, δ) is about, so what an attack reaches in it has a ceiling, and an attack above the ceiling
refutes the guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from discreet.arrays import Array, FloatArray, IntArray
from discreet.attacks.fits import Progress, run_fits
from discreet.attacks.pairs import TINY
from discreet.attacks.rates import Rates, proportion_interval, rates_of
from discreet.attacks.victim import Victim
from discreet.errors import ParameterError
from discreet.graph.graph import Graph
from discreet.methods.base import NodeClassifier
from discreet.privacy.levels import EdgeLevel
from discreet.privacy.moves import toggle
from discreet.privacy.tradeoff import TradeOff

LEAST_FITS = 20
"""With fewer, no threshold that is learnt on half of them says anything about the rest."""
LOOKED_AT = 48
"""Numbers of each array that the attacker looks at beyond the rows of nodes near the unit."""
NEAR = 24
"""What changes most lies next to the change; more columns would only make the learnt direction noisier."""
FALSE_ALARM = 1e-4
"""How often an honest method may be called refuted."""
_CUTS = (0.5, 0.1, 0.01, 0.001)
"""False-positive rates at which the attack is held against its ceiling."""


@dataclass(frozen=True)
class Toggled:
    """What the attack reached, the most that the guarantee allows, and whether it reached more than that."""

    rates: Rates
    ceiling: dict[str, float]
    refuted: bool


@dataclass(frozen=True)
class GameFit:
    """A fit on one side, and what is released of it near the unit, as one vector."""

    estimator: NodeClassifier
    graph: Graph
    near: IntArray
    uncovered: bool = False

    def run(self) -> FloatArray:
        """Fit with fresh noise."""
        fitted = clone(self.estimator).fit(self.graph)
        parts = [self._entries_near(np.asarray(array)) for array in fitted._state().values()]
        rows = Victim(fitted, self.graph, uncovered=self.uncovered).rows()
        if rows is not None:
            parts.append(np.log(np.maximum(rows[self.near], TINY)).ravel())
        return np.nan_to_num(np.concatenate([*parts, np.zeros(1)]), posinf=1e30, neginf=-1e30)

    def _entries_near(self, array: Array) -> FloatArray:
        by_node = array.ndim == 2 and array.shape[0] == self.graph.num_nodes
        flat = np.asarray(array[self.near] if by_node else array, dtype=np.float64).ravel()
        if by_node or len(flat) <= LOOKED_AT:
            return flat
        return flat[np.linspace(0, len(flat) - 1, LOOKED_AT).astype(np.int64)]


def play(
    estimator: NodeClassifier,
    graph: Graph,
    fits: int,
    rng: np.random.Generator,
    *,
    uncovered: bool = False,
    workers: int = 0,
    progress: Progress | None = None,
) -> Toggled:
    """``fits`` fits with the unit and as many without; half of them teach the attack, the other half judge it."""
    if fits < LEAST_FITS:
        raise ParameterError(f"a toggled game needs at least {LEAST_FITS} fits on each side, not {fits}")
    level = estimator.checked_privacy().level
    graph = level.view(graph)
    neighbor = level.view(_neighbor(estimator, graph, rng))
    near = _changed_and_neighbours(graph, neighbor)
    tasks = [GameFit(estimator, side, near, uncovered) for _ in range(fits) for side in (graph, neighbor)]
    seen = np.array(run_fits(tasks, workers, "toggled unit", progress))
    with_unit, without = seen[0::2], seen[1::2]
    half = fits // 2
    direction = _direction(with_unit[:half], without[:half])
    scores = [side @ direction for side in (with_unit, without)]
    curve = TradeOff.of(estimator.plan_for(graph).event())
    judged = [side[half:] for side in scores]
    rates = rates_of(np.concatenate(judged), np.arange(2 * (fits - half)) < fits - half)
    ceiling = {"auc": curve.area(), **{f"{rate:g}": curve.true_positive_rate(rate) for rate in rates.tpr_at_fpr}}
    return Toggled(rates, ceiling, _is_refuted(scores, half, curve))


def _neighbor(estimator: NodeClassifier, graph: Graph, rng: np.random.Generator) -> Graph:
    """At edge level an edge between two nodes of few neighbours, which hide it least; else what the level draws."""
    level = estimator.checked_privacy().level
    if not isinstance(level, EdgeLevel):
        return level.neighbor(graph, rng)
    source, target = graph.edges()
    if not len(source):
        return level.neighbor(graph, rng)
    degree = graph.in_degree()
    quietest = np.flatnonzero((total := degree[source] + degree[target]) == total.min())
    at = int(rng.choice(quietest))
    return toggle(graph, int(source[at]), target[[at]], both_ways=not graph.directed)


def _changed_and_neighbours(graph: Graph, neighbor: Graph) -> IntArray:
    """The nodes whose record or edges differ, then their neighbours."""
    differ = np.flatnonzero(np.asarray(abs(graph.adjacency - neighbor.adjacency).sum(axis=1)).ravel() > 0)
    records = np.flatnonzero(
        (graph.labels != neighbor.labels)
        | (np.asarray(abs(graph.features - neighbor.features).sum(axis=1)).ravel() > 0)
    )
    touched = np.union1d(differ, records)
    around = np.unique(graph.adjacency[touched].indices) if len(touched) else touched
    return np.concatenate([touched, np.setdiff1d(around, touched)])[:NEAR].astype(np.int64)


def _direction(one: FloatArray, two: FloatArray) -> FloatArray:
    """Fisher's linear discriminant with independent entries, which needs few fits to be learnt."""
    spread = (one.var(axis=0) + two.var(axis=0)) / 2
    apart = one.mean(axis=0) - two.mean(axis=0)
    scale = max(float(spread.max()), 1e-300) * 1e-12
    found: FloatArray = apart / (spread + np.maximum(scale, apart**2 * 1e-6) + 1e-300)
    return found


def _is_refuted(scores: list[FloatArray], half: int, curve: TradeOff) -> bool:
    """Whether, at a threshold that the first half chose, the second half shows rates above the ceiling."""
    hits, alarms = scores[0][half:], scores[1][half:]
    confidence = 1 - FALSE_ALARM / (2 * len(_CUTS))
    for cut in _CUTS:
        threshold = float(np.quantile(scores[1][:half], 1 - cut))
        low, _ = proportion_interval(int((hits > threshold).sum()), len(hits), confidence)
        _, high = proportion_interval(int((alarms > threshold).sum()), len(alarms), confidence)
        if low > curve.true_positive_rate(high):
            return True
    return False
