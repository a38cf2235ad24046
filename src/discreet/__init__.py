"""Discreet: learning on private graphs, with guarantees that hold and can be checked.

    import discreet

    graph = discreet.split(discreet.load("csbm"), "75/10/15", seed=0)
    model = discreet.GAP(discreet.Privacy(discreet.EdgeLevel(), epsilon=4.0))
    print(model.plan(graph.public))
    model.fit(graph).save("release")

Names are imported when first used: ``import discreet`` itself imports neither torch nor numpy.
"""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "Compute": "discreet.methods.compute",
    "Curator": "discreet.mechanisms.curator",
    "DPAR": "discreet.methods.dpar",
    "DPDGC": "discreet.methods.dpdgc",
    "DPGNN": "discreet.methods.dp_gnn",
    "DPMLPClassifier": "discreet.methods.dp_mlp",
    "EdgeLevel": "discreet.privacy.levels",
    "GAP": "discreet.methods.gap",
    "GCN": "discreet.methods.gcn",
    "GCON": "discreet.methods.gcon",
    "GCONSSP": "discreet.methods.gcon_ssp",
    "Graph": "discreet.graph",
    "HopBayes": "discreet.methods.hop_bayes",
    "LPGNN": "discreet.methods.lpgnn",
    "LocalLevel": "discreet.privacy.levels",
    "MLPClassifier": "discreet.methods.mlp",
    "NeighborLevel": "discreet.privacy.levels",
    "NoPrivacy": "discreet.privacy.levels",
    "NodeClassifier": "discreet.methods.base",
    "NodeLevel": "discreet.privacy.levels",
    "Plan": "discreet.privacy.plan",
    "Privacy": "discreet.privacy.budget",
    "SAGE": "discreet.methods.sage",
    "SimGAT": "discreet.methods.simgat",
    "Stage": "discreet.privacy.plan",
    "csbm": "discreet.graph",
    "find_method": "discreet.methods.registry",
    "load": "discreet.graph",
    "load_release": "discreet.methods.release",
    "methods": "discreet.methods.registry",
    "parse_level": "discreet.privacy.level_specs",
    "read_graph": "discreet.graph",
    "recommend": "discreet.methods.recommend",
    "replay_audit": "discreet.audit.replay",
    "split": "discreet.graph",
    "tune": "discreet.tuning.tuner",
    "verify": "discreet.privacy.certificate",
}
_MODULES = ("local",)

__all__ = sorted([*_NAMES, *_MODULES])


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name in _MODULES:
        return importlib.import_module(f"discreet.{name}")
    if name not in _NAMES:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    value = getattr(importlib.import_module(_NAMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return [*globals(), *__all__]
