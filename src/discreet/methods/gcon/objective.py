"""``gcon``: a convex graph convolution whose training objective is perturbed once (the GCON paper)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal

import numpy as np
from dp_accounting.dp_event import DpEvent

from discreet.arrays import FloatArray
from discreet.errors import ParameterError
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.objective.minimise import Problem, minimise
from discreet.mechanisms.objective.perturbation import (
    FLOOR_FACTOR,
    ObjectiveFacts,
    draft_event,
    loss_of,
    minimiser_of,
    objective_stage,
    output_grid,
    perturbation,
    ridge_floor,
)
from discreet.methods import gcon
from discreet.methods.gcon.restart_classifier import (
    LearntMap,
    Measured,
    PublicView,
    RestartClassifier,
    row_shares,
    shrunk,
)
from discreet.methods.own_hop import with_labels
from discreet.methods.parameters import Fraction, Ridge, Weight
from discreet.methods.public_encoder import ridge_head
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.plan import Stage
from discreet.queries.propagated import GRADIENT_NORM, Arithmetic, Bounds, PropagatedRows

STAGE = "minimiser"
DEFAULT_RIDGE = 1.0
"""Λ where none is given and its floor allows it: see docs/gcon.md."""
WEIGHED_NOTE = "the loss of a row counts by the weight of its class over the largest weight: at most 1, so noise stays"
ON_ONE_LINE = 1e-9
"""A map that has less than this share of its square away from the mean row is all along it, but for rounding."""
NO_WIDTH = 1.0
"""What a certificate states as the width of a loss that has none."""


@dataclass(eq=False, repr=False)
class GCON(RestartClassifier):
    """Graph convolution by objective perturbation.

    Parameters
    ----------
    loss, loss_width
        ``soft-margin`` or ``pseudo-huber``, and the width at which the latter turns linear.
    ridge
        Λ. None: 1, or twice its floor (eq. 22) where that is higher. A smaller number than that is refused.
    omega
        The share of ε that the linear perturbation keeps for itself.
    bounds
        ``sharp`` or ``paper``: see ``mechanisms.objective``.
    arithmetic
        ``bounded``: what rounding does is bounded and hidden by noise. ``unbounded`` is for reading releases that were
        made before that was proved, and is refused in a fit.

    Guarantee: one stage, whose value is the propagated rows (Σ‖z − z′‖ ≤ Ψ) and whose answer is the minimiser of
    the perturbed objective, certified to a gradient norm and with the noise that pays for it.
    """

    declaration = gcon.GCON

    _: KW_ONLY
    loss: Literal["soft-margin", "pseudo-huber"] = "soft-margin"
    loss_width: Weight = 0.2
    ridge: Ridge | None = None
    omega: Fraction = 0.9
    bounds: Bounds = "sharp"
    arithmetic: Arithmetic = "bounded"

    # ---------------------------------------------------------------- plan

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        query = self._query(public[0], level)
        if isinstance(level, NoPrivacy):
            return [Stage.of(STAGE, query)]
        event = self._event(max(public, key=lambda facts: facts.num_nodes))  # whose size decides delta
        return [objective_stage(STAGE, self._with_ridge(query, event), event)]

    def _query(self, facts: PublicFacts, level: Level) -> PropagatedRows:
        self._check_supported(facts, level)
        steps = self._checked_steps()
        return PropagatedRows(
            level,
            self.alpha,
            steps,
            everyone=self.pseudo_labels,
            count=self._rows(facts),
            width=len(steps) * self._width(facts),
            classes=facts.num_classes,
            loss=self.loss,
            loss_width=self.loss_width if self.loss == "pseudo-huber" else NO_WIDTH,
            ridge=self.ridge or DEFAULT_RIDGE,
            omega=self.omega,
            bounds=self.bounds,
            weighed=self.class_weight is not None,
            ends=self.ends,
            num_nodes=facts.num_nodes,
            arithmetic=self.arithmetic,
        )

    def _event(self, facts: PublicFacts) -> DpEvent:
        privacy = self.checked_privacy()
        return draft_event(privacy.epsilon, privacy.resolve_delta(facts.num_nodes))

    def _with_ridge(self, query: PropagatedRows, event: DpEvent) -> PropagatedRows:
        """The query with Λ as given, or its default; one too near the floor is refused."""
        floor = ridge_floor(ObjectiveFacts.of(query, event))
        if self.ridge is None:
            return replace(query, ridge=max(DEFAULT_RIDGE, FLOOR_FACTOR * floor))
        if self.ridge < FLOOR_FACTOR * floor:
            raise ParameterError(
                f"gcon: ridge (Lambda) must be at least {FLOOR_FACTOR * floor:.6g}, {FLOOR_FACTOR:g} times its floor "
                f"{floor:.6g} (eq. 22), not {self.ridge:g}"
            )
        return query

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        if isinstance(level, NoPrivacy):
            return ()
        event = self._event(public)
        stage = objective_stage(STAGE, self._with_ridge(self._query(public, level), event), event)
        query, facts = minimiser_of(stage), ObjectiveFacts.of(minimiser_of(stage), event)
        noise = perturbation(facts, query.ridge)
        signal = facts.rows / facts.classes * facts.loss.c1
        radius = facts.width / noise.rate
        ratio = signal / radius
        left = "noise decides" if self.scoring == "plain" else "the public map will be used almost as it is"
        verdict = f"hopeless: {left}" if ratio < 1 else "workable"
        return (
            f"signal to noise: a class of {facts.rows / facts.classes:.0f} rows pulls with at most {signal:.3g}, the "
            f"noise on its gradient has norm {radius:.3g}: ratio {ratio:.2g} ({verdict})",
            f"Lambda {noise.ridge:.4g} (floor {ridge_floor(facts):.4g}), Lambda' {noise.extra:.4g}, "
            f"beta {noise.rate:.4g}, gradient norm at release at most {query.gradient_norm:.3g}",
            *([rounding_note(stage)] if self.arithmetic == "bounded" else []),
            *([WEIGHED_NOTE] if self.class_weight is not None else []),
        )

    # ---------------------------------------------------------------- fit

    def _learn_map(self, view: PublicView, curator: Curator) -> LearntMap:
        if self.arithmetic == "unbounded":
            raise ParameterError("gcon: arithmetic unbounded is for reading earlier releases: a fit needs bounded")
        part, embedded, opinion, weights = view
        nodes, steps = self._training_nodes(part), self._checked_steps()
        targets = self._targets(part, embedded, opinion)[nodes]
        usable = self._usable(part)
        shares = row_shares(weights, targets)
        private = curator.ask(STAGE, rows=embedded, targets=targets, usable=usable, shares=shares)
        stage = curator.plan.stage(STAGE)
        still = np.hstack([embedded[nodes]] * len(steps)) / len(steps) * usable
        public = public_map(still, targets * usable, shares, minimiser_of(stage))
        variance = noise_variance(stage, still * np.sqrt(shares)[:, None])
        ratio = scale_of(private, public, still.mean(axis=0), variance)
        if self.scoring == "plain":
            return LearntMap(private, ratio)
        scale = max(ratio.value, self.alpha / 2)
        drawn = shrunk(public, private / scale, variance / scale**2 if self.shrink else 0.0)
        return LearntMap(drawn, ratio.beyond(self._self_weight()))

    def _targets(self, part: PublicPart, embedded: FloatArray, opinion: FloatArray) -> FloatArray:
        """One-hot labels; where there is none, the opinion of a linear head on the same embedding (``plain``: of the
        network).
        """
        classes = part.num_classes
        if self.scoring == "plain":
            return with_labels(np.eye(classes)[opinion.argmax(axis=1)], part)
        soft = with_labels(opinion, part)
        guess = (embedded @ ridge_head(embedded, soft - 1 / classes)).argmax(axis=1)
        return with_labels(np.eye(classes)[guess], part)

    def _usable(self, part: PublicPart) -> FloatArray:
        """Without pseudo-labels a training node that lacks its label counts as a row of zeros."""
        nodes = self._training_nodes(part)
        if self.pseudo_labels:
            return np.ones((len(nodes), 1))
        return (part.labels[nodes] >= 0).astype(np.float64)[:, None]


def rounding_note(stage: Stage) -> str:
    """What floating point costs, in words."""
    query, hidden = minimiser_of(stage), output_grid(stage).noise_std
    distance = query.gradient_norm / query.total_ridge
    return (
        f"floating point: rounding changes the gradient by at most {query.rounding:.2g}, so the map lies within "
        f"{distance:.2g} of the exact minimiser; noise of std {hidden:.2g} on each of its numbers hides that, and "
        "epsilon includes it"
    )


def public_map(still: FloatArray, targets: FloatArray, shares: FloatArray, query: PropagatedRows) -> FloatArray:
    """The minimiser of the same objective on rows that were not propagated, without noise: reads no edge."""
    no_tilt = np.zeros((still.shape[1], targets.shape[1]))
    return minimise(Problem(still, targets, query.total_ridge, no_tilt, loss_of(query), shares), GRADIENT_NORM)


def noise_variance(stage: Stage, still: FloatArray) -> float:
    """Variance of an entry of the released map, from the plan and public rows."""
    if not stage.is_private:
        return 0.0
    query = minimiser_of(stage)
    strength = query.total_ridge + loss_of(query).c2 * float(np.mean(still**2))
    return (stage.noise_std / (query.count * strength)) ** 2


def scale_of(private: FloatArray, public: FloatArray, mean_row: FloatArray, variance: float) -> Measured:
    """How long the private map is along the public one, away from the mean row, which propagation leaves alone.

    ``variance`` is that of an entry of the private map. Centred rows of two classes lie on one line, what rounding
    leaves of their mean too: away from it nothing is left but noise, and the whole public map is compared.
    """
    norm = float(mean_row @ mean_row)
    along = np.outer(mean_row, mean_row @ public) / norm if norm > 0 else 0.0
    telling = public - along
    if np.sum(telling**2) < ON_ONE_LINE * np.sum(public**2):
        telling = public
    size = float(np.sum(telling**2))
    if size == 0:
        return Measured(0.0, math.inf)
    return Measured(float(np.sum(private * telling)) / size, math.sqrt(variance / size))
