"""Two certificates about the same person: what they cost together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dp_accounting.dp_event import DpEvent

from discreet.errors import PrivacyError
from discreet.files import from_json
from discreet.privacy import events
from discreet.privacy.plan import Stage
from discreet.privacy.totals import compose_runs


class Certified(NamedTuple):
    """What a certificate says was spent."""

    epsilon: float
    delta: float
    event: DpEvent

    @classmethod
    def by(cls, certificate: Mapping[str, Any]) -> Certified:
        """Read a certificate."""
        return cls(float(from_json(certificate["epsilon"])), float(certificate["delta"]), event_of(certificate))


def composed_with(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """What a unit that stands in the data of both spends; they must be of one level.

    ``epsilon`` at ``delta`` composes all events, and holds if it was settled beforehand that the second would be asked,
    at its ε; ``summed`` adds ε and δ up, and holds also if that was decided by what the first showed
    (:mod:`discreet.privacy.totals`).
    """
    check_composable(first, second["level"]["spec"])
    one, two = Certified.by(first), Certified.by(second)
    epsilon, delta = compose_runs([one, two])
    summed = {"epsilon": one.epsilon + two.epsilon, "delta": one.delta + two.delta}
    return {"epsilon": epsilon, "delta": delta, "summed": summed, "with": first.get("digest")}


def check_composable(certificate: Mapping[str, Any], spec: str) -> None:
    """Refuse another level, and a paper's claim."""
    if certificate["level"]["spec"] != spec:
        raise PrivacyError(
            f"certificates of level {certificate['level']['spec']} and {spec} protect different things: nothing "
            "follows for both together"
        )
    if certificate["accounting"] != "rigorous":
        raise PrivacyError("the release states a paper's claim, not a guarantee: nothing follows for both together")


def event_of(certificate: Mapping[str, Any]) -> DpEvent:
    """Everything that a certificate says ran, as one event."""
    stages = [Stage.from_json(stage) for stage in certificate["stages"]]
    return events.compose([events.repeat(stage.event, stage.runs) for stage in stages])
