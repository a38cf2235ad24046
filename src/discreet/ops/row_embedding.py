"""Adjacency rows times a matrix of node rows, A·W: the decoupled convolution of paper 004, and how far it moves.

Row v of A·W adds the rows of W that belong to the nodes whose entries reach v. No private feature enters, so
where W is public or released one entry moves one row by one row of W and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from discreet.errors import ParameterError
from discreet.ops.degrees import sum_sensitivity, touched_examples
from discreet.ops.keyed_hash import hash_pairs
from discreet.ops.propagation import edge_sensitivity
from discreet.ops.rows import clip_rows, normalize_rows
from discreet.privacy.levels import EdgeLevel, Level, NeighborLevel, NodeLevel

FloatArray = npt.NDArray[np.float64]
Weight: TypeAlias = "FloatArray | sp.csr_array"

_MARGIN = 1 - 1e-6  # what rounding may add to a norm


# -------------------------------------------------------------------- rows of W


def hashed_rows(num_nodes: int, width: int, key: bytes, *, row_norm: float = 1.0, nonzeros: int = 4) -> sp.csr_array:
    """A public W: each node's row holds ``nonzeros`` signs (fewer if ``width`` is less) at places that a hash picks.

    Guarantee: a function of the key, the node's id and the two sizes, and of no data; every row has norm at most
    ``row_norm`` (and all of it but a rounding margin). The width is cut into as many blocks as there are signs,
    one in each, so that places never meet. Memory grows with nodes × nonzeros.
    """
    _require_positive("row_norm", row_norm)
    slots = min(nonzeros, width)
    edges = np.linspace(0, width, slots + 1).astype(np.int64)
    node = np.repeat(np.arange(num_nodes, dtype=np.int64), slots)
    slot = np.tile(np.arange(slots, dtype=np.int64), num_nodes)
    hashed = hash_pairs(key, node, slot)
    sign = 1.0 - 2.0 * (hashed & np.uint64(1)).astype(np.float64)
    size = (edges[1:] - edges[:-1])[slot]
    place = edges[slot] + ((hashed >> np.uint64(1)) % size.astype(np.uint64)).astype(np.int64)
    starts = np.arange(num_nodes + 1, dtype=np.int64) * slots
    data = sign * (row_norm * _MARGIN / math.sqrt(slots))
    return sp.csr_array((data, place, starts), shape=(num_nodes, width))


def unit_rows(rows: torch.Tensor, row_norm: float) -> torch.Tensor:
    """Every row scaled to norm ``row_norm``; a zero row stays zero.

    Guarantee: no row of the *result* is longer than ``row_norm``. Whoever embeds must embed with the result: scaling
    a copy bounds nothing.
    """
    _require_positive("row_norm", row_norm)
    return normalize_rows(rows) * row_norm


def short_rows(rows: torch.Tensor, row_norm: float, full: float) -> torch.Tensor:
    """Rows divided by ``full`` and cut at ``row_norm``: what is short for its noise stays short.

    Guarantee: no row of the result is longer than ``row_norm``; ``full`` is public.
    """
    _require_positive("row_norm", row_norm)
    return clip_rows(rows * (row_norm / full), row_norm)


# -------------------------------------------------------------------- A·W


def embed_rows(adjacency: sp.csr_array, weight: Weight, clip: float | None = None) -> FloatArray:
    """A·W in double precision, rows cut at norm ``clip`` where one is given; costs (entries) × (width of W's rows)."""
    product = adjacency.astype(np.float64) @ weight
    dense = product.toarray() if sp.issparse(product) else np.asarray(product)
    return dense if clip is None else clip_rows(torch.from_numpy(dense), clip).numpy()


@dataclass(frozen=True)
class RowsBound:
    """How far A·W moves in ℓ2 over all rows, why, and the norm at which its rows must be cut (None: not at all)."""

    sensitivity: float
    why: str
    clip: float | None = None


def rows_bound(level: Level, *, row_norm: float = 1.0, failure: float | None = None) -> RowsBound:
    """The bound on A·W for rows of W of norm at most c = ``row_norm`` that are public or released.

    Guarantee. *edge*: one entry changes one row by c; an undirected edge is two entries: c·√2. *neighbor* and
    *node*, rows of others: ``degrees.sum_sensitivity(inputs="released")``, c times √k, √D (null) or √(2D) (replace)
    where there is no more to say. The unit's own row: on *owned* the entries into a node belong to its senders, so it
    does not move. On *promised* and *thinned* the unit loses or swaps its senders too; rows are cut at norm B, so it
    moves by at most B (null, where it goes to zero) or 2B. Cutting is a projection, which brings no two rows further
    apart, so the bound on others stands. All rows, the unit's own among them, may then be released.

    Reference: paper 004, theorems 5.3, 5.4 and G.1, which count an undirected edge once and leave the own row out.
    """
    _require_positive("row_norm", row_norm)
    if isinstance(level, EdgeLevel):
        base, why = edge_sensitivity("sum", level)
        return RowsBound(row_norm * base, _in_units(why, row_norm))
    if not isinstance(level, NodeLevel | NeighborLevel):
        raise ParameterError(f"level {level.spec} does not say how far adjacency rows move")
    base, why = sum_sensitivity(level, inputs="released", failure=failure)
    if level.edges == "owned":
        return RowsBound(row_norm * base, _in_units(why, row_norm))
    null = isinstance(level, NodeLevel) and level.change == "null"
    clip = max(1.0, base / (2 if null else 4))
    total = math.hypot(base, clip if null else 2 * clip)
    said = f"{_in_units(why, row_norm)}; its own row is cut at norm {row_norm * clip:.4g}"
    return RowsBound(row_norm * total, said, row_norm * clip)


def touched_rows(level: Level, *, failure: float | None = None) -> tuple[int, str]:
    """How many examples one unit can change when an example is a node's adjacency row and its label, and why.

    Guarantee. An example changes only if an entry of its row does, or its own label. *edge*: one entry stands in one
    row, an undirected edge in two. *node*: as one-hop ego-nets, the unit's own example and D others (null) or 2D
    (replace), whatever the features hold. *neighbor*: no features enter, so a node that keeps its entries touches
    nobody: its own example (the label) and k others; 2·min(k, D) others under the owned cap, where a toggled entry
    may let another in or push one out. Paper 004 counts D + 1 for replacement, which two disjoint neighbourhoods break.
    """
    if not isinstance(level, NeighborLevel):
        return touched_examples(level, 1, failure=failure)
    if level.max_degree is None or level.edges == "promised":
        return level.k + 1, f"a node's own example and {level.k} rows with a toggled entry"
    others = 2 * min(level.k, level.max_degree)
    return others + 1, f"a node's own example and at most {others} rows in which a kept entry changes"


def _in_units(why: str, row_norm: float) -> str:
    return why if row_norm == 1 else f"{why}, times the row norm {row_norm:g}"


def _require_positive(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ParameterError(f"{name} must be a positive number, not {value!r}")
