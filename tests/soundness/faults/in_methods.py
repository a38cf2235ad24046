"""Faults of queries and of the methods that ask them: bounds that are too small, and values that move too far.

Replay must see them all.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from discreet.graph.graph import Graph
from discreet.methods.dpdgc import embedding
from discreet.methods.hop_bayes import evidence as evidence_of_nodes
from discreet.methods.hop_bayes import hubs
from discreet.methods.progressive import lpgnet, progap
from discreet.ops import degrees
from discreet.ops.cells import Cells
from discreet.ops.clipping import ClipRule
from discreet.privacy.query import Bound
from discreet.queries import adjacency_rows, edge_cells, ego_nets, evidence, gradients, kept_edges, propagated, sums
from discreet.training import private
from tests.soundness.faults.checks import Subject
from tests.soundness.faults.registry import fault

GAP_EDGE = Subject("gap", "edge", parameters=(("hops", 2), ("epochs", 0)))
GAP_NODE = Subject("gap", "node:owned,max_degree=3")
DP_MLP = Subject("dp-mlp", "node:owned,max_degree=3")
DP_GNN = Subject("dp-gnn", "node:owned,max_degree=3")
DP_GNN_EDGE = Subject("dp-gnn", "edge")
HOP_BAYES = Subject("hop-bayes", "edge")
HUBS = Subject("hop-bayes", "edge", 1.0, (("hubs", True),))
GCON = Subject("gcon", "edge")
LPGNET = Subject("lpgnet", "edge")
PROGAP = Subject("progap", "edge")
PROGAP_NODE = Subject("progap", "node:owned,max_degree=3")
DPGCN = Subject("dpgcn", "edge", parameters=(("mechanism", "edge-rand"),))
RANGE = (("feature_range", (-2.0, 2.0)), ("outside", "clip"))
LPGNN = Subject("lpgnn", "local", 4.0, RANGE)

# -------------------------------------------------------------------- what one unit can move


@fault("an undirected edge counted once", "replay", GAP_EDGE, "declared sensitivity", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sums, "edge_sensitivity", lambda aggregation, level: Bound(1.0, "l2", "as published"))


@fault("rows normalised in a throw-away copy", "replay", GAP_EDGE, "declared sensitivity", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    def in_a_copy(rows: torch.Tensor) -> torch.Tensor:
        copy = rows.clone()
        copy /= copy.norm(dim=1, keepdim=True)
        return rows

    patch.setattr(sums, "normalize_rows", in_a_copy)


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

    patch.setattr(kept_edges, "bound_degrees", greedy)


@fault("a group of examples counted as one record", "replay", DP_GNN, "one unit touches at most")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ego_nets, "touched_examples", lambda *_, **__: (1, "its own example"))


@fault("a group counted by its square root", "replay", DP_GNN, "one unit touches at most", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = ego_nets.touched_examples

    def rooted(*given: Any, **more: Any) -> tuple[int, str]:
        count, why = real(*given, **more)
        return int(np.sqrt(count)), why

    patch.setattr(ego_nets, "touched_examples", rooted)


@fault("weights normalised in a throw-away copy", "replay", Subject("dpdgc", "edge"), "declared sensitivity", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    """By the method, which scales W, and by the query, which would cut it all the same."""
    scale, cut = embedding.step_weight, adjacency_rows.cut_rows

    def unscaled(step: np.ndarray, noise: float, *, row_norm: float) -> np.ndarray:
        scale(step, noise, row_norm=row_norm)
        return step

    def uncut(rows: np.ndarray, norm: float) -> np.ndarray:
        cut(rows, norm)
        return rows

    patch.setattr(embedding, "step_weight", unscaled)
    patch.setattr(adjacency_rows, "cut_rows", uncut)


@fault("evidence of both ends counted for one", "replay", HOP_BAYES, "declared sensitivity")
def _(patch: pytest.MonkeyPatch) -> None:
    real = evidence.ReceivedMessages.bound

    def one_end(self: Any) -> Bound:
        found = real(self)
        return dataclasses.replace(found, sensitivity=found.sensitivity / 2**0.5)

    patch.setattr(evidence.ReceivedMessages, "bound", one_end)


@fault("hubs that tell what was not released", "replay", HUBS, "declared sensitivity")
def _(patch: pytest.MonkeyPatch) -> None:
    real, clean = evidence.ReceivedMessages.answer, []

    def remembered(self: Any, *given: Any, **inputs: Any) -> np.ndarray:
        clean.append(real(self, *given, **inputs))
        return clean[-1]

    def of_clean(rows: np.ndarray, noise_std: float, bound: float) -> np.ndarray:
        return hubs.hub_messages(clean[-1], 0.0, bound)

    patch.setattr(evidence.ReceivedMessages, "answer", remembered)
    patch.setattr(evidence_of_nodes, "hub_messages", of_clean)


@fault("propagation that moves twice what is declared", "replay", GCON, "declared sensitivity")
def _(patch: pytest.MonkeyPatch) -> None:
    real = propagated.restart_sensitivity
    patch.setattr(propagated, "restart_sensitivity", lambda *given, **more: 0.4 * real(*given, **more))


@fault("randomised response on both triangles", "replay", DPGCN, "declared sensitivity", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    """Two cells for an undirected edge, each with noise of its own, which average to less."""
    patch.setattr(edge_cells.EdgeCells, "cells", property(lambda self: Cells(self.num_nodes, True)))


@fault("an edge that stands in one example alone", "replay", DP_GNN_EDGE, "one unit touches at most")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ego_nets, "touched_examples", lambda *_, **__: (1, "the example of one end"))


@fault("progressive sums without the root of two", "replay", PROGAP, "declared sensitivity", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sums, "edge_sensitivity", lambda aggregation, level: Bound(1.0, "l2", "as published"))


@fault("later stages charged as if their rows were released", "replay", PROGAP_NODE, "left its plan")
def _(patch: pytest.MonkeyPatch) -> None:
    def released(self: Any, facts: Any, level: Any, stage: int, failure: float | None = None) -> sums.NeighbourSums:
        return sums.NeighbourSums(level, facts.num_nodes, facts.num_classes, "sum", stage, failure)

    patch.setattr(progap.ProGAP, "_query", released)


@fault("counts asked for anew at every pass", "replay", LPGNET, "left its plan", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = lpgnet.LPGNet._ask

    def at_every_pass(self: Any, *given: Any) -> np.ndarray:
        return (real(self, *given) + real(self, *given)) / 2

    patch.setattr(lpgnet.LPGNet, "_ask", at_every_pass)


# -------------------------------------------------------------------- gradients


@fault("noise per tensor, accounted once", "replay", Subject("dp-mlp", DP_MLP.level, 1.0, (("clipping", "per-layer"),)),
       "times its clip norm", seen=True)  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    def whole_norm_each(self: Any, network: torch.nn.Module, *room: Any) -> ClipRule:
        layers = sum(any(True for _ in part.parameters(recurse=False)) for part in network.modules())
        return ClipRule.layers(self.clip_norm * np.sqrt(layers), layers)

    patch.setattr(gradients.StepRule, "clip_rule", whole_norm_each)


@fault("the sum clipped instead of its terms", "replay", DP_MLP, "not the sum of the terms")
def _(patch: pytest.MonkeyPatch) -> None:
    real = gradients.GradientSteps.answer

    def clipped(self: Any, *given: Any, **inputs: Any) -> np.ndarray:
        loose = dataclasses.replace(self, rule=dataclasses.replace(self.rule, clip_norm=1e6))
        total = real(loose, *given, **inputs)
        return (total * min(1.0, self.clip_norm / max(1e-12, float(np.linalg.norm(total))))).astype(np.float32)

    patch.setattr(gradients.GradientSteps, "answer", clipped)


@fault("a null node that still has a gradient", "replay", DP_MLP, "own term")
def _(patch: pytest.MonkeyPatch) -> None:
    def leaking(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits, labels.clamp_min(0), reduction="none")

    patch.setattr(gradients, "example_losses", leaking)


@fault("features scaled by the data's own range", "replay", DP_MLP, "one unit touches at most", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = gradients.OwnRecordSteps._examples

    def scaling(self: Any, *given: Any) -> Any:
        found = real(self, *given)
        return found._replace(inputs=found.inputs / found.inputs.abs().max())

    patch.setattr(gradients.OwnRecordSteps, "_examples", scaling)


@fault("an optimiser that remembers gradients without noise", "replay", DP_MLP, "optimiser of")
def _(patch: pytest.MonkeyPatch) -> None:
    clean: list[np.ndarray] = []
    total, step = gradients.GradientSteps.answer, private.Adam.step

    def noting(self: Any, *given: Any, **inputs: Any) -> np.ndarray:
        clean.append(total(self, *given, **inputs))
        return clean[-1]

    def recalling(self: Any, gradient: Any, learning_rate: float) -> None:
        step(self, gradient, learning_rate)
        self._second[0] += float(np.abs(clean[-1]).sum())

    patch.setattr(gradients.GradientSteps, "answer", noting)
    patch.setattr(private.Adam, "step", recalling)
