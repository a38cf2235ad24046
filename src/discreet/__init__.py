"""Discreet: learning on private graphs, with guarantees that hold and can be checked.

    import discreet

    graph = discreet.split(discreet.load("csbm"), "75/10/15", seed=0)
    model = discreet.GAP(discreet.Privacy(discreet.EdgeLevel(), epsilon=4.0))
    print(model.plan(graph.public))
    model.fit(graph).save("release")

Names are imported when first used: ``import discreet`` itself imports neither torch nor numpy. ``__init__.pyi`` beside
this file tells type checkers what they are.
"""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "Compute": "methods.parameters",
    "Curator": "mechanisms.curator",
    "DPAR": "methods.dpar.estimator",
    "DPDGC": "methods.dpdgc.estimator",
    "DPGCN": "methods.dpgcn.estimator",
    "DPGNN": "methods.dp_gnn.estimator",
    "DPMLPClassifier": "methods.baselines.dp_mlp",
    "DPSAGE": "methods.dp_gnn.sage",
    "EdgeLevel": "privacy.levels",
    "GAP": "methods.gap.estimator",
    "GCN": "methods.baselines.convolution",
    "GCON": "methods.gcon.objective",
    "GCONSSP": "methods.gcon.moments",
    "Graph": "graph.graph",
    "HopBayes": "methods.hop_bayes.estimator",
    "LPGNN": "methods.lpgnn.estimator",
    "LPGNet": "methods.progressive.lpgnet",
    "LocalLevel": "privacy.levels",
    "MLPClassifier": "methods.baselines.mlp",
    "NeighborLevel": "privacy.levels",
    "NoPrivacy": "privacy.levels",
    "NodeClassifier": "methods.base",
    "NodeLevel": "privacy.levels",
    "ProGAP": "methods.progressive.progap",
    "Plan": "privacy.plan",
    "Privacy": "privacy.budget",
    "Query": "privacy.query",
    "Residual": "training.encoder_modules",
    "SAGE": "methods.baselines.convolution",
    "GAT": "methods.baselines.convolution",
    "SimGAT": "methods.lpgnn.simgat",
    "Stage": "privacy.plan",
    "certified_figures": "release.certified_figures",
    "csbm": "graph.synthetic",
    "evaluate": "release.evaluate",
    "find_method": "methods.registry",
    "from_folder": "graph.io",
    "from_networkx": "graph.convert",
    "from_pyg": "graph.convert",
    "list_methods": "methods.registry",
    "load": "graph.datasets",
    "load_release": "release.load",
    "parse_level": "privacy.levels",
    "read_graph": "graph.io",
    "recommend": "methods.recommend",
    "replay_audit": "audit.replay",
    "split": "graph.splits",
    "to_networkx": "graph.convert",
    "to_pyg": "graph.convert",
    "tune": "tuning.tuner",
    "verify": "release.verify",
}
_MODULES = ("local", "testing")

__all__ = sorted([*_NAMES, *_MODULES])


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name in _MODULES:
        return importlib.import_module(f"discreet.{name}")
    if name not in _NAMES:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"discreet.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return [*globals(), *__all__]
