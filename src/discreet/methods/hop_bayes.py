"""``hop-bayes``: neighbour evidence weighed by its noise.

A classifier needs little from a graph: how classes link (a c × c table), and what the neighbours of a node
suggest (c numbers). Both are small, so they survive noise that drowns an embedding; and because the noise is
known exactly, Bayes' rule says how far to trust them. Derived in ``docs/hop-bayes.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from scipy.special import softmax
from torch import nn

from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.methods import hop_bayes_budget as budget
from discreet.methods import hop_bayes_private as private
from discreet.methods import shared_evidence as shared
from discreet.methods.base import Arrays
from discreet.methods.evidence_stages import LINKS, evidence_name, gaussian_stage
from discreet.methods.feature_map import FeatureMap, are_few, best_temperature, has_validation
from discreet.methods.gap import graph_key
from discreet.methods.gap_private import all_distinct, is_private, public_key
from discreet.methods.link_model import LinkModel
from discreet.methods.networks import MLP, module_state, restore_module, widths_of
from discreet.methods.outlook import OPINION, Outlook, outlook_of, separation
from discreet.methods.trained import TrainedClassifier
from discreet.methods.training import Progress, train_on_features
from discreet.ops.evidence import link_counts, link_sensitivity, received
from discreet.ops.sparse import feature_tensor
from discreet.privacy.levels import EdgeLevel, Level, NeighborLevel, NodeLevel, NoPrivacy
from discreet.privacy.plan import Plan, Stage

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Share = Annotated[float, Field(gt=0)]
REPEATED, HALF_AT = 0.08, 4.0
"""How much neighbours of sharpness 1 repeat each other where there are many, and the mean degree of half of that."""
_TINY = 1e-9


@dataclass(eq=False, repr=False)
class HopBayes(TrainedClassifier):
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
    links_share
        Share of the budget (in 1/σ²) that the table takes from the evidence, at edge level with ``all``.
    steps, step_size, clip_norm
        At levels ``node`` and ``neighbor``, the noisy steps of the node model over all training nodes: how many, their
        learning rate (None: 0.05 for a linear map, 0.02 for a network), and the norm to which gradients are clipped.
        (``dropout``, ``epochs``, ``batch_size``, ``learning_rate`` and ``weight_decay`` are for the other levels.)
    split
        At those levels, how the squared privacy loss is divided between node model and evidence, 0 for no evidence (no
        edge is then read); None: by public facts. (The table and the weights of the combiner take 2 % each.)
    linear
        At those levels, whether the node model is one linear map; None: by public facts, where noise on the parameters
        of hidden layers would outweigh what labels teach them.

    Guarantee, at ``none`` and ``edge``: features and labels are public, so the node model and what each node
    tells depend on no edge. The table has sensitivity 1 and the evidence √(1 − 1/c), see ``ops.evidence``.
    The combiner reads released values and public labels only. ``own`` protects an edge {u, v} against
    everyone but u and v, all others together included: nothing is fitted on evidence without noise, and
    there is one round.

    At ``node`` and ``neighbor``: node model and combiner are trained by noisy steps in which a node stands in its own
    example alone; table and evidence have the bounds of ``ops.node_evidence``. Weights, table and cached evidence are
    covered; a prediction reads its node's own features beside them, so all predictions but the unit's own are.
    """

    method: ClassVar[str] = "hop-bayes"
    levels: ClassVar[tuple[str, ...]] = ("none", "edge", "neighbor", "node")

    _: KW_ONLY
    predictions: Literal["all", "own"] = "all"
    correlation: Annotated[float, Field(ge=0, le=1)] | None = None
    combiner: Literal["trained", "bayes"] = "trained"
    links_share: Annotated[float, Field(gt=0, lt=1)] = 0.05
    receivers: Literal["unlabelled", "all"] = "unlabelled"
    hubs: bool | None = None
    steps: Annotated[int, Field(ge=1)] = 100
    step_size: Annotated[float, Field(gt=0)] | None = None
    clip_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.1
    split: tuple[Share, Annotated[float, Field(ge=0)]] | None = None
    linear: bool | None = None

    @property
    def covers(self) -> str:
        """Everything with ``all`` (where features are private: but the unit's own), own predictions with ``own``."""
        if self._is_private():
            return "weights+others-predictions"
        return "weights+predictions" if self.predictions == "all" else "own-prediction"

    # ---------------------------------------------------------------- plan

    def _is_private(self) -> bool:
        return is_private(self._checked_privacy().level)

    def _is_shared(self) -> bool:
        """Whether evidence is released at edge level (or without privacy) for everyone to see."""
        return self.predictions == "all" and not self._is_private()

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        if isinstance(level, NodeLevel | NeighborLevel):
            return private.private_stages(self, public, level)
        edge = level if isinstance(level, EdgeLevel) else EdgeLevel(directed=public[0].directed)
        share = self.links_share if self.predictions == "all" else 1.0
        classes = public[0].num_classes
        sensitivity, why = link_sensitivity(edge)
        links = gaussian_stage(
            LINKS, "number of links from class to class", sensitivity, why, share, (classes, classes)
        )
        if self.predictions == "own":
            return [links]
        return [links, *shared.evidence_stages(self, public, edge, 1 - share)]

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        if isinstance(level, NodeLevel | NeighborLevel):
            return budget.notes(self, public, level)
        if self.predictions == "own" or isinstance(level, NoPrivacy):
            return ()
        return (
            "what a node receives is a count of neighbours a class, under noise of the standard deviation above: "
            "nodes with fewer neighbours than that rest on their features",
            budget.receivers_note(self),
            *shared.second_note(self),
        )

    def _pinned(self) -> Mapping[str, Any]:
        level = None if self.privacy is None else self.privacy.level
        return budget.pinned(self, level) if isinstance(level, NodeLevel | NeighborLevel) else {}

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """Training nodes tell their labels, the others what the node model thinks of them."""
        if self.predictions == "all" and not any(stage.name == evidence_name(0) for stage in plan.stages):
            return outlook_of(plan)
        labelled = public.num_train / public.num_nodes
        clarity = labelled + OPINION * (1 - labelled)
        noise = shared.evidence_noise(plan) if self.predictions == "all" else 0.0
        if getattr(plan.privacy.level, "edges", None) == "owned":  # every sender divides by the root of its entries
            noise *= max(1.0, degree * private.num_receivers(self, public) / public.num_nodes) ** 0.5
        return outlook_of(plan, clarity * separation(degree, noise))

    # ---------------------------------------------------------------- fit

    def _learn(self, graphs: Sequence[Graph], curator: Curator, progress: Progress | None) -> None:
        graph = graphs[0]
        self.network_ = self._watched["network"] = self._network(self.public_, self._generator)
        self.caches_: list[FloatArray] = []
        self.hub_caches_: list[FloatArray] = []
        self.receivers_: list[IntArray] = []
        self.keys_ = self._distinct_keys(graphs)
        self.noise_std_ = 0.0
        if self._is_private():
            self.weigher_ = self._watched["weigher"] = private.Weigher(self._generator)
            private.learn_privately(self, graphs, curator, progress)
            return
        train_on_features(self.network_, graph, self._options(), self._generator, progress=progress)
        self.map_, self.temperature_ = self._choose_opinion(graph)
        noisy = curator.measure(LINKS, link_counts(graph, self._told(graph)))
        noise_std = curator.plan.stage(LINKS).noise_std
        self.links_ = LinkModel.from_counts(noisy, noise_std, graph.num_nodes, graph.directed, apart=True)
        self.correlation_ = self._correlation(graph) if self.correlation is None else self.correlation
        if self.predictions == "all":
            shared.learn_evidence(self, graphs, curator, progress)

    def _correlation(self, graph: Graph) -> float:
        """Grows with how much one neighbour says and with how many there are, as the released table has it."""
        degree = max(self.links_.mean_degree, 0.0)
        return 0.0 if are_few(graph) else min(1.0, REPEATED * self.links_.sharpness * degree / (degree + HALF_AT))

    def _network(self, facts: PublicFacts, generator: torch.Generator) -> MLP:
        if self._is_private():
            return private.node_network(self, facts, generator)
        widths = widths_of(facts.num_features, self.hidden, self.layers, facts.num_classes)
        return MLP(widths, self.activation, self.dropout, generator)

    def _distinct_keys(self, graphs: Sequence[Graph]) -> list[bytes]:
        """What tells the measured graphs apart; none where prediction reads edges, or nothing reads any."""
        if self.predictions == "own" or not self._measures(graphs[0].public):
            return []
        return all_distinct([self._key(graph) for graph in graphs], private=self._is_private())

    def _measures(self, facts: PublicFacts) -> bool:
        """Whether what neighbours tell is measured at all; public."""
        level = self._checked_privacy().level
        return not isinstance(level, NodeLevel | NeighborLevel) or budget.reads_edges(self, facts, level)

    def _key(self, graph: Graph) -> bytes:
        return public_key(graph) if self._is_private() else graph_key(graph)

    def _choose_opinion(self, graph: Graph) -> tuple[FeatureMap | None, float]:
        """The network's temperature; where labels are few, or a map and its own, if that fits validation labels better.

        Without validation labels the network is taken at its word (it has seen the training labels), a map preferred.
        """
        logits, judged = self._network_logits(graph), has_validation(graph)
        temperature, loss = best_temperature(logits, graph) if judged else (1.0, np.inf)
        best: tuple[FeatureMap | None, float] = None, temperature
        if not are_few(graph):
            return best
        seed = int(torch.randint(2**31 - 1, (1,), generator=self._generator, device=self._device))
        for found in FeatureMap.fit(graph, softmax(logits / temperature, axis=1), seed):
            temperature, of_map = best_temperature(found.scores(graph), graph)
            if of_map < loss:
                best, loss = (found, temperature), of_map
        return best

    @torch.no_grad()
    def _network_logits(self, graph: Graph) -> FloatArray:
        return self.network_(feature_tensor(graph.features, self._device)).cpu().numpy().astype(np.float64)

    def _logits(self, graph: Graph) -> FloatArray:
        return self._network_logits(graph) if self.map_ is None else self.map_.scores(graph)

    def _log_prior(self, graph: Graph) -> FloatArray:
        """What the node model says of each node by itself."""
        return _log_softmax(self._logits(graph) / self.temperature_)

    def _told(self, graph: Graph) -> FloatArray:
        """What each node tells its neighbours: its label if that is for training, else the node model's view."""
        told = np.exp(self._log_prior(graph))
        if graph.train_mask is not None:
            rows = np.flatnonzero(graph.train_mask & (graph.labels >= 0))
            told[rows] = np.eye(told.shape[1])[graph.labels[rows]]
        return told

    # ---------------------------------------------------------------- predict

    def _uncovered(self, graph: Graph, audience: str) -> str | None:
        known = self.predictions == "own" or not self.keys_ or self._key(graph) in self.keys_
        if known or isinstance(self._checked_privacy().level, NoPrivacy):
            return None
        return (
            "predicting on another graph would read its edges, which no stage paid for: pass it to fit as one of "
            "extra_graphs, so that the plan charges its evidence"
        )

    def _probabilities(self, graph: Graph) -> npt.NDArray[np.float32]:
        if self._is_private():
            return private.private_probabilities(self, graph)
        logits = self._log_prior(graph)
        if self.predictions == "own":
            logits = logits + self._own_evidence(graph)
        else:
            ids, found = shared.evidence_logits(self, graph)
            logits[ids] = found
        return np.exp(_log_softmax(logits)).astype(np.float32)

    def _own_evidence(self, graph: Graph) -> FloatArray:
        """Sum over a node's own neighbours of log Σ_b Q(b) P(b | a) / P(b), discounted for repetition."""
        ratios = self._told(graph) @ self.links_.log_ratio_factors.T
        degree = graph.in_degree().astype(np.float64)
        discount = 1 / (1 + self.correlation_ * np.maximum(degree - 1, 0))
        return received(graph, np.log(np.maximum(ratios, _TINY))) * discount[:, None]

    # ---------------------------------------------------------------- release

    def _state(self) -> Arrays:
        settings = (1.0, 0.0) if self._is_private() else (self.temperature_, self.correlation_)
        numbers = np.array([*settings, self.links_.mean_degree, self.noise_std_])
        arrays = {"links.given": self.links_.given, "links.chance": self.links_.chance, "numbers": numbers}
        arrays |= {f"cache.{number}": rows for number, rows in enumerate(self.caches_)}
        arrays |= {f"receivers.{number}": ids for number, ids in enumerate(self.receivers_)}
        arrays |= {f"key.{number}": np.frombuffer(key, dtype=np.uint8) for number, key in enumerate(self.keys_)}
        if not self._is_private() and self.map_ is not None:
            arrays |= {"map.basis": self.map_.basis, "map.head": self.map_.head}
        if self._is_shared():
            arrays |= shared.state_of(self)
        for name, module in self._modules().items():
            arrays |= module_state(name, module)
        return arrays

    def _modules(self) -> dict[str, nn.Module]:
        """What is trained by steps, by name."""
        return {"network": self.network_, **({"weigher": self.weigher_} if self._is_private() else {})}

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.network_ = self._network(self.public_, self._generator)
        if self._is_private():
            self.weigher_ = private.Weigher(self._generator)
        for name, module in self._modules().items():
            restore_module(name, module, state)
        self.temperature_, self.correlation_, mean_degree, self.noise_std_ = map(float, state["numbers"])
        self.map_ = FeatureMap(state["map.basis"], state["map.head"]) if "map.basis" in state else None
        self.links_ = LinkModel(state["links.given"], state["links.chance"], mean_degree)
        released = range(sum(name.startswith("cache.") for name in state))
        self.caches_ = [state[f"cache.{number}"] for number in released]
        self.keys_ = [state[f"key.{number}"].tobytes() for number in released]
        self.receivers_ = [state[f"receivers.{number}"] for number in released]
        if self._is_shared():
            shared.restore(self, state)


def _log_softmax(logits: FloatArray) -> FloatArray:
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))
