"""The estimator that a configuration describes, and whether its plan is the one that a certificate states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from discreet.errors import CertificateError
from discreet.files import INFINITE, from_json, to_json
from discreet.graph.graph import PublicFacts, SplitBy
from discreet.graph.schema import Schema
from discreet.methods.base import NodeClassifier
from discreet.methods.extension import Extension
from discreet.methods.parameters import Compute, checked_settings
from discreet.methods.registry import find_method, load_method
from discreet.privacy import events
from discreet.privacy.budget import Privacy
from discreet.privacy.calibration import RELATIVE_TOLERANCE
from discreet.privacy.levels import parse_level
from discreet.privacy.plan import Plan, Stage

# Calibrated twice, on two machines, noise is the same up to what the search leaves open.
_CALIBRATED = 2 * RELATIVE_TOLERANCE
_ROUNDED = 1e-9
"""For rounding in another order of additions."""
_CALIBRATED_KEYS = ("noise_multiplier", "noise_std")
"""The numbers that a calibration finds; every other one follows from settings and public facts."""
_EXACTLY = ("name", "mechanism", "metric", "runs", "shape", "answer_shape")
_WORDS = ("query", "why", "proof")


BEFORE: dict[str, dict[str, Any]] = {
    "dp-mlp": {"linear": False},
    "dpdgc": {"linear": False},
    "gap": {"start": "random"},
    "gcon": {"ends": "apart", "arithmetic": "unbounded"},
    "gcon-ssp": {"ends": "apart"},
    "hop-bayes": {"row_lengths": False},
    "lpgnet": {"start": "random"},
    "progap": {"start": "random"},
}
"""Settings that came later, and what stood for them before, by method: a release without them keeps its plan."""


def rebuild(config: Mapping[str, Any], compute: Compute | None = None) -> NodeClassifier:
    """The estimator of a configuration that has its form, with its public facts and without weights."""
    given = config["privacy"]
    privacy = Privacy(parse_level(given["level"]), from_json(given["epsilon"]), given["delta"])
    declared = find_method(config["method"])
    kind = load_method(declared)
    given_settings = {**BEFORE.get(declared.name, {}), **from_json(config["params"])}
    settings = checked_settings(kind, declared.name, given_settings)
    estimator: NodeClassifier = kind(privacy, compute=compute).set_params(**settings)
    schema = Schema.from_json(config.get("schema") or {})  # releases of before had none
    extra = [PublicFacts(**facts) for facts in config["extra_public"]]
    extensions = [Extension.from_json(added) for added in config.get("extensions", ())]
    decision, public = config.get("decision"), PublicFacts(**config["public"])
    if (decision is None) != (estimator.decide_by is None) or len(decision or ()) not in (0, public.num_classes):
        raise CertificateError("the weights of decisions in the configuration are not those that it asks for")
    split = None if config.get("split") is None else SplitBy(config["split"]["by"], config["split"]["seed"])
    estimator._resume(public, extra, schema, extensions, decision, split)
    return estimator


def compare_plan(plan: Plan, certificate: Mapping[str, Any], *, words: bool) -> None:
    """Refuse a certificate whose stages are not those of the plan, stage by stage.

    ``words`` compares texts too: those of one version are the same everywhere. Noise may differ as much as calibration
    leaves open; ε is recomputed from what the certificate states.
    """
    searched = certificate.get("trial_stages")
    if searched is None:
        _compare_stages(plan.stages, certificate["stages"], words=words)
        return
    own = len(plan.stages)
    if len(searched) > own + 1:
        raise CertificateError(f"a trial has {len(searched)} stages, the configuration asks for {own} and a score")
    _compare_stages(plan.stages, searched[:own], words=words)
    _compare_search(certificate["stages"], searched)


def _compare_stages(planned: Sequence[Stage], stated: Sequence[Mapping[str, Any]], *, words: bool) -> None:
    if len(planned) != len(stated):
        raise CertificateError(f"there are {len(stated)} stages, the configuration asks for {len(planned)}")
    for stage, given in zip(planned, stated, strict=True):
        expected = to_json(stage.to_json())
        for key in (*_EXACTLY, *(_WORDS if words else ())):
            if given[key] != expected[key]:
                raise _differs(stage.name, key, given[key], expected[key])
        unbounded = expected["sensitivity"] == INFINITE and "noise" not in given  # schema 1 gave bounds at level none
        for key in ("parameters", "event", *(() if unbounded else ("sensitivity",))):
            if not _alike(given[key], expected[key]):
                raise _differs(stage.name, key, given[key], expected[key])
        if "noise" in given:  # schema 1 has none beside the event
            _compare_noise(stage, given, words=words)


def _compare_noise(stage: Stage, given: Mapping[str, Any], *, words: bool) -> None:
    """The noise beside the event is that of the very event that is stated."""
    event = events.event_from_json(given["event"])
    expected = to_json(replace(stage, event=event).to_json()["noise"])
    tolerance = _CALIBRATED if "noise_std" in given["parameters"] else _ROUNDED  # where no event says it all
    if not _alike(given["noise"]["std"], expected["std"], tolerance):
        raise _differs(stage.name, "noise scale", given["noise"]["std"], expected["std"])
    if words and given["noise"] != {**expected, "std": given["noise"]["std"]}:
        raise _differs(stage.name, "sampler", given["noise"]["sampler"], expected["sampler"])


def _compare_search(stages: Sequence[Mapping[str, Any]], trial: Sequence[Mapping[str, Any]]) -> None:
    """One stage, which repeats trials, the winner's among them."""
    if len(stages) != 1 or stages[0]["event"].get("kind") != "RepeatAndSelect":
        raise CertificateError("there are stages of a trial, but no search that pays for them")
    repeated = events.event_from_json(stages[0]["event"]).event
    candidates = repeated.events if isinstance(repeated, events.OneOfDpEvent) else [repeated]
    winner = list(events.leaves(_composed(trial)))
    if winner not in [list(events.leaves(candidate)) for candidate in candidates]:
        raise CertificateError("the search does not pay for the stages of the trial that won")


def _composed(stages: Sequence[Mapping[str, Any]]) -> Any:
    return events.compose(events.repeat(events.event_from_json(stage["event"]), stage["runs"]) for stage in stages)


def _differs(stage: str, key: str, stated: Any, expected: Any) -> CertificateError:
    return CertificateError(
        f"stage {stage!r}: the {key} is stated as {stated!r:.80}, the configuration asks for {expected!r:.80}"
    )


def _alike(one: Any, two: Any, tolerance: float = _ROUNDED) -> bool:
    """Equal, but for the last digits of numbers that are not whole, and for what calibration leaves open of noise."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(
            _alike(one[key], two[key], _CALIBRATED if key in _CALIBRATED_KEYS else _ROUNDED) for key in one
        )
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_alike, one, two, [tolerance] * len(one)))
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, float) or isinstance(two, float):
        numbers = isinstance(one, int | float) and isinstance(two, int | float)
        return numbers and math.isclose(one, two, rel_tol=tolerance)
    return bool(one == two)
