"""``dp-gnn``: a graph network trained on degree-bounded ego-nets by noisy clipped gradients (paper 001)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor

from discreet.errors import UnsupportedError
from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.dpsgd import Touch, change_of
from discreet.methods.base import Arrays
from discreet.methods.ego_networks import Convolution, EgoNetwork, slot_features
from discreet.methods.gap_private import FAILURE_SHARE, KEY, key_stage, public_key
from discreet.methods.networks import Activation, module_state, restore_module
from discreet.methods.outlook import Outlook, outlook_of, separation
from discreet.methods.private_training import (
    IntArray,
    PrivatelyTrained,
    example_losses,
    train_privately,
    training_ids,
)
from discreet.methods.training import Progress
from discreet.ops.degrees import bound_degrees, touched_examples
from discreet.ops.egonets import SenderTable, sender_table
from discreet.ops.rows import clip_rows, finite_rows
from discreet.ops.sparse import feature_tensor
from discreet.privacy import events
from discreet.privacy.levels import Level, NeighborLevel, NodeLevel
from discreet.privacy.plan import Plan, Stage

Inference = Literal["visible", "noisy", "disjoint"]
STAGE, OUTPUTS = "network", "outputs"


@dataclass(eq=False, repr=False)
class DPGNN(PrivatelyTrained):
    """Encoder, one or two rounds of messages, decoder, at level ``node`` or ``neighbor``.

    Parameters
    ----------
    convolution
        ``gcn`` (inverse degree), ``sage``, ``gin`` or ``gat`` (dot-product attention).
    layers
        Rounds of messages: 1 or 2.
    fan_in
        How many senders a node of an ego-net keeps at most: a public constant that bounds memory, not privacy.
    inference
        ``visible``: a prediction reads its node's full neighbourhood without noise and goes to that node, which is
        assumed to see its neighbours' features; weights are covered. ``disjoint``: predictions are made on other
        graphs, which hold none of the training graph's nodes; weights are covered. ``noisy``: the outputs of
        all nodes are released once with noise (paper 004's DP-SAGE) and predictions read them; all are covered.
    output_norm
        With ``noisy``, the norm to which a node's output is clipped.
    output_share
        With ``noisy``, the part of the squared privacy loss that outputs get.

    Guarantee: an example is a node's ego-net in the level's bounded graph; one unit touches at most
    ``degrees.touched_examples`` of them, its own being zero where it is null, and clipped gradients go through the
    curator. With ``noisy`` as many outputs change, each by at most twice ``output_norm``.
    """

    method: ClassVar[str] = "dp-gnn"
    levels: ClassVar[tuple[str, ...]] = ("node", "neighbor")

    _: KW_ONLY
    layers: Annotated[int, Field(ge=1, le=2)] = 1
    activation: Activation = "tanh"
    learning_rate: Annotated[float, Field(gt=0)] = 0.02
    clip_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    convolution: Convolution = "gcn"
    fan_in: Annotated[int, Field(ge=1, le=1000)] = 7
    inference: Inference = "visible"
    output_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    output_share: Annotated[float, Field(gt=0, lt=1)] = 0.5

    @property
    def covers(self) -> str:
        """The weights, and with ``noisy`` every prediction."""
        return "weights+predictions" if self.inference == "noisy" else "weights"

    # ---------------------------------------------------------------- plan

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        return {
            "visible": (
                "inference visible: a prediction reads the features of its node's neighbours and goes to that node "
                "alone, which is assumed to see them; publishing it is not covered",
            ),
            "disjoint": (
                "inference disjoint: predictions are made on graphs that share no node with the training graph",
            ),
            "noisy": ("inference noisy: predictions read outputs that were released once with noise",),
        }[self.inference]

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        if len(public) > 1:
            raise UnsupportedError("dp-gnn takes no extra graphs: inference=disjoint predicts on other graphs")
        facts, failure = public[0], self._failure(public[0], level)
        touched, why = touched_examples(level, self.layers, num_nodes=facts.num_nodes, failure=failure)
        touch = Touch(touched, change_of(level), why)
        query = f"clipped gradients of the network on {self.layers}-hop ego-nets of training nodes"
        training = self._training_stage(STAGE, query, self._network(facts, torch.Generator()), facts, touch)
        stages = [] if failure is None else [key_stage(failure)]
        if self.inference != "noisy":
            return [*stages, training]
        relative = self._relative(training, touch) / math.sqrt(1 - self.output_share)
        return [*stages, training.scaled(relative), self._output_stage(facts, touch)]

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """Messages carry no noise; all of it is in the training."""
        return outlook_of(plan, separation(degree, 0.0))

    def _failure(self, public: PublicFacts, level: Level) -> float | None:
        if not isinstance(level, NodeLevel) or level.edges != "thinned":
            return None
        return FAILURE_SHARE * self._checked_privacy().resolve_delta(public.num_nodes)

    @staticmethod
    def _relative(training: Stage, touch: Touch) -> float:
        """The multiplier at which all steps together cost about as much as one Gaussian of multiplier 1."""
        if isinstance(training.event, events.GaussianDpEvent):
            return math.sqrt(training.runs) / training.event.noise_multiplier
        rate = training.parameters["batch_size"] / training.parameters["examples"]
        return 2 * touch.examples * rate * math.sqrt(training.runs)

    def _output_stage(self, facts: PublicFacts, touch: Touch) -> Stage:
        rows = min(touch.examples, facts.num_nodes)
        return Stage(
            name=OUTPUTS,
            query="the network's outputs on the bounded graph, rows clipped",
            mechanism="gaussian",
            sensitivity=2 * self.output_norm * math.sqrt(rows),
            metric="l2",
            why=f"one unit changes at most {rows} rows of norm at most {self.output_norm:g}",
            event=events.GaussianDpEvent(1 / math.sqrt(self.output_share)),
            shape=(facts.num_nodes, facts.num_classes),
        )

    def _network(self, public: PublicFacts, generator: torch.Generator) -> EgoNetwork:
        return EgoNetwork(
            public.num_features,
            self.hidden,
            public.num_classes,
            self.convolution,
            self.layers,
            self.activation,
            generator,
        )

    # ---------------------------------------------------------------- fit

    def _learn(self, graphs: Sequence[Graph], curator: Curator, progress: Progress | None) -> None:
        graph, level = graphs[0], self._checked_privacy().level
        assert isinstance(level, NodeLevel | NeighborLevel)
        key = curator.key(KEY)
        table = sender_table(bound_degrees(graph, level, key), self.fan_in, key)
        self.network_ = self._watched["network"] = self._network(self.public_, self._generator)
        losses = EgoLosses(self.network_, graph, table, self.layers, self._device)
        train_privately(self.network_, losses, curator, STAGE, self._options(), compute=self.compute, progress=progress)
        self.key_, self.outputs_ = public_key(graph), None
        if self.inference == "noisy":
            self.outputs_ = curator.measure(OUTPUTS, self._bounded_outputs(graph, table))

    @torch.no_grad()
    def _bounded_outputs(self, graph: Graph, table: SenderTable) -> npt.NDArray[np.float32]:
        """Outputs of all nodes from their bounded ego-nets, centred, as rows of bounded norm."""
        features = feature_tensor(graph.features, self._device)
        parts = []
        for ids in np.array_split(np.arange(graph.num_nodes), 1 + graph.num_nodes // 4096):
            nets = table.ego_nets(ids, self.layers)
            logits = self.network_.on_egos(slot_features(features, nets), nets)
            centred = finite_rows(logits - logits.mean(dim=1, keepdim=True))
            parts.append(clip_rows(centred, self.output_norm))
        return torch.cat(parts).cpu().numpy()

    # ---------------------------------------------------------------- predict

    def _uncovered(self, graph: Graph, audience: str) -> str | None:
        here = public_key(graph) == self.key_
        if self.inference == "noisy":
            return None if here else "outputs were released for the training graph alone"
        if self.inference == "disjoint":
            return "this has the nodes of the training graph, and inference is disjoint" if here else None
        return "a prediction reads the private features of neighbours; the guarantee covers the weights alone"

    @torch.no_grad()
    def _probabilities(self, graph: Graph) -> npt.NDArray[np.float32]:
        if self.outputs_ is not None and public_key(graph) == self.key_:
            logits = torch.from_numpy(self.outputs_)
        else:
            logits = self.network_.on_graph(graph, self._device)
        return torch.softmax(logits, dim=1).cpu().numpy()

    # ---------------------------------------------------------------- release

    def _state(self) -> Arrays:
        outputs = {} if self.outputs_ is None else {"outputs": self.outputs_}
        return {**module_state("network", self.network_), "key": np.frombuffer(self.key_, dtype=np.uint8), **outputs}

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.network_ = restore_module("network", self._network(self.public_, self._generator), state)
        self.key_, self.outputs_ = state["key"].tobytes(), state.get("outputs")


class EgoLosses:
    """One loss a training node, from its ego-net and its label."""

    def __init__(self, network: EgoNetwork, graph: Graph, table: SenderTable, hops: int, device: torch.device) -> None:
        self._network, self._table, self._hops = network, table, hops
        self._ids = training_ids(graph)
        self._features = feature_tensor(graph.features, device)
        self._labels = torch.tensor(graph.labels[self._ids], device=device)

    def __call__(self, positions: IntArray) -> Tensor:
        """The losses of the training nodes at these positions."""
        nets = self._table.ego_nets(self._ids[positions], self._hops)
        logits = self._network.on_egos(slot_features(self._features, nets), nets)
        return example_losses(logits, self._labels[torch.from_numpy(positions)])
