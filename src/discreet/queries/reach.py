"""How far one protected unit reaches at node and k-neighbour level: rows of noisy sums, and examples of noisy steps.

Throughout, an entry u → v carries u's data to v. The unit of *owned* is a node's features, label and
outgoing entries; the unit of *promised* and *thinned* is the node with all entries from and to it.
The graphs are those of ``ops.degrees.bound_degrees``.
"""

from __future__ import annotations

import math
from typing import Literal

from scipy.stats import binom

from discreet.errors import ParameterError, UnsupportedError
from discreet.ops.degrees import BoundedLevel
from discreet.privacy.levels import EdgeLevel, Level, NeighborLevel, NodeLevel

Inputs = Literal["private", "released"]
NodeAggregation = Literal["sum", "mean"]

FAILURE_SHARE = 0.1
"""The part of δ that pays for the event that thinning keeps more entries than its bound says."""


def is_null(level: Level) -> bool:
    """Whether a neighbour is had by taking a record away: then its row goes to zero on one side."""
    return isinstance(level, NodeLevel) and level.change == "null"


def thinning_failure(level: Level, delta: float, graphs: int = 1) -> float | None:
    """δ′ of one of ``graphs`` graphs on the thinned basis, where a bound may fail with this probability; else None."""
    if not isinstance(level, NodeLevel) or level.edges != "thinned":
        return None
    return FAILURE_SHARE * delta / graphs


# -------------------------------------------------------------------- how many entries survive


def surviving_degree(d_max: int, p: float, failure: float, lists: int = 1) -> int:
    """K such that ``lists`` lists of at most ``d_max`` entries each all keep at most K, but for ``failure``.

    Guarantee: the number of survivors of one list is at most Bin(d_max, p), and K is its upper quantile at
    failure / lists (union bound). Whoever uses K owes the ledger an event of that probability.
    """
    if d_max < 1:
        raise ParameterError(f"d_max must be at least 1, not {d_max!r}")
    if not 0 < failure < 1:
        raise ParameterError(f"the failure probability must lie strictly between 0 and 1, not {failure!r}")
    return max(1, _upper_quantile(d_max, p, failure / lists))


def _upper_quantile(trials: int, p: float, tail: float) -> int:
    """The least K with Pr[Bin(trials, p) > K] ≤ tail, checked and not taken from rounding."""
    guess = int(binom.isf(tail, trials, p))
    while binom.sf(guess, trials, p) > tail:
        guess += 1
    return guess


# -------------------------------------------------------------------- noisy sums


def hop_inputs(hop: int) -> Inputs:
    """What hop number ``hop`` reads: private rows in the first, released ones after it."""
    if hop < 1:
        raise ParameterError(f"hops are counted from 1, not {hop}")
    return "released" if hop > 1 else "private"


def own_row_change(
    level: BoundedLevel, others: float, *, inputs: Inputs, aggregation: NodeAggregation = "sum"
) -> tuple[float, float | None]:
    """How far the unit's own row moves, and the norm B at which all rows are cut for that (None: they are not).

    ``others`` is the bound on the rows of others, from :func:`sum_sensitivity`.

    Guarantee. *owned*: entries into a node belong to its senders, so its own row does not move. On *promised* and
    *thinned* the unit loses or swaps its senders too. Rows cut at norm B: its row moves by at most B (null, where
    what was there goes to zero) or 2B. Cutting is a projection, which brings no two rows further apart, so the bound
    on the rows of others stands. B makes the own row a fifth of the square of the whole, and is at least 1, below
    which one sender would not fit. A mean of rows of norm at most 1 needs no cutting: B = 1.

    *k neighbours*, released inputs: at most k entries into the unit are toggled, each of which moves its sum by a row
    of norm at most 1, and its mean by at most 1 (see :func:`sum_sensitivity`). So the row moves by at most k and need
    not be cut where k ≤ 2B. With k entries divided among rows of others and the own row, i and k − i, the squares are
    at most i + (k − i)² ≤ k + k².
    """
    if level.edges == "owned":
        return 0.0, None
    null = is_null(level)
    cut = 1.0 if aggregation == "mean" else max(1.0, others / (2 if null else 4))
    if isinstance(level, NeighborLevel) and inputs == "released" and level.k <= 2 * cut:
        return float(level.k), None
    return (cut if null else 2 * cut), cut


def hop_sensitivity(
    level: BoundedLevel,
    *,
    hop: int = 1,
    aggregation: NodeAggregation = "sum",
    self_loops: bool = False,
    zero_null_row: bool = False,
    failure: float | None = None,
) -> tuple[float, str]:
    """How far hop number ``hop`` of noisy aggregation over rows of norm at most 1 moves in ℓ2, and why.

    The inputs of the first hop are private, and one row of them changes with the unit. Later hops read rows
    that were released, the unit's own among them (:func:`own_row_change` pays for it): equal on both graphs.
    See :func:`sum_sensitivity` for the bounds.
    """
    inputs = hop_inputs(hop)
    return sum_sensitivity(
        level,
        inputs=inputs,
        aggregation=aggregation,
        self_loops=self_loops,
        zero_null_row=zero_null_row,
        failure=failure,
    )


def sum_sensitivity(
    level: BoundedLevel,
    *,
    inputs: Inputs,
    aggregation: NodeAggregation = "sum",
    self_loops: bool = False,
    zero_null_row: bool = False,
    failure: float | None = None,
) -> tuple[float, str]:
    """How far Σ (or the mean) of incoming rows moves in ℓ2 between neighbours, over all covered rows.

    Guarantee. Rows have norm at most 1. ``inputs="released"``: the rows are the same on both graphs (hops after
    the first on *owned*; DPDGC's A·W with W public or released). ``inputs="private"``: the unit's own row may be
    anything of norm at most 1 on either side. Let ``a`` receivers get the unit's row on both graphs, ``b`` on the
    first only and ``c`` on the second only; a + b ≤ D and a + c ≤ D, and under *null* a = c = 0.

    *sum*. Each of the ``b`` and ``c`` rows moves by at most 1; each of the ``a`` rows by 2 if inputs are private
    and not at all if released. Null: √D. Replace: √(4a + b + c) ≤ 2√D private, √(b + c) ≤ √(2D) released.
    Attained by a row turned into its negative, and by disjoint receivers.

    *Weights of entries*, in [0, 1], keep the bounds of a sum. They belong to the unit as its entries do. An entry on
    one side adds a row of norm w ≤ 1, one of the ``a`` moves by ‖wh − w′h′‖ ≤ 2 if inputs are private and by
    |w − w′| ≤ 1 if released. So null and private inputs are as before, and released inputs under replace move by
    √(a + b + c) ≤ √(2D), as before; on *thinned* a + b + c entries have a coin each, 2·d_max of them at most.
    *k neighbours*: a weight that moves is one of the k, and changes one entry by at most 1.

    *mean*, without self-loops: a row that loses or gains one of m + 1 senders moves by at most 2/(m + 1) ≤ 1 for
    m ≥ 1 and by 1 for m = 0; one whose sender changes moves by at most 2/(m + 1) ≤ 2. Same bounds as the sum.

    *Self-loops* add the unit's own row, with weight 1 (sum) or at most 1 (mean of no other), if inputs are
    private and the own row is covered (*owned*): it moves by at most 2, or by 1 under null if the method makes
    the row of a null record zero (``zero_null_row``). Sum: √(D + 4) or √(D + 1) null, 2√(D + 1) replace. Mean
    has m ≥ 1 in every receiver, so the ``a`` rows move by at most 1: √(D + 4) or √(D + 1) null, √(2D + 4) replace.

    *k neighbours*. Record replaced, k entries toggled. Private inputs: as replace, whatever k. Released inputs:
    one toggle changes one entry, and one more if a cap at D refills or evicts: √k without a cap (*owned*) or on
    *promised*, √(2·min(k, D)) under the owned cap.

    *thinned*: D is the surviving degree at ``failure`` (half of it for each of the two lists under replace); for
    released inputs under replace the changed entries are among 2·d_max, so b + c is at most their quantile.

    Edge cases: k-neighbour level with private inputs and no degree bound has no finite sensitivity and is refused.
    Symmetric normalisation reaches one hop further and is not offered here. Reference: the DPDGC paper, theorems
    5.1 to 5.4 and B.1, on a degree promise; the rest is brute-forced in the tests.
    """
    square, why = _square_of_rows(level, inputs, aggregation, self_loops, failure)
    if self_loops and inputs == "private" and level.edges == "owned":
        square += 1 if is_null(level) and zero_null_row else 4
        why += ", and its own row by its self-loop"
    return math.sqrt(square), why


def _square_of_rows(
    level: BoundedLevel,
    inputs: Inputs,
    aggregation: NodeAggregation,
    self_loops: bool,
    failure: float | None,
) -> tuple[int, str]:
    """The squared change over the rows of others, and why."""
    changed_row = 1 if aggregation == "mean" and self_loops else 4
    if isinstance(level, NeighborLevel):
        return _square_at_neighbor_level(level, inputs, changed_row)
    bound = _receivers(level, inputs, failure)
    if level.change == "null":
        return bound, f"one node's row leaves at most {bound} {aggregation}s, each by norm at most 1"
    if inputs == "released":
        return bound, f"at most {bound} {aggregation}s gain or lose one row of norm at most 1"
    square = max(changed_row, 2) * bound
    return square, f"one node's row changes or moves among at most {bound} {aggregation}s before and after"


def _receivers(level: NodeLevel, inputs: Inputs, failure: float | None) -> int:
    """How many rows the unit reaches: in one graph, or (released, replace) in exactly one of the two."""
    both = level.change == "replace" and inputs == "released"
    if level.edges != "thinned":
        assert level.max_degree is not None
        return level.max_degree * (2 if both else 1)
    d_max, p, failure = _thinned_bounds(level, failure)
    if both:
        return surviving_degree(2 * d_max, p, failure)
    return surviving_degree(d_max, p, failure, lists=2 if level.change == "replace" else 1)


def _square_at_neighbor_level(level: NeighborLevel, inputs: Inputs, changed_row: int) -> tuple[int, str]:
    if inputs == "released":
        if level.max_degree is None or level.edges == "promised":
            return level.k, f"{level.k} toggled entries change as many rows, each by norm at most 1"
        square = 2 * min(level.k, level.max_degree)
        return square, f"{level.k} toggled entries change at most {square} kept ones, each by norm at most 1"
    if level.max_degree is None:
        raise UnsupportedError(
            "the record of a node reaches all its neighbours, so this method needs a degree bound at level neighbor: "
            "give max_degree"
        )
    square = max(changed_row, 2) * level.max_degree
    return square, f"one node's row changes or moves among at most {level.max_degree} rows before and after"


def _thinned_bounds(level: NodeLevel, failure: float | None) -> tuple[int, float, float]:
    if failure is None:
        raise ParameterError("the thinned basis needs the probability with which its bound may fail")
    assert level.d_max is not None
    assert level.p is not None
    return level.d_max, level.p, failure


# -------------------------------------------------------------------- examples in DP-SGD


def touched_examples(
    level: Level, hops: int, *, num_nodes: int | None = None, failure: float | None = None
) -> tuple[int, str]:
    """k: how many examples one protected unit can change when an example is a node's ``hops``-hop ego-net, and why.

    Guarantee. An example changes only if the unit's node is its centre or reaches it along at most ``hops``
    entries of the bounded graph, on one side or the other. From the unit the first step goes to at most D nodes
    (null), to 2D on the two sides together (replace), or to D + min(k, D) (k neighbours); every further step
    multiplies by at most D, for lists that others own (*owned*), or all lists (*promised*), are bounded by D and
    the same on both sides but for entries into the unit. Hence 1 + first·(1 + D + … + D^(hops−1)).
    A cap on how many senders a receiver keeps changes nothing here: it acts after the bound, on lists of
    receivers that the unit has reached.

    *thinned*: one hop: 1 + the quantile of Bin(d_max, p) (null) or Bin(2·d_max, p) (replace) at ``failure``; more
    hops: D is the quantile that all ``num_nodes`` lists (one more under replace) keep together.
    ``hops=0`` (no edges used): 1. At edge level one entry changes one one-hop ego-net, an undirected edge two;
    more hops would need a degree bound and are refused.

    Reference: the DP-GNN paper, Lemma 1 for one hop on a degree promise. Attained in brute force, see the tests.
    """
    if hops < 0:
        raise ParameterError(f"hops must be at least 0, not {hops}")
    if isinstance(level, EdgeLevel):
        return _touched_at_edge_level(level, hops)
    if not isinstance(level, NodeLevel | NeighborLevel):
        raise UnsupportedError(f"level {level.spec} does not say how many examples one unit touches")
    if hops == 0:
        return 1, "a node stands in its own example alone"
    first, bound = _first_step(level, hops, num_nodes, failure)
    reached = first * sum(bound**step for step in range(hops))
    return 1 + reached, f"a node's own example and at most {reached} that it reaches in {hops} hop(s)"


def _touched_at_edge_level(level: EdgeLevel, hops: int) -> tuple[int, str]:
    if hops == 0:
        return 0, "no edge is used"
    if hops > 1:
        raise UnsupportedError("at edge level ego-nets of more than one hop touch an unbounded number of examples")
    touched = 1 if level.directed else 2
    return touched, f"one edge is {touched} adjacency entr{'y' if touched == 1 else 'ies'}, each in one ego-net"


def _first_step(level: BoundedLevel, hops: int, num_nodes: int | None, failure: float | None) -> tuple[int, int]:
    """How many nodes the unit reaches in one step on both sides together, and the bound on further steps."""
    if isinstance(level, NeighborLevel):
        if level.max_degree is None:
            raise UnsupportedError("ego-nets at level neighbor need a degree bound: give max_degree")
        return level.max_degree + min(level.k, level.max_degree), level.max_degree
    sides = 1 if level.change == "null" else 2
    if level.edges != "thinned":
        assert level.max_degree is not None
        return sides * level.max_degree, level.max_degree
    d_max, p, failure = _thinned_bounds(level, failure)
    if hops == 1:
        return surviving_degree(sides * d_max, p, failure), 1
    if num_nodes is None:
        raise ParameterError("ego-nets of several hops on the thinned basis need the public number of nodes")
    bound = surviving_degree(d_max, p, failure, lists=num_nodes + sides - 1)
    return sides * bound, bound
