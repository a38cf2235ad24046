"""A fit leaves nothing of its private data in the process: no private part outlives it, and no cache learns from it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from discreet.audit.small_graphs import graph_at
from discreet.graph.parts import PrivatePart
from discreet.privacy.levels import parse_level
from tests.contracts.cases import make

SUBJECTS = [
    ("gap", "edge"),
    ("hop-bayes", "edge"),
    ("gcon", "edge"),
    ("dp-gnn", "node:owned,max_degree=3"),
    ("dpar", "node:owned,max_degree=3"),
    ("lpgnn", "local"),
]


def caches() -> Iterator[tuple[str, int]]:
    """How often each cached function of the library has met something new."""
    for name, module in sorted(sys.modules.items()):
        if name.startswith("discreet"):
            for key, value in sorted(vars(module).items()):
                if hasattr(value, "cache_info") and not isinstance(value, type):
                    yield f"{name}.{key}", value.cache_info().misses


def containers() -> Iterator[tuple[str, int]]:
    """How much each module of the library holds in lists, sets and tables of its own."""
    for name, module in sorted(sys.modules.items()):
        if name.startswith("discreet"):
            for key, value in sorted(vars(module).items()):
                if isinstance(value, dict | list | set) and not key.startswith("__"):
                    yield f"{name}.{key}", len(value)


def private_parts() -> list[object]:
    """The private parts alive now. Of a proxy, isinstance asks the object it stands for, which may be gone."""
    gc.collect()
    return [found for found in gc.get_objects() if issubclass(type(found), PrivatePart)]


@pytest.mark.parametrize(("method", "spec"), SUBJECTS)
def test_a_second_fit_finds_and_leaves_nothing(method: str, spec: str) -> None:
    level, rng = parse_level(spec), np.random.default_rng(0)
    graph = level.view(graph_at(level, rng, 8))
    before = {id(found) for found in private_parts()}
    make(method, spec).fit(graph)
    known, held = dict(caches()), dict(containers())
    make(method, spec).fit(level.neighbor(graph, rng))
    assert dict(caches()) == known
    assert dict(containers()) == held
    assert not [found for found in private_parts() if id(found) not in before]
