"""Degree bounds at node and k-neighbour level. What one protected node can move under each: ``queries.reach``.

Truncating "keep D neighbours" after the fact is not stable: taking one node away lets others move up in many
lists. Three bases hold. *owned*: every node keeps the D of its own outgoing edges with the smallest keyed
hash, looking at nobody else's. *promised*: no degree exceeds D, or the graph is refused. *thinned*: no degree
exceeds a public d_max, and every entry survives a coin of its own, with no refill.

Throughout, an entry u → v carries u's data to v. The unit of *owned* is a node's features, label and
outgoing entries; the unit of *promised* and *thinned* is the node with all entries from and to it, and the
row of the unit itself is outside the release.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from discreet.arrays import BoolArray, IntArray
from discreet.errors import GraphError, ParameterError
from discreet.graph.graph import Graph
from discreet.ops.compiled import compiled
from discreet.ops.keyed_hash import HashArray, hash_pairs
from discreet.privacy.levels import NeighborLevel, NodeLevel

BoundedLevel = NodeLevel | NeighborLevel


# -------------------------------------------------------------------- bounding


def bound_degrees(graph: Graph, level: BoundedLevel, key: bytes) -> Graph:
    """The graph under the level's degree bound; entries stand by themselves where the bound acts on entries.

    ``key`` has 16 bytes; on *thinned* it must come from the curator's entropy, for the guarantee is over it.
    """
    if isinstance(level, NodeLevel) and level.edges == "thinned":
        assert level.d_max is not None
        assert level.p is not None
        return thin(graph, level.d_max, level.p, key)
    if level.max_degree is None:
        return level.view(graph)
    if level.edges == "owned":
        return cap_owned(graph, level.max_degree, key)
    return check_promised(graph, level.max_degree)


def cap_owned(graph: Graph, max_degree: int, key: bytes) -> Graph:
    """Every node keeps the ``max_degree`` outgoing entries of smallest keyed hash.

    Guarantee: which of v's entries are kept is a function of the key and of v's own entries, so changing
    one node's outgoing entries changes no other node's. Equal hashes are ordered by target.
    """
    _require_positive("max_degree", max_degree)
    crowded = graph.out_degree() > max_degree
    if not crowded.any():
        return graph.as_directed()
    numbers = np.arange(graph.num_entries, dtype=np.int64)
    lists = sp.csr_array((numbers, graph.indices, graph.indptr), shape=(graph.num_nodes,) * 2).tocsc()
    sizes = np.diff(lists.indptr)
    at = np.flatnonzero(np.repeat(crowded, sizes))  # in lists by sender, targets rising in each
    sender = np.repeat(np.flatnonzero(crowded), sizes[crowded])
    ends = np.concatenate([[0], np.cumsum(sizes[crowded])])
    late = compiled(_mask_dropped)(ends, hash_pairs(key, sender, lists.indices[at]), max_degree)
    keep = np.ones(graph.num_entries, dtype=np.bool_)
    keep[lists.data[at[late]]] = False
    return graph.as_directed().with_entries(keep)


def _mask_dropped(ends: IntArray, hashed: HashArray, most: int) -> BoolArray:
    """Which members of each list are not among its ``most`` of smallest hash; of equals the first are."""
    late = np.ones(len(hashed), dtype=np.bool_)
    for number in range(len(ends) - 1):
        first, last = ends[number], ends[number + 1]
        cut = np.partition(hashed[first:last], most - 1)[most - 1]
        room = most
        for place in range(first, last):
            if hashed[place] < cut:
                late[place] = False
                room -= 1
        for place in range(first, last):
            if hashed[place] == cut and room > 0:
                late[place] = False
                room -= 1
    return late


def check_promised(graph: Graph, max_degree: int) -> Graph:
    """The graph itself, if no in- or out-degree exceeds the promise; otherwise it is refused, never truncated.

    The refusal says no more than that: by how much, or at which node, is private.
    """
    _require_positive("max_degree", max_degree)
    if max(graph.in_degree().max(initial=0), graph.out_degree().max(initial=0)) > max_degree:
        raise GraphError(
            f"the promised degree bound is {max_degree}, but a degree exceeds it: promise more, or use the owned or "
            "thinned basis"
        )
    return graph


def thin(graph: Graph, d_max: int, p: float, key: bytes) -> Graph:
    """Every entry survives with probability at most ``p``, by a coin that the key and the entry decide.

    Guarantee: coins of different entries are independent to whoever lacks the key, and the entry u → v has the
    same coin in every graph that holds it. The two entries of an undirected edge have a coin each, so the
    result is directed. Nothing moves up into a freed place. A graph with a degree above ``d_max`` is refused.
    """
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 < p <= 1:
        raise ParameterError(f"p must lie in (0, 1], not {p!r}")
    check_promised(graph, d_max)
    if p == 1:
        return graph.as_directed()
    survives = hash_pairs(key, *graph.edges()) < np.uint64(math.floor(p * 2**64))
    return graph.as_directed().with_entries(survives)


def rank_by_hash(group: IntArray, member: IntArray, key: bytes, *, swap: bool = False) -> IntArray:
    """The place of every (group, member) pair among its group by hash of the entry, from 0."""
    hashed = hash_pairs(key, member, group) if swap else hash_pairs(key, group, member)
    order = np.lexsort((member, hashed, group))
    ordered = group[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(order) else order
    sizes = np.diff(np.append(starts, len(order)))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return rank


def _require_positive(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ParameterError(f"{name} must be a whole number of at least 1, not {value!r}")
