"""The plan: what a method will ask of private data, how, and at what cost, before it touches any."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dp_accounting.dp_event import DpEvent

from discreet.errors import PrivacyError
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of, spend
from discreet.privacy.budget import Privacy
from discreet.privacy.calibration import calibrate
from discreet.privacy.group_of_two import group_note


@dataclass(frozen=True)
class Stage:
    """One query to private data.

    Parameters
    ----------
    name
        What the method calls it when it asks the curator; unique within a plan.
    query
        What is asked, in words.
    mechanism
        The name of the mechanism that answers (``gaussian``, …).
    sensitivity
        How far the answer without noise can move between neighbours, in ``metric``.
    metric
        ``l2``, ``l1``, ``linf``, ``rows``: what the mechanism measures distance in.
    why
        The reason for the sensitivity in one line.
    event
        One run, Δ-normalised.
    shape
        The shape of the value; the curator refuses any other.
    runs
        How often the stage runs.
    answer_shape
        The shape of the answer where it is not the shape of the value.
    parameters
        What else the mechanism needs: public plain values, by name.
    """

    name: str
    query: str
    mechanism: str
    sensitivity: float
    metric: str
    why: str
    event: DpEvent
    shape: tuple[int, ...]
    runs: int = 1
    answer_shape: tuple[int, ...] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def noise_std(self) -> float:
        """Standard deviation (scale, for Laplace and Gumbel) of the noise on each entry; 0 without privacy."""
        if isinstance(self.event, events.NonPrivateDpEvent):
            return 0.0
        if "noise_std" in self.parameters:
            return float(self.parameters["noise_std"])
        first = next((leaf for leaf, _ in events.leaves(self.event)), self.event)
        inner = first.event if isinstance(first, events.PoissonSampledDpEvent) else first
        return float(getattr(inner, "noise_multiplier", math.nan)) * self.sensitivity

    def scaled(self, factor: float) -> Stage:
        """The stage with its noise multiplied."""
        return replace(self, event=events.scale_noise(self.event, factor))

    def without_noise(self) -> Stage:
        """The stage as level ``none`` runs it."""
        return replace(self, event=events.NonPrivateDpEvent())

    def to_json(self) -> dict[str, Any]:
        """Plain values for the certificate."""
        return {
            "name": self.name,
            "query": self.query,
            "mechanism": self.mechanism,
            "sensitivity": "infinite" if math.isinf(self.sensitivity) else self.sensitivity,
            "metric": self.metric,
            "why": self.why,
            "runs": self.runs,
            "shape": list(self.shape),
            "answer_shape": None if self.answer_shape is None else list(self.answer_shape),
            "parameters": dict(self.parameters),
            "event": events.event_to_json(self.event),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Stage:
        """Read what :meth:`to_json` wrote."""
        try:
            answer = data["answer_shape"]
            shapes = {"shape": tuple(data["shape"]), "answer_shape": None if answer is None else tuple(answer)}
            return cls(**{**data, **shapes, "event": events.event_from_json(data["event"])})
        except (KeyError, TypeError) as error:
            raise PrivacyError(f"the certificate holds a malformed stage: {error}") from error


@dataclass(frozen=True)
class Claim:
    """An ε that a paper claims for its own noise, by formulas of its own: reproduced, not verified."""

    epsilon: float
    formulas: str


@dataclass(frozen=True)
class Plan:
    """An ordered tuple of stages, made from public information only, within a budget.

    Guarantee: ``plan.epsilon <= plan.privacy.epsilon`` at ``plan.delta``, or the plan cannot be made. With a
    ``claim`` there is none: ``epsilon`` is what the claim says, and ``spend`` what can be proved for the same noise.
    """

    method: str
    privacy: Privacy
    delta: float
    stages: tuple[Stage, ...]
    covers: str
    notes: tuple[str, ...] = ()
    claim: Claim | None = None
    epsilon: float = field(init=False)

    def __post_init__(self) -> None:
        """Compute ε from the stages and refuse a plan that overspends."""
        names = [stage.name for stage in self.stages]
        if len(set(names)) != len(names):
            raise PrivacyError(f"stage names must be unique, not {names}")
        object.__setattr__(self, "epsilon", self.claim.epsilon if self.claim else epsilon_of(self.event(), self.delta))
        if not self.epsilon <= self.privacy.epsilon:
            raise PrivacyError(f"the plan spends epsilon {self.epsilon}, more than {self.privacy.epsilon}")

    @property
    def accounting(self) -> str:
        """``rigorous``, or ``as-published`` where ε is a paper's claim."""
        return "as-published" if self.claim else "rigorous"

    def stage(self, name: str) -> Stage:
        """The stage of that name."""
        return next(stage for stage in self.stages if stage.name == name)

    def event(self) -> DpEvent:
        """Everything that the plan runs, as one event."""
        return events.compose(events.repeat(stage.event, stage.runs) for stage in self.stages)

    def spend(self) -> dict[str, float]:
        """ε under each accountant that knows the whole plan."""
        return spend(self.event(), self.delta)

    def __str__(self) -> str:
        """A table that a privacy reviewer can sign."""
        return _render(self)


def make_plan(
    method: str,
    privacy: Privacy,
    num_nodes: int,
    drafts: Sequence[Stage],
    covers: str,
    notes: Sequence[str] = (),
    claim: Claim | None = None,
) -> Plan:
    """Calibrate all stages together and check the result.

    The drafts carry *relative* noise: one common factor scales them all to the budget. With a ``claim`` they carry
    the noise of its formulas, and are taken as they are.
    """
    delta = privacy.resolve_delta(num_nodes)
    if claim is not None:
        return Plan(method, privacy, delta, tuple(drafts), covers, tuple(notes), claim)
    if privacy.level.kind == "none":
        stages = tuple(stage.without_noise() for stage in drafts)
    elif drafts:
        unit = events.compose(events.repeat(stage.event, stage.runs) for stage in drafts)
        factor = calibrate(unit, privacy.epsilon, delta)
        stages = tuple(stage.scaled(factor) for stage in drafts)
    else:
        stages = ()
    event = events.compose(events.repeat(stage.event, stage.runs) for stage in stages)
    group = group_note(privacy.level, event, delta) if stages else None
    return Plan(method, privacy, delta, stages, covers, (*notes, group) if group else tuple(notes))


# -------------------------------------------------------------------- the table


def _render(plan: Plan) -> str:
    level = plan.privacy.level
    head = [
        f"plan for {plan.method} at level {level.spec}",
        f"  protects  {level.describe()}",
        f"  public    {level.public_knowledge()}",
        f"  covers    {plan.covers}",
        f"  budget    epsilon {plan.privacy.epsilon:g}, delta {plan.delta:g}",
    ]
    body = _table(plan.stages) if plan.stages else ["  no stage reads private data"]
    bounds = ", ".join(f"{name} {value:.6g}" for name, value in plan.spend().items())
    foot = [f"  spends    epsilon {plan.epsilon:.6g} at delta {plan.delta:g}  ({bounds})"]
    if plan.claim:
        foot = [
            f"  claims    epsilon {plan.epsilon:.6g} at delta {plan.delta:g} by {plan.claim.formulas}: NOT VERIFIED",
            f"  proved    for the same noise: {bounds}",
        ]
    if math.isinf(plan.epsilon):
        foot = ["  spends    epsilon infinite: THIS MODEL IS NOT PRIVATE"]
    return "\n".join([*head, "", *body, "", *foot, *(f"  note      {note}" for note in plan.notes)])


def _table(stages: Sequence[Stage]) -> list[str]:
    rows = [("stage", "mechanism", "sensitivity", "noise std", "runs", "shape", "why")]
    rows += [
        (
            stage.name,
            stage.mechanism,
            f"{stage.sensitivity:.6g} ({stage.metric})",
            f"{stage.noise_std:.6g}",
            str(stage.runs),
            " × ".join(map(str, stage.shape)),
            stage.why,
        )
        for stage in stages
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "  " + "-" * (max(map(len, lines)) - 2), *lines[1:]]
