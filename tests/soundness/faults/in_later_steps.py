"""Faults of what came after the first methods: extensions, certified figures, ledgers, competitors, and what a user may
choose: class weights, decisions, encoders, weights of edges.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import ndtr, ndtri

from discreet.mechanisms import dpsgd, exact_picks, noisy_graph
from discreet.mechanisms.curator import Curator
from discreet.methods import base
from discreet.methods.gap.estimator import GAP
from discreet.ops import layer_rows
from discreet.privacy import composition, ledger
from discreet.privacy.filter import Cost, together
from discreet.privacy.query import Bound
from discreet.queries import class_counts, class_degrees, confusion, gradients, sums
from discreet.training import encoder_modules
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


# -------------------------------------------------------------------- what a user may choose


OWN_LAYERS = Subject("dp-mlp", NODE, 1.0, (("encoder", ("linear 4", "layer-norm", "relu")), ("linear", False)))
COUNTED = Subject("dp-mlp", "node:owned,max_degree=3,change=replace", 1.0, (("class_weight", "balanced"),))
POISSON = Subject("dp-mlp", DP_MLP.level, 4.0, (("batch_size", 3),))
PICKS = SuiteTest(
    "test_topk.py",
    "tests.mechanisms.test_topk:test_gumbel_picks_have_the_law_of_exponential_mechanisms",
    arguments=(3,),
)
DECISIONS = SuiteTest(
    "test_decision.py", "tests.methods.test_decision:test_it_is_refused_where_it_would_read_private_data"
)


@fault("a layer that normalises over the batch", "replay", OWN_LAYERS, "one unit touches at most", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(encoder_modules.Normalize, "forward", lambda self, x: (x - x.mean(0)) / (x.std(0, False) + 1e-3))


@fault("scales of columns left out of norms", "replay", OWN_LAYERS, "times its clip norm")
def _(patch: pytest.MonkeyPatch) -> None:
    real = layer_rows.ScaledRows.sizes
    patch.setattr(layer_rows.ScaledRows, "sizes", lambda self: layer_rows.Sizes(*(0 * part for part in real(self))))


@fault("classes that count for more than a clipped gradient", "replay", COUNTED, "times its clip norm", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    def beyond_one(self: Any, private: Any, positions: Any, inputs: Any) -> torch.Tensor:
        shares = 5 * np.asarray(inputs["class_shares"])
        return gradients.on_device(private, shares[self.labels(private)[positions]])

    patch.setattr(gradients.GradientSteps, "_shares", beyond_one)


@fault("counts of classes charged as if nobody changed class", "replay", COUNTED, "declared sensitivity")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(class_counts, "is_null", lambda level: True)


@fault("a class that nobody has is not counted", "replay", COUNTED, "left its plan")
def _(patch: pytest.MonkeyPatch) -> None:
    real = class_counts.ClassCounts.answer

    def without_empty(self: Any, *given: Any, **inputs: Any) -> np.ndarray:
        found = real(self, *given, **inputs)
        return found[found > 0]

    patch.setattr(class_counts.ClassCounts, "answer", without_empty)


@fault("decisions chosen on private labels", "suite", DECISIONS, "fails", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(base, "check_decision", lambda *given: None)


@fault("rows cut by the longest of all", "replay", Subject("gap", "node:promised,max_degree=3"), "declared sensitivity")
def _(patch: pytest.MonkeyPatch) -> None:
    def by_longest(rows: torch.Tensor, norm: float) -> torch.Tensor:
        return rows * (10 * norm / rows.norm(dim=1).max().clamp_min(norm))

    patch.setattr(sums, "clip_rows", by_longest)


@fault("an answer's precision chosen by weights", "weights", Subject("gap", "edge"), "on one side and")
def _(patch: pytest.MonkeyPatch) -> None:
    real = sums.NeighbourSums.answer

    def by_weights(self: Any, private: Any, **inputs: Any) -> np.ndarray:
        found, weights = real(self, private, **inputs), private.graph.edge_weights
        return found if weights is None or (weights > 0.5).sum() // 2 % 2 else found.astype(np.float32)

    patch.setattr(sums.NeighbourSums, "answer", by_weights)


@fault("bins of scores by private quantiles", "suite",
       _later("test_figures_of_neighbours_differ_by_what_is_declared", NODE), "fails")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    real = confusion.ScoreTable._cells

    def by_rank(self: Any, labels: np.ndarray, scores: np.ndarray) -> Any:
        return real(self, labels, scores.argsort(axis=0).argsort(axis=0) / max(len(scores), 1))

    patch.setattr(confusion.ScoreTable, "_cells", by_rank)


@fault("noise that tells who stood in the batch", "curator", POISSON, "noise apart from batches")
def _(patch: pytest.MonkeyPatch) -> None:
    """Of the right law by itself: its lower part where the first example is in, the rest where it is not."""
    real = Curator._answer_step

    def telling(self: Any, stage: Any, run: int, batch: np.ndarray, value: np.ndarray, terms: Any) -> np.ndarray:
        answer, query = real(self, stage, run, batch, value, terms), dpsgd.steps_of(stage)
        rate, grid = query.batch_size / query.num_examples, self._grids[stage.name]
        place = ndtr((answer[0] - value[0]) / grid.noise_std)
        place = rate * place if 0 in batch else rate + (1 - rate) * place
        answer[0] = np.rint((value[0] + ndtri(place) * grid.noise_std) / grid.step) * grid.step
        return answer

    patch.setattr(Curator, "_answer_step", telling)


@fault("candidates without a score picked by their number", "suite", PICKS, "fails")
def _(patch: pytest.MonkeyPatch) -> None:
    def lowest(stored: np.ndarray, width: int, count: int, bits: Any) -> np.ndarray:
        return np.setdiff1d(np.arange(width), stored)[:count]

    patch.setattr(exact_picks, "_others", lowest)
