"""hop-bayes where features and labels are private too: levels ``node`` and ``neighbor``.

Four stages, all Gaussian, one calibration: the node model by noisy steps, the table of links between labels, the
evidence of every receiver, and two weights that combine what the node model and the evidence say, by noisy steps.
What each costs adds up in squares; ``hop_bayes_budget.shares`` divides that sum by public facts, and leaves the graph
alone where noise would drown what neighbours tell: the node model is then all there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from discreet.errors import UnsupportedError
from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.methods.dp_mlp import FeatureLosses, own_example
from discreet.methods.evidence_model import class_likelihoods
from discreet.methods.evidence_stages import (
    EVIDENCE,
    LINKS,
    NODE_MODEL,
    WEIGHTS,
    evidence_name,
    gaussian_stage,
    taking,
)
from discreet.methods.gap_private import FAILURE_SHARE, KEY, key_stage, public_key
from discreet.methods.hop_bayes_budget import is_linear, reads_edges, shares, step_size
from discreet.methods.link_model import LinkModel
from discreet.methods.networks import MLP, Linear, widths_of
from discreet.methods.private_training import IntArray, PrivateOptions, example_losses, train_privately
from discreet.methods.training import Progress
from discreet.ops.node_evidence import (
    BoolArray,
    BoundedLevel,
    entries_between,
    label_links,
    label_links_bound,
    roles,
    told_bound,
    told_sums,
)
from discreet.ops.rows import rows_of_norm
from discreet.ops.sparse import feature_tensor
from discreet.privacy.plan import Stage

if TYPE_CHECKING:
    from discreet.methods.hop_bayes import HopBayes

FloatArray = npt.NDArray[np.float64]

ROW_NORM = 4.5
"""A linear map sees features of each node scaled to this norm, so that steps of one size suit all graphs; public."""
WEIGHT_STEPS, WEIGHT_RATE, WEIGHT_CLIP = 20, 0.05, 1.0
FLATTENED = 1.5
"""Networks trained by noisy steps are too sure of themselves: by how much their logits are divided to begin with."""
_SURE = 20.0
"""No class is held to be less likely than the likeliest by more than this factor's logarithm."""


class Weigher(nn.Module):
    """Two weights: logits = w₁·(what the node model says) + w₂·(what the evidence says), and nothing else."""

    def __init__(self, generator: torch.Generator) -> None:
        """Begin with Bayes' rule on a flattened node model."""
        super().__init__()
        self.weights = Linear(2, 1, generator)
        with torch.no_grad():
            self.weights.weight.copy_(torch.tensor([[1 / FLATTENED], [1.0]]))

    def forward(self, own: Tensor, evidence: Tensor) -> Tensor:
        """One number a class."""
        logits: Tensor = self.weights(torch.stack([own, evidence], dim=2)).squeeze(2)
        return logits


# -------------------------------------------------------------------- plan


def private_stages(model: HopBayes, public: Sequence[PublicFacts], level: BoundedLevel) -> list[Stage]:
    """Key (thinned), node model, links, evidence of every graph, weights (where there are validation ids).

    The node model alone, with all of the budget, where edges are not worth theirs.
    """
    if model.predictions == "own":
        raise UnsupportedError(
            f"hop-bayes has no predictions='own' at level {level.kind}: neighbours' features and labels are private "
            "there, so a node may not read them without noise; use predictions='all'"
        )
    facts, touch, classes = public[0], own_example(level), public[0].num_classes
    share, failure = shares(model, facts, level), _failure(model, level, public)
    query = "clipped gradients of the node model on features"
    network = model._network(facts, torch.Generator())
    steps = node_options(model, facts).stage(NODE_MODEL, query, network, facts.num_train, touch)
    if EVIDENCE not in share:
        return [steps]
    links, told = label_links_bound(level, failure), told_bound(level, classes, failure)
    stages = [
        *([key_stage(failure * len(public))] if failure else []),
        taking(steps, share[NODE_MODEL]),
        gaussian_stage(
            LINKS,
            "labels that half of the training ids tell the other half",
            links.sensitivity,
            links.why,
            share[LINKS],
            (classes, classes),
        ),
        *(
            gaussian_stage(
                evidence_name(number),
                "sum of what each receiver is told",
                told.sensitivity,
                told.why,
                share[EVIDENCE] / len(public),
                (num_receivers(model, other), classes),
            )
            for number, other in enumerate(public)
        ),
    ]
    if WEIGHTS in share:
        query = "clipped gradients of two weights on validation ids"
        steps = weight_options().stage(WEIGHTS, query, Weigher(torch.Generator()), facts.num_val, touch)
        stages.append(taking(steps, share[WEIGHTS]))
    return stages


def node_options(model: HopBayes, facts: PublicFacts) -> PrivateOptions:
    """How the node model is trained: full batches, flat clipping, Adam."""
    rate = step_size(model, facts)
    return PrivateOptions(model.steps, rate, None, "poisson", model.clip_norm, "flat", "adam", "cosine", 0.5)


def node_network(model: HopBayes, facts: PublicFacts, generator: torch.Generator) -> MLP:
    """The node model before training: one linear map where public facts say so."""
    layers = 1 if is_linear(model, facts) else model.layers
    return MLP(widths_of(facts.num_features, model.hidden, layers, facts.num_classes), model.activation, 0.0, generator)


def weight_options() -> PrivateOptions:
    """How the two weights are trained."""
    return PrivateOptions(WEIGHT_STEPS, WEIGHT_RATE, None, "poisson", WEIGHT_CLIP, "flat", "adam", "cosine", 0.5)


def _failure(model: HopBayes, level: BoundedLevel, public: Sequence[PublicFacts]) -> float | None:
    """δ′ of one graph, on the thinned basis."""
    if level.edges != "thinned":
        return None
    delta = model._checked_privacy().resolve_delta(max(facts.num_nodes for facts in public))
    return FAILURE_SHARE * delta / len(public)


def num_receivers(model: HopBayes, facts: PublicFacts) -> int:
    """How many ids get evidence: those outside the training set, or all where that leaves none."""
    outside = facts.num_nodes - facts.num_train
    return facts.num_nodes if model.receivers == "all" or outside == 0 else outside


def receiver_mask(model: HopBayes, graph: Graph) -> BoolArray:
    """Which ids get evidence: public, see :func:`num_receivers`."""
    everyone = np.ones(graph.num_nodes, dtype=np.bool_)
    if graph.train_mask is None or num_receivers(model, graph.public) == graph.num_nodes:
        return everyone
    return ~graph.train_mask


# -------------------------------------------------------------------- fit


def learn_privately(model: HopBayes, graphs: Sequence[Graph], curator: Curator, progress: Progress | None) -> None:
    """Key, node model, links, evidence, weights, in the order of the plan; or the node model alone."""
    level = model._checked_privacy().level
    assert isinstance(level, BoundedLevel)
    graph, public = graphs[0], [g.public for g in graphs]
    reading = reads_edges(model, graph.public, level)
    failure = _failure(model, level, public)
    key = curator.key(KEY) if reading else b""
    losses, options = (
        FeatureLosses(model.network_, _seen(model, graph), model._device),
        node_options(model, graph.public),
    )
    train_privately(model.network_, losses, curator, NODE_MODEL, options, compute=model.compute, progress=progress)
    if not reading:
        model.links_ = LinkModel.unknown(graph.num_classes)
        return
    model.links_ = _measure_links(graph, level, key, curator)
    clip = told_bound(level, graph.num_classes, failure).clip
    for number, other in enumerate(graphs):
        receivers = receiver_mask(model, other)
        entries = entries_between(other, level, key, None, receivers)
        sums = told_sums(entries, told_labels(model, other), receivers, level, clip)
        model.caches_.append(curator.measure(evidence_name(number), sums))
        model.receivers_.append(np.flatnonzero(receivers))
    model.noise_std_ = curator.plan.stage(evidence_name(0)).noise_std
    if WEIGHTS in shares(model, graph.public, level):
        _train_weights(model, graph, curator, progress)


def _seen(model: HopBayes, graph: Graph) -> Graph:
    """The features as the node model sees them: rows of one norm for a linear map, each scaled by itself."""
    if not is_linear(model, model.public_):
        return graph
    return graph.with_features(rows_of_norm(graph.features, ROW_NORM))


def _measure_links(graph: Graph, level: BoundedLevel, key: bytes, curator: Curator) -> LinkModel:
    assert graph.train_mask is not None
    tells, hears = roles(graph.train_mask)
    entries = entries_between(graph, level, key, tells, hears)
    noisy = curator.measure(LINKS, label_links(entries, one_hot_labels(graph), level))
    return LinkModel.from_counts(noisy, curator.plan.stage(LINKS).noise_std, graph.num_nodes, directed=True)


def one_hot_labels(graph: Graph) -> FloatArray:
    """A row for each training id with a label, zero elsewhere."""
    rows = np.zeros((graph.num_nodes, graph.num_classes))
    if graph.train_mask is not None:
        ids = np.flatnonzero(graph.train_mask & (graph.labels >= 0))
        rows[ids, graph.labels[ids]] = 1
    return rows


def told_labels(model: HopBayes, graph: Graph) -> FloatArray:
    """What each node tells: its label if that is for training, else the node model's best guess; one-hot."""
    guess = own_view(model, graph).argmax(dim=1).cpu().numpy()
    rows = one_hot_labels(graph)
    silent = np.flatnonzero(rows.sum(axis=1) == 0)
    rows[silent, guess[silent]] = 1
    return rows


@torch.no_grad()
def own_view(model: HopBayes, graph: Graph) -> Tensor:
    """The node model's log-probabilities less their largest, bounded, so that an extreme record stays a number."""
    logits = torch.nan_to_num(model.network_(feature_tensor(_seen(model, graph).features, model._device)))
    return (logits - logits.amax(dim=1, keepdim=True)).clamp_min(-_SURE)


def evidence_of(model: HopBayes, number: int, num_nodes: int) -> Tensor:
    """What the released rows say of each class, zero for ids that are not receivers."""
    rows = np.zeros((num_nodes, model.caches_[number].shape[1]))
    found = class_likelihoods(model.caches_[number], model.noise_std_, model.links_)
    rows[model.receivers_[number]] = np.maximum(found - found.max(axis=1, keepdims=True), -_SURE)
    return torch.tensor(rows, dtype=torch.float32, device=model._device)


def _train_weights(model: HopBayes, graph: Graph, curator: Curator, progress: Progress | None) -> None:
    """An example is a validation id: its own features and label beside its released row. One node touches one."""
    assert graph.train_mask is not None
    assert graph.val_mask is not None
    ids = torch.from_numpy(np.flatnonzero(graph.val_mask & ~graph.train_mask)).to(model._device)
    own, evidence = own_view(model, graph)[ids], evidence_of(model, 0, graph.num_nodes)[ids]
    labels = torch.tensor(graph.labels, device=model._device)[ids]

    def losses(positions: IntArray) -> Tensor:
        chosen = torch.from_numpy(positions).to(model._device)
        return example_losses(model.weigher_(own[chosen], evidence[chosen]), labels[chosen])

    options = weight_options()
    train_privately(model.weigher_, losses, curator, WEIGHTS, options, compute=model.compute, progress=progress)


# -------------------------------------------------------------------- predict


@torch.no_grad()
def private_probabilities(model: HopBayes, graph: Graph) -> npt.NDArray[np.float32]:
    """A node's own features beside its released row; on a graph that was not measured, its features alone."""
    key = public_key(graph)
    own = own_view(model, graph)
    evidence = torch.zeros_like(own)
    if key in model.keys_:
        evidence = evidence_of(model, model.keys_.index(key), graph.num_nodes)
    return torch.softmax(model.weigher_(own, evidence), dim=1).cpu().numpy()
