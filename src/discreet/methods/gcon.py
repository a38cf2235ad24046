"""``gcon``: a convex graph convolution whose training objective is perturbed once (paper 003)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from dp_accounting.dp_event import DpEvent
from pydantic import Field

from discreet.errors import ParameterError
from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.losses import ScalarLoss, loss_by_name
from discreet.mechanisms.minimise import Problem, minimise
from discreet.mechanisms.objective import (
    FLOOR_FACTOR,
    GRADIENT_NORM,
    Bounds,
    ObjectiveQuery,
    draft_event,
    objective_stage,
    perturbation,
    plain_stage,
    ridge_floor,
)
from discreet.methods.own_hop import with_labels
from discreet.methods.public_encoder import ridge_head
from discreet.methods.restart_classifier import RestartClassifier, shrunk
from discreet.ops.restart import propagate, transition
from discreet.privacy import events
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.plan import Stage

FloatArray = npt.NDArray[np.float64]
STAGE = "minimiser"
DEFAULT_RIDGE = 1.0


@dataclass(eq=False, repr=False)
class GCON(RestartClassifier):
    """Graph convolution by objective perturbation.

    Parameters
    ----------
    loss, loss_width
        ``soft-margin`` or ``pseudo-huber``, and the width at which the latter turns linear.
    ridge
        Λ. None: 1, or twice its floor (eq. 22) where that is higher. A number below the floor is refused.
    omega
        The share of ε that the linear perturbation keeps for itself.
    bounds
        ``sharp`` or ``paper``: see ``mechanisms.objective``.

    Guarantee: one stage, whose value is the propagated rows (Σ‖z − z′‖ ≤ Ψ) and whose answer is the minimiser of
    the perturbed objective, certified to a gradient norm and with the noise that pays for it.
    """

    method: ClassVar[str] = "gcon"

    _: KW_ONLY
    loss: Literal["soft-margin", "pseudo-huber"] = "soft-margin"
    loss_width: Annotated[float, Field(gt=0)] = 0.2
    ridge: Annotated[float, Field(gt=0)] | None = None
    omega: Annotated[float, Field(gt=0, lt=1)] = 0.9
    bounds: Bounds = "sharp"

    # ---------------------------------------------------------------- plan

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        facts = public[0]
        psi = self._psi(facts, level)
        words = ("the minimiser of the perturbed convex objective on propagated rows", self._why())
        if isinstance(level, NoPrivacy):
            shape = (self._rows(facts), len(self._checked_steps()) * self._width(facts))
            return [plain_stage(STAGE, *words, psi, shape, self._loss(facts), self.ridge or DEFAULT_RIDGE, self.loss)]
        event = self._event(max(public, key=lambda other: other.num_nodes))  # whose size decides delta
        query = self._query(facts, psi, event)
        return [objective_stage(STAGE, *words, query, self._ridge(query), event, self.loss)]

    def _loss(self, facts: PublicFacts) -> ScalarLoss:
        return loss_by_name(self.loss, facts.num_classes, self.loss_width)

    def _event(self, facts: PublicFacts) -> DpEvent:
        privacy = self._checked_privacy()
        return draft_event(privacy.epsilon, privacy.resolve_delta(facts.num_nodes))

    def _query(self, facts: PublicFacts, psi: float, event: DpEvent) -> ObjectiveQuery:
        box = event.events[0]
        width = len(self._checked_steps()) * self._width(facts)
        loss = self._loss(facts)
        return ObjectiveQuery(
            self._rows(facts), width, facts.num_classes, psi, loss, box.epsilon, box.delta, self.omega, self.bounds
        )

    def _ridge(self, query: ObjectiveQuery) -> float:
        floor = ridge_floor(query)
        if self.ridge is None:
            return max(DEFAULT_RIDGE, FLOOR_FACTOR * floor)
        if self.ridge < FLOOR_FACTOR * floor:
            raise ParameterError(
                f"gcon: ridge (Lambda) must be at least {FLOOR_FACTOR * floor:.6g}, {FLOOR_FACTOR:g} times its floor "
                f"{floor:.6g} (eq. 22), not {self.ridge:g}"
            )
        return self.ridge

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        if isinstance(level, NoPrivacy):
            return ()
        query = self._query(public, self._psi(public, level), self._event(public))
        noise = perturbation(query, self._ridge(query))
        signal = query.rows / query.classes * query.loss.c1
        radius = query.width / noise.rate
        ratio = signal / radius
        verdict = "hopeless: the public map will be used almost as it is" if ratio < 1 else "workable"
        return (
            f"signal to noise: a class of {query.rows / query.classes:.0f} rows pulls with at most {signal:.3g}, the "
            f"noise on its gradient has norm {radius:.3g}: ratio {ratio:.2g} ({verdict})",
            f"Lambda {noise.ridge:.4g} (floor {ridge_floor(query):.4g}), Lambda' {noise.extra:.4g}, "
            f"beta {noise.rate:.4g}, gradient norm at release at most {GRADIENT_NORM:g}",
        )

    # ---------------------------------------------------------------- fit

    def _release_map(self, graph: Graph, embedded: FloatArray, opinion: FloatArray, curator: Curator) -> float:
        stage = curator.plan.stages[0]
        steps, nodes = self._checked_steps(), self._training_nodes(graph)
        targets = self._targets(graph, embedded, opinion)[nodes]
        usable = self._usable(graph, nodes)
        rows = propagate(transition(graph), embedded, self.alpha, steps)[nodes] * usable
        private = curator.measure(STAGE, np.hstack([rows, targets * usable]))
        still = np.hstack([embedded[nodes]] * len(steps)) / len(steps) * usable
        public = self._public_map(still, targets * usable, stage)
        ratio = scale_of(private, public, still.mean(axis=0))
        variance = self._noise_variance(stage, still, ratio) if self.shrink else 0.0
        self.map_ = shrunk(public, private / max(ratio, self.alpha / 2), variance)
        own = self._self_weight()
        return (ratio - own) / (1 - own)

    def _targets(self, graph: Graph, embedded: FloatArray, opinion: FloatArray) -> FloatArray:
        """One-hot labels; where there is none, the opinion of a linear head on the same embedding."""
        classes = graph.num_classes
        soft = with_labels(opinion, graph)
        guess = (embedded @ ridge_head(embedded, soft - 1 / classes)).argmax(axis=1)
        return with_labels(np.eye(classes)[guess], graph)

    def _usable(self, graph: Graph, nodes: npt.NDArray[np.int64]) -> FloatArray:
        """Without pseudo-labels a training node that lacks its label counts as a row of zeros."""
        if self.pseudo_labels:
            return np.ones((len(nodes), 1))
        return (graph.labels[nodes] >= 0).astype(np.float64)[:, None]

    def _public_map(self, still: FloatArray, targets: FloatArray, stage: Stage) -> FloatArray:
        """The minimiser of the same objective on rows that were not propagated, without noise: reads no edge."""
        strength = stage.parameters["ridge"] + stage.parameters["extra_ridge"]
        zero = np.zeros((still.shape[1], targets.shape[1]))
        return minimise(Problem(still, targets, strength, zero, self._loss(self.public_)), GRADIENT_NORM)

    def _noise_variance(self, stage: Stage, still: FloatArray, ratio: float) -> float:
        """Variance of an entry of the released map, from the plan and public rows."""
        if isinstance(stage.event, events.NonPrivateDpEvent):
            return 0.0
        flat = self._loss(self.public_).c2 * float(np.mean(still**2))
        strength = stage.parameters["ridge"] + stage.parameters["extra_ridge"] + flat
        return (stage.noise_std / (stage.shape[0] * strength) / max(ratio, self.alpha / 2)) ** 2


def scale_of(private: FloatArray, public: FloatArray, mean_row: FloatArray) -> float:
    """How long the private map is along the public one, away from the mean row, which propagation leaves alone."""
    norm = float(mean_row @ mean_row)
    along = np.outer(mean_row, mean_row @ public) / norm if norm > 0 else 0.0
    telling = public - along
    size = float(np.sum(telling**2))
    return float(np.sum(private * telling)) / size if size > 0 else 0.0
