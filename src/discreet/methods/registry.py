"""Methods by name, with what can be said of them before torch is imported.

A package of a third party adds methods through the entry point group ``discreet.methods``: each entry is
named after its method and points to a :class:`MethodInfo`.
"""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from discreet.errors import UnsupportedError

if TYPE_CHECKING:
    from discreet.methods.base import NodeClassifier


@dataclass(frozen=True)
class MethodInfo:
    """A method as a listing shows it; ``target`` is ``module:Class``."""

    name: str
    target: str
    levels: tuple[str, ...]
    covers: str
    summary: str

    def load(self) -> type[NodeClassifier]:
        """Import the estimator class."""
        module, _, name = self.target.partition(":")
        found: type[NodeClassifier] = getattr(importlib.import_module(module), name)
        return found


_OWN = (
    MethodInfo(
        "mlp",
        "discreet.methods.mlp:MLPClassifier",
        ("none", "edge"),
        "weights+predictions",
        "a network on features alone; reads no edge",
    ),
    MethodInfo(
        "gcn", "discreet.methods.gcn:GCN", ("none",), "weights", "graph convolutions without privacy (Kipf and Welling)"
    ),
    MethodInfo(
        "sage", "discreet.methods.sage:SAGE", ("none",), "weights", "GraphSAGE without privacy (mean aggregation)"
    ),
    MethodInfo(
        "gap",
        "discreet.methods.gap:GAP",
        ("none", "edge", "neighbor", "node"),
        "weights+predictions",
        "noisy aggregation of encoded features, cached (GAP; paper 004)",
    ),
    MethodInfo(
        "dpdgc",
        "discreet.methods.dpdgc:DPDGC",
        ("none", "edge", "neighbor", "node"),
        "weights+predictions",
        "features beside noisy, cached embeddings of adjacency rows (DPDGC; paper 004)",
    ),
    MethodInfo(
        "dp-mlp",
        "discreet.methods.dp_mlp:DPMLPClassifier",
        ("node", "neighbor"),
        "weights+others-predictions",
        "a network on features alone, by noisy clipped gradients",
    ),
    MethodInfo(
        "dp-gnn",
        "discreet.methods.dp_gnn:DPGNN",
        ("node", "neighbor"),
        "weights",
        "a graph network on degree-bounded ego-nets, by noisy clipped gradients (DP-GNN; paper 001)",
    ),
    MethodInfo(
        "dpar",
        "discreet.methods.dpar:DPAR",
        ("none", "node"),
        "weights",
        "noisy PageRank picks whom a node averages, then noisy clipped gradients (DPAR; paper 000)",
    ),
    MethodInfo(
        "gcon",
        "discreet.methods.gcon:GCON",
        ("none", "edge"),
        "own-prediction",
        "a convex graph convolution by objective perturbation (GCON; paper 003)",
    ),
    MethodInfo(
        "gcon-ssp",
        "discreet.methods.gcon_ssp:GCONSSP",
        ("none", "edge"),
        "own-prediction",
        "a convex graph convolution from noisy sufficient statistics",
    ),
    MethodInfo(
        "hop-bayes",
        "discreet.methods.hop_bayes:HopBayes",
        ("none", "edge", "neighbor", "node"),
        "weights+predictions",
        "class-to-class links and neighbour evidence, weighed by their noise",
    ),
    MethodInfo(
        "lpgnn",
        "discreet.methods.lpgnn:LPGNN",
        ("none", "local"),
        "weights+predictions",
        "a graph network on reports that every node makes of its own record (LPGNN)",
    ),
    MethodInfo(
        "simgat",
        "discreet.methods.simgat:SimGAT",
        ("none", "local"),
        "weights+predictions",
        "lpgnn that averages reports over similar nodes too (SimGAT; paper 002)",
    ),
)


@cache
def methods() -> dict[str, MethodInfo]:
    """Every method, ours and those of installed packages, by name."""
    found = {info.name: info for info in _OWN}
    for entry in entry_points(group="discreet.methods"):
        found.setdefault(entry.name, entry.load())
    return found


def find_method(name: str) -> MethodInfo:
    """The method of that name, or one sentence with the nearest."""
    known = methods()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise UnsupportedError(f"there is no method {name!r}: {hint}")
    return known[name]
