"""``hop-bayes``: neighbour evidence weighed by its noise.

A classifier needs little from a graph: how classes link (a c × c table), and what the neighbours of a node
suggest (c numbers). Both are small, so they survive noise that drowns an embedding; and because the noise is
known exactly, Bayes' rule says how far to trust them. Derived in ``docs/hop-bayes.md``.

Where features and labels are private too, there are four stages, all Gaussian, in one calibration: the node model by
noisy steps, the table of links between labels, the evidence of every receiver, and two weights that combine what the
node model and the evidence say, by noisy steps. What each costs adds up in squares; ``stages`` divides that sum by
public facts, and leaves the graph alone where noise would drown what neighbours tell: the node model is then all there
is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field
from scipy.special import softmax
from torch import Tensor, nn

from discreet.arrays import Array, Arrays, FloatArray, SingleArray
from discreet.errors import UnsupportedError
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import GraphKeys, PublicPart
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.gaussian import check_rows
from discreet.methods import hop_bayes
from discreet.methods.extension import unpaid_edges
from discreet.methods.feature_model import FeatureModel
from discreet.methods.hop_bayes.combiner import Combiner
from discreet.methods.hop_bayes.evidence import Evidence, Received
from discreet.methods.hop_bayes.hubs import HubReader, asks_for_hubs
from discreet.methods.hop_bayes.node_model import NodeModel, labels_are_few
from discreet.methods.hop_bayes.reading import LinkModel, bounded_likelihoods
from discreet.methods.hop_bayes.stages import (
    EVIDENCE,
    LINKS,
    NODE_MODEL,
    WEIGHT_RATE,
    WEIGHTS,
    NodeModelSteps,
    RecordBudget,
    count_receivers,
    evidence_name,
    evidence_stages,
    link_stage,
    noise_of_average,
    notes_on_records,
    notes_on_shared_evidence,
    receiver_mask,
    record_stages,
    records_evidence_stage,
)
from discreet.methods.outlook import OPINION, Outlook, outlook_of, separation
from discreet.methods.own_hop import with_labels
from discreet.methods.parameters import Fraction, Norm, Rate, Share, Steps
from discreet.methods.stored_arrays import stored_if, stored_rows
from discreet.methods.trained import TakesEncoder, TrainedClassifier, WeighsClasses
from discreet.ops.degrees import BoundedLevel
from discreet.ops.rows import portions
from discreet.ops.sparse import map_rows
from discreet.privacy.levels import EdgeLevel, Level, NeighborLevel, NodeLevel, NoPrivacy
from discreet.privacy.plan import Plan, Stage
from discreet.queries.evidence import arranged_sums, message_bound
from discreet.queries.gradients import planned_parameters
from discreet.queries.kept_edges import KEY, refuse_thinned
from discreet.training.descent import Progress
from discreet.training.networks import MLP, BoundedView, Weigher, module_state, restore_module, widths_of
from discreet.training.private import Descent, train_privately

REPEATED, HALF_AT = 0.08, 4.0
"""How much neighbours of sharpness 1 repeat each other where there are many, and the mean degree of half of that."""
_TINY = 1e-9
"""Keeps logarithms finite."""


@dataclass(eq=False, repr=False)
class HopBayes(TakesEncoder, WeighsClasses, TrainedClassifier):
    """A node model on features, a noisy table of class-to-class links, and Bayes' rule.

    Parameters
    ----------
    predictions
        ``all``: what receivers are told is released once with noise and cached; predictions read no edge
        and anyone may see them. ``own`` (edge level): each node reads its own neighbours without noise and its
        prediction goes to it alone; only the table of links costs anything.
    receivers
        With ``all``, who gets evidence: ids outside the training set (``unlabelled``), whose class is wanted, or
        ``all``. The fewer there are, the more each is told under the same noise.
    hubs
        At edge level with ``all``, what the second half of the evidence's budget asks for: what neighbours have heard
        themselves (True), or nothing new, the whole budget going to what neighbours are (False). None: the first where
        the released first half shows that neighbours agree with each other more than classes explain.
    combiner
        With ``all``: a few weights ``trained`` on validation labels (through hubs a small network, on training labels),
        the node model's view and the *noisy* evidence; or ``bayes``, the weights that training starts from.
    correlation
        With ``own``, how much neighbours repeat each other: d of them count as d / (1 + correlation·(d − 1)). None:
        0.08·s·m/(m + 4), with the mean degree m and the sharpness s of one neighbour's word that the released table
        gives; or 0 where labels are few: what neighbours tell is then mostly guessed, and the table mild enough.
    class_weight
        As in other methods, but it moves the prior: the posterior of each class is multiplied by its weight in the end,
        which is what a network trained on so weighed nodes would give. Nothing before it changes.
    links_share
        Share of the budget (in 1/σ²) that the table takes from the evidence, at edge level with ``all``.
    steps, step_size, clip_norm
        At levels ``node`` and ``neighbor``, the noisy steps of the node model over all training nodes: how many (None:
        200, or 400 where no edge is read, or 100 where edges are read and training ids are 100,000 or more), their
        learning rate (None: 0.05 for a linear map, 0.02 for a network), and the norm to which gradients are clipped.
        (``dropout``, ``epochs``, ``batch_size``, ``learning_rate`` and ``weight_decay`` are for the other levels.)
    split
        At those levels, how the squared privacy loss is divided between node model and evidence, 0 for no evidence (no
        edge is then read); None: by public facts. (The table and the weights of the combiner take 2 % each.)
    linear
        At those levels, whether the node model is one linear map; None: by public facts, where noise on the parameters
        of hidden layers would outweigh what labels teach them.
    row_lengths
        Whether a linear map, which reads feature rows scaled to one norm, is also told how long each row was.

    Guarantee, at ``none`` and ``edge``: features and labels are public, so the node model and what each node
    tells depend on no edge. The table has sensitivity 1 (``queries.links``), the evidence √(1 − 1/c)
    (``queries.evidence``).
    The combiner reads released values and public labels only. ``own`` protects an edge {u, v} against
    everyone but u and v, all others together included: nothing is fitted on evidence without noise, and
    there is one round.

    At ``node`` and ``neighbor``: node model and combiner are trained by noisy steps in which a node stands in its own
    example alone; table and evidence have the bounds of ``queries.links`` and ``queries.evidence``. Weights, table and
    cached evidence are covered; a prediction reads its node's own features beside them, so all predictions but the
    unit's own are.
    """

    declaration = hop_bayes.HOP_BAYES

    _: KW_ONLY
    predictions: Literal["all", "own"] = "all"
    correlation: Annotated[float, Field(ge=0, le=1)] | None = None
    combiner: Literal["trained", "bayes"] = "trained"
    links_share: Fraction = 0.05
    receivers: Literal["unlabelled", "all"] = "unlabelled"
    hubs: bool | None = None
    steps: Steps | None = None
    step_size: Rate | None = None
    clip_norm: Norm = 0.1
    split: tuple[Share, Annotated[float, Field(ge=0, le=1e6)]] | None = None
    linear: bool | None = None
    row_lengths: bool = True

    @property
    def covers(self) -> str:
        """Everything with ``all`` (where features are private: but the unit's own), own predictions with ``own``."""
        if self.predictions == "own" and not self._records_are_private():
            return "own-prediction"
        return super().covers

    # ---------------------------------------------------------------- plan

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        if isinstance(level, NodeLevel | NeighborLevel):
            return self._stages_on_private_records(public, level)
        assert isinstance(level, EdgeLevel | NoPrivacy)
        if self.predictions == "own":
            return [link_stage(public[0], level, share=1.0)]
        share = self.links_share
        return [link_stage(public[0], level, share), *evidence_stages(public, level, 1 - share, self.hubs)]

    def _stages_on_private_records(self, public: Sequence[PublicFacts], level: BoundedLevel) -> list[Stage]:
        if self.predictions == "own":
            raise UnsupportedError(
                f"hop-bayes has no predictions='own' at level {level.kind}: neighbours' features and labels are "
                "private there, so a node may not read them without noise; use predictions='all'"
            )
        budget = self._budget(public[0])
        network = self._new_network(public[0], torch.Generator())
        steps = NodeModelSteps(planned_parameters(network, public[0].num_train), budget.num_steps, self.clip_norm)
        asked = record_stages(public, budget, steps, self._count_weights(budget), receivers=self.receivers)
        for stage in asked:
            if stage.name == LINKS:  # its table is a sum over training ids
                check_rows(stage, public[0].num_train)
        return [*self._count_stages(public[0], level), *asked]

    @staticmethod
    def _count_weights(budget: RecordBudget) -> int:
        """How many numbers a step of the weights moves; 0 where they are not trained."""
        if WEIGHTS not in budget.shares:
            return 0
        return planned_parameters(Weigher(torch.Generator()), budget.facts.num_val, budget.facts.num_classes)

    def _budget(self, facts: PublicFacts) -> RecordBudget:
        privacy = self.checked_privacy()
        assert isinstance(privacy.level, NodeLevel | NeighborLevel)
        return RecordBudget(
            privacy=privacy,
            level=privacy.level,
            facts=facts,
            model=self._feature_model(facts),
            combines=self.combiner == "trained",
            steps=self.steps,
            step_size=self.step_size,
            split=self.split,
        )

    def _feature_model(self, facts: PublicFacts) -> FeatureModel:
        privacy, own = self.checked_privacy(), self.encoder is not None
        return FeatureModel(privacy, facts, self.hidden, self.layers, self.linear, own, self.row_lengths)

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        if isinstance(level, NodeLevel | NeighborLevel):
            return notes_on_records(self._budget(public), self.receivers)
        if self.predictions == "own" or isinstance(level, NoPrivacy):
            return ()
        return notes_on_shared_evidence(self.receivers, self.hubs)

    def _pinned(self) -> Mapping[str, Any]:
        if self.privacy is None or not isinstance(self.privacy.level, NodeLevel | NeighborLevel):
            return {}
        if hasattr(self, "plan_"):
            return self._budget(self.public_).pinned()
        return {} if self.split else {"split": (1.0, 1.0)}

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """Training nodes tell their labels, the others what the node model thinks of them."""
        if self.predictions == "all" and not plan.has(EVIDENCE):
            return outlook_of(plan)
        labelled = public.num_train / public.num_nodes
        clarity = labelled + OPINION * (1 - labelled)
        noise = noise_of_average(plan) if self.predictions == "all" else 0.0
        if getattr(plan.privacy.level, "edges", None) == "owned":  # every sender divides by the root of its entries
            noise *= max(1.0, degree * count_receivers(public, self.receivers) / public.num_nodes) ** 0.5
        return outlook_of(plan, clarity * separation(degree, noise))

    # ---------------------------------------------------------------- fit: the steps of docs/hop-bayes.md, in order

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        self._make_modules()
        self.class_weights_ = self._class_weights(parts[0], curator)
        self.evidence_ = self._new_evidence(parts, curator.plan)
        learn = self._learn_from_private_records if self._records_are_private() else self._learn_from_public_records
        learn(parts, curator, progress)

    def _learn_from_public_records(
        self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None
    ) -> None:
        """Node model (1), what a node tells (2), links (3), evidence (4) in two halves (5), posterior (6)."""
        part = parts[0]
        own = self.node_model_.fit(part, self._options(), self._generator, progress)
        messages = with_labels(np.exp(own), part)
        self.links_ = self._links(curator.ask(LINKS, rows=messages), curator, part)
        self.correlation_ = self._repetition(part) if self.correlation is None else self.correlation
        if self.predictions == "own":
            return
        messages -= 1 / part.num_classes  # the messages of _messages, without a copy
        received = self._ask_for_evidence(0, part, messages, curator)
        for number, other in enumerate(parts[1:], start=1):
            self._ask_for_evidence(number, other, self._messages(other), curator)
        self.combiner_ = self._new_combiner()
        if self.combiner == "trained":
            self._fit_combiner(part, own, received, progress)

    def _learn_from_private_records(
        self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None
    ) -> None:
        """Node model (1), links (2), evidence (3), likelihoods and weights (4, 5); or the node model alone."""
        budget, part = self._budget(self.public_), parts[0]
        if budget.reads_edges:
            curator.draw_key(KEY)
        train_privately(self.network_, curator, NODE_MODEL, Descent(budget.learning_rate), progress=progress)
        if not budget.reads_edges:
            self.links_ = LinkModel.unknown(part.num_classes)
            return
        self.links_ = self._links(curator.ask(LINKS), curator, part)
        for number, other in enumerate(parts):
            mask = receiver_mask(other, self.receivers)
            sums = curator.ask(evidence_name(number), node_model=self.network_, receivers=mask)
            self.evidence_.keep(Received(np.flatnonzero(mask), sums))
        if WEIGHTS in budget.shares:
            view, rows = BoundedView(self.network_), self._likelihoods(self.evidence_.graphs[0], part)
            descent = Descent(WEIGHT_RATE)
            train_privately(self.weigher_, curator, WEIGHTS, descent, progress=progress, frozen=view, beside=rows)

    # ---------------------------------------------------------------- one step each

    def _make_modules(self) -> None:
        """The node model's network; where records are private, the weights of evidence beside it."""
        self.network_ = self._watched["network"] = self._new_network(self.public_, self._generator)
        if self._records_are_private():
            self.weigher_ = self._watched["weigher"] = Weigher(self._generator)
        else:
            self.node_model_ = NodeModel(self.network_)

    def _new_network(self, facts: PublicFacts, generator: torch.Generator) -> nn.Module:
        private = self._records_are_private()
        own = self._own_encoder(facts, facts.num_classes, generator, dropout=not private)
        if own is not None:
            return own
        if private:
            return MLP(self._feature_model(facts).widths, self.activation, 0.0, generator)
        widths = widths_of(facts.num_features, self.hidden, self.layers, facts.num_classes)
        return MLP(widths, self.activation, self.dropout, generator)

    def _class_distributions(self, part: PublicPart) -> Array:
        """What each node tells its neighbours: its label if that is for training, else the node model's view."""
        return with_labels(np.exp(self.node_model_.log_probabilities(part)), part)

    def _links(self, table: FloatArray, curator: Curator, part: PublicPart) -> LinkModel:
        """How classes link, by the released table. (That of private labels counts entries one way and is shrunk as
        one, see ``docs/hop-bayes.md``.)
        """
        private, noise_std = self._records_are_private(), curator.plan.stage(LINKS).noise_std
        directed = part.directed or private
        return LinkModel.from_counts(table, noise_std, part.num_nodes, directed, apart=not private)

    def _repetition(self, part: PublicPart) -> float:
        """Grows with how much one neighbour says and with how many there are, as the released table has it."""
        degree = max(self.links_.mean_degree, 0.0)
        if labels_are_few(part):
            return 0.0
        return min(1.0, REPEATED * self.links_.sharpness * degree / (degree + HALF_AT))

    def _new_evidence(self, parts: Sequence[PublicPart], plan: Plan) -> Evidence:
        """None where prediction reads edges, or nothing reads any."""
        if not plan.has(EVIDENCE):
            return Evidence.none()
        first_std = plan.stage(EVIDENCE).noise_std
        return Evidence(GraphKeys.of(parts), first_std, halves=self._asks_twice(), through_hubs=bool(self.hubs))

    def _asks_twice(self) -> bool:
        return self._is_shared() and self.hubs is not False

    def _is_shared(self) -> bool:
        """Whether evidence is released at edge level (or without privacy) for everyone to see."""
        return self.predictions == "all" and not self._records_are_private()

    def _ask_for_evidence(self, number: int, part: PublicPart, messages: Array, curator: Curator) -> Received:
        """Both halves: the rows of all nodes, of which those of receivers are kept."""
        receivers = receiver_mask(part, self.receivers)

        def decide(first: FloatArray) -> bool:
            return asks_for_hubs(part, first, messages, receivers, self.evidence_.first_std, self.links_)

        choice = decide if number == 0 and self.hubs is None else None
        received = self.evidence_.ask(curator.ask, messages, receivers, number=number, decide=choice)
        self.evidence_.keep(received.at(np.flatnonzero(receivers)))
        return received

    def _messages(self, part: PublicPart) -> Array:
        messages = self._class_distributions(part)
        messages -= 1 / part.num_classes
        return messages

    def _new_combiner(self) -> Combiner:
        hub_reader = HubReader(self.public_.num_classes, self.hidden, self.layers, self.activation)
        return Combiner(self.links_, self.evidence_.noise_std, hub_reader)

    def _fit_combiner(self, part: PublicPart, own: Array, received: Received, progress: Progress | None) -> None:
        """Through hubs a head, learnt at training ids; else a few weights, fitted to validation labels."""
        if received.hubs is not None:
            self.combiner_.fit_head(part, self.network_, received, self._options(), self._generator, progress)
            return
        self.combiner_.fit_weights(part, own, received, self.evidence_.graphs[0])

    def _likelihoods(self, received: Received, part: PublicPart) -> Tensor:
        """What released rows say of each class, where records are private; zero for ids that are not receivers."""
        rows, noise_std = np.zeros((part.num_nodes, part.num_classes)), received.scale * self.evidence_.noise_std
        rows[received.ids] = bounded_likelihoods(received.sums, noise_std, self.links_)
        return torch.tensor(rows, dtype=torch.float32, device=self._device)

    # ---------------------------------------------------------------- one more graph

    def _extension_stages(self, public: PublicFacts, number: int, level: Level) -> list[Stage]:
        """The evidence of the new graph; node model, links and weights stay."""
        if self.predictions == "own":
            raise UnsupportedError("hop-bayes cannot be extended with predictions='own': each node reads its own edges")
        if isinstance(level, NodeLevel | NeighborLevel):
            refuse_thinned(level)
            if not self._budget(self.public_).reads_edges:
                raise UnsupportedError("this hop-bayes reads no edge: there is nothing to extend")
            return [records_evidence_stage(public, number, self._budget(self.public_), self.receivers)]
        assert isinstance(level, EdgeLevel)
        return evidence_stages([public], level, 1.0, self.hubs, first=number)

    def _aggregate(self, part: PublicPart, number: int, curator: Curator) -> None:
        scale = curator.plan.stage(evidence_name(number)).noise_std / self.evidence_.first_std
        if self._records_are_private():
            curator.draw_key(KEY)
            mask = receiver_mask(part, self.receivers)
            sums = curator.ask(evidence_name(number), node_model=self.network_, receivers=mask)
            received = Received(np.flatnonzero(mask), sums, scale=scale)
        else:
            messages, mask = self._messages(part), receiver_mask(part, self.receivers)
            asked = self.evidence_.ask(curator.ask, messages, mask, number=number, scale=scale)
            received = asked.at(np.flatnonzero(mask))
        self.evidence_ = self.evidence_.with_graph(part, received)

    # ---------------------------------------------------------------- predict

    def _uncovered(self, part: PublicPart) -> str | None:
        if self.evidence_.pays_for(part) or isinstance(self.checked_privacy().level, NoPrivacy):
            return None
        return unpaid_edges("its evidence")

    def _probabilities(self, part: PublicPart) -> SingleArray:
        if self._records_are_private():
            return self._probabilities_from_own_record(part)
        logits: Array = self.node_model_.log_probabilities(part)
        if self.predictions == "own":
            logits = logits + self._own_evidence(part)
        else:
            received = self.evidence_.find(part) or self._plain_evidence(part)
            logits[received.ids] = self.combiner_.logits(logits[received.ids], received)
        return self._softmax(logits)

    def _softmax(self, logits: Array) -> SingleArray:
        """Probabilities under the moved prior, a portion at a time."""
        found, prior = np.empty(logits.shape, dtype=np.float32), self._moved_prior()
        for some in portions(len(logits)):
            found[some] = softmax(logits[some] + prior, axis=1)
        return found

    def _moved_prior(self) -> FloatArray:
        """What weights of classes add to every row of logits."""
        weights = self.class_weights_
        return np.zeros(self.public_.num_classes) if weights is None else np.log(weights)

    def _own_evidence(self, part: PublicPart) -> FloatArray:
        """Sum over a node's own neighbours of log Σ_b Q(b) P(b | a) / P(b), discounted for repetition."""
        ratios = self._class_distributions(part) @ self.links_.ratios.T
        degree = part.in_degree().astype(np.float64)
        discount = 1 / (1 + self.correlation_ * np.maximum(degree - 1, 0))
        return np.asarray(part.weighted_adjacency @ np.log(np.maximum(ratios, _TINY))) * discount[:, None]

    def _plain_evidence(self, part: PublicPart) -> Received:
        """Evidence without noise, on a graph that no guarantee covers."""
        bound = message_bound(part.num_classes)
        receivers = receiver_mask(part, self.receivers)
        received = self.evidence_.ask(
            lambda name, /, *, messages, receivers: arranged_sums(part, messages, receivers, bound),
            self._messages(part),
            receivers,
        )
        return received.at(np.flatnonzero(receivers))

    @torch.no_grad()
    def _probabilities_from_own_record(self, part: PublicPart) -> SingleArray:
        """A node's own features beside its released row; on a graph that was not measured, its features alone."""
        features = self._feature_model(self.public_).rows(part.features)
        own = map_rows(BoundedView(self.network_), features, self._device)
        received = self.evidence_.find(part)
        evidence = torch.zeros_like(own) if received is None else self._likelihoods(received, part)
        prior = torch.tensor(self._moved_prior(), dtype=torch.float32, device=self._device)
        return torch.softmax(self.weigher_(own, evidence) + prior, dim=1).cpu().numpy()

    # ---------------------------------------------------------------- release

    def _state(self) -> Arrays:
        private, evidence = self._records_are_private(), self.evidence_
        settings = (1.0, 0.0) if private else (self.node_model_.temperature, self.correlation_)
        arrays: Arrays = {
            "links.given": self.links_.given,
            "links.chance": self.links_.chance,
            "numbers": np.array([*settings, self.links_.mean_degree, evidence.noise_std]),
            **evidence.state(),
        }
        if self.class_weights_ is not None:
            arrays["class_weights"] = self.class_weights_
        if private:
            arrays |= module_state("network", self.network_) | module_state("weigher", self.weigher_)
        else:
            arrays |= self.node_model_.state()
        if self._is_shared():
            has_head = self.combiner_.head is not None
            arrays |= self.combiner_.state(self._device, with_head=evidence.halves)
            arrays["evidence.numbers"] = np.array([evidence.first_std, evidence.through_hubs, has_head], dtype=float)
        return arrays

    def _restore(self, state: Mapping[str, Array]) -> None:
        self._make_modules()
        classes = self.public_.num_classes
        self.class_weights_ = stored_if(state, "class_weights", self.class_weight is not None, classes)
        temperature, self.correlation_, mean_degree, noise_std = map(float, stored_rows(state, "numbers", 4))
        given, chance = stored_rows(state, "links.given", classes, classes), stored_rows(state, "links.chance", classes)
        self.links_ = LinkModel(given, chance, mean_degree)
        if self._records_are_private():
            restore_module("network", self.network_, state)
            restore_module("weigher", self.weigher_, state)
        else:
            self.node_model_.restore(state, temperature, self.public_)
        first_std, through_hubs, has_head = map(float, state.get("evidence.numbers", (noise_std, 0.0, 0.0)))
        graphs = self._all_facts() if self.plan_.has(evidence_name(0)) else []
        new = Evidence(GraphKeys([]), first_std, halves=self._asks_twice(), through_hubs=bool(through_hubs))
        self.evidence_ = new.restored(state, graphs)
        if self._is_shared():
            self.combiner_ = self._new_combiner()
            self.combiner_.restore(state, self._device, has_head=bool(has_head))
