"""``lpgnn``: a graph network on reports that every node makes of its own record (Sajadmanesh and Gatica-Perez 2021).

Features and labels are made private where they live. What arrives is averaged over the public edges (KProp), which
cancels noise, and a graph network learns from it with a loss that knows how labels were randomised.
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

from discreet.errors import GraphError, UnsupportedError
from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.feature_range import Outside
from discreet.mechanisms.local_stages import encoder_of, feature_stage, label_stage, response_of
from discreet.methods.base import Arrays, NodeClassifier
from discreet.methods.local_budget import LocalBudget, narrowed, split_budget
from discreet.methods.local_training import ModelName, build_network, structure_of, train_on_reports
from discreet.methods.networks import Activation, module_state, restore_module, widths_of
from discreet.methods.noisy_labels import LossName, NoisyLabelLoss, TrainingReports, reported_loss
from discreet.methods.training import Progress, training_rows
from discreet.ops.denoising import Denoised, Remembering, denoise, kprop_operators
from discreet.ops.plain_features import plain_features, plain_width
from discreet.ops.sparse import SparseMatrix
from discreet.ops.threads import one_thread_if
from discreet.ops.topology import topology_key
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import Level, LocalLevel
from discreet.privacy.plan import Stage

LABELS = "labels"
_SMALL = 1 << 23  # nodes × features: below, a second thread gains nothing


@dataclass(eq=False, repr=False)
class LPGNN(NodeClassifier):
    """A graph network on locally private features and labels; level ``local`` (or ``none``, for comparison).

    Parameters
    ----------
    feature_range
        The public range (low, high) that every feature lies in. It must be given wherever features are private: it is
        never read from data.
    outside
        ``refuse`` a feature outside that range, naming it, or ``clip`` it.
    mechanism
        How features are reported: ``multi-bit``, ``one-bit``, ``laplace``, or ``gaussian`` (which needs a δ).
    epsilon_x, epsilon_y
        How the total ε is shared between features and label; halves by default. One of them may be infinite: that
        part is then NOT PROTECTED, the level becomes ``local:features`` or ``local:labels``, and every output says so.
    reports
        ``made``: fitting plays all devices and encodes every record. ``received``: the graph's features and labels
        *are* reports, which their owners made with ``discreet.local``.
    features
        ``reports``; or a baseline that reads no feature, so that the label has all of ε: ``random``, ``degree``,
        ``ones``, ``topology``.
    x_steps, y_steps
        How often KProp averages features, and labels in the loss ``drop``.
    aggregation
        ``symmetric`` or ``mean``; directed graphs always use ``mean``.
    model
        ``sage``, ``gcn`` or ``gat`` (with ``heads``).
    loss
        ``drop``, ``forward`` or ``plain``; see ``NoisyLabelLoss``.
    hidden, layers, activation, dropout, learning_rate, weight_decay, epochs
        Of the network; Adam on all training nodes at once.
    patience
        Training stops where the reports of validation nodes have not become likelier for so many epochs, and the best
        epoch is kept. It reads reports, never labels.

    Guarantee: a report is made of one record alone, with noise that the record's owner draws; everything else reads
    reports and the public graph, so weights and all predictions cost nothing more.
    """

    method: ClassVar[str] = "lpgnn"
    levels: ClassVar[tuple[str, ...]] = ("none", "local")

    _: KW_ONLY
    feature_range: tuple[float, float] | None = None
    outside: Outside = "refuse"
    mechanism: Literal["multi-bit", "one-bit", "laplace", "gaussian"] = "multi-bit"
    epsilon_x: Annotated[float, Field(gt=0)] | None = None
    epsilon_y: Annotated[float, Field(gt=0)] | None = None
    reports: Literal["made", "received"] = "made"
    features: Literal["reports", "random", "degree", "ones", "topology"] = "reports"
    x_steps: Annotated[int, Field(ge=0)] = 16
    y_steps: Annotated[int, Field(ge=0)] = 2
    aggregation: Literal["symmetric", "mean"] = "symmetric"
    model: ModelName = "sage"
    heads: Annotated[int, Field(ge=1)] = 4
    loss: LossName = "drop"
    hidden: Annotated[int, Field(ge=1)] = 32
    layers: Annotated[int, Field(ge=1)] = 2
    activation: Activation = "selu"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    learning_rate: Annotated[float, Field(gt=0)] = 0.01
    weight_decay: Annotated[float, Field(ge=0)] = 0.001
    epochs: Annotated[int, Field(ge=0)] = 200
    patience: Annotated[int, Field(ge=1)] = 30

    @property
    def covers(self) -> str:
        """Everything: what is private is private before it arrives."""
        return "weights+predictions"

    # ---------------------------------------------------------------- plan

    def _checked_privacy(self) -> Privacy:
        return narrowed(super()._checked_privacy(), self.epsilon_x, self.epsilon_y)

    def _budget(self) -> LocalBudget:
        return split_budget(
            self._checked_privacy(), self.epsilon_x, self.epsilon_y, reads_features=self._reads_features()
        )

    def _reads_features(self) -> bool:
        return self.features == "reports"

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        if not isinstance(level, LocalLevel):
            return []
        budget = self._budget()
        stages = []
        if budget.features is not None:
            delta = self._checked_privacy().resolve_delta(public[0].num_nodes)
            stages = [
                feature_stage(
                    features_name(number),
                    self.mechanism,
                    (facts.num_nodes, facts.num_features),
                    epsilon=budget.features / len(public),
                    delta=delta / len(public),
                    feature_range=self.feature_range,
                    outside=self.outside,
                )
                for number, facts in enumerate(public)
            ]
        if budget.labels is not None:
            stages.append(label_stage(LABELS, public[0].num_nodes, public[0].num_classes, budget.labels))
        return stages

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        if not isinstance(level, LocalLevel):
            return ()
        budget, notes = self._budget(), ["the graph itself is public: nothing is promised about edges"]
        parts = (("features", budget.features, "labels"), ("labels", budget.labels, "features"))
        for name, epsilon, protected in parts:
            if level.protects == protected:
                notes.insert(
                    0, f"{name.upper()} ARE NOT PROTECTED: they are used as they are, and epsilon is not for them"
                )
            elif epsilon is None:
                notes.append(f"{name} are not read at all")
            else:
                notes.append(f"epsilon_{'xy'[name == 'labels']} = {epsilon:g} for the {name} of a node")
        if self.reports == "made":
            notes.append(
                "devices were simulated: the process that made this saw every record, and the guarantee is for what it "
                "released"
            )
        else:
            notes.append(
                "reports were made by their owners: this run drew none of their noise, and the guarantee rests on "
                "their having used discreet.local with these settings"
            )
        return notes

    # ---------------------------------------------------------------- fit

    def _learn(self, graphs: Sequence[Graph], curator: Curator, progress: Progress | None) -> None:
        self._check_labels(graphs[0], curator)
        self._check_extra(graphs)
        rows = [self._rows(graph, features_name(number), curator) for number, graph in enumerate(graphs)]
        told = self._told(graphs[0], curator)
        self._train(graphs[0], rows[0], told, progress)
        self.keys_ = [topology_key(graph) for graph in graphs]
        self.caches_ = [self._predicted(graph, given) for graph, given in zip(graphs, rows, strict=True)]

    @staticmethod
    def _check_labels(graph: Graph, curator: Curator) -> None:
        """Refuse a graph without a training label where labels are public; else without a training node."""
        if _planned(curator, LABELS) is None:
            training_rows(graph)
        elif not graph.mask("train").any():
            raise GraphError("the graph has no training node: give it a train mask, for example with discreet.split")

    def _check_extra(self, graphs: Sequence[Graph]) -> None:
        if self.features == "topology" and len(graphs) > 1:
            raise UnsupportedError("features='topology' knows only the nodes of its own graph: leave extra graphs out")

    def _rows(self, graph: Graph, name: str, curator: Curator) -> Any:
        """What is known of every node: its report, the record itself where that is public, or nothing of either."""
        self.unit_ = (0.0, 1.0)
        if self.features != "reports":
            seed = int(torch.randint(2**31, (1,), generator=self._generator, device=self._device))
            return plain_features(self.features, graph, np.random.default_rng(seed))
        stage = _planned(curator, name)
        if stage is None:
            return graph.features
        encoder = encoder_of(stage)
        self.unit_ = (encoder.middle, encoder.scale)
        return self._collect(curator, name, graph.features)

    def _told(self, graph: Graph, curator: Curator) -> TrainingReports:
        """The class that every training and validation node tells; where labels are public, what it is."""
        train = graph.mask("train")
        val = np.zeros_like(train) if graph.val_mask is None else graph.val_mask
        stage = _planned(curator, LABELS)
        if stage is None:
            has = graph.labels >= 0
            return TrainingReports.of(graph.labels, train & has, val & has, np.eye(graph.num_classes), self._device)
        # A node outside both masks is not asked; what stands in its place is dropped below.
        missing = 0 if self.reports == "received" else -1
        told = self._collect(curator, LABELS, np.where(train | val, graph.labels, missing).astype(np.float64))
        return TrainingReports.of(told.astype(np.int64), train, val, response_of(stage).confusion(), self._device)

    def _collect(self, curator: Curator, name: str, records: Any) -> Any:
        return curator.receive(name, records) if self.reports == "received" else curator.measure(name, records)

    def _train(self, graph: Graph, rows: Any, told: TrainingReports, progress: Progress | None) -> float:
        """Fit the network; the number returned says how badly it explains the reports of validation nodes."""
        self.network_ = self._watched["network"] = self._build()
        x = Remembering(self._denoised(graph, rows))
        structure = structure_of(self.model, graph, str(self._device))
        operators = kprop_operators(graph, self.y_steps, self.aggregation, device=str(self._device))
        with one_thread_if(rows.shape[0] * rows.shape[1] < _SMALL):
            return train_on_reports(
                self.network_,
                lambda: self.network_(x, structure),
                NoisyLabelLoss(self.loss, told.reported, told.train, told.confusion, operators),
                (lambda logits: reported_loss(logits, told.reported, told.val, told.confusion))
                if len(told.val)
                else None,
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                weight_decay=self.weight_decay,
                patience=self.patience,
                progress=progress,
            )

    def _build(self) -> nn.Module:
        facts = self.public_
        inputs = facts.num_features if self.features == "reports" else plain_width(self.features, facts)
        widths = widths_of(inputs, self.hidden, self.layers, facts.num_classes)
        return build_network(self.model, widths, self.activation, self.dropout, self.heads, self._generator)

    def _operators(self, graph: Graph) -> list[SparseMatrix]:
        """What denoises features, in turn."""
        return kprop_operators(graph, self.x_steps, self.aggregation, device=str(self._device))

    def _denoised(self, graph: Graph, rows: Any) -> Tensor | Denoised:
        """Rows as the network reads them."""
        return denoise(rows, self._operators(graph), lazy=self.features == "topology", device=self._device)

    # ---------------------------------------------------------------- predict

    def _uncovered(self, graph: Graph, audience: str) -> str | None:
        known = topology_key(graph) in self.keys_
        level = self._checked_privacy().level
        reads_private = self.features == "reports" and isinstance(level, LocalLevel) and level.protects != "labels"
        if known or not reads_private:
            return None
        return (
            "predicting on another graph would read features that nobody reported: pass it to fit as one of "
            "extra_graphs, so that its nodes report too"
        )

    def _probabilities(self, graph: Graph) -> npt.NDArray[np.float32]:
        """What was predicted when reports were at hand; on a graph without reports, from its features as they are."""
        key = topology_key(graph)
        if key in self.keys_:
            return self.caches_[self.keys_.index(key)]
        if self.features in ("random", "topology"):
            raise UnsupportedError(f"features={self.features!r} says nothing of nodes that were not there in training")
        return self._predicted(graph, self._in_units(graph))

    def _in_units(self, graph: Graph) -> Any:
        """Features of a public graph in the units of reports: what reports would be on average."""
        if self.features != "reports":
            return plain_features(self.features, graph, np.random.default_rng(0))
        middle, scale = self.unit_
        if middle == 0:
            return graph.features / np.float32(scale)
        dense = graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
        return ((dense - middle) / scale).astype(np.float32)

    @torch.no_grad()
    def _predicted(self, graph: Graph, rows: Any) -> npt.NDArray[np.float32]:
        x = self._denoised(graph, rows)
        logits: Tensor = self.network_(x, structure_of(self.model, graph, str(self._device)))
        return torch.softmax(logits, dim=1).cpu().numpy()

    # ---------------------------------------------------------------- release

    def _state(self) -> Arrays:
        caches = {f"cache.{number}": rows for number, rows in enumerate(self.caches_)}
        keys = {f"key.{number}": np.frombuffer(key, dtype=np.uint8) for number, key in enumerate(self.keys_)}
        return {**module_state("network", self.network_), **caches, **keys, "unit": np.array(self.unit_)}

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.network_ = restore_module("network", self._build(), state)
        middle, scale = (float(value) for value in state["unit"])
        self.unit_ = (middle, scale)
        graphs = range(1 + len(self.extra_public_))
        self.caches_ = [state[f"cache.{number}"] for number in graphs]
        self.keys_ = [state[f"key.{number}"].tobytes() for number in graphs]


def features_name(number: int) -> str:
    """``features`` on the graph itself, ``extra graph 1 features`` on a further one."""
    return "features" if number == 0 else f"extra graph {number} features"


def _planned(curator: Curator, name: str) -> Stage | None:
    return next((stage for stage in curator.plan.stages if stage.name == name), None)
