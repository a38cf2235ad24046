"""What follows a fit (extensions, certified figures, the ledger) keeps what it states; planted faults are held against
these tests, so each can be called by itself.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.arrays import Array
from discreet.audit.small_graphs import small_graph
from discreet.errors import LedgerError, UnsupportedError
from discreet.mechanisms.curator import Curator
from discreet.methods import base
from discreet.methods.base import NodeClassifier
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.budget import Privacy
from discreet.privacy.composition import event_of
from discreet.privacy.events.gaussian import gaussian_mu
from discreet.privacy.ledger import Ledger, Run
from discreet.privacy.levels import parse_level
from discreet.privacy.plan import Stage
from discreet.queries.confusion import ConfusionTable, PredictionCounts, ScoreTable
from discreet.release.certified_figures import certified_figures
from discreet.release.load import load_release
from tests.contracts.cases import make
from tests.contracts.queries.confusion import OwnRecords

NODE, REPLACE = "node:owned,max_degree=3,change=null", "node:owned,max_degree=3,change=replace"
NODES, PAIRS, DELTA = 9, 12, 1e-5


def released(method: str, spec: str) -> NodeClassifier:
    """A model that was saved and read again."""
    with tempfile.TemporaryDirectory() as folder:
        make(method, spec).fit(small_graph(np.random.default_rng(0))).save(Path(folder) / "release")
        return load_release(Path(folder) / "release")


# -------------------------------------------------------------------- extensions


def extended(model: NodeClassifier, graph: Any, given: list[Array]) -> tuple[NodeClassifier, list[tuple[Stage, Array]]]:
    """The extended model, and the stages with the values that went in; answers are ``given`` as far as there are."""
    seen: list[tuple[Stage, Array]] = []

    class Replaying(Curator):
        def _answer(self, stage: Stage, run: int, value: Any) -> Any:
            answer = super()._answer(stage, run, value)
            seen.append((stage, np.array(value, dtype=np.float64)))
            if len(given) < len(seen):
                given.append(answer)
            return given[len(seen) - 1].copy()

        def _draw_key(self, purpose: str, run: int) -> bytes:
            return bytes(16)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "Curator", Replaying)
        return model.extend(graph, Privacy(parse_level(model.checked_privacy().level.spec), 1.0, DELTA)), seen


@pytest.mark.parametrize(
    ("method", "spec"),
    [("gap", "edge"), ("gap", NODE), ("gap", REPLACE), ("progap", "edge"), ("progap", NODE), ("lpgnet", "edge"),
     ("hop-bayes", "edge"), ("hop-bayes", NODE)],
)  # fmt: skip
def test_extensions_to_neighbours_differ_by_what_is_declared(method: str, spec: str) -> None:
    """The replay of audits, for the graph that is added: values within the bound, and nothing else that differs."""
    model, level, rng = released(method, spec), parse_level(spec), np.random.default_rng(1)
    for _ in range(PAIRS):
        graph = small_graph(rng, num_nodes=NODES)
        answers: list[Array] = []
        (one, before), (two, after) = (extended(model, g, answers) for g in (graph, level.neighbor(graph, rng)))
        for (stage, first), (_, second) in zip(before, after, strict=True):
            order = 1 if stage.metric == "l1" else 2
            assert np.linalg.norm((first - second).ravel(), order) <= stage.sensitivity * (1 + 1e-9), stage.name
        states = [made._state() for made in (one, two)]
        assert states[0].keys() == states[1].keys()
        assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])
        assert one.certificate_ == two.certificate_
        assert one._config() == two._config()


def test_an_extension_pays_for_what_was_released_before() -> None:
    model = released("gap", "edge")
    made, _ = extended(model, small_graph(np.random.default_rng(2), num_nodes=NODES), [])
    whole = made.certificate_
    assert whole["epsilon"] >= epsilon_of(event_of(whole), whole["delta"]) * (1 - 1e-9)
    assert whole["epsilon"] > max(model.epsilon_spent_, whole["extension"]["epsilon"])


# -------------------------------------------------------------------- certified figures


@pytest.mark.parametrize("spec", [NODE, REPLACE, "neighbor:2,max_degree=3"])
def test_figures_of_neighbours_differ_by_what_is_declared(spec: str) -> None:
    level, rng = parse_level(spec), np.random.default_rng(3)
    for _ in range(20 * PAIRS):
        graph = small_graph(rng, num_nodes=NODES)
        parts = [level.split(g)[1] for g in (graph, level.neighbor(graph, rng))]
        model, classes = OwnRecords(rng.standard_normal((graph.num_features, graph.num_classes))), graph.num_classes
        tables: list[PredictionCounts] = [ConfusionTable(level, "weights+predictions", classes, "all")]
        tables.append(ScoreTable(level, "weights+predictions", classes, "all", bins=4))
        for table in tables:
            one, two = (table.answer(part, model=model) for part in parts)
            assert np.linalg.norm(one - two) <= table.bound().sensitivity * (1 + 1e-9)


def test_figures_of_predictions_that_read_neighbours_are_refused() -> None:
    graph = small_graph(np.random.default_rng(0))
    with pytest.raises(UnsupportedError, match="own record"):
        certified_figures(make("dp-gnn", NODE, batch_size=None).fit(graph), graph, 1.0, ids="all")


def test_figures_state_what_they_cost_with_their_release() -> None:
    graph = small_graph(np.random.default_rng(0))
    model = make("dp-mlp", NODE, batch_size=None).fit(graph)
    together = certified_figures(model, graph, 1.0, ids="all")["composed"]
    assert together["epsilon"] > model.epsilon_spent_
    assert together["summed"]["epsilon"] > 1.5


# -------------------------------------------------------------------- the ledger


def gaussian(epsilon: float, level: str = "edge") -> Run:
    return Run("train", "gap", level, events.GaussianDpEvent(1 / gaussian_mu(epsilon, DELTA)), DELTA)


def refuses(*runs: Run, limit: float) -> bool:
    """Whether the last run is refused after the others, under a limit that the first fixes."""
    with tempfile.TemporaryDirectory() as folder:
        book = Ledger(Path(folder) / "ledger.db")
        for place, run in enumerate(runs[:-1]):
            book.reserve(run, "bank", limit=limit if place == 0 else None)
        try:
            book.reserve(runs[-1], "bank")
        except LedgerError:
            return True
        return False


def test_a_run_that_never_ended_counts_against_a_limit() -> None:
    assert refuses(gaussian(1.5), gaussian(1.5), limit=2.0)
    assert not refuses(gaussian(0.5), gaussian(0.5), limit=2.0)


def test_every_run_is_judged_with_those_before_it() -> None:
    assert refuses(*(gaussian(0.9) for _ in range(4)), limit=2.0)


def test_a_run_at_another_level_does_not_pass_a_limit() -> None:
    assert refuses(gaussian(0.1), gaussian(0.1, NODE), limit=2.0)
    with tempfile.TemporaryDirectory() as folder:
        book = Ledger(Path(folder) / "ledger.db")
        book.reserve(gaussian(0.1, NODE), "bank")
        with pytest.raises(LedgerError, match="would exceed"):
            book.reserve(gaussian(0.1), "bank", limit=2.0)
