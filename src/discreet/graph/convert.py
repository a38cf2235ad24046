"""Graphs from and to other libraries: PyG, NetworkX and SciPy here, pandas in ``tables``.

Each library is imported by the function that needs it. What a graph here cannot hold (several attributes per edge,
several node types, several labels per node) is refused by name, never dropped in silence. Weights of edges are
read, clipped to [0, 1], where ``weights="read"`` says so.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet.arrays import Array, SingleArray
from discreet.errors import GraphError, UnsupportedError
from discreet.graph.clean import as_id_array, clean_features
from discreet.graph.edge_weights import Weights, check_weights_option
from discreet.graph.given import as_array, as_names, sound_sparse
from discreet.graph.graph import CLASS_LIST, MASKS, Graph, NamedSplit
from discreet.graph.labels import decode_classes, encode_classes
from discreet.graph.tables import (
    from_pandas,
    masks_from_words,
    split_words,
    to_pandas,
)

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

__all__ = [
    "from_networkx",
    "from_pandas",
    "from_pyg",
    "from_scipy",
    "to_networkx",
    "to_pandas",
    "to_pyg",
    "to_scipy",
]

GraphLike: TypeAlias = "Graph | Data"
"""A graph of ours, or what :func:`as_graph` makes one of."""


def as_graph(given: GraphLike) -> Graph:
    """The graph itself, or a ``torch_geometric.data.Data`` as :func:`from_pyg` reads it without options."""
    if isinstance(given, Graph):
        return given
    if any(kind.__module__.split(".")[0] == "torch_geometric" for kind in type(given).__mro__):
        return from_pyg(given)
    kind = f"{type(given).__module__.split('.')[0]}.{type(given).__name__}".removeprefix("builtins.")
    raise UnsupportedError(
        f"a graph is wanted, not {kind}: build one with "
        "discreet.load, discreet.Graph.from_edges, or discreet.graph.from_pyg, from_networkx, from_pandas or from_scipy"
    )


# -------------------------------------------------------------------- PyTorch Geometric


def from_pyg(
    data: Data,
    *,
    directed: bool | None = None,
    num_classes: int | None = None,
    weights: Weights = "refuse",
    name: str = "graph",
) -> Graph:
    """Read a homogeneous ``torch_geometric.data.Data``.

    ``edge_index`` is read as [source; target]. Masks with several columns become the published splits
    ``mask:0``, ``mask:1``, …. Edges are read as undirected unless ``directed=True`` (or ``data.directed``, which
    :func:`to_pyg` sets) keeps their directions: they are never looked at to find out. ``edge_weight`` is read with
    ``weights="read"`` (or ``data.weighted``, which :func:`to_pyg` sets) and clipped to [0, 1].
    """
    _refuse_other_data(data)
    check_weights_option(weights)
    if weights == "refuse" and bool(data.get("weighted", False)):
        weights = "read"
    for attribute in ("edge_weight", "edge_attr"):
        if weights == "ignore" or (weights == "read" and attribute == "edge_weight") or data.get(attribute) is None:
            continue
        given = as_array(data.get(attribute), f"data.{attribute}")
        if not bool((given == 1).all()):
            read = 'with weights="read", clipped to [0, 1], or ' if attribute == "edge_weight" else ""
            what = "weights" if given.ndim <= 1 or given.shape[-1] == 1 else "features"
            raise GraphError(
                f"data.{attribute} holds {what} of edges: read the graph {read}without them, "
                'discreet.graph.from_pyg(data, weights="ignore")'
            )
    source, target = _pyg_ends(data.edge_index)
    masks, splits = _pyg_masks(data)
    if directed is None:
        directed = bool(data.get("directed", False))
    names = data.get("class_names")
    names = None if names is None else as_names(names, "data.class_names")
    declared = len(names) if num_classes is None and names is not None else num_classes
    labels, names = _pyg_labels(data.get("y"), names)
    return Graph.from_edges(
        source,
        target,
        _pyg_features(data.x),
        labels,
        directed=directed,
        num_classes=declared,
        edge_weights=_pyg_weights(data) if weights == "read" else None,
        node_ids=_pyg_ids(data.get("node_ids")),
        class_names=names,
        named_splits=splits,
        name=name,
        **masks,
    )


def to_pyg(graph: Graph) -> Data:
    """A ``Data`` with ``x`` (sparse CSR stays sparse), ``edge_index``, ``y``, masks, ids and class names.

    Weights of edges become ``edge_weight``, and ``weighted`` says that :func:`from_pyg` is to read them.
    """
    torch = _need("torch")
    data_type = _need("torch_geometric.data", "pyg").Data
    features = graph.features
    if isinstance(features, np.ndarray):
        x = torch.from_numpy(features.copy())
    else:
        parts = (torch.from_numpy(part.astype(np.int64)) for part in (features.indptr, features.indices))
        x = torch.sparse_csr_tensor(
            *parts, torch.from_numpy(features.data.copy()), size=features.shape, check_invariants=True
        )
    data = data_type(x=x, edge_index=torch.from_numpy(np.stack(graph.edges())))
    data.y = torch.from_numpy(graph.labels.copy())
    for mask in MASKS:
        held = getattr(graph, f"{mask}_mask")
        if held is not None:
            data[f"{mask}_mask"] = torch.from_numpy(held.copy())
    if graph.node_ids is not None:
        data.node_ids = graph.node_ids.tolist()
    if graph.class_names is not None:
        data.class_names = list(graph.class_names)
    if graph.directed:
        data.directed = True
    if graph.edge_weights is not None:
        data.edge_weight, data.weighted = torch.from_numpy(graph.edge_weights.copy()), True
    return data


def _refuse_other_data(data: Any) -> None:
    kinds = {kind.__name__ for kind in type(data).__mro__}
    if "HeteroData" in kinds:
        raise UnsupportedError("HeteroData is not supported: take one node type, or data.to_homogeneous() first")
    if "Data" not in kinds:
        raise UnsupportedError(f"from_pyg takes a torch_geometric.data.Data, not {type(data).__name__}")
    for attribute in ("x", "edge_index"):
        if data.get(attribute) is None:
            stored = data.get("adj_t") is not None and attribute == "edge_index"
            raise GraphError(f"data.{attribute} is missing" + (": data.adj_t is not read" if stored else ""))


def _pyg_ends(edge_index: Any) -> Array:
    """Sources above targets."""
    ends = as_array(edge_index, "data.edge_index")
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise GraphError(f"data.edge_index must have two rows, of sources and of targets, not shape {ends.shape}")
    return ends


def _pyg_weights(data: Any) -> Array:
    given = data.get("edge_weight")
    if given is None:
        raise GraphError("weights are to be read, but data.edge_weight is missing")
    return as_array(given, "data.edge_weight")


def _pyg_labels(y: Any, names: Any) -> tuple[Array | None, Any]:
    """Class numbers and names of classes: those that ``data.class_names`` gives, or those of labels that are words."""
    if y is None:
        return None, names
    if isinstance(y, list | tuple) and any(isinstance(value, str) for value in y):
        return encode_classes(y, names)
    labels = as_array(y, "data.y")
    if labels.dtype.kind in "OU" and labels.ndim == 1:
        return encode_classes(labels.tolist(), names)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise UnsupportedError(
            f"data.y of shape {labels.shape} holds several labels per node, and one is supported: "
            "data.y.argmax(dim=1), if one column of each row is 1 and the others are 0"
        )
    return labels, names


def _pyg_ids(ids: Any) -> Any:
    return as_array(ids, "data.node_ids") if hasattr(ids, "cpu") else ids


def _pyg_masks(data: Any) -> tuple[dict[str, Any], tuple[NamedSplit, ...]]:
    held = {mask: data.get(f"{mask}_mask") for mask in MASKS}
    masks = {mask: _pyg_mask(given, mask, data.num_nodes) for mask, given in held.items() if given is not None}
    columns = {mask.shape[1] for mask in masks.values() if mask.ndim == 2}
    if not columns:
        return {f"{mask}_mask": given for mask, given in masks.items()}, ()
    if len(columns) > 1:
        raise GraphError(f"masks of data differ in their number of columns: {min(columns)} and {max(columns)}")
    splits = []
    for column in range(min(columns)):
        part = np.zeros(data.num_nodes, dtype=np.int8)
        for place, mask in enumerate(MASKS, start=1):
            if mask in masks:
                chosen = masks[mask][:, column] if masks[mask].ndim == 2 else masks[mask]
                part[chosen] = place
        splits.append(NamedSplit(f"mask:{column}", part))
    return {}, tuple(splits)


def _pyg_mask(given: Any, name: str, num_nodes: int) -> Array:
    """Booleans, one row per node; zeros and ones stand for them, as older versions of PyG had it."""
    mask = as_array(given, f"data.{name}_mask")
    if mask.ndim not in (1, 2) or mask.shape[0] != num_nodes or not np.isin(mask, (0, 1)).all():
        raise GraphError(f"data.{name}_mask must hold a boolean for each of {num_nodes} nodes, not {_shape_of(mask)}")
    return mask.astype(bool)


def _pyg_features(x: Any) -> Any:
    """A dense array, or CSR where the tensor is sparse; what is no tensor is read as :class:`Graph` reads it."""
    torch = _need("torch")
    if not isinstance(x, torch.Tensor):
        return x
    if x.is_complex():
        raise GraphError("data.x must be a matrix of real numbers (complex numbers)")
    try:
        x = x.detach().cpu()
        if x.layout == torch.strided:
            return x.float().numpy()
        csr = x.to_sparse_csr()
        parts = (csr.values().float().numpy(), csr.col_indices().numpy(), csr.crow_indices().numpy())
        return sp.csr_array(parts, shape=tuple(x.shape))
    except (RuntimeError, ValueError, TypeError) as error:  # layouts, types and devices that hold no such numbers
        kind = f"{x.dtype}, {x.layout}, on {x.device}"
        raise GraphError(f"data.x cannot be read ({kind}): give a dense tensor of float32 on the CPU") from error


# -------------------------------------------------------------------- NetworkX


def from_networkx(
    graph: nx.Graph,
    *,
    features: str | Sequence[str] = "x",
    label: str | None = "y",
    split: str | None = "split",
    classes: Sequence[Any] | None = None,
    weights: Weights = "refuse",
    name: str = "graph",
) -> Graph:
    """Read a NetworkX graph of any kind; parallel edges become one, and node ids are kept.

    ``features`` names one node attribute that holds a vector, or several that hold numbers. A node
    without the ``label`` attribute is unlabelled. ``split`` names an attribute with train, val or test.
    ``weights="read"`` reads the attribute ``weight`` of edges, clipped to [0, 1]; an edge without one counts in full.
    """
    check_weights_option(weights)
    if not isinstance(graph, _need("networkx", "networkx").Graph):
        raise UnsupportedError(f"from_networkx takes a graph of NetworkX, not {type(graph).__name__}")
    if graph.number_of_nodes() == 0:
        raise GraphError("the graph has no nodes")
    rows = {node: row for row, node in enumerate(graph)}
    if weights == "refuse":
        for a, b, weight in graph.edges(data="weight", default=1):
            if weight != 1:
                raise GraphError(
                    f'edge {a!r} – {b!r} has weight {weight}: read weights, clipped to [0, 1], with weights="read", or '
                    'drop them with weights="ignore"'
                )
    held_weights = [weight for _, _, weight in graph.edges(data="weight", default=1)] if weights == "read" else None
    ends = np.array([(rows[a], rows[b]) for a, b in graph.edges()], dtype=np.int64).reshape(-1, 2)
    _check_attribute(label=label, split=split)
    words = [held.get(split) for _, held in graph.nodes(data=True)] if split is not None else []
    masks: dict[str, Any] = masks_from_words(words) if any(words) else {}
    labels, names = (None, None)
    if label is not None:
        labels, names = encode_classes([held.get(label) for _, held in graph.nodes(data=True)], classes)
    return Graph.from_edges(
        ends[:, 0],
        ends[:, 1],
        _networkx_features(graph, features),
        labels,
        directed=graph.is_directed(),
        num_classes=None if names is None else len(names),
        edge_weights=held_weights,
        inferred=frozenset() if classes is not None else frozenset({CLASS_LIST}),
        class_names=names,
        node_ids=as_id_array(list(graph)),
        name=name,
        **masks,
    )


def to_networkx(graph: Graph, *, features: str = "x", label: str = "y", split: str = "split") -> nx.Graph:
    """A ``Graph`` or ``DiGraph`` over the caller's node ids, with features, labels and split as attributes.

    Sparse features are written as dense vectors, one per node.
    """
    networkx = _need("networkx", "networkx")
    made = networkx.DiGraph() if graph.directed else networkx.Graph()
    ids = list(range(graph.num_nodes)) if graph.node_ids is None else graph.node_ids.tolist()
    classes = decode_classes(graph.labels, graph.class_names)
    words = split_words(graph)
    for row, node in enumerate(ids):
        stored = graph.features[[row]]
        dense = stored if isinstance(stored, np.ndarray) else stored.toarray()
        held: dict[str, Any] = {features: dense[0].copy()}
        if classes[row] is not None:
            held[label] = classes[row]
        if words[row]:
            held[split] = words[row]
        made.add_node(node, **held)
    ends = [(ids[a], ids[b]) for a, b in zip(*(end.tolist() for end in graph.edges()), strict=True)]
    if graph.edge_weights is None:
        made.add_edges_from(ends)
    else:
        made.add_weighted_edges_from((*pair, w) for pair, w in zip(ends, graph.edge_weights.tolist(), strict=True))
    return made


def _check_attribute(**given: Any) -> None:
    for option, name in given.items():
        if name is not None and not isinstance(name, Hashable):
            raise GraphError(f"{option} must name a node attribute, not {type(name).__name__}")


def _networkx_features(graph: Any, features: str | Sequence[str]) -> SingleArray:
    wanted = [features] if isinstance(features, str) else list(as_names(features, "names of feature attributes"))
    if not wanted:
        raise GraphError("features must name a node attribute, or several")
    rows = []
    for node, held in graph.nodes(data=True):
        absent = [attribute for attribute in wanted if attribute not in held]
        if absent:
            raise GraphError(f"node {node!r} has no feature attribute {absent[0]!r}")
        parts = [_numbers(node, attribute, held[attribute]) for attribute in wanted]
        if any(part.ndim > 1 for part in parts):
            raise GraphError(f"node {node!r} has a feature attribute that is no number and no flat list of numbers")
        rows.append(np.concatenate([np.atleast_1d(part) for part in parts]))
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise GraphError(f"feature vectors differ in length: {min(widths)} and {max(widths)}")
    return np.stack(rows)


def _numbers(node: Any, attribute: str, given: Any) -> Array:
    found = as_array(given, f"attribute {attribute!r} of node {node!r}")
    if found.dtype.kind == "U":
        raise GraphError(
            f"attribute {attribute!r} of node {node!r} is the text {str(given)!r:.40}, and features are numbers: make "
            "tables of nodes and edges, which from_pandas reads with their categories and missing values"
        )
    return found


# -------------------------------------------------------------------- SciPy


def from_scipy(
    adjacency: sp.spmatrix | sp.sparray,
    features: npt.ArrayLike | sp.spmatrix | sp.sparray,
    labels: npt.ArrayLike | None = None,
    *,
    directed: bool = False,
    weights: Weights = "refuse",
    **rest: Any,
) -> Graph:
    """Read a square sparse matrix with ``A[i, j]`` for an edge ``i → j`` (so rows are senders).

    Every entry is an undirected edge unless ``directed=True``.

    Entries other than 0 and 1 are weights: refused, read as an edge with ``weights="ignore"``, or read, clipped to
    [0, 1], with ``weights="read"``.
    The rest goes to :meth:`Graph.from_edges` (``num_classes``, masks, ``node_ids``, ``name``, …).
    """
    check_weights_option(weights)
    if not sp.issparse(adjacency) or adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise GraphError(f"the adjacency must be a square scipy.sparse matrix, not {_shape_of(adjacency)}")
    entries = sound_sparse(adjacency, "the entries of the adjacency").tocoo()
    features = clean_features(features)
    if features.shape[0] != adjacency.shape[0]:
        raise GraphError(f"the adjacency has {adjacency.shape[0]} rows and the features have {features.shape[0]}")
    there = entries.data != 0
    if weights == "refuse" and not (entries.data[there] == 1).all():
        odd = entries.data[there & (entries.data != 1)][0]
        raise GraphError(f'the adjacency holds {odd}: pass weights="read" (clipped to [0, 1]) or weights="ignore"')
    source, target = entries.coords
    if weights == "read":
        rest["edge_weights"] = entries.data[there]
    return Graph.from_edges(source[there], target[there], features, labels, directed=directed, **rest)


def to_scipy(graph: Graph) -> sp.csr_array:
    """The adjacency with ``A[i, j] = 1`` (or its weight) for an edge ``i → j``: the transpose of that of the graph."""
    return graph.weighted_adjacency.T.tocsr()


def _shape_of(given: Any) -> str:
    shape = getattr(given, "shape", None)
    return f"{type(given).__name__} of shape {shape}" if shape is not None else type(given).__name__


def _need(module: str, extra: str | None = None) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        how = f"install discreet[{extra}]" if extra else f"install {module}"
        raise UnsupportedError(f"this conversion needs {module.split('.')[0]}: {how}") from error
