"""Settling what comes in: features, labels, endpoints and masks become arrays that a graph can hold; checking them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from mmap import mmap
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet.arrays import Array, BoolArray, IntArray, SingleArray
from discreet.errors import GraphError
from discreet.graph.given import as_array, as_text, sound_sparse
from discreet.limits import CELLS, CLASSES, ENTRIES, NODES, shown

Features: TypeAlias = np.ndarray | sp.csr_array
UNLABELLED = -1
"""The label of a node that has none."""
# Beyond this, squares and sums of squares leave float32, and a bound that holds on paper can fail in fact.
LARGEST_FEATURE = 1e12
_NO_NUMBERS = {"c": "complex numbers", "M": "dates", "m": "lengths of time"}
"""Kinds of arrays that NumPy would turn into real numbers in silence."""


def clean_features(features: npt.ArrayLike | sp.spmatrix | sp.sparray) -> Features:
    """A finite float32 matrix: sparse stays sparse (CSR), anything else becomes a dense array.

    The result shares no writeable memory with what was given; only a dense float32 array that is
    already frozen is taken as it is, so that a very large one need not be held twice.
    """
    matrix = _sparse_features(features) if sp.issparse(features) else _dense_features(features)
    if matrix.ndim != 2:
        raise GraphError(f"features must be a matrix with one row per node, not of shape {matrix.shape}")
    if isinstance(matrix, np.ndarray):
        width = max(1, matrix.shape[1])
        _check_finite(matrix, lambda at: at // width)
    else:
        starts = matrix.indptr
        _check_finite(matrix.data, lambda at: int(np.searchsorted(starts, at, side="right")) - 1)
    return matrix


def _dense_features(features: Any) -> np.ndarray:
    if is_frozen(features) and features.dtype == np.float32 and features.flags.c_contiguous:
        return features
    given = as_array(features, "features")
    if given.dtype.kind in _NO_NUMBERS:
        raise GraphError(f"features must be a matrix of real numbers ({_NO_NUMBERS[given.dtype.kind]})")
    try:
        with np.errstate(over="ignore"):  # a value beyond float32 becomes infinite and is refused as such
            return np.array(given, dtype=np.float32, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise GraphError(f"features must be a matrix of real numbers ({error})") from error


def _sparse_features(features: Any) -> sp.csr_array:
    if features.dtype.kind in _NO_NUMBERS:
        raise GraphError(f"features must be a matrix of real numbers ({_NO_NUMBERS[features.dtype.kind]})")
    with np.errstate(over="ignore"):
        matrix = sp.csr_array(sound_sparse(features, "features"), dtype=np.float32)
    if matrix.ndim == 2:
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def _check_finite(values: np.ndarray, row_of: Callable[[int], int]) -> None:
    """Refuse what is not finite, or so large that its square leaves float32; no array of this size is made."""
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest <= LARGEST_FEATURE:
        return
    bad = ~np.isfinite(values)
    if not bad.any():
        raise GraphError(f"features reach {largest:.3g}, beyond {LARGEST_FEATURE:.0e}: rescale them before training")
    row = row_of(int(np.flatnonzero(bad.ravel())[0]))
    raise GraphError(
        f"features hold {int(bad.sum())} values that are NaN or infinite (first in row {row}); "
        "fill or drop them before training"
    )


def clean_labels(labels: npt.ArrayLike | None, num_nodes: int) -> IntArray:
    """Integer labels with -1 for unlabelled; missing labels altogether mean none is known."""
    if labels is None:
        return np.full(num_nodes, UNLABELLED, dtype=np.int64)
    given = as_array(labels, "labels")
    if given.shape != (num_nodes,):
        raise GraphError(f"labels have shape {given.shape}, but the graph has {num_nodes} nodes")
    if given.dtype.kind not in "iufb":
        raise GraphError(f"labels must be whole numbers from 0, not {given.dtype}; map names to ids first")
    if given.dtype.kind == "f":
        given = np.where(np.isnan(given), UNLABELLED, given)
        if not (np.isfinite(given).all() and np.array_equal(given, np.round(given))):
            raise GraphError("labels must be whole numbers from 0, or -1 for an unlabelled node")
    if given.size and given.max() > np.iinfo(np.int64).max:  # it would wrap round, to -1 even
        raise GraphError(f"label {given.max()} is out of range: labels must be whole numbers from 0")
    return given.astype(np.int64)


def clean_endpoints(sources: npt.ArrayLike, targets: npt.ArrayLike, num_nodes: int) -> tuple[IntArray, IntArray]:
    """Endpoints as node indices within range, self-loops dropped."""
    source, target = as_array(sources, "sources of edges"), as_array(targets, "targets of edges")
    if source.shape != target.shape or source.ndim != 1:
        raise GraphError(f"edges need two endpoint arrays of one length, not shapes {source.shape} and {target.shape}")
    for array in (source, target):
        if array.size and array.dtype.kind not in "iu":
            raise GraphError(f"edge endpoints must be whole numbers, not {array.dtype}")
    for array in (source, target):
        if array.size and (array.min() < 0 or array.max() >= num_nodes):
            outside = (array < 0) | (array >= num_nodes)
            raise GraphError(
                f"an edge names node {int(array[outside][0])}, but nodes run from 0 to {num_nodes - 1} "
                f"({int(outside.sum())} such endpoints)"
            )
    proper = source != target
    return source[proper].astype(np.int64), target[proper].astype(np.int64)


def settle_direction(
    source: IntArray, target: IntArray, num_nodes: int, directed: bool | None
) -> tuple[IntArray, IntArray, bool]:
    """Unique edges sorted by (target, source), and whether they are directed.

    ``directed=False`` adds every missing reverse; ``None`` calls a symmetric edge set undirected.
    """
    n = max(num_nodes, 1)
    if directed is None:
        keys = sorted_unique(target * n + source)
        directed = not np.array_equal(keys, np.sort((keys % n) * n + keys // n))
    elif directed:
        keys = sorted_unique(target * n + source)
    else:
        once = sorted_unique(np.minimum(source, target) * n + np.maximum(source, target))
        keys = np.concatenate([once, (once % n) * n + once // n])
        keys.sort()
    return keys % n, keys // n, directed


def sorted_unique(keys: IntArray) -> IntArray:
    """Sorted distinct keys, sorting what is given in place: half the memory of ``np.unique`` on large edge lists."""
    keys.sort()
    if keys.size == 0:
        return keys
    first = np.empty(keys.size, dtype=np.bool_)
    first[0] = True
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys if first.all() else keys[first]


def clean_weights(weights: npt.ArrayLike, count: int) -> SingleArray:
    """One weight per edge that was given, clipped to [0, 1]; one that is no number is refused."""
    given = as_array(weights, "edge weights")
    if given.shape != (count,) or given.dtype.kind not in "iufb":
        raise GraphError(
            f"edge weights must be {count} numbers, one per edge, not {given.dtype} of shape {given.shape}"
        )
    missing = np.isnan(given) if given.dtype.kind == "f" else np.zeros(count, dtype=np.bool_)
    if missing.any():
        raise GraphError(f"row {int(missing.argmax())} of the edges has no weight: give every edge a number")
    return np.clip(given, 0, 1).astype(np.float32)


def settle_weights(
    ends: tuple[npt.ArrayLike, npt.ArrayLike],
    weights: SingleArray,
    settled: tuple[IntArray, IntArray],
    num_nodes: int,
    directed: bool,
) -> SingleArray:
    """The weight of every settled entry: the largest that was given for it, for its reverse too where edges have no
    direction. Self-loops, which are dropped, have none.
    """
    source, target = (np.asarray(end).astype(np.int64) for end in ends)
    keys = settled[1] * num_nodes + settled[0]
    proper = source != target
    found = np.zeros(len(keys), dtype=np.float32)
    for sender, receiver in ((source, target), (target, source))[: 1 if directed else 2]:
        np.maximum.at(found, np.searchsorted(keys, (receiver * num_nodes + sender)[proper]), weights[proper])
    return found


def rows_by_receiver(source: IntArray, target: IntArray, num_nodes: int) -> tuple[IntArray, IntArray]:
    """CSR arrays of edges that are already unique and sorted by (target, source)."""
    indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(target, minlength=num_nodes), out=indptr[1:])
    return indptr, source


def narrow_ids(ids: IntArray, num_nodes: int) -> IntArray:
    """Node ids in 32 bits, half the memory, where so many nodes can be told apart in them: a public number."""
    return ids.astype(np.int32, copy=False) if num_nodes < 2**31 else ids


def clean_mask(given: npt.ArrayLike, num_nodes: int, name: str) -> BoolArray:
    """A boolean mask from a boolean mask or an array of node indices.

    An index that is there twice is refused: zeros and ones in the place of a boolean mask would name two nodes.
    """
    array = as_array(given, f"the {name} set")
    if array.dtype == np.bool_:
        if array.shape != (num_nodes,):
            raise GraphError(f"the {name} mask has shape {array.shape}, but the graph has {num_nodes} nodes")
        return array if is_frozen(array) else array.copy()
    if array.size and (array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= num_nodes):
        raise GraphError(f"the {name} set must be a boolean mask or node indices from 0 to {num_nodes - 1}")
    mask = np.zeros(num_nodes, dtype=np.bool_)
    mask[array.astype(np.int64)] = True
    if int(mask.sum()) != array.size:
        raise GraphError(f"the {name} set names a node twice: give node indices, each once, or a mask of booleans")
    return mask


def clean_ids(node_ids: Any, num_nodes: int) -> Array:
    """The caller's names of the nodes: one each, no name twice. Tuples and other objects are kept whole."""
    ids = node_ids if isinstance(node_ids, np.ndarray) else as_id_array(_listed_ids(node_ids))
    if ids.shape != (num_nodes,):
        count = len(ids) if ids.ndim == 1 else f"an array of shape {ids.shape} as"
        raise GraphError(f"there are {count} node ids for {num_nodes} nodes")
    if is_frozen(ids):
        return ids
    as_text("".join(node for node in ids.tolist() if isinstance(node, str)), "node ids")
    seen: set[Any] = set()
    for node in ids.tolist():
        try:
            if node in seen:
                raise GraphError(f"node id {node!r} is given to more than one node")
            seen.add(node)
        except TypeError as error:
            raise GraphError(f"node id {shown(node)} is no name: use whole numbers or texts") from error
    return ids.copy()


def _listed_ids(given: Any) -> list[Any]:
    if isinstance(given, str | bytes | set | frozenset | dict) or not isinstance(given, Iterable):
        raise GraphError(f"node ids must be a list, one per node, not {type(given).__name__}")
    return list(given)


def as_id_array(ids: Sequence[Any]) -> Array:
    """An integer or string array where all ids are of that one kind, an object array otherwise."""
    if ids and all(isinstance(node, int | np.integer) and not isinstance(node, bool) for node in ids):
        if all(-(2**63) <= int(node) < 2**63 for node in ids):
            return np.array(ids, dtype=np.int64)
    elif ids and all(isinstance(node, str) for node in ids):
        return np.array(ids, dtype=np.str_)
    array = np.empty(len(ids), dtype=object)
    array[:] = ids
    return array


def is_frozen(array: Any) -> bool:
    """Whether it is an array that nobody can write to, through it or through its base: in memory, or left on disk."""
    while isinstance(array, np.ndarray) and not array.flags.writeable:
        if array.base is None or (isinstance(array.base, mmap) and isinstance(array, np.memmap) and array.mode == "r"):
            return True
        array = array.base
    return False


def clean_whole_numbers(given: npt.ArrayLike, name: str) -> IntArray:
    """A flat array of whole numbers, in 64 bits."""
    array = as_array(given, name)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise GraphError(f"{name} must be a flat array of whole numbers, not {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)


def clean_split(given: npt.ArrayLike, name: str, num_nodes: int) -> npt.NDArray[np.int8]:
    """The place of every node in a named split: 0 for none, then 1, 2, 3 for train, val, test."""
    part = as_array(given, f"the split {name!r}")
    whole = part.shape == (num_nodes,) and part.dtype.kind in "iu"
    if not whole or (part.size and not 0 <= part.min() <= part.max() <= 3):
        raise GraphError(f"the split {name!r} must hold 0, 1, 2 or 3 for each of {num_nodes} nodes")
    return part if is_frozen(part) and part.dtype == np.int8 else part.astype(np.int8)


# -------------------------------------------------------------------- checks of what is clean


def check_entries(indptr: IntArray, indices: IntArray, num_nodes: int, directed: bool) -> None:
    """Refuse CSR rows that are not sorted, hold an entry twice, a self-loop, or (undirected) an edge one way alone."""
    n = num_nodes
    if indptr.shape != (n + 1,) or indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise GraphError(f"indptr must rise from 0 to {len(indices)} in {n + 1} entries, one row per node")
    source, target = clean_endpoints(indices, np.repeat(np.arange(n, dtype=np.int64), np.diff(indptr)), num_nodes=n)
    keys = target * n + source
    if len(keys) != len(indices) or (np.diff(keys) <= 0).any():
        raise GraphError("CSR rows must be sorted, without duplicates or self-loops: use Graph.from_edges")
    if not directed and not _is_symmetric(indptr, indices):
        raise GraphError("directed=False, but an edge lacks its reverse: use Graph.from_edges(directed=False)")


def check_one_weight(indptr: IntArray, indices: IntArray, weights: SingleArray) -> None:
    """Refuse edges of an undirected graph that have another weight than their reverse."""
    n = len(indptr) - 1
    columns = sp.csr_array((weights, indices, indptr), shape=(n, n)).tocsc()
    if not np.array_equal(columns.data, weights):
        raise GraphError("directed=False, but an edge and its reverse differ in weight: use Graph.from_edges")


def _is_symmetric(indptr: IntArray, indices: IntArray) -> bool:
    """Whether sorted CSR rows equal their transpose: linear in the edges, where sorting is not."""
    n = len(indptr) - 1
    ones = np.ones(len(indices), dtype=np.int8)
    columns = sp.csr_array((ones, indices, indptr), shape=(n, n)).tocsc()
    return np.array_equal(columns.indptr, indptr) and np.array_equal(columns.indices, indices)


def check_edge_count(num_entries: int) -> None:
    """Refuse more edges than proofs hold for; how many there are may be private, and is not said."""
    if num_entries > ENTRIES:
        raise GraphError(f"the graph has more than {ENTRIES} directed edges (an undirected edge counts as two)")


def check_sizes(num_nodes: int, num_classes: int) -> None:
    """Refuse sizes beyond the limits, each and together."""
    NODES.check("the number of nodes", num_nodes, GraphError)
    CLASSES.check("the number of classes", num_classes, GraphError)
    if num_nodes * num_classes > CELLS:
        raise GraphError(
            f"{num_nodes} nodes with a probability for each of {num_classes} classes need more memory than is allowed "
            f"({CELLS} numbers): is the label column an identifier?"
        )
