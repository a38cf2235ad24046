"""Methods by name. Ours declare themselves in the ``__init__`` of their folder.

A package of a third party adds methods through the entry point group ``discreet.methods``: each entry is
named after its method and points to a :class:`Declaration`.
"""

from __future__ import annotations

import difflib
import importlib
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from discreet.errors import UnsupportedError
from discreet.methods import baselines, dp_gnn, dpar, dpdgc, dpgcn, gap, gcon, hop_bayes, lpgnn, progressive
from discreet.methods.declaration import Declaration

if TYPE_CHECKING:
    from discreet.methods.base import NodeClassifier

OWN: tuple[Declaration, ...] = (
    baselines.MLP,
    baselines.GCN,
    baselines.SAGE,
    gap.GAP,
    dpdgc.DPDGC,
    dpgcn.DPGCN,
    progressive.LPGNET,
    progressive.PROGAP,
    baselines.DP_MLP,
    dp_gnn.DP_GNN,
    dpar.DPAR,
    gcon.GCON,
    gcon.GCON_SSP,
    hop_bayes.HOP_BAYES,
    lpgnn.LPGNN,
    lpgnn.SIMGAT,
)


@cache
def list_methods() -> dict[str, Declaration]:
    """Every method, ours and those of installed packages, by name."""
    found = {declared.name: declared for declared in OWN}
    for entry in entry_points(group="discreet.methods"):
        found.setdefault(entry.name, entry.load())
    return found


def find_method(name: str) -> Declaration:
    """The method of that name, or one sentence with the nearest."""
    known = list_methods()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise UnsupportedError(f"there is no method {name!r}: {hint}")
    return known[name]


def load_method(declared: Declaration) -> type[NodeClassifier]:
    """Import the estimator class."""
    module, _, name = declared.target.partition(":")
    found: type[NodeClassifier] = getattr(importlib.import_module(module), name)
    return found
