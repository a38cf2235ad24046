"""Data in: graphs from files, other libraries, public datasets and generators, and their splits.

Importing this package imports numpy and scipy only; torch, torch_geometric, pandas and networkx are
imported by the functions that need them.
"""

from discreet.graph.convert import (
    from_networkx,
    from_pandas,
    from_pyg,
    from_scipy,
    to_networkx,
    to_pandas,
    to_pyg,
    to_scipy,
)
from discreet.graph.datasets import available, load, resolve
from discreet.graph.graph import Graph, NamedSplit, PublicFacts
from discreet.graph.io import load_npz, load_path, read_graph, save_npz
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm, scale_free

__all__ = [
    "Graph",
    "NamedSplit",
    "PublicFacts",
    "available",
    "csbm",
    "from_networkx",
    "from_pandas",
    "from_pyg",
    "from_scipy",
    "load",
    "load_npz",
    "load_path",
    "read_graph",
    "resolve",
    "save_npz",
    "scale_free",
    "split",
    "to_networkx",
    "to_pandas",
    "to_pyg",
    "to_scipy",
]
