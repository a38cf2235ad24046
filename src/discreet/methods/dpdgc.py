"""``dpdgc``: decoupled graph convolution (Chien et al. 2023, paper 004).

Node features and adjacency rows never meet before noise: Z = A·W + noise embeds the rows, and a network reads a
node's features beside its row of Z. Prediction reads the cached Z, so it reads no edge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor, nn

from discreet.errors import UnsupportedError
from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.methods import dpdgc_private
from discreet.methods.base import Arrays
from discreet.methods.decoupled_networks import JointNetwork, TwoWeights
from discreet.methods.dpdgc_embedding import (
    ROWS,
    STEP,
    Released,
    embedding_stages,
    label_residuals,
    release_rows,
    shares_note,
)
from discreet.methods.dpdgc_plain import plain_rows, weigh_rows
from discreet.methods.gap import Head, graph_key
from discreet.methods.gap_private import is_private, public_key
from discreet.methods.networks import MLP, module_state, restore_module, widths_of
from discreet.methods.outlook import Outlook, outlook_of, separation
from discreet.methods.stacking import train_beside
from discreet.methods.trained import TrainedClassifier
from discreet.methods.training import Progress, train_on_features
from discreet.ops.sparse import SparseMatrix, feature_tensor
from discreet.privacy.levels import Level, NeighborLevel, NodeLevel, NoPrivacy
from discreet.privacy.plan import Plan, Stage

Embedding = Literal["step", "trained", "random"]
Share = Annotated[float, Field(gt=0, allow_inf_nan=False)]

DEFAULT_EMBEDDING: dict[str, Embedding] = {"none": "trained", "edge": "step", "neighbor": "random", "node": "random"}
DEFAULT_WIDTH = 16
PLAIN_WIDTH = 128
WIDE = 256
"""Width where it does no harm: rows are reduced to few directions before anything is trained on them."""
DEFAULT_SPLIT = (0.3, 0.3, 0.7)


@dataclass(eq=False, repr=False)
class DPDGC(TrainedClassifier):
    """Noisy cached embeddings of adjacency rows beside features, at level ``none``, ``edge``, ``neighbor`` or ``node``.

    Parameters
    ----------
    embedding
        Where the rows of W come from. ``random``: hashed signs, public, free. ``trained``: paper 004's DP-Emb, noisy
        clipped gradients of σ(AW + b)R. ``step`` (levels ``none`` and ``edge``, where labels are public): the first
        gradient of that training alone, which is a sum over edges and moves far less. None: ``step`` at edge level,
        ``random`` at ``neighbor`` and ``node``, ``trained`` without privacy.
    width
        Width of Z. None: 16, 128 without privacy, 256 for ``random`` at ``neighbor`` and ``node``. With ``step`` it
        is the number of classes.
    row_norm
        c, the norm of W's rows. Noise is scaled with it, so it changes nothing: it is there because the paper has it.
    embedding_steps, embedding_step_size, embedding_batch
        Noisy steps of DP-Emb, their learning rate, and the expected batch (None: every training node in every step).
    own_dropout, head_dropout
        At ``none`` and ``edge``: how often the head is trained without what the features say, and its dropout.
    components, rows_hidden, steps, step_size
        At ``neighbor`` and ``node``: how many of Z's strongest directions the joint network reads, the width of the
        layer that reads them (``hidden`` is that of the features), and the noisy steps of the network. (``dropout``,
        ``epochs``, ``batch_size``, ``learning_rate`` and ``weight_decay`` are for the other levels.)
    clip_norm
        The norm to which gradients are clipped in every noisy step.
    split
        How the squared privacy loss is divided among W, Z and the joint network; parts that do not occur are left out.

    Guarantee. W is public or released, and its rows have norm at most c in the very weights that Z is computed with; Z
    moves by at most ``ops.row_embedding.rows_bound``. DP-Emb: one unit touches ``ops.row_embedding.touched_rows``
    examples. At ``edge`` features and labels are public, so all else is computed from released and public values:
    weights, caches and predictions are covered. At ``neighbor`` and ``node`` the joint network is trained by noisy
    steps in which a node stands in its own example alone; a prediction reads its node's own features beside the
    cache, so all predictions but the unit's own are covered.
    """

    method: ClassVar[str] = "dpdgc"
    levels: ClassVar[tuple[str, ...]] = ("none", "edge", "neighbor", "node")

    _: KW_ONLY
    embedding: Embedding | None = None
    width: Annotated[int, Field(ge=1)] | None = None
    row_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    embedding_steps: Annotated[int, Field(ge=1)] = 20
    embedding_step_size: Annotated[float, Field(gt=0)] = 0.05
    embedding_batch: Annotated[int, Field(ge=1)] | None = None
    own_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    head_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    components: Annotated[int, Field(ge=1)] = 16
    rows_hidden: Annotated[int, Field(ge=1)] = 64
    steps: Annotated[int, Field(ge=1)] = 200
    step_size: Annotated[float, Field(gt=0)] = 0.01
    clip_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.1
    split: tuple[Share, Share, Share] | None = None

    @property
    def covers(self) -> str:
        """Prediction reads cached rows and the node's own features, no edge."""
        return "weights+others-predictions" if self._is_private() else "weights+predictions"

    def _is_private(self) -> bool:
        return is_private(self._checked_privacy().level)

    # ---------------------------------------------------------------- plan

    def _embedding(self) -> Embedding:
        level = self._checked_privacy().level
        kind = self.embedding or DEFAULT_EMBEDDING[level.kind]
        if kind == "step" and is_private(level):
            raise UnsupportedError(
                f"dpdgc: embedding step reads labels as public, which they are not at level {level.spec}: "
                "use random or trained"
            )
        return kind

    def _width(self, public: PublicFacts) -> int:
        if self._embedding() == "step":
            return public.num_classes
        if self.width is not None:
            return self.width
        if isinstance(self._checked_privacy().level, NoPrivacy):
            return PLAIN_WIDTH
        return WIDE if self._is_private() and self._embedding() == "random" else DEFAULT_WIDTH

    def _shares(self) -> tuple[float, float, float]:
        """W, Z and joint network, as parts of 1; zero where there is no such part."""
        given = self.split or DEFAULT_SPLIT
        used = (self._embedding() != "random", True, self._is_private())
        parts = [share if use else 0.0 for share, use in zip(given, used, strict=True)]
        first, second, third = (part / sum(parts) for part in parts)
        return first, second, third

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        if len(public) > 1:
            raise UnsupportedError("dpdgc embeds the nodes of the graph that it is fitted on: it takes no extra graphs")
        if isinstance(level, NoPrivacy):
            return []
        if isinstance(level, NodeLevel | NeighborLevel):
            return dpdgc_private.private_stages(self, public[0], level)
        return embedding_stages(self, public[0], level)

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """``step`` hears the labels of training neighbours; a narrow W tells little of who a neighbour is."""
        if self._embedding() == "step":
            heard = separation(degree, plan.stage(STEP).noise_std) * public.num_train / public.num_nodes
        else:
            known = min(1.0, self._width(public) / public.num_nodes) ** 0.5
            heard = known * separation(degree, plan.stage(ROWS).noise_std / self.row_norm)
        return outlook_of(plan, heard)

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        if isinstance(level, NoPrivacy):
            return ()
        return (shares_note(("embedding", "rows", "network"), self._shares()),)

    # ---------------------------------------------------------------- fit

    def _learn(self, graphs: Sequence[Graph], curator: Curator, progress: Progress | None) -> None:
        graph = graphs[0]
        self.key_ = self._key(graph)
        if self._is_private():
            dpdgc_private.learn_privately(self, graph, curator, progress)
            return
        self.network_: nn.Module = self._feature_network()
        self._watched["network"] = self.network_
        train_on_features(self.network_, graph, self._options(), self._generator, title="features", progress=progress)
        if self._weighs_plainly():
            self.cache_, weights = weigh_rows(self, graph, progress)
            self.head_: nn.Module = weights
            return
        self.cache_ = self._rows(graph, curator, progress).to(self._device)
        self.head_ = self._joint_head(self.cache_.shape[1])
        self._watched["head"] = self.head_
        self._train_head(graph, progress)

    def _weighs_plainly(self) -> bool:
        """Whether nothing is protected and W is trained: two views then need no more than a weight each."""
        return isinstance(self._checked_privacy().level, NoPrivacy) and self._embedding() == "trained"

    def _rows(self, graph: Graph, curator: Curator, progress: Progress | None) -> Tensor:
        """What the head reads of the graph."""
        features = feature_tensor(graph.features, self._device)
        residuals = label_residuals(graph, self._own(features).cpu().numpy())
        if isinstance(self._checked_privacy().level, NoPrivacy):
            return plain_rows(self, graph, residuals, progress)
        released: Released = release_rows(self, graph, curator, residuals, progress)
        return released.damped()

    def _feature_network(self) -> MLP:
        widths = widths_of(self.public_.num_features, self.hidden, self.layers, self.public_.num_classes)
        return MLP(widths, self.activation, self.dropout, self._generator)

    def _joint_head(self, rows: int) -> nn.Module:
        classes = self.public_.num_classes
        if self._weighs_plainly():
            return TwoWeights(classes)
        widths = widths_of(classes + rows, self.hidden, self.layers, classes)
        return Head(widths, self.activation, self.head_dropout, self._generator)

    def _own(self, features: Tensor | SparseMatrix) -> Tensor:
        """What the features alone say of a node: class probabilities."""
        with torch.no_grad():
            return torch.softmax(self.network_(features), dim=1)

    def _train_head(self, graph: Graph, progress: Progress | None) -> None:
        train_beside(
            self.head_,
            self.network_,
            self._own,
            self.cache_,
            graph,
            self._options(),
            self._generator,
            own_dropout=self.own_dropout,
            title="head",
            progress=progress,
        )

    # ---------------------------------------------------------------- predict

    def _key(self, graph: Graph) -> bytes:
        return public_key(graph) if self._is_private() else graph_key(graph)

    def _uncovered(self, graph: Graph, audience: str) -> str | None:
        if self._key(graph) == self.key_:
            return None
        return "rows were embedded and released for the nodes of the training graph alone"

    @torch.no_grad()
    def _probabilities(self, graph: Graph) -> npt.NDArray[np.float32]:
        if self._key(graph) != self.key_:
            raise UnsupportedError(
                "dpdgc knows the nodes that it was fitted on and no others: it cannot predict on another graph"
            )
        features = feature_tensor(graph.features, self._device)
        if isinstance(self.network_, JointNetwork):
            logits: Tensor = self.network_(features, self.cache_)
        else:
            logits = self.head_(torch.cat([self._own(features), self.cache_], dim=1))
        return torch.softmax(logits, dim=1).cpu().numpy()

    # ---------------------------------------------------------------- release

    def _modules(self) -> dict[str, nn.Module]:
        return {"network": self.network_} if self._is_private() else {"network": self.network_, "head": self.head_}

    def _state(self) -> Arrays:
        weights = {
            key: value for name, module in self._modules().items() for key, value in module_state(name, module).items()
        }
        return {**weights, "cache": self.cache_.cpu().numpy(), "key": np.frombuffer(self.key_, dtype=np.uint8)}

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.key_, self.cache_ = state["key"].tobytes(), torch.tensor(state["cache"])
        if self._is_private():
            self.network_ = dpdgc_private.joint_network(self, self.public_, self._generator)
        else:
            self.network_ = self._feature_network()
            self.head_ = restore_module("head", self._joint_head(self.cache_.shape[1]), state)
        restore_module("network", self.network_, state)
