"""The contract of a method: what every estimator must do at every level that it supports, whatever it is.

Each check is a function of a :class:`MethodCase`. Most of them share one fit, so that the whole contract costs a few
fits of a small graph.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from discreet.arrays import Array, SingleArray
from discreet.audit.recording import ADVERSARIES
from discreet.audit.replay import ReplayReport, replay_audit, replay_pair
from discreet.audit.small_graphs import reads_entries, small_graph
from discreet.audit.statistical import audit_curator
from discreet.errors import (
    CertificateError,
    DiscreetError,
    GraphError,
    NotFittedError,
    OutputExistsError,
    ParameterError,
    PrivacyError,
    UnsupportedError,
)
from discreet.graph.graph import Graph
from discreet.graph.parts import LABELS
from discreet.methods.base import NodeClassifier
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.coverage import COVERAGE
from discreet.privacy.levels import EdgeLevel, Level, NodeLevel, NoPrivacy
from discreet.privacy.moves import null_record, without_edges
from discreet.release.load import load_release
from discreet.release.verify import verify

REPLAYED_PAIRS = 25
"""A fault that changes every fit shows in the first; seconds for most methods."""
REPLAYED_NODES = (4, 8, 12)
"""Sizes of the graphs that are replayed: few, because the noise of every size is calibrated anew."""
CURATOR_RUNS = 100
"""Enough to refute noise that is off by half; seconds."""
FALSE_ALARM = 1e-6
"""How often an honest method fails the statistical check."""


@dataclass(frozen=True)
class MethodCase:
    """A method at a level: ``make(**parameters)`` gives an unfitted estimator that is cheap to fit.

    ``make`` must pass parameters on to the constructor, ``insecure_noise_seed`` among them. ``pairs`` is how many
    pairs of neighbours are replayed.
    """

    make: Callable[..., NodeClassifier]
    pairs: int = REPLAYED_PAIRS

    @cached_property
    def level(self) -> Level:
        """What is protected."""
        return self.make().checked_privacy().level

    @cached_property
    def graph(self) -> Graph:
        """A small graph of the kind that the level describes."""
        return self.other_graph(0)

    def other_graph(self, seed: int) -> Graph:
        """A further one."""
        directed = isinstance(self.level, EdgeLevel) and self.level.directed
        return small_graph(np.random.default_rng(seed), directed=directed)

    def seeded(self, **parameters: Any) -> NodeClassifier:
        """Unfitted, with noise that can be reproduced."""
        return self.make(**{"insecure_noise_seed": 7, **parameters})

    @cached_property
    def fitted(self) -> NodeClassifier:
        """Fitted on :attr:`graph`; checks share it and must not change it."""
        return self.seeded().fit(self.graph)

    def __str__(self) -> str:
        """For test ids."""
        return f"{self.make().method} at {self.level.spec}"


@dataclass(frozen=True)
class MethodCheck:
    """One check of one case; call it to run it."""

    case: MethodCase
    check: Callable[[MethodCase], None]

    def __call__(self) -> None:
        """Raise AssertionError where the contract is broken."""
        if not __debug__:
            raise RuntimeError("python -O leaves assertions out, and with them every check: run without it")
        self.check(self.case)

    def __str__(self) -> str:
        """For test ids."""
        return f"{self.check.__name__.removeprefix('check_')}: {self.case}"


def method_checks(case: MethodCase) -> list[MethodCheck]:
    """Every check that applies to the case."""
    private = [] if isinstance(case.level, NoPrivacy) else PRIVATE_CHECKS
    return [MethodCheck(case, check) for check in (*CHECKS, *private)]


# -------------------------------------------------------------------- manners of scikit-learn


def check_constructor_only_stores(case: MethodCase) -> None:
    """Parameters are those of the signature, documented, and a clone keeps them and nothing else."""
    kind = type(case.fitted)
    assert kind().get_params(deep=False).keys() == inspect.signature(kind).parameters.keys()
    assert kind.__doc__, "the class has no docstring"
    copy = clone(case.fitted)
    assert copy.get_params(deep=False) == case.fitted.get_params(deep=False)
    assert not hasattr(copy, "plan_"), "a clone must not be fitted"


def check_fitted_attributes(case: MethodCase) -> None:
    """``classes_`` and ``n_features_in_`` are there after a fit."""
    assert len(case.fitted.classes_) == case.graph.num_classes
    assert case.fitted.n_features_in_ == case.graph.num_features


def check_same_fit_twice(case: MethodCase) -> None:
    """Equal seeds give equal releases; no global state is touched; a second fit forgets the first."""
    before = torch.random.get_rng_state(), _numpy_words(), torch.get_num_threads()
    again = case.seeded().fit(case.other_graph(1)).fit(case.graph)
    assert _same(case.fitted, again), "two fits with equal seeds differ"
    assert np.array_equal(_predictions(case.fitted, case.graph), _predictions(again, case.graph))
    assert torch.equal(before[0], torch.random.get_rng_state()), "torch's global generator was used"
    assert np.array_equal(before[1], _numpy_words()), "NumPy's global generator was used"
    assert torch.get_num_threads() == before[2], "torch's number of threads was changed"


def check_fresh_noise(case: MethodCase) -> None:
    """Two fits with operating-system entropy agree only where nothing private was measured; their release verifies."""
    one, two = (case.seeded(insecure_noise_seed=None).fit(case.graph) for _ in range(2))
    private = any(stage.is_private for stage in one.plan_.stages)
    assert _same(one, two) != private
    with _folder() as folder:
        one.save(folder)
        failed = [check for check in verify(folder) if not check.passed]
        assert not failed, failed


# -------------------------------------------------------------------- plan, predictions, release


def check_plan_is_kept(case: MethodCase) -> None:
    """The plan is made of public facts, keeps within the budget, and is what ran."""
    estimator = case.fitted
    plan = case.seeded().plan(case.level.split(case.graph)[0].facts)
    assert estimator.plan_ == plan
    assert estimator.epsilon_spent_ <= estimator.checked_privacy().epsilon
    assert epsilon_of(plan.event(), plan.delta) == estimator.epsilon_spent_
    assert estimator.covers in COVERAGE
    assert estimator.certificate_["covers"]["name"] == estimator.covers
    assert all(stage.bound.why and stage.query.words for stage in plan.stages)
    assert case.level.spec in str(plan)


def check_probabilities(case: MethodCase) -> None:
    """One row of probabilities per node, and a score between 0 and 1."""
    found = _predictions(case.fitted, case.graph)
    assert found.shape == (case.graph.num_nodes, case.graph.num_classes)
    assert np.allclose(found.sum(axis=1), 1, atol=1e-5)
    assert (found >= 0).all()
    assert 0 <= case.fitted.score(case.graph, "test", uncovered=True) <= 1
    if isinstance(case.level, NoPrivacy):  # nothing is kept back
        assert np.array_equal(case.fitted.predict_proba(case.graph), found)


def check_release(case: MethodCase) -> None:
    """A release loads to the same predictions bit by bit; nothing is overwritten; a damaged one is refused."""
    with _folder() as folder:
        case.fitted.save(folder)
        loaded = load_release(folder)
        assert _same(case.fitted, loaded)
        assert np.array_equal(_predictions(case.fitted, case.graph), _predictions(loaded, case.graph))
        assert loaded.plan_ == case.fitted.plan_
        assert {check.name for check in verify(folder) if not check.passed} == {"noise"}
        with _expect(OutputExistsError):
            case.fitted.save(folder)
        weights = folder / "weights.safetensors"
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(content)
        with _expect(CertificateError):
            load_release(folder)


# -------------------------------------------------------------------- bad input


def check_refusals(case: MethodCase) -> None:
    """Bad parameters, levels, graphs and an estimator that is not fitted get an error that names what is wrong."""
    estimator, graph = case.seeded(), case.graph
    with _expect(NotFittedError, "fit"):
        estimator.predict(graph)
    with _expect(PrivacyError, "protected"):
        type(estimator)().fit(graph)
    with _expect(ParameterError, "random_state"):
        case.seeded(random_state="seven").fit(graph)
    with _expect(ParameterError, "privacy"):
        case.seeded().set_params(privacy=3).fit(graph)
    with _expect(ParameterError, "features"):
        case.fitted.predict(graph.with_features(np.ones((graph.num_nodes, graph.num_features + 1))))


def check_graph_without_split(case: MethodCase) -> None:
    """No training id, no fit; and what failed to fit does not predict."""
    graph, estimator = case.graph, case.seeded()
    nobody = np.zeros(graph.num_nodes, dtype=bool)
    for empty in (graph.with_masks(None, None, None), graph.with_masks(nobody, None, None)):
        with _expect((GraphError, ParameterError), "train"):
            estimator.fit(empty)
    with _expect(NotFittedError):
        estimator.predict(graph)


def check_graph_without_labels(case: MethodCase) -> None:
    """Refused where labels are public. Where they are not, an error would tell that a node has none."""
    bare, estimator = case.graph.with_labels(np.full(case.graph.num_nodes, -1)), case.seeded()
    if LABELS in case.level.private:
        assert np.isfinite(_predictions(estimator.fit(bare), bare)).all()
        return
    with _expect(GraphError, "label"):
        estimator.fit(bare)
    with _expect(NotFittedError):
        estimator.predict(case.graph)


def check_direction(case: MethodCase) -> None:
    """Level and graph must agree on what one edge is."""
    if isinstance(case.level, EdgeLevel):
        other = small_graph(np.random.default_rng(0), directed=not case.level.directed)
        with _expect(UnsupportedError, "directed"):
            case.seeded().fit(other)


# -------------------------------------------------------------------- privacy


def check_replay(case: MethodCase) -> None:
    """On neighbouring graphs, given the same answers, no stage moves further than declared, and nothing else moves."""
    report = replay_audit(case.seeded(), partial(_replayed_graph, case.level), pairs=case.pairs)
    assert report.pairs == case.pairs
    assert report.passed, report.violations[:3]


def check_the_only_label_may_go(case: MethodCase) -> None:
    """One training node has a label, and loses it, with the rest of its record where units come and go."""
    if LABELS not in case.level.private:
        return
    graph = case.level.view(case.graph)
    node = int(np.flatnonzero(graph.mask("train"))[0])
    one = graph.with_labels(np.where(np.arange(graph.num_nodes) == node, 0, -1))
    none = one.with_labels(np.full(graph.num_nodes, -1))
    if isinstance(case.level, NodeLevel) and case.level.change == "null":
        none = without_edges(null_record(one, node), node, both_ways=case.level.edges != "owned")
    report = ReplayReport()
    for number, adversary in enumerate(ADVERSARIES):  # it goes, and in every other pair it comes
        pair = (one, none) if number % 2 == 0 else (none, one)
        replay_pair(case.seeded(), *pair, adversary=adversary, report=report)
    assert report.passed, report.violations[:3]


def check_statistics(case: MethodCase) -> None:
    """Answers on the worst inputs keep to ε, noise is distributed as stated, and every mechanism is known."""
    plan = case.fitted.plan_
    report = audit_curator(plan, runs=CURATOR_RUNS, alpha=FALSE_ALARM)
    assert report.passed, report.violations
    assert report.curator is not None or not plan.stages, report.notes


CHECKS: Sequence[Callable[[MethodCase], None]] = (
    check_constructor_only_stores,
    check_fitted_attributes,
    check_same_fit_twice,
    check_fresh_noise,
    check_plan_is_kept,
    check_probabilities,
    check_release,
    check_refusals,
    check_graph_without_split,
    check_graph_without_labels,
    check_direction,
)
PRIVATE_CHECKS: Sequence[Callable[[MethodCase], None]] = (
    check_replay,
    check_the_only_label_may_go,
    check_statistics,
)


# -------------------------------------------------------------------- helpers


def _same(one: NodeClassifier, two: NodeClassifier) -> bool:
    left, right = one._state(), two._state()
    return left.keys() == right.keys() and all(np.array_equal(left[key], right[key]) for key in left)


def _numpy_words() -> Array:
    """The state of NumPy's global generator."""
    state: Any = np.random.get_state()  # noqa: NPY002
    return np.array(state[1])


def _predictions(estimator: NodeClassifier, graph: Graph) -> SingleArray:
    return estimator.predict_proba(graph, audience="owner", uncovered=True)


def _replayed_graph(level: Level, rng: np.random.Generator) -> Graph:
    return small_graph(rng, directed=reads_entries(level, rng), num_nodes=int(rng.choice(REPLAYED_NODES)))


@contextmanager
def _folder() -> Iterator[Path]:
    """The path of a release that does not exist yet."""
    with tempfile.TemporaryDirectory() as parent:
        yield Path(parent) / "release"


@contextmanager
def _expect(kind: type[DiscreetError] | tuple[type[DiscreetError], ...], words: str = "") -> Iterator[None]:
    """An error of this kind whose sentence holds these words."""
    said = None
    try:
        yield
    except kind as error:
        said = str(error)
    assert said is not None, f"an error that speaks of {words!r} was expected"
    assert words in said, f"the error should speak of {words!r}: {said}"
