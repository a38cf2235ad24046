"""``lpgnn``: a graph network on reports that every node makes of its own record (Sajadmanesh and Gatica-Perez 2021).

Features and labels are made private where they live. What arrives is averaged over the public edges (KProp), which
cancels noise, and a graph network learns from it with a loss that knows how labels were randomised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from discreet.arrays import Array, Arrays, FloatArray, SingleArray
from discreet.errors import GraphError, UnsupportedError
from discreet.graph.clean import Features
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import FEATURES, LABELS, PublicPart, Topology, stored_key, topology_key
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.local.feature_range import Outside
from discreet.mechanisms.local.stages import encoder_of, feature_stage, label_stage, response_of
from discreet.methods import lpgnn
from discreet.methods.lpgnn.budget import LocalBudget, budget_notes, narrowed, split_budget
from discreet.methods.lpgnn.noisy_labels import LossName, NoisyLabelLoss, TrainingReports, reported_loss
from discreet.methods.lpgnn.training import ModelName, build_network, structure_of, train_on_reports
from discreet.methods.parameters import Decay, Layers, Propagations, Rate, Rounds, Steps, Width
from discreet.methods.stored_arrays import SINGLE, stored_if, stored_rows
from discreet.methods.trained import WeighsClasses, balanced_weights
from discreet.ops.denoising import Denoised, Remembering, denoise, kprop_operators
from discreet.ops.plain_features import plain_features, plain_width
from discreet.ops.sparse import SparseMatrix, one_thread_if
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import Level, LocalLevel
from discreet.privacy.plan import Plan, Stage
from discreet.training.convolutions import Convolutions
from discreet.training.descent import Progress, training_rows
from discreet.training.networks import Activation, module_state, restore_module, widths_of

LABEL_REPORTS = "labels"
UNASKED_BUT_A_CLASS = 0
"""Stands in the place of a report that no owner made; received reports must all be classes, and it is dropped."""
WEIGHED_NOTE = (
    "class weights multiply predicted probabilities in the end; they are declared, or follow from reports already made "
    "(public labels where these are not protected), so they cost nothing"
)
HOPS_OF_REPORTS = 16
HOPS_OF_EXACT = 2
"""Validation accuracy of exact features on Cora, CiteSeer, Cora-ML and Chameleon is 1 to 12 points above that of 16."""
_SMALL = 1 << 23  # nodes × features: below, a second thread gains nothing


@dataclass(frozen=True)
class Units:
    """What the numbers of a report stand for: on average a report is (feature − middle)/scale."""

    middle: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, plan: Plan) -> Units:
        """Those of the reports of features; features themselves where none are made."""
        if not plan.has(features_name(0)):
            return cls()
        encoder = encoder_of(plan.stage(features_name(0)))
        return cls(encoder.middle, encoder.scale)

    def expected_reports(self, features: Features) -> Any:
        """What the reports of these features would be on average."""
        if self.middle == 0:
            return (features / np.float32(self.scale)).astype(np.float32)  # scipy makes doubles of sparse ones
        dense = features if isinstance(features, np.ndarray) else features.toarray()
        return ((dense - self.middle) / self.scale).astype(np.float32)

    def state(self) -> Arrays:
        """For the release."""
        return {"unit": np.array([self.middle, self.scale])}

    @classmethod
    def restore(cls, state: Mapping[str, Array]) -> Units:
        """Inverse of :meth:`state`."""
        middle, scale = (float(value) for value in stored_rows(state, "unit", 2))
        return cls(middle, scale)


class Trained(NamedTuple):
    """How badly a network explains the reports of validation nodes, and the denoised rows that it read."""

    score: float
    rows: Tensor | Denoised


class PredictedGraphs:
    """What was predicted for each graph when its reports were at hand; graphs are known by their public edges."""

    def __init__(self, keys: Sequence[bytes], predictions: Sequence[SingleArray]) -> None:
        """One key and one array of class probabilities per graph, the fitted graph first."""
        self._keys, self._predictions = list(keys), list(predictions)

    def find(self, graph: Topology) -> SingleArray | None:
        """The predictions for this graph, or None."""
        key = topology_key(graph)
        return self._predictions[self._keys.index(key)] if key in self._keys else None

    def state(self) -> Arrays:
        """``cache.0``, ``key.0`` and so on for the release."""
        caches = {f"cache.{number}": rows for number, rows in enumerate(self._predictions)}
        keys = {f"key.{number}": np.frombuffer(key, dtype=np.uint8) for number, key in enumerate(self._keys)}
        return {**caches, **keys}

    @classmethod
    def restore(cls, state: Mapping[str, Array], shapes: Sequence[tuple[int, int]]) -> PredictedGraphs:
        """Inverse of :meth:`state`; ``shapes`` are those of the predictions for each graph."""
        keys = [stored_key(state, f"key.{number}") for number in range(len(shapes))]
        caches = [stored_rows(state, f"cache.{number}", *shape, types=[SINGLE]) for number, shape in enumerate(shapes)]
        return cls(keys, caches)


@dataclass(eq=False, repr=False)
class LPGNN(WeighsClasses):
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
        How often KProp averages features, and labels in the loss ``drop``. Features, if left out: 16 times, so that
        noise on reports goes, or twice where features are exact, so that what tells nodes apart stays.
    aggregation
        ``symmetric`` or ``mean``; directed graphs always use ``mean``.
    model
        ``sage``, ``gcn`` or ``gat``.
    heads
        Of ``gat``: each attends by itself in the hidden layer.
    loss
        ``drop``, ``forward`` or ``plain``; see ``NoisyLabelLoss``.
    hidden, layers, activation, dropout, learning_rate, weight_decay, epochs
        Of the network; Adam on all training nodes at once.
    patience
        Training stops where the reports of validation nodes have not become likelier for so many epochs, and the best
        epoch is kept. It reads reports, never labels.
    class_weight
        As in other methods, but it moves the prior: the probability of each class is multiplied by its weight in the
        end. ``balanced`` reads the reports of labels, from whose counts the noise is taken off on average, so it costs
        nothing either.

    Guarantee: a report is made of one record alone, with noise that the record's owner draws; everything else reads
    reports and the public graph, so weights and all predictions cost nothing more.
    """

    declaration = lpgnn.LPGNN

    _: KW_ONLY
    feature_range: tuple[float, float] | None = None
    outside: Outside = "refuse"
    mechanism: Literal["multi-bit", "one-bit", "laplace", "gaussian"] = "multi-bit"
    epsilon_x: Annotated[float, Field(gt=0)] | None = None
    epsilon_y: Annotated[float, Field(gt=0)] | None = None
    reports: Literal["made", "received"] = "made"
    features: Literal["reports", "random", "degree", "ones", "topology"] = "reports"
    x_steps: Propagations | None = None
    y_steps: Propagations = 2
    aggregation: Literal["symmetric", "mean"] = "symmetric"
    model: ModelName = "sage"
    heads: Layers = 4
    loss: LossName = "drop"
    hidden: Width = 32
    layers: Layers = 2
    activation: Activation = "selu"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    learning_rate: Rate = 0.01
    weight_decay: Decay = 0.001
    epochs: Rounds = 200
    patience: Steps = 30

    # ---------------------------------------------------------------- plan

    def checked_privacy(self) -> Privacy:
        """The same; an infinite ε for one part leaves that part out of the level."""
        return narrowed(super().checked_privacy(), self.epsilon_x, self.epsilon_y)

    def _budget(self) -> LocalBudget:
        return split_budget(
            self.checked_privacy(), self.epsilon_x, self.epsilon_y, reads_features=self._reads_features()
        )

    def _reads_features(self) -> bool:
        return self.features == "reports"

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        budget, stages = self._budget(), []
        if budget.features is not None:
            delta = self.checked_privacy().resolve_delta(public[0].num_nodes)
            stages = [
                feature_stage(
                    features_name(number),
                    self.mechanism,
                    (facts.num_nodes, facts.num_features),
                    epsilon=budget.features / len(public),
                    delta=delta / len(public),
                    feature_range=self.feature_range,
                    outside=self.outside,
                    graph=number,
                )
                for number, facts in enumerate(public)
            ]
        if budget.labels is not None:
            missing = UNASKED_BUT_A_CLASS if self.reports == "received" else -1
            stages.append(
                label_stage(LABEL_REPORTS, public[0].num_nodes, public[0].num_classes, budget.labels, missing)
            )
        return stages

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        if not isinstance(level, LocalLevel):
            return ()
        notes = budget_notes(level, self._budget(), devices_simulated=self.reports == "made")
        return notes if self.class_weight is None else [*notes, WEIGHED_NOTE]

    # ---------------------------------------------------------------- fit

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        self._check_training_set(parts[0])
        if self.features == "topology" and len(parts) > 1:
            raise UnsupportedError("features='topology' knows only the nodes of its own graph: leave extra graphs out")
        self.units_ = Units.of(curator.plan)
        rows = [self._rows(part, features_name(number), curator) for number, part in enumerate(parts)]
        reports = self._label_reports(parts[0], curator)
        self.class_weights_ = self._reported_weights(reports)
        trained = self._train(parts[0], rows[0], reports, progress)
        others = [self._denoised(part, given) for part, given in zip(parts[1:], rows[1:], strict=True)]
        predictions = [self._predicted(part, x) for part, x in zip(parts, [trained.rows, *others], strict=True)]
        self.predicted_ = PredictedGraphs([topology_key(part) for part in parts], predictions)

    @staticmethod
    def _check_training_set(part: PublicPart) -> None:
        """Refuse a graph without a training label where labels are public; else without a training node."""
        if LABELS not in part.private:
            training_rows(part)
        elif not part.mask("train").any():
            raise GraphError("the graph has no training node: give it a train mask, for example with discreet.split")

    def _rows(self, part: PublicPart, name: str, curator: Curator) -> Any:
        """What is known of every node: its report, the record itself where that is public, or nothing of either."""
        if self.features != "reports":
            seed = int(torch.randint(2**31, (1,), generator=self._generator, device=self._device))
            return plain_features(self.features, part, part.facts, np.random.default_rng(seed))
        return self._collect(curator, name) if curator.plan.has(name) else part.features

    def _label_reports(self, part: PublicPart, curator: Curator) -> TrainingReports:
        """The class that every training and validation node reports; where labels are public, what it is."""
        train = part.mask("train")
        val = np.zeros_like(train) if part.val_mask is None else part.val_mask
        if not curator.plan.has(LABEL_REPORTS):
            has = part.labels >= 0
            return TrainingReports.of(part.labels, train & has, val & has, np.eye(part.num_classes), self._device)
        confusion = response_of(curator.plan.stage(LABEL_REPORTS)).confusion()
        reported = self._collect(curator, LABEL_REPORTS).astype(np.int64)
        return TrainingReports.of(reported, train, val, confusion, self._device)

    def _reported_weights(self, reports: TrainingReports) -> FloatArray | None:
        """Weights of classes from what is declared or reported; under the loss ``plain`` reports stand for labels."""
        if self.class_weight != "balanced":
            return self._declared_weights()
        return balanced_weights(*reports.class_counts(as_labels=self.loss == "plain"))

    def _collect(self, curator: Curator, name: str) -> Any:
        return curator.receive(name) if self.reports == "received" else curator.ask(name)

    def _train(self, part: PublicPart, rows: Any, reports: TrainingReports, progress: Progress | None) -> Trained:
        """Fit the network."""
        self.network_ = self._watched["network"] = self._build()
        denoised = self._denoised(part, rows)
        together = self.network_.first_matrices() if isinstance(self.network_, Convolutions) else ()
        x = Remembering(denoised, together)
        structure = structure_of(self.model, part, str(self._device))
        operators = kprop_operators(part, self.y_steps, self.aggregation, device=str(self._device))

        def score(logits: Tensor) -> float:
            return reported_loss(logits, reports.reported, reports.val, reports.confusion)

        with one_thread_if(rows.shape[0] * rows.shape[1] < _SMALL):
            found = train_on_reports(
                self.network_,
                lambda: self.network_(x, structure),
                NoisyLabelLoss(self.loss, reports.reported, reports.train, reports.confusion, operators),
                score if len(reports.val) else None,
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                weight_decay=self.weight_decay,
                patience=self.patience,
                progress=progress,
            )
        return Trained(found, denoised)

    def _build(self) -> nn.Module:
        facts = self.public_
        inputs = facts.num_features if self.features == "reports" else plain_width(self.features, facts)
        widths = widths_of(inputs, self.hidden, self.layers, facts.num_classes)
        return build_network(
            self.model, widths, self._generator, activation=self.activation, dropout=self.dropout, heads=self.heads
        )

    def _operators(self, graph: Topology) -> list[SparseMatrix]:
        """What denoises features, in turn."""
        return kprop_operators(graph, self._feature_hops(), self.aggregation, device=str(self._device))

    def _feature_hops(self) -> int:
        if self.x_steps is not None:
            return self.x_steps
        exact = self.features == "reports" and FEATURES not in self.checked_privacy().level.private
        return HOPS_OF_EXACT if exact else HOPS_OF_REPORTS

    def _denoised(self, graph: Topology, rows: Any) -> Tensor | Denoised:
        """Rows as the network reads them."""
        return denoise(rows, self._operators(graph), lazy=self.features == "topology", device=self._device)

    # ---------------------------------------------------------------- predict

    def _uncovered(self, part: PublicPart) -> str | None:
        reads_private = self._reads_features() and FEATURES in part.private
        if not reads_private or self.predicted_.find(part) is not None:
            return None
        return (
            "predicting on another graph would read features that nobody reported: pass it to fit as one of "
            "extra_graphs, so that its nodes report too"
        )

    def _probabilities(self, part: PublicPart) -> SingleArray:
        """What was predicted when reports were at hand; on a graph without reports, from its features as they are."""
        known = self.predicted_.find(part)
        if known is not None:
            return known
        if self.features == "reports":
            return self._predicted_from(part, self.units_.expected_reports(part.features))
        if self.features in ("random", "topology"):
            raise UnsupportedError(f"features={self.features!r} says nothing of nodes that were not there in training")
        return self._predicted_from(part, plain_features(self.features, part, part.facts, np.random.default_rng(0)))

    def _predicted_from(self, part: PublicPart, rows: Any) -> SingleArray:
        return self._predicted(part, self._denoised(part, rows))

    @torch.no_grad()
    def _predicted(self, part: PublicPart, x: Tensor | Denoised) -> SingleArray:
        logits: Tensor = self.network_(x, structure_of(self.model, part, str(self._device)))
        if self.class_weights_ is not None:
            logits = logits + torch.tensor(np.log(self.class_weights_), dtype=logits.dtype, device=logits.device)
        return torch.softmax(logits, dim=1).cpu().numpy()

    # ---------------------------------------------------------------- release

    def _state(self) -> Arrays:
        weights = {} if self.class_weights_ is None else {"class_weights": self.class_weights_}
        return {**module_state("network", self.network_), **self.predicted_.state(), **self.units_.state(), **weights}

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.network_ = restore_module("network", self._build(), state)
        self.units_ = Units.restore(state)
        classes = self.public_.num_classes
        self.class_weights_ = stored_if(state, "class_weights", self.class_weight is not None, classes)
        graphs = [self.public_, *self.extra_public_]
        self.predicted_ = PredictedGraphs.restore(state, [(facts.num_nodes, classes) for facts in graphs])


def features_name(number: int) -> str:
    """``features`` on the graph itself, ``extra graph 1 features`` on a further one."""
    return "features" if number == 0 else f"extra graph {number} features"
