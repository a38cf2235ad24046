"""Two certificates about the same person: what they cost together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dp_accounting.dp_event import DpEvent

from discreet.errors import PrivacyError
from discreet.files import from_json
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.plan import Stage


def composed_with(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """ε and δ for a unit that stands in the data of both, which must be of one level.

    Guarantee: all events in one composition at the larger δ, where an accountant knows them; otherwise ε and δ added up
    (basic composition). Both hold although the second was asked after the first was seen: composition is adaptive.
    """
    if first["level"]["spec"] != second["level"]["spec"]:
        raise PrivacyError(
            f"certificates of level {first['level']['spec']} and {second['level']['spec']} protect different things: "
            "nothing follows for both together"
        )
    if first["accounting"] != "rigorous":
        raise PrivacyError("the release states a paper's claim, not a guarantee: nothing follows for both together")
    delta = max(float(first["delta"]), float(second["delta"]))
    try:
        epsilon = epsilon_of(events.compose([event_of(first), event_of(second)]), delta)
    except PrivacyError:
        delta = float(first["delta"]) + float(second["delta"])
        epsilon = float(from_json(first["epsilon"])) + float(from_json(second["epsilon"]))
    return {"epsilon": epsilon, "delta": delta, "with": first.get("digest")}


def event_of(certificate: Mapping[str, Any]) -> DpEvent:
    """Everything that a certificate says ran, as one event."""
    stages = [Stage.from_json(stage) for stage in certificate["stages"]]
    return events.compose([events.repeat(stage.event, stage.runs) for stage in stages])
