"""Faults of what leaves a fit beside answers: caches, predictions, configuration, certificate, plan, state.

A method holds no private data, so most of them raise as soon as they reach for some: the *guard* must see those. What
is left is a query that keeps more than it hands over, from where a method may take it: replay must see those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from discreet.graph import graph
from discreet.graph.graph import Graph, PublicFacts
from discreet.graph.parts import PublicPart
from discreet.methods import base
from discreet.methods.baselines import dp_mlp
from discreet.methods.gap import estimator
from discreet.methods.gap.estimator import GAP
from discreet.methods.lpgnn import estimator as lpgnn
from discreet.ops.sparse import feature_tensor
from discreet.privacy.budget import Privacy
from discreet.queries import gradients, sums
from discreet.training import private
from tests.soundness.faults.in_methods import DP_MLP, GAP_EDGE, LPGNN
from tests.soundness.faults.registry import fault

EDGES_ARE_PRIVATE = "edges are private at this level"

# -------------------------------------------------------------------- a method that reaches for private data


def _entries(part: PublicPart) -> int:
    return len(part.indices)


@fault("a cache without noise", "guard", GAP_EDGE, EDGES_ARE_PRIVATE)
def _(patch: pytest.MonkeyPatch) -> None:
    real = GAP._noisy_hops

    def clean(self: Any, part: PublicPart, *given: Any) -> list[torch.Tensor]:
        return [*real(self, part, *given)[:-1], self._plain_hops(part)[-1]]

    patch.setattr(GAP, "_noisy_hops", clean)


@fault("a further graph's cache without noise", "guard", GAP_EDGE, EDGES_ARE_PRIVATE)
def _(patch: pytest.MonkeyPatch) -> None:
    real = GAP._noisy_hops

    def clean(self: Any, part: PublicPart, number: int, *given: Any) -> list[torch.Tensor]:
        noisy = real(self, part, number, *given)
        return self._plain_hops(part) if number else noisy

    patch.setattr(GAP, "_noisy_hops", clean)


def _predict_from(patch: pytest.MonkeyPatch, hops_of: Any) -> None:
    """Predictions from ``hops_of(estimator, part)`` instead of the caches."""
    real = GAP._probabilities

    def from_hops(self: Any, part: PublicPart) -> np.ndarray:
        released, number = self.caches_, self.keys_.find(part)
        self.caches_ = [hops_of(self, part) if at == number else hops for at, hops in enumerate(released)]
        try:
            return real(self, part)
        finally:
            self.caches_ = released

    patch.setattr(GAP, "_probabilities", from_hops)


@fault("edges read at prediction", "guard", GAP_EDGE, EDGES_ARE_PRIVATE)
def _(patch: pytest.MonkeyPatch) -> None:
    _predict_from(patch, lambda self, part: self._plain_hops(part))


@fault("fresh noise at prediction, never charged", "guard", GAP_EDGE, EDGES_ARE_PRIVATE, seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    _predict_from(patch, lambda self, part: [rows + torch.randn_like(rows) for rows in self._plain_hops(part)])


@fault("the best epoch on private data", "guard", DP_MLP, "features are private at this level", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    learn = dp_mlp.DPMLPClassifier._learn

    def best(self: Any, parts: Any, *given: Any) -> None:
        learn(self, parts, *given)
        logits = self.network_(feature_tensor(parts[0].features, self._device))
        if (logits.detach().argmax(dim=1).numpy() != parts[0].labels).all():
            self.network_ = self._network(self.public_, self._generator)

    patch.setattr(dp_mlp.DPMLPClassifier, "_learn", best)


@fault("a private count in the configuration", "guard", GAP_EDGE, EDGES_ARE_PRIVATE)
def _(patch: pytest.MonkeyPatch) -> None:
    learn, config = GAP._learn, base.NodeClassifier._config

    def noting(self: Any, parts: Any, *given: Any) -> None:
        learn(self, parts, *given)
        self.edges_seen_ = _entries(parts[0])

    patch.setattr(GAP, "_learn", noting)
    patch.setattr(GAP, "_config", lambda self: {**config(self), "edges": self.edges_seen_})


@fault("a private count in the certificate", "guard", GAP_EDGE, EDGES_ARE_PRIVATE)
def _(patch: pytest.MonkeyPatch) -> None:
    fit = base.NodeClassifier._fit_with

    def noting(self: Any, parts: Any, *given: Any) -> Any:
        fit(self, parts, *given)
        self.certificate_["notes"].append(f"{_entries(parts[0])} entries")
        return self

    patch.setattr(base.NodeClassifier, "_fit_with", noting)


@fault("training seeded from the edges", "guard", GAP_EDGE, EDGES_ARE_PRIVATE)
def _(patch: pytest.MonkeyPatch) -> None:
    real = GAP._learn

    def seeding(self: Any, parts: Any, *given: Any) -> None:
        self._generator.manual_seed(_entries(parts[0]))
        real(self, parts, *given)

    patch.setattr(GAP, "_learn", seeding)


@fault("records read past their encoder", "guard", LPGNN, "features are private at this level")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lpgnn.LPGNN, "_rows", lambda self, part, name, curator: part.features)


@fault("labels read past their encoder", "guard", LPGNN, "labels are private at this level")
def _(patch: pytest.MonkeyPatch) -> None:
    real = lpgnn.LPGNN._label_reports

    def told(self: Any, part: PublicPart, curator: Any) -> Any:
        found = real(self, part, curator)
        found.reported[found.val] = torch.tensor(part.labels)[found.val]
        return found

    patch.setattr(lpgnn.LPGNN, "_label_reports", told)


# -------------------------------------------------------------------- a query that keeps more than it hands over


def kept_sums(patch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """What hops were before their noise, of all fits, the last one last."""
    real, kept = sums.NeighbourSums.answer, []

    def keeping(self: Any, *given: Any, **inputs: Any) -> np.ndarray:
        kept.append(real(self, *given, **inputs))
        return kept[-1]

    patch.setattr(sums.NeighbourSums, "answer", keeping)
    return kept


def hops_from(patch: pytest.MonkeyPatch, choose: Any) -> None:
    """Caches become ``choose(noisy, clean, number)`` for what was kept of each hop; the estimator keeps it too."""
    real, kept = GAP._noisy_hops, kept_sums(patch)

    def chosen(self: Any, part: PublicPart, number: int, *given: Any) -> list[torch.Tensor]:
        noisy = real(self, part, number, *given)
        clean = [torch.from_numpy(rows).float() for rows in kept[-len(noisy) :]]
        self.kept_by_query_ = clean
        return choose(noisy, clean, number)

    patch.setattr(GAP, "_noisy_hops", chosen)


@fault("a cache of what a query kept", "replay", GAP_EDGE, "of the release differs")
def _(patch: pytest.MonkeyPatch) -> None:
    hops_from(patch, lambda noisy, clean, number: clean)


@fault("a further graph's cache of what a query kept", "replay", GAP_EDGE, "of the release differs")
def _(patch: pytest.MonkeyPatch) -> None:
    hops_from(patch, lambda noisy, clean, number: clean if number else noisy)


@fault("predictions from what a query kept", "replay", GAP_EDGE, "covered predictions differ")
def _(patch: pytest.MonkeyPatch) -> None:
    hops_from(patch, lambda noisy, clean, number: noisy)
    _predict_from(patch, lambda self, part: self.kept_by_query_)


@fault("noise drawn anew at every prediction", "replay", GAP_EDGE, "predicting twice")
def _(patch: pytest.MonkeyPatch) -> None:
    hops_from(patch, lambda noisy, clean, number: noisy)
    _predict_from(patch, lambda self, part: [rows + torch.randn_like(rows) for rows in self.kept_by_query_])


@fault("the best epoch by what a query kept", "replay", DP_MLP, "of the release differs")
def _(patch: pytest.MonkeyPatch) -> None:
    train, answer, kept = dp_mlp.train_privately, gradients.GradientSteps.answer, []

    def keeping(self: Any, *given: Any, **inputs: Any) -> np.ndarray:
        kept.append(answer(self, *given, **inputs))
        return kept[-1]

    def best(network: Any, *given: Any, **more: Any) -> None:
        before = {key: value.clone() for key, value in network.state_dict().items()}
        train(network, *given, **more)
        if int(1e3 * float(np.abs(kept[-1]).sum())) % 2:
            network.load_state_dict(before)

    patch.setattr(gradients.GradientSteps, "answer", keeping)
    patch.setattr(dp_mlp, "train_privately", best)


def kept_count(patch: pytest.MonkeyPatch) -> list[int]:
    """How many entries the graph of the last fit has."""
    real, kept = sums.NeighbourSums.answer, [0]

    def counting(self: Any, part: Any, **inputs: Any) -> np.ndarray:
        kept[0] = part.graph.num_entries
        return real(self, part, **inputs)

    patch.setattr(sums.NeighbourSums, "answer", counting)
    return kept


@fault("a count that a query kept, in the configuration", "replay", GAP_EDGE, "config.json")
def _(patch: pytest.MonkeyPatch) -> None:
    learn, config, kept = GAP._learn, base.NodeClassifier._config, kept_count(patch)

    def noting(self: Any, *given: Any) -> None:
        learn(self, *given)
        self.edges_seen_ = kept[0]

    patch.setattr(GAP, "_learn", noting)
    patch.setattr(GAP, "_config", lambda self: {**config(self), "edges": self.edges_seen_})


@fault("a count that a query kept, in the certificate", "replay", GAP_EDGE, "certificates differ")
def _(patch: pytest.MonkeyPatch) -> None:
    fit, kept = base.NodeClassifier._fit_with, kept_count(patch)

    def noting(self: Any, *given: Any) -> Any:
        fit(self, *given)
        self.certificate_["notes"].append(f"{kept[0]} entries")
        return self

    patch.setattr(base.NodeClassifier, "_fit_with", noting)


def seed_after_hops(patch: pytest.MonkeyPatch, seed: Callable[[], int]) -> None:
    """The generator of a fit is seeded anew after every hop that was answered."""
    hops, scaled, fitting = GAP._noisy_hops, estimator.scaled_rows, []

    def noting(self: Any, *given: Any) -> list[torch.Tensor]:
        fitting[:] = [self]
        return hops(self, *given)

    def seeding(*given: Any, **more: Any) -> torch.Tensor:
        fitting[0]._generator.manual_seed(seed())
        return scaled(*given, **more)

    patch.setattr(GAP, "_noisy_hops", noting)
    patch.setattr(estimator, "scaled_rows", seeding)


@fault("training seeded by what a query kept", "replay", GAP_EDGE, "at the entry of stage")
def _(patch: pytest.MonkeyPatch) -> None:
    kept = kept_count(patch)
    seed_after_hops(patch, lambda: kept[0])


# -------------------------------------------------------------------- the plan


@fault("delta from a private count", "replay", GAP_EDGE, "plans differ", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real, facts_of, check, counts = base.make_plan, graph._public_facts, base.NodeClassifier._check_graph, [0]

    def with_entries(graph: Graph) -> PublicFacts:
        facts = facts_of(graph)
        vars(facts)["num_entries"] = graph.num_entries
        return facts

    def noting(self: Any, facts: PublicFacts, level: Any) -> None:
        counts[0] = vars(facts)["num_entries"]
        check(self, facts, level)

    def from_edges(method: str, privacy: Privacy, *given: Any) -> Any:
        return real(method, Privacy(privacy.level, privacy.epsilon, 1 / (100 + counts[0])), *given)

    patch.setattr(graph, "_public_facts", with_entries)
    patch.setattr(base.NodeClassifier, "_check_graph", noting)
    patch.setattr(base, "make_plan", from_edges)


@fault("stopping early on private data", "replay", DP_MLP, "left its plan")
def _(patch: pytest.MonkeyPatch) -> None:
    real, train = gradients.GradientSteps.answer, private.train_privately

    class EnoughError(Exception):
        pass

    def stopping(self: Any, *given: Any, **inputs: Any) -> np.ndarray:
        found = real(self, *given, **inputs)
        if np.abs(found).sum() < 1e3:
            raise EnoughError
        return found

    def until(*given: Any, **more: Any) -> None:
        try:
            train(*given, **more)
        except EnoughError:
            return

    patch.setattr(gradients.GradientSteps, "answer", stopping)
    patch.setattr(dp_mlp, "train_privately", until)
