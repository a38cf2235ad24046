"""``gap``: aggregation perturbation (Sajadmanesh et al. 2023; the analysis is that of paper 004).

An encoder learns from features and labels. Its output, rows of unit norm, is aggregated hop by hop; each hop
passes through the curator and is cached, and normalised again it feeds the next. A head reads all hops.
Prediction reads the caches, so it reads no edge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor, nn

from discreet.errors import UnsupportedError
from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.methods import gap_private
from discreet.methods.base import Arrays
from discreet.methods.networks import MLP, Activation, Linear, module_state, restore_module, widths_of
from discreet.methods.outlook import OPINION, Outlook, outlook_of, separation
from discreet.methods.stacking import train_beside
from discreet.methods.trained import TrainedClassifier
from discreet.methods.training import Progress, train_on_features
from discreet.ops.propagation import Aggregation, edge_sensitivity, hop_matrix
from discreet.ops.rows import clip_rows, damp_rows, finite_rows, normalize_rows
from discreet.ops.sparse import SparseMatrix, feature_tensor
from discreet.privacy import events
from discreet.privacy.levels import EdgeLevel, Level, NeighborLevel, NodeLevel, NoPrivacy
from discreet.privacy.plan import Plan, Stage

EVIDENCE = 3.0
"""What a noisy head starts from: the weight of a neighbour's row beside a node's own log-probabilities."""

Share = Annotated[float, Field(gt=0)]


class Head(nn.Module):
    """A network with a linear path beside it: under Gaussian noise, evidence is linear in what was measured."""

    def __init__(
        self, widths: Sequence[int], activation: Activation, dropout: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.network = MLP(widths, activation, dropout, generator)
        self.linear = Linear(widths[0], widths[-1], generator)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.network(x) + self.linear(x)
        return logits

    @torch.no_grad()
    def start_from_evidence(self, classes: int) -> None:
        """Begin with: what the encoder says of a node, plus what its neighbours' rows say of each class."""
        last = self.network.layers[-1]
        assert isinstance(last, Linear)
        last.weight.zero_()
        blocks = self.linear.weight.view(-1, classes, classes)
        blocks.copy_(EVIDENCE * torch.eye(classes))
        blocks[0] = torch.eye(classes)


@dataclass(eq=False, repr=False)
class GAP(TrainedClassifier):
    """Noisy, cached aggregation of encoded features, at level ``none``, ``edge``, ``neighbor`` or ``node``.

    Parameters
    ----------
    hops
        How many times rows are aggregated; all hops share one calibration. None: one under noise, where a
        second costs more than it brings, two without.
    width
        Width of the encoder's output, which is what noise is added to. None: one for each class.
    aggregation
        ``sum``, ``mean`` or ``symmetric``.
    head_dropout
        Dropout in the head, whose inputs are few and noisy; ``dropout`` is the encoder's.
    own_dropout
        How often the head is trained without a node's own class probabilities. The encoder has seen the
        labels of training nodes, so what it says of them looks better than what it says of any other node;
        a head that always sees it learns to ignore the hops. (For the same reason these probabilities are
        drawn afresh, with the encoder's dropout, in every epoch.)
    steps, step_size, head_steps, head_step_size, clip_norm
        At levels ``neighbor`` and ``node``, where encoder and head are trained by noisy steps over all training
        nodes: how many, their learning rates, and the norm to which gradients are clipped. (``dropout``,
        ``epochs``, ``batch_size``, ``learning_rate`` and ``weight_decay`` are for the other levels.)
    split
        At those levels, how the squared privacy loss is divided among encoder, hops and head.

    Guarantee. At ``none`` and ``edge``, with features and labels public: the encoder depends on no edge; hop i
    reads edges and the released hop i − 1, with the sensitivity of ``ops.propagation.edge_sensitivity``; the head
    and all predictions are computed from released values. Weights, caches and predictions are covered.
    At ``neighbor`` and ``node``: encoder and head are trained by noisy steps in which a node stands in its own
    example alone; hops run over the level's bounded graph, with the bounds of ``gap_private.hop_bound``. Weights and
    caches are covered; a prediction reads its node's own features beside the caches, so all predictions but the
    unit's own are.
    """

    method: ClassVar[str] = "gap"
    levels: ClassVar[tuple[str, ...]] = ("none", "edge", "neighbor", "node")

    _: KW_ONLY
    hops: Annotated[int, Field(ge=1)] | None = None
    width: Annotated[int, Field(ge=1)] | None = None
    aggregation: Aggregation = "sum"
    head_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    own_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    steps: Annotated[int, Field(ge=1)] = 100
    step_size: Annotated[float, Field(gt=0)] = 0.02
    head_steps: Annotated[int, Field(ge=1)] = 20
    head_step_size: Annotated[float, Field(gt=0)] = 0.02
    clip_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.1
    split: tuple[Share, Share, Share] = (0.6, 0.38, 0.02)

    @property
    def covers(self) -> str:
        """Prediction reads cached noisy hops and the node's own features, no edge."""
        return "weights+others-predictions" if self._is_private() else "weights+predictions"

    def _is_private(self) -> bool:
        return gap_private.is_private(self._checked_privacy().level)

    # ---------------------------------------------------------------- plan

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        return (gap_private.split_note(self),) if gap_private.is_private(level) else ()

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        if isinstance(level, NodeLevel | NeighborLevel):
            return gap_private.private_stages(self, public, level)
        sensitivity, why = self._sensitivity(level, public[0])
        return [
            Stage(
                name=stage_name(number, hop),
                query=f"{self.aggregation} of the neighbours' rows, hop {hop}",
                mechanism="gaussian",
                sensitivity=sensitivity,
                metric="l2",
                why=why,
                event=events.GaussianDpEvent(1.0),
                shape=(facts.num_nodes, self._width(facts)),
            )
            for number, facts in enumerate(public)
            for hop in range(1, self._hops() + 1)
        ]

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """Nodes tell what the encoder thinks of them."""
        noise = plan.stage(stage_name(0, 1)).noise_std
        return outlook_of(plan, OPINION * separation(degree, noise if self.aggregation == "sum" else noise * degree))

    def _sensitivity(self, level: Level, public: PublicFacts) -> tuple[float, str]:
        if isinstance(level, EdgeLevel):
            return edge_sensitivity(self.aggregation, level)
        if isinstance(level, NoPrivacy):
            return edge_sensitivity(self.aggregation, EdgeLevel(directed=public.directed))
        raise UnsupportedError(f"gap has no sensitivity bound at level {level.spec}")

    def _width(self, public: PublicFacts) -> int:
        return public.num_classes if self.width is None else self.width

    def _hops(self) -> int:
        if self.hops is not None:
            return self.hops
        return 2 if isinstance(self._checked_privacy().level, NoPrivacy) else 1

    # ---------------------------------------------------------------- fit

    def _learn(self, graphs: Sequence[Graph], curator: Curator, progress: Progress | None) -> None:
        graph = graphs[0]
        self.encoder_, self.classifier_, self.head_ = self._networks(self.public_, self._generator)
        self._watched = {"encoder": self.encoder_, "classifier": self.classifier_, "head": self.head_}
        self.keys_ = self._distinct_keys(graphs)
        if self._is_private():
            gap_private.learn_privately(self, graphs, curator, progress)
            return
        stacked = nn.Sequential(self.encoder_, self.classifier_)
        train_on_features(stacked, graph, self._options(), self._generator, title="encoder", progress=progress)
        self.caches_ = [self._noisy_hops(g, number, curator) for number, g in enumerate(graphs)]
        self._train_head(graph, progress)

    def _networks(self, facts: PublicFacts, generator: torch.Generator) -> tuple[MLP, nn.Module, Head]:
        width, private = self._width(facts), self._is_private()
        reads = widths_of(facts.num_features, self.hidden, self.layers, width)
        sums = widths_of(facts.num_classes + self._hops() * width, self.hidden, self.layers, facts.num_classes)
        encoder = MLP(reads, self.activation, 0.0 if private else self.dropout, generator)
        classifier = nn.Identity() if self.width is None else Linear(width, facts.num_classes, generator)
        head = Head(sums, self.activation, 0.0 if private else self.head_dropout, generator)
        if private and self.width is None:
            head.start_from_evidence(facts.num_classes)
        return encoder, classifier, head

    def _distinct_keys(self, graphs: Sequence[Graph]) -> list[bytes]:
        return gap_private.all_distinct([self._key(graph) for graph in graphs], private=self._is_private())

    def _key(self, graph: Graph) -> bytes:
        return gap_private.public_key(graph) if self._is_private() else graph_key(graph)

    def _encode(self, graph: Graph) -> Tensor:
        """What every node tells its neighbours: the encoder's output, centred, as a row of unit norm."""
        with torch.no_grad():
            encoded = self.encoder_(feature_tensor(graph.features, self._device))
            return finite_rows(normalize_rows(encoded - encoded.mean(dim=1, keepdim=True)))

    def _own(self, features: Tensor | SparseMatrix) -> Tensor:
        """What the encoder alone says of a node: class probabilities (their logarithms, for noisy steps)."""
        with torch.no_grad():
            logits = self.classifier_(self.encoder_(features))
            return torch.log_softmax(logits, dim=1) if self._is_private() else torch.softmax(logits, dim=1)

    def _noisy_hops(self, graph: Graph, number: int, curator: Curator, clips: Sequence[float] = ()) -> list[Tensor]:
        """The released hops; ``clips`` holds the norm that bounds the rows of each hop, where they are bounded."""
        matrix = hop_matrix(graph, self.aggregation, device=str(self._device)).double()
        rows, hops = self._encode(graph), []
        for hop in range(1, self._hops() + 1):
            name = stage_name(number, hop)
            sums = matrix @ rows.double()
            bounded = clip_rows(sums, clips[hop - 1]) if clips else sums
            noisy = torch.from_numpy(curator.measure(name, bounded.cpu().numpy())).float().to(self._device)
            hops.append(self._scaled(noisy, curator.plan.stage(name).noise_std))
            rows = normalize_rows(noisy)
        return hops

    def _scaled(self, noisy: Tensor, noise_std: float) -> Tensor:
        """What the head reads of a hop: damped, or (noisy steps) weighed as evidence under Gaussian noise is."""
        return noisy / (1 + noise_std**2) if self._is_private() else damp_rows(noisy / (1 + noise_std))

    def _train_head(self, graph: Graph, progress: Progress | None) -> None:
        train_beside(
            self.head_,
            self.encoder_,
            self._own,
            torch.cat(self.caches_[0], dim=1),
            graph,
            self._options(),
            self._generator,
            own_dropout=self.own_dropout,
            title="head",
            progress=progress,
        )

    # ---------------------------------------------------------------- predict

    def _uncovered(self, graph: Graph, audience: str) -> str | None:
        if isinstance(self._checked_privacy().level, NoPrivacy) or self._cache_of(graph) is not None:
            return None
        return (
            "predicting on another graph would read its edges, which no stage paid for: pass it to fit as one of "
            "extra_graphs, so that the plan charges its aggregation"
        )

    def _cache_of(self, graph: Graph) -> list[Tensor] | None:
        key = self._key(graph)
        return self.caches_[self.keys_.index(key)] if key in self.keys_ else None

    @torch.no_grad()
    def _probabilities(self, graph: Graph) -> npt.NDArray[np.float32]:
        hops = self._cache_of(graph)
        if hops is None:
            hops = self._plain_hops(graph)
        own = self._own(feature_tensor(graph.features, self._device))
        logits: Tensor = self.head_(torch.cat([own, *hops], dim=1))
        return torch.softmax(logits, dim=1).cpu().numpy()

    def _plain_hops(self, graph: Graph) -> list[Tensor]:
        """Hops without noise, for graphs that nothing protects."""
        matrix = hop_matrix(graph, self.aggregation, device=str(self._device))
        rows, hops = self._encode(graph), []
        for _ in range(self._hops()):
            sums = matrix @ rows
            hops.append(damp_rows(sums))
            rows = normalize_rows(sums)
        return hops

    # ---------------------------------------------------------------- release

    def _state(self) -> Arrays:
        caches = {
            f"cache.{number}.{hop}": rows.cpu().numpy()
            for number, hops in enumerate(self.caches_)
            for hop, rows in enumerate(hops, start=1)
        }
        keys = {f"key.{number}": np.frombuffer(key, dtype=np.uint8) for number, key in enumerate(self.keys_)}
        modules = {"encoder": self.encoder_, "classifier": self.classifier_, "head": self.head_}
        weights = {key: value for name, module in modules.items() for key, value in module_state(name, module).items()}
        return {**weights, **caches, **keys}

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.encoder_, self.classifier_, self.head_ = self._networks(self.public_, self._generator)
        restore_module("encoder", self.encoder_, state)
        restore_module("classifier", self.classifier_, state)
        restore_module("head", self.head_, state)
        numbers = range(1 + len(self.extra_public_))
        self.keys_ = [state[f"key.{number}"].tobytes() for number in numbers]
        self.caches_ = [
            [torch.tensor(state[f"cache.{number}.{hop}"]) for hop in range(1, self._hops() + 1)] for number in numbers
        ]


def stage_name(number: int, hop: int) -> str:
    """``hop 1`` on the graph itself, ``extra graph 1 hop 1`` on a further one."""
    return f"hop {hop}" if number == 0 else f"extra graph {number} hop {hop}"


def graph_key(graph: Graph) -> bytes:
    """Tells graphs apart by what edge level takes as public: the features. Edges do not enter."""
    found = hashlib.sha256(str(graph.features.shape).encode())
    features = graph.features
    arrays = [features] if isinstance(features, np.ndarray) else [features.indptr, features.indices, features.data]
    for part in arrays:
        found.update(np.ascontiguousarray(part).tobytes())
    return found.digest()
