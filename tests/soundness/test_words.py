"""Words that tell: neighbours with hostile values are refused alike, or fitted without a word of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from discreet.audit.replay import ReplayReport, replay_broken_promises, replay_pair
from discreet.audit.small_graphs import graph_at
from discreet.audit.worst_pairs import NODES
from discreet.errors import DiscreetError
from discreet.graph.graph import Graph
from discreet.graph.parts import FEATURES, LABELS
from discreet.privacy.levels import Level
from discreet.privacy.moves import set_row
from discreet.testing import MethodCase
from tests.contracts.cases import CASES

PRIVATE = {(case.make().method, case.level.kind): case for case in CASES if case.level.kind != "none"}
"""One basis for each kind of level; the promised ones are looked at by themselves."""
HOSTILE = (0.0, -0.0, 1e12, -1e12, 1e-30)


def hostile_pairs(level: Level) -> Iterator[tuple[Graph, Graph]]:
    """A neighbour that the level draws, and one node's record at the ends of what a graph may hold."""
    rng = np.random.default_rng(0)
    graph = level.view(graph_at(level, rng, NODES))
    yield graph, level.neighbor(graph, rng)
    for value in HOSTILE:
        if FEATURES in level.private:
            row = np.full(graph.num_features, value, dtype=np.float32)
            yield graph, graph.with_features(set_row(graph.features, 0, row))
    if LABELS in level.private and getattr(level, "change", "replace") == "replace":
        yield graph, graph.with_labels(np.where(np.arange(NODES) == 0, -1, graph.labels))


@pytest.mark.parametrize("case", PRIVATE.values(), ids=str)
def test_what_is_said_does_not_depend_on_private_values(case: MethodCase) -> None:
    report, quick = ReplayReport(), case.seeded()
    quick.set_params(**{name: 1 for name in ("steps", "head_steps", "epochs") if hasattr(quick, name)})
    for pair in hostile_pairs(case.level):
        with suppress(DiscreetError):  # both are refused, in the same words
            replay_pair(quick, *pair, report=report)
    assert report.pairs > 0
    assert not [fault for fault in report.violations if "is said" in fault or "refused" in fault], report.violations


@pytest.mark.parametrize("case", [case for case in CASES if getattr(case.level, "edges", None) == "promised"], ids=str)
def test_broken_promises_are_refused_in_the_same_words(case: MethodCase) -> None:
    level = replace(case.level, max_degree=3)
    made = case.seeded()
    made.set_params(privacy=replace(made.privacy, level=level))
    assert replay_broken_promises(made, ReplayReport()).passed
