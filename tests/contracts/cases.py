"""Every registered method at every level that it supports, small enough to fit in milliseconds."""

from __future__ import annotations

import dataclasses
import math
import re
from functools import partial
from typing import Any

import numpy as np

from discreet.audit.small_graphs import small_graph
from discreet.errors import UnsupportedError
from discreet.graph.graph import Graph
from discreet.methods.base import NodeClassifier
from discreet.methods.registry import list_methods, load_method
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import parse_level
from discreet.testing import MethodCase
from tests.effort import effort

SPECS = {
    "none": ("none",),
    "edge": ("edge", "edge:directed"),
    "neighbor": ("neighbor:2,max_degree=3", "neighbor:2,max_degree=12,edges=promised", "neighbor:2"),
    "node": (
        "node:owned,max_degree=3,change=null",
        "node:owned,max_degree=3,change=replace",
        "node:promised,max_degree=12,change=null",
        "node:promised,max_degree=12,change=replace",
        "node:thinned,d_max=12,p=0.5,change=null",
    ),
    "local": ("local", "local:features", "local:labels"),
}
# Fields that decide how long a fit takes, where a method has them.
QUICK = {"epochs": 1, "hidden": 4, "steps": 2, "head_steps": 2, "embedding_steps": 2, "batch_size": 3}
# Other settings of a method that is here at every level itself.
PRESETS = ("dp-sage",)
# What some methods demand and none may guess; small graphs have standard normal features.
DEMANDED = {"feature_range": (-2.0, 2.0), "outside": "clip"}


def make(name: str, spec: str, epsilon: float = 1.0, **overrides: Any) -> NodeClassifier:
    """The method with cheap settings and reproducible noise."""
    kind = load_method(list_methods()[name])
    fields = {field.name: field for field in dataclasses.fields(kind)}
    quick = {key: value for key, value in QUICK.items() if key in fields and _takes_whole_numbers(fields[key])}
    if name in PRESETS or spec.startswith(("edge", "none")):
        quick.pop("batch_size", None)  # sampled steps, whose calibration takes seconds, are checked at node level
    level = parse_level(spec)
    privacy = Privacy(level, math.inf if spec == "none" else epsilon)
    demanded = {key: value for key, value in DEMANDED.items() if key in fields}
    pinned = kind(privacy, **demanded)._pinned()  # what would be left out on graphs this small is audited too
    parameters = {**quick, **demanded, **pinned, "insecure_noise_seed": 7, **overrides}
    return kind(privacy, **parameters)


def _takes_whole_numbers(field: dataclasses.Field[Any]) -> bool:
    if re.search(r"\b(int|Steps|Rounds|Width)\b", str(field.type)):
        return True
    return isinstance(field.default, int) and not isinstance(field.default, bool)


def graph_for(spec: str, seed: int = 0) -> Graph:
    """A small graph of the kind that the level describes."""
    return small_graph(np.random.default_rng(seed), directed=spec == "edge:directed")


def _supported(name: str, spec: str) -> bool:
    try:
        make(name, spec).plan(parse_level(spec).view(graph_for(spec)).public)
    except UnsupportedError:
        return False
    return True


CASES = [
    MethodCase(partial(make, name, spec), pairs=effort(5, 25))
    for name, declared in list_methods().items()
    for kind in declared.levels
    for spec in (SPECS[kind][:1] if name in PRESETS else SPECS[kind])
    if _supported(name, spec)
]
