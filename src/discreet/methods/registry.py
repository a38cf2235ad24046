"""Methods by name. Ours declare themselves in the ``__init__`` of their folder.

A package of a third party adds methods through the entry point group ``discreet.methods``: each entry is
named after its method and points to a :class:`Declaration`.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from discreet.errors import UnsupportedError
from discreet.limits import shown
from discreet.methods import baselines, dp_gnn, dpar, dpdgc, dpgcn, gap, gcon, hop_bayes, lpgnn, progressive
from discreet.methods.declaration import Declaration

if TYPE_CHECKING:
    from discreet.methods.base import NodeClassifier

GROUP = "discreet.methods"
OWN: tuple[Declaration, ...] = (
    baselines.MLP,
    baselines.GCN,
    baselines.SAGE,
    baselines.GAT,
    gap.GAP,
    dpdgc.DPDGC,
    dpgcn.DPGCN,
    progressive.LPGNET,
    progressive.PROGAP,
    baselines.DP_MLP,
    dp_gnn.DP_GNN,
    dp_gnn.DP_SAGE,
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
    for name, declared in _of_packages():
        if isinstance(declared, Declaration):
            found.setdefault(name, declared)
    return found


def broken_methods() -> dict[str, str]:
    """Methods of installed packages that cannot be used, by name, each with its reason; the rest works."""
    return {name: reason for name, reason in _of_packages() if isinstance(reason, str)}


def _of_packages() -> Iterator[tuple[str, Declaration | str]]:
    """What installed packages declare, or why it cannot be read: the fault of one package is not everyone's."""
    for entry in entry_points(group=GROUP):
        try:
            found = entry.load()
        except (Exception, SystemExit) as error:
            yield entry.name, f"{entry.value} cannot be imported ({type(error).__name__}: {error})"
            continue
        if isinstance(found, Declaration):
            yield entry.name, found
        else:
            yield entry.name, f"{entry.value} is a {type(found).__name__}, not a Declaration"


def find_method(name: str) -> Declaration:
    """The method of that name, or one sentence with the nearest."""
    known = list_methods()
    if not isinstance(name, str):
        raise UnsupportedError(f"a method is named by a text, not by {shown(name)}: there are {', '.join(known)}")
    if name not in known:
        if name in (broken := broken_methods()):
            raise UnsupportedError(f"the method {name!r} of an installed package is broken: {broken[name]}")
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise UnsupportedError(f"there is no method {name!r}: {hint}")
    return known[name]


def load_method(declared: Declaration) -> type[NodeClassifier]:
    """Import the estimator class."""
    module, _, name = declared.target.partition(":")
    try:
        found: type[NodeClassifier] = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:
        if declared in OWN:  # a bug of ours
            raise
        reason = f"{type(error).__name__}: {error}"
        raise UnsupportedError(f"the class of method {declared.name!r} cannot be imported ({reason})") from error
    return found
