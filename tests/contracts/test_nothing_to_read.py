"""A method that tries to read private data past its plan finds nothing: it raises, or there is nothing to read."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from discreet.audit.small_graphs import small_graph
from discreet.errors import DiscreetError, PrivateDataError
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart, PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods.base import NodeClassifier
from discreet.methods.declaration import Declaration
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import parse_level

Attempt = Callable[[PublicPart, Curator], Any]

EVERY_LEVEL = dict.fromkeys(("edge", "node", "neighbor", "local"), "weights")
LEVELS = ("edge", "node", "neighbor:2", "local", "local:features", "local:labels")


@dataclass(eq=False, repr=False)
class Curious(NodeClassifier):
    """A third party's method that looks where it should not; it plans nothing and spends nothing."""

    declaration = Declaration("curious", "nowhere:Curious", EVERY_LEVEL, "looks around")

    def _stages(self, public, level):
        return []

    def _learn(self, parts, curator, progress):
        self.found_ = self.attempt(parts[0], curator)

    def _state(self):
        return {}


def _graph() -> Graph:
    return small_graph(np.random.default_rng(3), num_nodes=9)


def curious(spec: str, attempt: Attempt) -> Curious:
    method = Curious(Privacy(parse_level(spec), 1.0))
    method.attempt = attempt
    return method


READS: dict[str, Callable[[PublicPart], Any]] = {
    "edges": lambda part: part.adjacency,
    "all entries": lambda part: part.edges(),
    "rows of entries": lambda part: part.indptr,
    "senders": lambda part: part.indices,
    "degrees": lambda part: part.in_degree(),
    "features": lambda part: part.features,
    "labels": lambda part: part.labels,
    "who is labelled": lambda part: part.labelled(part.mask("train")),
}
READ_OF = {"edges": {"edges", "all entries", "rows of entries", "senders", "degrees"}, "features": {"features"}}
READ_OF["labels"] = {"labels", "who is labelled"}


@pytest.mark.parametrize("spec", LEVELS)
@pytest.mark.parametrize("what", READS)
def test_reading_raises_where_the_level_says_so(spec: str, what: str) -> None:
    private = any(what in READ_OF[name] for name in parse_level(spec).private)
    method = curious(spec, lambda part, _: READS[what](part))
    if private:
        with pytest.raises(PrivateDataError, match="private"):
            method.fit(_graph())
        assert not hasattr(method, "plan_")
    else:
        method.fit(_graph())


ATTEMPTS: dict[str, Attempt] = {
    "stash a reference": lambda part, _: [part.adjacency, part.features],
    "warn with it": lambda part, _: warnings.warn(f"largest degree {part.in_degree().max()}", stacklevel=1),
    "size a buffer by it": lambda part, _: np.zeros(len(part.indices)),
    "refuse by it": lambda part, _: 1 / (part.features.max() - part.features.max()),
    "ask the curator for it": lambda _, curator: curator.private,
    "ask for an unplanned stage": lambda _, curator: curator.ask("edges"),
    "take a key": lambda _, curator: curator.key("edges kept"),
}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_attempts_raise(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((DiscreetError, AttributeError)):
            curious("node", ATTEMPTS[name]).fit(_graph())


@pytest.mark.parametrize("spec", LEVELS)
def test_the_public_part_holds_nothing_private(spec: str) -> None:
    """Everything that can be reached from it, whatever its name: equal on two graphs that differ in private parts."""
    level, one = parse_level(spec), _graph()
    rng = np.random.default_rng(0)
    two = one
    if "edges" in level.private:
        two = two.with_edges([0, 1], [1, 2])
    if "features" in level.private:
        two = two.with_features(rng.standard_normal(one.features.shape))
    if "labels" in level.private:
        two = two.with_labels(rng.integers(0, 3, one.num_nodes))
    parts = [level.split(graph)[0] for graph in (one, two)]
    assert pickle.dumps(parts[0]) == pickle.dumps(parts[1])


def test_draw_key_hands_nothing_out() -> None:
    assert curious("node", lambda _, curator: curator.draw_key("anything")).fit(_graph()).found_ is None


def test_the_private_part_stays_where_it_is() -> None:
    _, private = parse_level("node").split(_graph())
    assert "PrivatePart(…)" in repr(private)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(PrivateDataError):
            attempt(private)
    assert isinstance(private, PrivatePart)


def test_predictions_read_what_their_coverage_lets_an_owner_see() -> None:
    """Weights alone are covered: a prediction may not read anything private unless the caller leaves the guarantee."""
    method = curious("node", lambda *_: None).fit(_graph())
    for read, raised in ((lambda part: part.features, True), (lambda part: part.mask("train"), False)):
        method._probabilities = read  # type: ignore[method-assign]
        if raised:
            with pytest.raises(PrivateDataError):
                method.predict_proba(_graph())
        else:
            method.predict_proba(_graph())
        method.predict_proba(_graph(), uncovered=True)
