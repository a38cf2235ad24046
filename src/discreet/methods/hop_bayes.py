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
from torch import Tensor

from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.methods.base import Arrays
from discreet.methods.combiner import build_combiner
from discreet.methods.gap import Head, graph_key
from discreet.methods.link_model import LinkModel
from discreet.methods.networks import MLP, module_state, restore_module, widths_of
from discreet.methods.outlook import OPINION, Outlook, outlook_of, separation
from discreet.methods.stacking import train_beside
from discreet.methods.trained import TrainedClassifier
from discreet.methods.training import Progress, train_on_features
from discreet.ops.evidence import link_counts, link_sensitivity, received, received_sensitivity
from discreet.ops.rows import damp_rows
from discreet.ops.sparse import feature_tensor
from discreet.privacy import events
from discreet.privacy.levels import EdgeLevel, Level, NoPrivacy
from discreet.privacy.plan import Plan, Stage

FloatArray = npt.NDArray[np.float64]
LINKS = "links between classes"
_TINY = 1e-9


@dataclass(eq=False, repr=False)
class HopBayes(TrainedClassifier):
    """A node model on features, a noisy table of class-to-class links, and Bayes' rule.

    Parameters
    ----------
    predictions
        ``all``: what every node receives is released once with noise and cached; predictions read no edge
        and anyone may see them. ``own``: each node reads its own neighbours without noise and its
        prediction goes to it alone; only the table of links costs anything.
    correlation
        How much neighbours repeat each other: d of them count as d / (1 + correlation·(d − 1)).
    combiner
        With ``all``: ``trained`` on the labels (public at this level), the node model's view and the *noisy*
        evidence, starting from Bayes' rule; or ``bayes`` alone.
    links_share
        Share of the budget (in 1/σ²) that the table takes from the evidence, where both are released.

    Guarantee: features and labels are public at edge level, so the node model and what each node tells
    depend on no edge. The table has sensitivity 1 and the evidence √2 (1 if directed), see ``ops.evidence``.
    The combiner reads released values and public labels only. ``own`` protects an edge {u, v} against
    everyone but u and v, all others together included: nothing is fitted on evidence without noise, and
    there is one round.
    """

    method: ClassVar[str] = "hop-bayes"
    levels: ClassVar[tuple[str, ...]] = ("none", "edge")

    _: KW_ONLY
    predictions: Literal["all", "own"] = "all"
    correlation: Annotated[float, Field(ge=0, le=1)] = 0.3
    combiner: Literal["trained", "bayes"] = "trained"
    links_share: Annotated[float, Field(gt=0, lt=1)] = 0.05

    @property
    def covers(self) -> str:
        """Everything with ``all``, each node's own prediction with ``own``."""
        return "weights+predictions" if self.predictions == "all" else "own-prediction"

    # ---------------------------------------------------------------- plan

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        edge = level if isinstance(level, EdgeLevel) else EdgeLevel(directed=public[0].directed)
        share = self.links_share if self.predictions == "all" else 1.0
        classes = public[0].num_classes
        sensitivity, why = link_sensitivity(edge)
        links = _gaussian(LINKS, "number of links from class to class", sensitivity, why, share, (classes, classes))
        if self.predictions == "own":
            return [links]
        sensitivity, why = received_sensitivity(edge)
        each = (1 - share) / len(public)
        return [
            links,
            *(
                _gaussian(
                    evidence_name(number),
                    "sum of what the neighbours of each node tell",
                    sensitivity,
                    why,
                    each,
                    (facts.num_nodes, classes),
                )
                for number, facts in enumerate(public)
            ),
        ]

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        if self.predictions == "own" or isinstance(level, NoPrivacy):
            return ()
        return (
            "what a node receives is a count of neighbours a class, under noise of the standard deviation above: "
            "nodes with fewer neighbours than that rest on their features",
        )

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """Training nodes tell their labels, the others what the node model thinks of them."""
        labelled = public.num_train / public.num_nodes
        clarity = labelled + OPINION * (1 - labelled)
        noise = plan.stage(evidence_name(0)).noise_std if self.predictions == "all" else 0.0
        return outlook_of(plan, clarity * separation(degree, noise))

    # ---------------------------------------------------------------- fit

    def _learn(self, graphs: Sequence[Graph], curator: Curator, progress: Progress | None) -> None:
        graph = graphs[0]
        self.network_ = self._watched["network"] = self._build()
        train_on_features(self.network_, graph, self._options(), self._generator, progress=progress)
        self.temperature_ = self._fit_temperature(graph)
        noisy = curator.measure(LINKS, link_counts(graph, self._told(graph)))
        noise_std = curator.plan.stage(LINKS).noise_std
        self.links_ = LinkModel.from_counts(noisy, noise_std, graph.num_nodes, graph.directed)
        self.caches_: list[FloatArray] = []
        self.keys_: list[bytes] = []
        self.noise_std_ = 0.0
        if self.predictions == "all":
            self._measure_evidence(graphs, curator)
        if self._is_combined():
            self.combiner_ = self._watched["combiner"] = self._build_combiner()
            self._train_combiner(graph, progress)

    def _measure_evidence(self, graphs: Sequence[Graph], curator: Curator) -> None:
        for number, graph in enumerate(graphs):
            name = evidence_name(number)
            self.caches_.append(curator.measure(name, received(graph, self._told(graph))))
            self.keys_.append(graph_key(graph))
            self.noise_std_ = curator.plan.stage(name).noise_std

    def _build(self) -> MLP:
        widths = widths_of(self.public_.num_features, self.hidden, self.layers, self.public_.num_classes)
        return MLP(widths, self.activation, self.dropout, self._generator)

    def _is_combined(self) -> bool:
        return self.predictions == "all" and self.combiner == "trained"

    def _build_combiner(self) -> Head:
        classes = self.public_.num_classes
        return build_combiner(classes, self.hidden, self.layers, self.activation, _COMBINER_DROPOUT, self._generator)

    def _train_combiner(self, graph: Graph, progress: Progress | None) -> None:
        """Fit the labels of training nodes from the node model's view and the *noisy* evidence."""
        train_beside(
            self.combiner_,
            self.network_,
            lambda features: _centred(torch.log_softmax(self.network_(features) / self.temperature_, dim=1)),
            self._evidence_blocks(graph),
            graph,
            self._options(),
            self._generator,
            own_dropout=_OWN_DROPOUT,
            title="combiner",
            progress=progress,
        )

    def _evidence_blocks(self, graph: Graph) -> Tensor:
        """What the combiner reads of the neighbours: log-likelihoods, and the noisy sums themselves."""
        likelihoods = _centred(self._tensor(self._noisy_evidence(graph)))
        sums = damp_rows(self._tensor(self._sums(graph)) / (1 + self.noise_std_))
        return torch.cat([likelihoods, sums], dim=1)

    def _tensor(self, array: FloatArray) -> Tensor:
        return torch.tensor(array, dtype=torch.float32, device=self._device)

    def _fit_temperature(self, graph: Graph) -> float:
        """Flatten or sharpen the node model so that its probabilities fit the (public) validation labels."""
        if graph.val_mask is None:
            return 1.0
        rows = np.flatnonzero(graph.val_mask & (graph.labels >= 0))
        if len(rows) == 0:
            return 1.0
        logits, labels = self._logits(graph)[rows], graph.labels[rows]
        grid = np.geomspace(0.5, 4.0, 25)
        losses = [-_log_softmax(logits / t)[np.arange(len(rows)), labels].mean() for t in grid]
        return float(grid[int(np.argmin(losses))])

    @torch.no_grad()
    def _logits(self, graph: Graph) -> FloatArray:
        return self.network_(feature_tensor(graph.features, self._device)).cpu().numpy().astype(np.float64)

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
        if self.predictions == "own" or isinstance(self._checked_privacy().level, NoPrivacy):
            return super()._uncovered(graph, audience)
        if graph_key(graph) in self.keys_:
            return None
        return (
            "predicting on another graph would read its edges, which no stage paid for: pass it to fit as one of "
            "extra_graphs, so that the plan charges its evidence"
        )

    def _probabilities(self, graph: Graph) -> npt.NDArray[np.float32]:
        if self._is_combined():
            return self._combined_probabilities(graph)
        evidence = self._own_evidence(graph) if self.predictions == "own" else self._noisy_evidence(graph)
        return np.exp(_log_softmax(self._log_prior(graph) + evidence)).astype(np.float32)

    @torch.no_grad()
    def _combined_probabilities(self, graph: Graph) -> npt.NDArray[np.float32]:
        own = _centred(self._tensor(self._log_prior(graph)))
        logits: Tensor = self.combiner_(torch.cat([own, self._evidence_blocks(graph)], dim=1))
        return torch.softmax(logits, dim=1).cpu().numpy()

    def _own_evidence(self, graph: Graph) -> FloatArray:
        """Sum over a node's own neighbours of log Σ_b Q(b) P(b | a) / P(b), discounted for repetition."""
        ratios = self._told(graph) @ self.links_.log_ratio_factors.T
        degree = graph.in_degree().astype(np.float64)
        discount = 1 / (1 + self.correlation * np.maximum(degree - 1, 0))
        return received(graph, np.log(np.maximum(ratios, _TINY))) * discount[:, None]

    def _noisy_evidence(self, graph: Graph) -> FloatArray:
        """Log-likelihood of the noisy sums for each class, up to what all classes share.

        Given class a and d neighbours the sum is about Gaussian around d·P(· | a), with the noise's variance
        plus that of d neighbours who partly repeat each other. d itself is estimated from the noisy row.
        """
        sums = self._sums(graph)
        noise = self.noise_std_**2
        degree = self._estimated_degree(sums, noise)
        given, chance = self.links_.given, self.links_.chance
        spread = _WITHIN * float(np.mean(1 - (given**2).sum(axis=1))) / given.shape[1]
        variance = noise + degree * spread * (1 + self.correlation * np.maximum(degree - 1, 0)) + _TINY
        centred, shift = sums - sums.sum(axis=1, keepdims=True) * chance, given - chance
        linear = centred @ shift.T - 0.5 * degree[:, None] * (shift**2).sum(axis=1)
        return linear / variance[:, None]

    def _sums(self, graph: Graph) -> FloatArray:
        """The released sums; computed without noise only on a graph that no guarantee covers."""
        key = graph_key(graph)
        if key in self.keys_:
            return self.caches_[self.keys_.index(key)]
        return received(graph, self._told(graph))

    def _estimated_degree(self, sums: FloatArray, noise: float) -> FloatArray:
        """Shrink each noisy row total towards the mean degree, as if degrees spread as widely as they are large."""
        mean = self.links_.mean_degree
        total = sums.sum(axis=1)
        trust = mean**2 / (mean**2 + sums.shape[1] * noise + _TINY)
        return np.maximum(mean + trust * (total - mean), 0.0)

    # ---------------------------------------------------------------- release

    def _state(self) -> Arrays:
        numbers = np.array([self.temperature_, self.links_.mean_degree, self.noise_std_])
        caches = {f"cache.{number}": rows for number, rows in enumerate(self.caches_)}
        keys = {f"key.{number}": np.frombuffer(key, dtype=np.uint8) for number, key in enumerate(self.keys_)}
        links = {"links.given": self.links_.given, "links.chance": self.links_.chance, "numbers": numbers}
        combiner = module_state("combiner", self.combiner_) if self._is_combined() else {}
        return {**module_state("network", self.network_), **combiner, **links, **caches, **keys}

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.network_ = restore_module("network", self._build(), state)
        if self._is_combined():
            self.combiner_ = restore_module("combiner", self._build_combiner(), state)
        self.temperature_, mean_degree, self.noise_std_ = (float(value) for value in state["numbers"])
        self.links_ = LinkModel(state["links.given"], state["links.chance"], mean_degree)
        released = range(1 + len(self.extra_public_)) if self.predictions == "all" else range(0)
        self.caches_ = [state[f"cache.{number}"] for number in released]
        self.keys_ = [state[f"key.{number}"].tobytes() for number in released]


_COMBINER_DROPOUT = 0.5
_OWN_DROPOUT = 0.5
# Share of the variance between a class's neighbours that Gaussian evidence should expect; measured, public.
_WITHIN = 0.3


def evidence_name(number: int) -> str:
    """``evidence`` on the graph itself, ``extra graph 1 evidence`` on a further one."""
    return "evidence" if number == 0 else f"extra graph {number} evidence"


def _gaussian(name: str, query: str, sensitivity: float, why: str, share: float, shape: tuple[int, ...]) -> Stage:
    """A stage that takes this share of the budget, in units of 1/σ²."""
    event = events.GaussianDpEvent(share**-0.5)
    return Stage(name, query, "gaussian", sensitivity, "l2", why, event, shape)


def _centred(rows: Tensor) -> Tensor:
    return rows - rows.mean(dim=1, keepdim=True)


def _log_softmax(logits: FloatArray) -> FloatArray:
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))
