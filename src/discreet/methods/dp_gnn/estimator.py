"""``dp-gnn``: a graph network trained on degree-bounded ego-nets by noisy clipped gradients (the DP-GNN paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field

from discreet.arrays import Array, Arrays, SingleArray
from discreet.errors import ParameterError, UnsupportedError
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import FEATURES, LABELS, PublicPart, has_key, public_key, stored_key
from discreet.mechanisms.curator import Curator
from discreet.methods import dp_gnn
from discreet.methods.as_published import AS_PUBLISHED, Accounting, with_claimed_noise
from discreet.methods.dp_gnn.networks import Convolution, EgoNetwork, EgoShape
from discreet.methods.outlook import Outlook, outlook_of, separation
from discreet.methods.parameters import Fraction, Layers, Norm, Rate
from discreet.methods.stored_arrays import DOUBLE, SINGLE, stored_if
from discreet.methods.trained import PrivatelyTrained, TakesEncoder, WeighsClasses, class_shares
from discreet.ops.sparse import feature_tensor
from discreet.privacy.coverage import NOTHING
from discreet.privacy.levels import EdgeLevel, Level, NodeLevel, NoPrivacy
from discreet.privacy.plan import Claim, Plan, Stage
from discreet.queries.ego_net_outputs import EgoNetOutputs
from discreet.queries.ego_net_steps import EgoNetSteps
from discreet.queries.ego_nets import BoundedEgoNets
from discreet.queries.gradients import StepRule, planned_parameters
from discreet.queries.kept_edges import KEY, kept_edges_stage
from discreet.queries.reach import thinning_failure
from discreet.training.descent import Progress, training_rows
from discreet.training.networks import Activation, Linear, module_state, restore_module
from discreet.training.private import train_privately

Inference = Literal["visible", "noisy", "disjoint"]
STAGE, OUTPUTS = "network", "outputs"
ONLY_CLAIM = "accounting=as-published is for dp-gnn at level node"


@dataclass(eq=False, repr=False)
class DPGNN(TakesEncoder, WeighsClasses, PrivatelyTrained):
    """Encoder, one or two rounds of messages, decoder, at level ``none``, ``edge``, ``neighbor`` or ``node``.

    Parameters
    ----------
    convolution
        ``gcn`` (inverse degree), ``sage``, ``gin`` or ``gat`` (dot-product attention).
    layers
        Rounds of messages: 1 or 2. At ``edge`` one: no degree is bounded there, so that after two rounds one edge could
        stand in any number of examples.
    fan_in
        How many senders a node of an ego-net keeps at most: a public constant that bounds memory, not privacy.
    inference
        ``visible``: a prediction reads its node's full neighbourhood without noise and goes to that node, which is
        assumed to see its neighbours' features (at ``edge``, its own edges); weights are covered.
        ``disjoint``: predictions are made on other
        graphs, which hold none of the training graph's nodes and nothing private (``public=True``); weights are
        covered. ``noisy``: the outputs of all nodes are released once with noise (DPDGC's DP-SAGE) and predictions
        read them; all are covered.
    output_norm
        With ``noisy``, the norm to which a node's output is clipped.
    output_share
        With ``noisy``, the part of the squared privacy loss that outputs get.
    encoder_layers, decoder_layers
        Linear maps before and after the rounds of messages.
    heads
        Of ``gat``: each attends by its own part of the width, which must be a multiple of their number.
    accounting
        ``rigorous``, or ``as-published`` (at ``node``): layers are clipped apart, and each gets noise for its own clip
        norm alone, as in DP-GNN, which is short by the square root of their number: a claim that does not hold.

    Guarantee: an example is a node's ego-net in the level's bounded graph; one unit touches at most
    ``queries.reach.touched_examples`` of them, its own being zero where it is null, and clipped gradients go through
    the curator. At ``edge`` an undirected edge touches the examples of its two ends, a directed one that of its
    receiver: aggregation weighs senders by the receiver's own degree, so no other example reads it. With ``noisy`` as
    many outputs change, each by at most twice ``output_norm``.
    """

    declaration = dp_gnn.DP_GNN

    _: KW_ONLY
    layers: Annotated[int, Field(ge=1, le=2)] = 1
    activation: Activation = "tanh"
    learning_rate: Rate = 0.02
    clip_norm: Norm = 1.0
    convolution: Convolution = "gcn"
    fan_in: Annotated[int, Field(ge=1, le=1000)] = 7
    inference: Inference = "visible"
    output_norm: Norm = 1.0
    output_share: Fraction = 0.5
    encoder_layers: Layers = 1
    decoder_layers: Layers = 1
    heads: Layers = 1
    accounting: Accounting = "rigorous"

    @property
    def covers(self) -> str:
        """The weights, and with ``noisy`` every prediction; nothing where epsilon is the paper's claim."""
        if self._published():
            return NOTHING
        return "weights+predictions" if self.inference == "noisy" else "weights"

    # ---------------------------------------------------------------- plan

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        what = "edges of its node" if FEATURES not in level.private else "features of its node's neighbours"
        return {
            "visible": (
                f"inference visible: a prediction reads the {what} and goes to that node alone, which is assumed to "
                "see them; publishing it is not covered",
            ),
            "disjoint": (
                "inference disjoint: predictions are made on graphs that share no node with the training graph",
            ),
            "noisy": ("inference noisy: predictions read outputs that were released once with noise",),
        }[self.inference]

    def _published(self) -> bool:
        return self.accounting == AS_PUBLISHED and not isinstance(self.checked_privacy().level, NoPrivacy)

    def _check_settings(self, part: PublicPart) -> None:
        super()._check_settings(part)
        level = self.checked_privacy().level
        if self._published() and not self._has_claim(level):  # releases of before had it, and still load
            raise UnsupportedError(f"{self.method} has no published epsilon at level {level.kind}: {ONLY_CLAIM}")

    def _has_claim(self, level: Level) -> bool:
        """Whether a paper states what such a run is said to spend."""
        return isinstance(level, NodeLevel)

    def _rule(self) -> StepRule:
        return replace(super()._rule(), clipping="per-layer") if self._published() else super()._rule()

    def _claim(self, public: Sequence[PublicFacts], level: Level) -> Claim | None:
        if not self._published():
            return None
        return Claim(self.checked_privacy().epsilon, "DP-GNN, noise for one layer given to each")

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        if isinstance(level, EdgeLevel) and self.layers > 1:
            raise UnsupportedError(
                f"{self.method}: layers must be 1 at level edge, not {self.layers}: after two rounds of messages one "
                "edge could stand in any number of examples"
            )
        drafts = self._rigorous_stages(public, level)
        if not self._published():
            return drafts
        privacy = self.checked_privacy()
        network = self._network(public[0], torch.Generator())
        layers = sum(isinstance(module, Linear) for module in network.modules())
        delta = privacy.resolve_delta(public[0].num_nodes)
        return with_claimed_noise(drafts, privacy.epsilon, delta, {STAGE: layers**-0.5})

    def _rigorous_stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        if len(public) > 1:
            raise UnsupportedError("dp-gnn takes no extra graphs: inference=disjoint predicts on other graphs")
        facts, delta = public[0], self.checked_privacy().resolve_delta(public[0].num_nodes)
        failure = thinning_failure(level, delta)
        ego_nets = BoundedEgoNets(level, facts.num_nodes, self.layers, self.fan_in, failure)
        training = self._training_stage(STAGE, self._steps_query(facts, ego_nets), facts.num_nodes)
        before = [*self._count_stages(facts, level), *kept_edges_stage(failure)]
        if self.inference != "noisy":
            return [*before, training]
        outputs = EgoNetOutputs(ego_nets, facts.num_classes, self.output_norm)
        return [
            *before,
            Stage.of(STAGE, training.query, share=1 - self.output_share, runs=training.runs),
            Stage.of(OUTPUTS, outputs, share=self.output_share),
        ]

    def _steps_query(self, facts: PublicFacts, ego_nets: BoundedEgoNets) -> EgoNetSteps:
        question = f"clipped gradients of the network on {self.layers}-hop ego-nets of training nodes"
        network = self._network(facts, torch.Generator())
        parameters = planned_parameters(network, facts.num_train, ego_nets.slots)
        return EgoNetSteps(ego_nets.level, question, parameters, facts.num_train, self._rule(), ego_nets)

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """Messages carry no noise; all of it is in the training."""
        return outlook_of(plan, separation(degree, 0.0))

    def _network(self, facts: PublicFacts, generator: torch.Generator) -> EgoNetwork:
        if self.hidden % self.heads:
            raise ParameterError(f"dp-gnn: hidden ({self.hidden}) must be a multiple of heads ({self.heads})")
        shape = EgoShape(
            self.convolution,
            self.hidden,
            self.layers,
            self.activation,
            encoder_layers=self.encoder_layers,
            decoder_layers=self.decoder_layers,
            heads=self.heads,
        )
        own = self._own_encoder(facts, self.hidden, generator, dropout=False)
        return EgoNetwork(facts.num_features, shape, facts.num_classes, generator, own)

    # ---------------------------------------------------------------- fit

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        if LABELS not in parts[0].private:
            training_rows(parts[0])  # refuses a graph without a label, where that is no secret
        shares = class_shares(self._class_weights(parts[0], curator))
        curator.draw_key(KEY)
        self.key_ = public_key(parts[0])
        self.network_ = self._watched["network"] = self._network(self.public_, self._generator)
        train_privately(self.network_, curator, STAGE, self._descent(), progress=progress, **shares)
        self.outputs_ = curator.ask(OUTPUTS, network=self.network_) if self.inference == "noisy" else None

    # ---------------------------------------------------------------- predict

    def _uncovered(self, part: PublicPart) -> str | None:
        if isinstance(self.checked_privacy().level, NoPrivacy):
            return None
        here = has_key(part, self.key_)
        if self.inference == "noisy":
            return None if here else "outputs were released for the training graph alone"
        if self.inference == "visible":
            return "a prediction reads its node's neighbourhood without noise; the guarantee covers the weights alone"
        if here:
            return "this has the nodes of the training graph, and inference is disjoint"
        return "predictions are for graphs in which nothing is private: pass public=True"

    @torch.no_grad()
    def _probabilities(self, part: PublicPart) -> SingleArray:
        if self.outputs_ is not None and has_key(part, self.key_):
            logits = torch.from_numpy(self.outputs_)
        else:
            logits = self.network_.on_graph(feature_tensor(part.features, self._device), part)
        return torch.softmax(logits, dim=1).cpu().numpy()

    # ---------------------------------------------------------------- release

    def _state(self) -> Arrays:
        outputs = {} if self.outputs_ is None else {"outputs": self.outputs_}
        return {**module_state("network", self.network_), "key": np.frombuffer(self.key_, dtype=np.uint8), **outputs}

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.network_ = restore_module("network", self._network(self.public_, self._generator), state)
        self.key_ = stored_key(state, "key")
        shape = self.public_.num_nodes, self.public_.num_classes
        self.outputs_ = stored_if(state, "outputs", self.inference == "noisy", *shape, types=[SINGLE, DOUBLE])
