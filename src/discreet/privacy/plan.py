"""The plan: what a method will ask of private data, how, and at what cost, before it touches any."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dp_accounting.dp_event import DpEvent

from discreet.errors import PrivacyError
from discreet.files import from_json
from discreet.graph.graph import PublicFacts
from discreet.privacy import events
from discreet.privacy.accountants import accountant_versions, epsilon_of, group_note, spend
from discreet.privacy.budget import Privacy, delta_reason
from discreet.privacy.calibration import calibrate
from discreet.privacy.notebook import html_table
from discreet.privacy.query import (
    NO_BOUND,
    NO_NOISE,
    NOTHING_PROMISED,
    STATED,
    Bound,
    Query,
    StoredQuery,
    is_exact,
    sampler,
)


@dataclass(frozen=True)
class Stage:
    """A query with its share of the budget, as a plan runs it.

    Parameters
    ----------
    name
        What the method calls it when it asks the curator; unique within a plan.
    query
        What is asked, how far one unit can move it, and by which mechanism it is answered.
    bound
        The query's bound under the plan's level.
    event
        One run, Δ-normalised.
    runs
        How often the stage runs.
    graph
        Which graph is asked: 0 for the graph that is fitted, 1, 2, … for extra graphs.

    What follows from these: ``mechanism`` (who answers), ``sensitivity`` and ``metric`` (of the bound), ``shape`` (of
    the value), ``is_private`` (False as level ``none`` runs it), and ``noise_std``, the standard deviation (scale, for
    Laplace and Gumbel) of the noise on each entry, 0 without privacy.
    """

    name: str
    query: Query
    bound: Bound
    event: DpEvent
    runs: int = 1
    graph: int = 0
    mechanism: str = field(init=False)
    sensitivity: float = field(init=False)
    metric: str = field(init=False)
    shape: tuple[int, ...] = field(init=False)
    is_private: bool = field(init=False)
    noise_std: float = field(init=False)

    @classmethod
    def of(cls, name: str, query: Query, *, share: float = 1.0, runs: int = 1, graph: int = 0) -> Stage:
        """A draft that takes ``share`` of the plan's squared privacy loss in all its runs together."""
        return cls(name, query, query.bound(), query.event(share, runs), runs, graph)

    def __post_init__(self) -> None:
        """Settle what follows from the query, the bound and the event."""
        private = not isinstance(self.event, events.NonPrivateDpEvent)
        settled = {
            "mechanism": self.query.answered_by,
            "sensitivity": self.bound.sensitivity,
            "metric": self.bound.metric,
            "shape": self.query.shape,
            "is_private": private,
            "noise_std": self.query.noise_std(self.event, self.bound.sensitivity) if private else 0.0,
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    def scaled(self, factor: float) -> Stage:
        """The stage with its noise multiplied."""
        return replace(self, event=events.scale_noise(self.event, factor))

    def without_noise(self) -> Stage:
        """The stage as level ``none`` runs it."""
        bound = Bound(math.inf, self.metric, NO_BOUND, self.bound.clip)
        return replace(self, event=events.NonPrivateDpEvent(), bound=bound)

    def to_json(self) -> dict[str, Any]:
        """Plain values for the certificate, infinities as they are."""
        answer = self.query.answer_shape
        return {
            "name": self.name,
            "query": self.query.words,
            "mechanism": self.mechanism,
            "sensitivity": self.sensitivity,
            "metric": self.metric,
            "why": self.bound.why,
            "runs": self.runs,
            "shape": list(self.shape),
            "answer_shape": None if answer is None else list(answer),
            "parameters": self.query.parameters(),
            "event": events.event_to_json(self.event),
            "noise": self._noise_to_json(),
            "proof": self.query.proof_status if self.is_private else NOTHING_PROMISED,
        }

    def _noise_to_json(self) -> dict[str, Any]:
        """How much noise each entry gets, where that is one number, and how it is drawn."""
        if not self.is_private:
            return {"std": 0.0, "exact": True, "sampler": NO_NOISE}
        std = None if math.isnan(self.noise_std) else self.noise_std
        return {"std": std, "exact": is_exact(self.mechanism), "sampler": sampler(self.mechanism)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Stage:
        """Read what :meth:`to_json` wrote."""
        try:
            bound = Bound(from_json(data["sensitivity"]), data["metric"], data["why"])
            answer = data["answer_shape"]
            query = StoredQuery(
                data["query"],
                data["mechanism"],
                tuple(data["shape"]),
                None if answer is None else tuple(answer),
                data["parameters"],
                bound,
                data.get("proof", STATED),  # certificates of schema 1 have none
            )
            return cls(data["name"], query, bound, events.event_from_json(data["event"]), data["runs"])
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
    accounting: str = field(init=False)
    """``rigorous``, or ``as-published`` where ε is a paper's claim."""

    def __post_init__(self) -> None:
        """Compute ε from the stages and refuse a plan that overspends."""
        names = [stage.name for stage in self.stages]
        if len(set(names)) != len(names):
            raise PrivacyError(f"stage names must be unique, not {names}")
        object.__setattr__(self, "accounting", "as-published" if self.claim else "rigorous")
        object.__setattr__(self, "epsilon", self.claim.epsilon if self.claim else epsilon_of(self.event(), self.delta))
        if not self.epsilon <= self.privacy.epsilon:
            raise PrivacyError(f"the plan spends epsilon {self.epsilon}, more than {self.privacy.epsilon}")

    def stage(self, name: str) -> Stage:
        """The stage of that name."""
        return next(stage for stage in self.stages if stage.name == name)

    def has(self, name: str) -> bool:
        """Whether there is a stage of that name."""
        return any(stage.name == name for stage in self.stages)

    def event(self) -> DpEvent:
        """Everything that the plan runs, as one event."""
        return _composed(self.stages)

    def spend(self) -> dict[str, float]:
        """ε under each accountant that knows the whole plan."""
        return spend(self.event(), self.delta)

    def is_what_ran(self, spent: Sequence[DpEvent]) -> bool:
        """Whether a ledger's events are those of the stages, each as often and in this order."""
        planned = [leaf for stage in self.stages for _ in range(stage.runs) for leaf in events.leaves(stage.event)]
        return [leaf for event in spent for leaf in events.leaves(event)] == planned

    def to_json(self) -> dict[str, Any]:
        """What is asked and spent: plain values for the certificate, infinities as they are."""
        return {
            "method": self.method,
            "accounting": self.accounting,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "budget": {"epsilon": self.privacy.epsilon, "delta": self.privacy.delta},
            "epsilon_by_accountant": self.spend(),
            "stages": [stage.to_json() for stage in self.stages],
            "notes": list(self.notes),
        }

    def promise(self, facts: Sequence[PublicFacts]) -> dict[str, Any]:
        """What is protected on graphs with these facts, what is taken as public, why δ is what it is, and what computed
        ε: the words of the certificate.
        """
        level = self.privacy.level
        return {
            "level": {"spec": level.spec, "relation": level.describe_on(any(graph.weighted for graph in facts))},
            "public": level.public_knowledge(),
            "delta_reason": delta_reason(self.privacy, max(graph.num_nodes for graph in facts)),
            "versions": accountant_versions(),
        }

    def __str__(self) -> str:
        """A table that a privacy reviewer can sign."""
        return _render(self)

    def _repr_html_(self) -> str:
        """The same in short, for notebooks."""
        return html_table(f"plan for {self.method}", self.facts(), STAGE_HEAD, self.stage_rows())

    def facts(self) -> dict[str, str]:
        """What is protected, what the guarantee covers, and what it costs, in words."""
        spends = f"epsilon {self.epsilon:.6g} at delta {self.delta:g}"
        if math.isinf(self.epsilon):
            spends = "epsilon infinite: this model is not private"
        elif self.claim:
            spends = f"{spends} by {self.claim.formulas}: not verified"
        return {
            "level": self.privacy.level.spec,
            "protects": self.privacy.level.describe(),
            "covers": self.covers,
            "spends": spends,
        }

    def stage_rows(self) -> list[tuple[str, ...]]:
        """The stages in short: name, mechanism, sensitivity, noise and runs."""
        return [
            (stage.name, stage.mechanism, f"{stage.sensitivity:.6g}", f"{stage.noise_std:.6g}", str(stage.runs))
            for stage in self.stages
        ]


STAGE_HEAD = ("stage", "mechanism", "sensitivity", "noise scale", "runs")


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
        factor = calibrate(_composed(drafts), privacy.epsilon, delta)
        stages = tuple(stage.scaled(factor) for stage in drafts)
    else:
        stages = ()
    group = group_note(privacy.level, _composed(stages), delta) if stages else None
    return Plan(method, privacy, delta, stages, covers, (*notes, group) if group else tuple(notes))


def _composed(stages: Sequence[Stage]) -> DpEvent:
    """Everything that these stages run, as one event."""
    return events.compose([events.repeat(stage.event, stage.runs) for stage in stages])


def split_note(shares: Mapping[str, float]) -> str:
    """How the squared privacy loss is divided among stages, in words; shares are relative."""
    total = sum(shares.values())
    parts = ", ".join(f"{share / total:.0%} {name}" for name, share in shares.items() if share)
    return f"the squared privacy loss is divided by constants: {parts}"


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
    rows = [("stage", "mechanism", "sensitivity", "noise scale", "runs", "shape", "why")]
    rows += [
        (
            stage.name,
            stage.mechanism,
            f"{stage.sensitivity:.6g} ({stage.metric})",
            f"{stage.noise_std:.6g}",
            str(stage.runs),
            " × ".join(map(str, stage.shape)),
            stage.bound.why,
        )
        for stage in stages
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "  " + "-" * (max(map(len, lines)) - 2), *lines[1:]]
