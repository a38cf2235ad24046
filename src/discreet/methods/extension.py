"""A released model on one more graph: what that costs by itself, and together with all that was released before.

The released weights stay. What the new graph's own aggregation asks is planned, charged and certified; a unit may stand
in every graph, so the ε of an extended release composes the events of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from discreet.errors import CertificateError, UnsupportedError
from discreet.files import to_json
from discreet.graph.graph import PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.budget import Privacy
from discreet.privacy.certificate import make_certificate
from discreet.privacy.composition import check_composable
from discreet.privacy.plan import Plan, Stage


@dataclass(frozen=True)
class Extension:
    """A graph that was added to a release, and the budget that its aggregation had."""

    public: PublicFacts
    epsilon: float
    delta: float | Literal["auto"]

    def to_json(self) -> dict[str, Any]:
        """Plain values for the configuration."""
        return {"public": asdict(self.public), "epsilon": self.epsilon, "delta": self.delta}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Extension:
        """Read what :meth:`to_json` wrote."""
        return cls(PublicFacts(**content["public"]), float(content["epsilon"]), content["delta"])


def unpaid_edges(what: str) -> str:
    """Why a prediction on a graph that was not asked leaves the guarantee, and what would pay for it."""
    return (
        "predicting on another graph would read its edges, which no stage paid for: pass it to fit as one of "
        f"extra_graphs, or extend the release, so that {what} is charged"
    )


def check_parent(certificate: Mapping[str, Any], spec: str) -> None:
    """Refuse a release whose cost cannot be carried on."""
    if "digest" not in certificate:
        raise UnsupportedError("a release is extended, not a model that was never saved: save it, load it, extend it")
    if certificate["schema"] == 1:
        raise UnsupportedError("a release of an earlier version cannot be extended: train again")
    if "trial_stages" in certificate:
        raise UnsupportedError("a release of a charged search cannot be extended: train its settings again")
    check_composable(certificate, spec)


def plan_of_all(before: Sequence[Stage], delta: float, alone: Plan) -> Plan:
    """The stages of a release and of its extension as one plan, whose budget is what they cost together.

    Guarantee: ``epsilon`` holds for a unit that stands in every graph, at the larger δ, if it was settled beforehand
    which graphs would be added and with which budgets; otherwise the sum of their ε at the sum of their δ does.
    """
    stages, largest = (*before, *alone.stages), max(delta, alone.delta)
    epsilon = epsilon_of(events.compose([events.repeat(stage.event, stage.runs) for stage in stages]), largest)
    return Plan(
        alone.method,
        Privacy(alone.privacy.level, epsilon, largest),
        largest,
        stages,
        alone.covers,
        (note_on(alone.epsilon, alone.delta),),
    )


def note_on(epsilon: float, delta: float) -> str:
    """Who spends how much, in words; for the new graph alone it is this."""
    return (
        "a released model was extended: epsilon and delta are for somebody in every graph, if the extension was "
        f"settled beforehand; for somebody in the new graph alone they are {epsilon:.6g} and {delta:g}"
    )


def certify(
    parent: Mapping[str, Any],
    alone: Plan,
    facts: Sequence[PublicFacts],
    curator: Curator,
    versions: Mapping[str, str],
) -> tuple[Plan, dict[str, Any]]:
    """The plan of everything, and the certificate of the extended release, which carries its parent's."""
    before = [Stage.from_json(stage) for stage in parent["stages"]]
    whole = plan_of_all(before, float(parent["delta"]), alone)
    ran = [stage.event for stage in before for _ in range(stage.runs)]
    if [entry.stage for entry in curator.ledger] != [stage.name for stage in alone.stages for _ in range(stage.runs)]:
        raise CertificateError("the ledger does not match the plan of the extension")
    certificate = make_certificate(
        whole,
        facts,
        noise=curator.noise_description if parent["noise"]["for_release"] else parent["noise"]["source"],
        for_release=curator.for_release and bool(parent["noise"]["for_release"]),
        spent=[*ran, *curator.spent],
        versions=versions,
        tuning=str(parent["tuning"]),
    )
    alone_figures = {"epsilon": alone.epsilon, "delta": alone.delta, "stages": len(alone.stages)}
    certificate["stages"] = [*parent["stages"], *certificate["stages"][len(before) :]]  # as they were stated
    certificate |= {"parent": dict(parent), "extension": to_json(alone_figures)}
    return whole, certificate
