"""Faults of methods: sensitivities, bounds, caches, predictions, plans. Replay must see them all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from discreet.graph.graph import Graph
from discreet.methods import (
    base,
    dp_gnn,
    dp_mlp,
    gap,
    gap_private,
    private_training,
    release,
    second_evidence,
    shared_evidence,
)
from discreet.methods.gap import GAP
from discreet.ops import degrees
from discreet.ops.clipping import ClipRule
from discreet.privacy.budget import Privacy
from tests.soundness.faults.checks import Subject
from tests.soundness.faults.registry import fault

GAP_EDGE = Subject("gap", "edge", parameters=(("hops", 2), ("epochs", 0)))
GAP_NODE = Subject("gap", "node:owned,max_degree=3")
DP_MLP = Subject("dp-mlp", "node:owned,max_degree=3")
DP_GNN = Subject("dp-gnn", "node:owned,max_degree=3")
HOP_BAYES = Subject("hop-bayes", "edge")
HUBS = Subject("hop-bayes", "edge", 1.0, (("hubs", True),))
GCON = Subject("gcon", "edge")

# -------------------------------------------------------------------- what one unit can move


@fault("an undirected edge counted once", "replay", GAP_EDGE, "declared sensitivity", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gap, "edge_sensitivity", lambda aggregation, level: (1.0, "as published"))


@fault("rows normalised in a throw-away copy", "replay", GAP_EDGE, "declared sensitivity", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    def in_a_copy(rows: torch.Tensor) -> torch.Tensor:
        copy = rows.clone()
        copy /= copy.norm(dim=1, keepdim=True)
        return rows

    patch.setattr(gap, "normalize_rows", in_a_copy)


@fault("a degree sampler that skips the last node", "replay", GAP_NODE, "declared sensitivity", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = degrees.cap_owned

    def skipping(graph: Graph, max_degree: int, key: bytes) -> Graph:
        capped = real(graph, max_degree, key)
        last = graph.num_nodes - 1
        source, target = (np.concatenate(ends) for ends in zip(capped.edges(), graph.edges(), strict=True))
        keep = np.arange(len(source)) < capped.num_entries
        keep = (keep & (source != last)) | (~keep & (source == last))
        return capped.with_edges(source[keep], target[keep])

    patch.setattr(degrees, "cap_owned", skipping)


@fault("lists cut after the fact, so that others move up", "replay", GAP_NODE, "declared sensitivity", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    def greedy(graph: Graph, level: Any, key: bytes) -> Graph:
        source, target = graph.edges()
        kept, into, out = [], np.zeros(graph.num_nodes, int), np.zeros(graph.num_nodes, int)
        for at in np.argsort(target, kind="stable"):
            if into[target[at]] < 3 and out[source[at]] < 3:
                kept.append(at)
                into[target[at]] += 1
                out[source[at]] += 1
        return graph.as_directed().with_edges(source[kept], target[kept])

    patch.setattr(gap_private, "bound_degrees", greedy)


@fault("a group of examples counted as one record", "replay", DP_GNN, "one unit touches at most")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dp_gnn, "touched_examples", lambda *_, **__: (1, "its own example"))


@fault("a group counted by its square root", "replay", DP_GNN, "one unit touches at most", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = dp_gnn.touched_examples

    def rooted(*given: Any, **more: Any) -> tuple[int, str]:
        count, why = real(*given, **more)
        return int(np.sqrt(count)), why

    patch.setattr(dp_gnn, "touched_examples", rooted)


@fault("weights normalised in a throw-away copy", "replay", Subject("dpdgc", "edge"), "declared sensitivity", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    from discreet.methods import dpdgc_embedding

    real = dpdgc_embedding.step_weight

    def in_a_copy(step: np.ndarray, row_norm: float, noise: float) -> np.ndarray:
        real(step, row_norm, noise)
        return step

    patch.setattr(dpdgc_embedding, "step_weight", in_a_copy)


@fault("evidence of both ends counted for one", "replay", HOP_BAYES, "declared sensitivity")
def _(patch: pytest.MonkeyPatch) -> None:
    real = shared_evidence.heard_sensitivity

    def one_end(*given: Any) -> tuple[float, str]:
        sensitivity, why = real(*given)
        return sensitivity / 2**0.5, why

    patch.setattr(shared_evidence, "heard_sensitivity", one_end)


@fault("hubs that tell what was not released", "replay", HUBS, "declared sensitivity")
def _(patch: pytest.MonkeyPatch) -> None:
    real, clean = shared_evidence.heard, []

    def remembered(*given: Any) -> np.ndarray:
        clean.append(real(*given))
        return clean[-1]

    def of_clean(rows: np.ndarray, noise_std: float, bound: float) -> np.ndarray:
        return second_evidence.hub_messages(clean[-1], 0.0, bound)

    patch.setattr(shared_evidence, "heard", remembered)
    patch.setattr(shared_evidence, "hub_messages", of_clean)


@fault("propagation that moves twice what is declared", "replay", GCON, "declared sensitivity")
def _(patch: pytest.MonkeyPatch) -> None:
    from discreet.methods import restart_classifier

    real = restart_classifier.restart_sensitivity
    patch.setattr(restart_classifier, "restart_sensitivity", lambda *given, **more: 0.4 * real(*given, **more))


# -------------------------------------------------------------------- gradients


@fault("noise per tensor, accounted once", "replay", Subject("dp-mlp", DP_MLP.level, 1.0, (("clipping", "per-layer"),)),
       "times its clip norm", seen=True)  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    def whole_norm_each(self: Any, network: torch.nn.Module) -> ClipRule:
        layers = sum(any(True for _ in part.parameters(recurse=False)) for part in network.modules())
        return ClipRule.layers(self.clip_norm * np.sqrt(layers), layers)

    patch.setattr(private_training.PrivateOptions, "rule", whole_norm_each)


@fault("the sum clipped instead of its terms", "replay", DP_MLP, "not the sum of the terms")
def _(patch: pytest.MonkeyPatch) -> None:
    def clipped(self: Any, batch: Any) -> np.ndarray:
        loose = private_training.GradientTerms(
            self._network, self._losses, ClipRule.flat(1e6), self._examples, self._micro_batch
        )
        total = real(loose, batch)
        return (total * min(1.0, 0.1 / max(1e-12, float(np.linalg.norm(total))))).astype(np.float32)

    real = private_training.GradientTerms.total
    patch.setattr(private_training.GradientTerms, "total", clipped)


@fault("a null node that still has a gradient", "replay", DP_MLP, "own term")
def _(patch: pytest.MonkeyPatch) -> None:
    def leaking(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits, labels.clamp_min(0), reduction="none")

    patch.setattr(dp_mlp, "example_losses", leaking)


@fault("features scaled by the data's own range", "replay", DP_MLP, "one unit touches at most", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = dp_mlp.FeatureLosses.__init__

    def scaling(self: Any, network: Any, graph: Graph, device: Any) -> None:
        real(self, network, graph, device)
        self._features = self._features / self._features.abs().max()

    patch.setattr(dp_mlp.FeatureLosses, "__init__", scaling)


@fault("an optimiser that remembers gradients without noise", "replay", DP_MLP, "optimiser of")
def _(patch: pytest.MonkeyPatch) -> None:
    clean: list[np.ndarray] = []
    total, step = private_training.GradientTerms.total, private_training.Adam.step

    def noting(self: Any, batch: Any) -> np.ndarray:
        clean.append(total(self, batch))
        return clean[-1]

    def recalling(self: Any, gradients: Any, learning_rate: float) -> None:
        step(self, gradients, learning_rate)
        self._second[0] += float(np.abs(clean[-1]).sum())

    patch.setattr(private_training.GradientTerms, "total", noting)
    patch.setattr(private_training.Adam, "step", recalling)


# -------------------------------------------------------------------- what leaves


@fault("a cache without noise", "replay", GAP_EDGE, "of the release differs")
def _(patch: pytest.MonkeyPatch) -> None:
    real = GAP._noisy_hops

    def clean(self: Any, graph: Graph, *given: Any) -> list[torch.Tensor]:
        return [*real(self, graph, *given)[:-1], self._plain_hops(graph)[-1]]

    patch.setattr(GAP, "_noisy_hops", clean)


@fault("a further graph's cache without noise", "replay", GAP_EDGE, "of the release differs")
def _(patch: pytest.MonkeyPatch) -> None:
    real = GAP._noisy_hops

    def clean(self: Any, graph: Graph, number: int, *given: Any) -> list[torch.Tensor]:
        noisy = real(self, graph, number, *given)
        return self._plain_hops(graph) if number else noisy

    patch.setattr(GAP, "_noisy_hops", clean)


@fault("edges read at prediction", "replay", GAP_EDGE, "covered predictions differ")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GAP, "_cache_of", lambda self, graph: self._plain_hops(graph))


@fault("fresh noise at prediction, never charged", "replay", GAP_EDGE, "predicting twice", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    def noisy(self: Any, graph: Graph) -> list[torch.Tensor]:
        return [rows + torch.randn_like(rows) for rows in self._plain_hops(graph)]

    patch.setattr(GAP, "_cache_of", noisy)


@fault("the best epoch on private data", "replay", DP_MLP, "of the release differs", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = dp_mlp.train_privately

    def best(network: Any, losses: Any, *given: Any, **more: Any) -> None:
        before = {key: value.clone() for key, value in network.state_dict().items()}
        real(network, losses, *given, **more)
        with torch.no_grad():
            if int(1e3 * float(losses(np.arange(5)).sum())) % 2:
                network.load_state_dict(before)

    patch.setattr(dp_mlp, "train_privately", best)


@fault("a private count in the configuration", "replay", GAP_EDGE, "config.json")
def _(patch: pytest.MonkeyPatch) -> None:
    learn, config = GAP._learn, release._config

    def noting(self: Any, graphs: Any, *given: Any) -> None:
        learn(self, graphs, *given)
        self.edges_seen_ = graphs[0].num_entries

    patch.setattr(GAP, "_learn", noting)
    patch.setattr(release, "_config", lambda fitted: {**config(fitted), "edges": fitted.edges_seen_})


@fault("a private count in the certificate", "replay", GAP_EDGE, "certificates differ")
def _(patch: pytest.MonkeyPatch) -> None:
    fit = base.NodeClassifier._fit_with

    def noting(self: Any, graphs: Any, *given: Any) -> Any:
        fit(self, graphs, *given)
        self.certificate_["notes"].append(f"{graphs[0].num_entries} entries")
        return self

    patch.setattr(base.NodeClassifier, "_fit_with", noting)


# -------------------------------------------------------------------- plan and state


@fault("delta from a private count", "replay", GAP_EDGE, "plans differ", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real, facts, counts = base.make_plan, Graph.public.fget, [0]  # type: ignore[attr-defined]

    def noting(self: Graph) -> Any:
        counts[0] = self.num_entries
        return facts(self)

    def from_edges(method: str, privacy: Privacy, *given: Any) -> Any:
        return real(method, Privacy(privacy.level, privacy.epsilon, 1 / (100 + counts[0])), *given)

    patch.setattr(Graph, "public", property(noting))
    patch.setattr(base, "make_plan", from_edges)


@fault("stopping early on private data", "replay", DP_MLP, "left its plan")
def _(patch: pytest.MonkeyPatch) -> None:
    real = private_training.GradientTerms.total

    class EnoughError(Exception):
        pass

    def stopping(self: Any, batch: Any) -> np.ndarray:
        found = real(self, batch)
        if np.abs(found).sum() < 1e3:
            raise EnoughError
        return found

    train = dp_mlp.train_privately

    def until(*given: Any, **more: Any) -> None:
        try:
            train(*given, **more)
        except EnoughError:
            return

    patch.setattr(private_training.GradientTerms, "total", stopping)
    patch.setattr(dp_mlp, "train_privately", until)


@fault("training seeded from the edges", "replay", GAP_EDGE, "at the entry of stage")
def _(patch: pytest.MonkeyPatch) -> None:
    real = GAP._learn

    def seeding(self: Any, graphs: Any, *given: Any) -> None:
        self._generator.manual_seed(int(graphs[0].num_entries))
        real(self, graphs, *given)

    patch.setattr(GAP, "_learn", seeding)
