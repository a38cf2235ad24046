"""Faults of what came after the first methods: extensions, certified figures, ledgers, class weights, competitors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from discreet.mechanisms import noisy_graph
from discreet.methods import base
from discreet.methods.gap.estimator import GAP
from discreet.privacy import composition, ledger
from discreet.privacy.filter import Cost, together
from discreet.privacy.query import Bound
from discreet.queries import class_degrees, confusion, gradients, sums
from tests.soundness.faults.checks import Subject, SuiteTest
from tests.soundness.faults.in_methods import DP_MLP, LPGNET, PROGAP_NODE
from tests.soundness.faults.registry import fault

FILE, PLACE = "test_later_steps.py", "tests.soundness.test_later_steps"
NODE = "node:owned,max_degree=3,change=null"
EXTENDED = f"{PLACE}:test_extensions_to_neighbours_differ_by_what_is_declared"
LAP_GRAPH = Subject("dpgcn", "edge", parameters=(("mechanism", "lap-graph"),))


def _later(test: str, *arguments: Any) -> SuiteTest:
    return SuiteTest(FILE, f"{PLACE}:{test}", arguments=arguments)


# -------------------------------------------------------------------- extensions


@fault("an extended release with a cache without noise", "suite",
       SuiteTest(FILE, EXTENDED, arguments=("gap", "edge")), "fails")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    kept: list[np.ndarray] = []
    answer, state = sums.NeighbourSums.answer, GAP._state

    def keeping(self: Any, *given: Any, **inputs: Any) -> np.ndarray:
        kept.append(answer(self, *given, **inputs))
        return kept[-1]

    def with_clean(self: Any) -> dict[str, Any]:
        found = dict(state(self))
        return {**found, **({"clean": self.clean_} if hasattr(self, "clean_") else {})}

    aggregate = GAP._aggregate

    def aggregated(self: Any, *given: Any) -> None:
        aggregate(self, *given)
        self.clean_ = kept[-1]

    patch.setattr(sums.NeighbourSums, "answer", keeping)
    patch.setattr(GAP, "_state", with_clean)
    patch.setattr(GAP, "_aggregate", aggregated)


@fault("an extension over all edges, bound or not", "suite",
       SuiteTest(FILE, EXTENDED, arguments=("gap", NODE)), "fails")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sums, "bounded_graph", lambda private, level: private.graph.as_directed())


@fault("an extension charged as if nothing was released before", "suite",
       _later("test_an_extension_pays_for_what_was_released_before"), "fails")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    real = base.certify

    def of_the_new_graph(*given: Any) -> tuple[Any, dict[str, Any]]:
        whole, certificate = real(*given)
        return whole, {**certificate, "epsilon": certificate["extension"]["epsilon"]}

    patch.setattr(base, "certify", of_the_new_graph)


# -------------------------------------------------------------------- certified figures


@fault("tables of several classes charged as one", "suite",
       _later("test_figures_of_neighbours_differ_by_what_is_declared", NODE), "fails")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(confusion.ScoreTable, "_tables", lambda self: 1)


@fault("figures of predictions that read neighbours", "suite",
       _later("test_figures_of_predictions_that_read_neighbours_are_refused"), "fails")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    def bound(self: Any) -> Bound:
        return Bound(math.sqrt(2 * self._tables()), "l2", "whatever a prediction reads")

    patch.setattr(confusion.PredictionCounts, "bound", bound)
    from discreet.methods.dp_gnn.estimator import DPGNN

    patch.setattr(DPGNN, "_uncovered", lambda self, part: None)
    patch.setattr(confusion.PredictionCounts, "answer", lambda self, *given, **inputs: np.zeros(self.shape))


@fault("figures that forget the release they are of", "suite",
       _later("test_figures_state_what_they_cost_with_their_release"), "fails")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    real = composition.compose_runs
    patch.setattr(composition, "compose_runs", lambda runs: real(list(runs)[-1:]))


# -------------------------------------------------------------------- the ledger


@fault("reservations that count for nothing until they end", "suite",
       _later("test_a_run_that_never_ended_counts_against_a_limit"), "fails")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    real = ledger.spent_of
    patch.setattr(ledger, "spent_of", lambda limit, known: real(limit, [e for e in known if e.released]))


@fault("every run judged as if it were the first", "suite",
       _later("test_every_run_is_judged_with_those_before_it"), "fails")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    real = ledger._judge
    patch.setattr(ledger, "_judge", lambda limit, run, epsilon, known: real(limit, run, epsilon, []))


@fault("a limit that does not see runs at other levels", "suite",
       _later("test_a_run_at_another_level_does_not_pass_a_limit"), "fails")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    def same_level(limit: Any, entries: list[Any]) -> Cost:
        alike = [entry for entry in entries if entry.relation == limit.relation]
        return together([limit.filter.cost(entry.event, entry.epsilon, entry.delta) for entry in alike])

    patch.setattr(ledger, "spent_of", same_level)


# -------------------------------------------------------------------- methods


@fault("classes weighed by private counts", "replay", DP_MLP, "one unit touches at most", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = gradients.OwnRecordSteps.losses

    def weighed(self: Any, private: Any, positions: Any, **inputs: Any) -> torch.Tensor:
        labels = self.labels(private)
        counts = torch.bincount(torch.from_numpy(labels[labels >= 0]), minlength=private.graph.num_classes)
        weights = 1e-4 * counts[torch.from_numpy(labels[positions]).clamp_min(0)]
        return real(self, private, positions, **inputs) * weights

    patch.setattr(gradients.OwnRecordSteps, "losses", weighed)


@fault("progressive sums over all edges, bound or not", "replay", PROGAP_NODE, "declared sensitivity")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sums, "bounded_graph", lambda private, level: private.graph.as_directed())


@fault("counts of neighbours charged for one end", "replay", LPGNET, "declared sensitivity", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(class_degrees.ClassDegrees, "bound", lambda self: Bound(1.0, "l1", "one count of one node"))


@fault("a noisy graph with the true number of edges", "curator", LAP_GRAPH, "epsilon is at least", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = noisy_graph.rounded_laplace
    patch.setattr(noisy_graph, "rounded_laplace", lambda scale, size, bits: real(scale, size, bits) * (size != 1))
