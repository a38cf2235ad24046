"""``dpdgc`` where features and labels are private too: rows under the level's bounds, the rest by noisy steps.

Z = A·W is released before anything reads features. An example of the joint network is then a node's own features and
label beside released rows, so one node stands in one example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.methods.decoupled_networks import JointNetwork
from discreet.methods.dp_mlp import own_example
from discreet.methods.dpdgc_embedding import embedding_stages, relative, release_rows
from discreet.methods.gap_private import FAILURE_SHARE, KEY, BoundedLevel, key_stage
from discreet.methods.private_training import IntArray, PrivateOptions, example_losses, train_privately, training_ids
from discreet.methods.training import Progress
from discreet.ops.degrees import bound_degrees
from discreet.ops.sparse import feature_tensor, select_rows
from discreet.privacy.levels import NeighborLevel, NodeLevel
from discreet.privacy.plan import Stage

if TYPE_CHECKING:
    from discreet.methods.dpdgc import DPDGC

NETWORK = "network"


def options_of(model: DPDGC) -> PrivateOptions:
    """Full batches, flat clipping, Adam, the later half of the weights averaged."""
    return PrivateOptions(model.steps, model.step_size, None, "poisson", model.clip_norm, "flat", "adam", "cosine", 0.5)


def joint_network(model: DPDGC, public: PublicFacts, generator: torch.Generator) -> JointNetwork:
    """The network over features and released rows."""
    hidden = (model.hidden, model.rows_hidden)
    return JointNetwork(
        public.num_features, components(model, public), hidden, public.num_classes, model.activation, generator
    )


def components(model: DPDGC, public: PublicFacts) -> int:
    """How many directions of Z the network reads."""
    return min(model.components, model._width(public), public.num_nodes)


def private_stages(model: DPDGC, public: PublicFacts, level: BoundedLevel) -> list[Stage]:
    """Key (thinned), W where it costs, rows, network."""
    failure = failure_of(model, level, public)
    network = joint_network(model, public, torch.Generator())
    query = "clipped gradients of the network on features and released rows"
    last = options_of(model).stage(NETWORK, query, network, public.num_train, own_example(level))
    return [
        *([] if failure is None else [key_stage(failure)]),
        *embedding_stages(model, public, level, failure),
        relative(last, model._shares()[2]),
    ]


def failure_of(model: DPDGC, level: BoundedLevel, public: PublicFacts) -> float | None:
    """δ′ on the thinned basis, else None."""
    if not isinstance(level, NodeLevel) or level.edges != "thinned":
        return None
    return FAILURE_SHARE * model._checked_privacy().resolve_delta(public.num_nodes)


def learn_privately(model: DPDGC, graph: Graph, curator: Curator, progress: Progress | None) -> None:
    """Key, W, rows, network, in the order of the plan."""
    level = model._checked_privacy().level
    assert isinstance(level, NodeLevel | NeighborLevel)
    bounded = bound_degrees(graph, level, curator.key(KEY))
    failure = failure_of(model, level, graph.public)
    released = release_rows(model, bounded, curator, None, progress, failure)
    model.cache_ = released.principal(components(model, graph.public)).to(model._device)
    network = joint_network(model, model.public_, model._generator)
    model.network_ = model._watched["network"] = network
    losses = JointLosses(network, graph, model.cache_)
    train_privately(network, losses, curator, NETWORK, options_of(model), compute=model.compute, progress=progress)


class JointLosses:
    """One loss a training node, from its own features and label beside its released row."""

    def __init__(self, network: JointNetwork, graph: Graph, rows: Tensor) -> None:
        ids = torch.from_numpy(training_ids(graph)).to(rows.device)
        self._network = network
        self._features = select_rows(feature_tensor(graph.features, rows.device), ids)
        self._rows = rows[ids]
        self._labels = torch.tensor(graph.labels, device=rows.device)[ids]

    def __call__(self, positions: IntArray) -> Tensor:
        """The losses of the training nodes at these positions."""
        features, rows, labels = self._features, self._rows, self._labels
        if len(positions) < len(labels):
            chosen = torch.from_numpy(positions).to(labels.device)
            features, rows, labels = select_rows(features, chosen), rows[chosen], labels[chosen]
        return example_losses(self._network(features, rows), labels)
