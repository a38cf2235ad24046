"""The verdict on a release, and the rule that gives it: written down, conservative, and the organisation's to change.

Every finding is *fine*, a *condition* (somebody has to see to it) or a *stop*. One stop: do not publish. No stop, but a
condition: publish with conditions. Neither: publish. What was not shown (no audit, no attack) is a condition, unless
the organisation says otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, NamedTuple, get_args, get_type_hints

from discreet.errors import ParameterError
from discreet.files import parse_toml, read_text

Grade = Literal["fine", "condition", "stop"]
PUBLISH, CONDITIONS, STOP = "Publish", "Publish with conditions", "Do not publish"


@dataclass(frozen=True)
class Policy:
    """Thresholds of the rule. ``discreet report --policy FILE`` reads them from a TOML file of these keys."""

    fine_epsilon: float = 1.0
    """Up to here ε is fine: somebody who was 50 % sure becomes at most 73 % sure."""
    largest_epsilon: float = 8.0
    """Above this: stop. Odds may change by a factor of 3,000."""
    fine_delta: float = 0.1
    """Up to this over the number of nodes δ is fine: no person is expected to be exposed."""
    largest_delta: float = 1.0
    """Above this over the number of nodes: stop."""
    edge_level: Grade = "condition"
    neighbor_level: Grade = "condition"
    node_level: Grade = "fine"
    local_level: Grade = "fine"
    partly_covered: Grade = "condition"
    """Predictions are not covered for everybody."""
    no_audit: Grade = "condition"
    no_attacks: Grade = "condition"
    no_ledger: Grade = "condition"
    rounded_noise: Grade = "condition"
    """Noise of a stage is drawn in floating point."""
    nothing_said: Grade = "condition"
    """Purpose or issuer is not stated."""


class Finding(NamedTuple):
    """One thing that the rule looked at."""

    grade: Grade
    what: str
    why: str


class Evidence(NamedTuple):
    """What the rule looks at; ``None`` where it was not given."""

    broken: list[str]
    """Checks of ``verify`` that failed."""
    level: str
    level_kind: str
    epsilon: float
    delta: float
    nodes: int | None
    covers: str
    exact: bool
    stated: bool
    audited: bool | None
    refuted: bool | None
    total: float | None
    """ε of all releases from the same people at this level."""


def read_policy(path: Path | None) -> Policy:
    """The organisation's thresholds, or ours."""
    if path is None:
        return Policy()
    given = parse_toml(read_text(path, "policy"), str(path))
    kinds = get_type_hints(Policy)
    for key, value in given.items():
        if key not in kinds:
            raise ParameterError(f"{path} has no threshold {key!r:.60}; there are {', '.join(kinds)}")
        if kinds[key] is float and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
            raise ParameterError(f"{path}: {key} takes a number of at least 0, not {value!r:.60}")
        if kinds[key] is not float and value not in get_args(Grade):
            raise ParameterError(f"{path}: {key} takes fine, condition or stop, not {value!r:.60}")
    return Policy(**given)


def verdict(findings: list[Finding]) -> str:
    """The verdict that the findings give."""
    grades = {finding.grade for finding in findings}
    return STOP if "stop" in grades else CONDITIONS if "condition" in grades else PUBLISH


def judge(evidence: Evidence, policy: Policy) -> list[Finding]:
    """Every finding, the gravest first."""
    found = [
        *_integrity(evidence),
        _epsilon(evidence, policy),
        _delta(evidence, policy),
        _level(evidence, policy),
        _coverage(evidence, policy),
        _arithmetic(evidence, policy),
        _statement(evidence, policy),
        _audit(evidence, policy),
        _attacks(evidence, policy),
        _ledger(evidence, policy),
    ]
    order = {"stop": 0, "condition": 1, "fine": 2}
    return sorted(found, key=lambda finding: order[finding.grade])


def rule_in_words(policy: Policy) -> list[tuple[str, str]]:
    """Every threshold with its value, for the page."""
    return [(field.name.replace("_", " "), f"{getattr(policy, field.name)}") for field in fields(policy)]


def _integrity(evidence: Evidence) -> list[Finding]:
    if evidence.broken:
        return [Finding("stop", "Verification", said) for said in evidence.broken]
    return [Finding("fine", "Verification", "all parts belong together, and ε was recomputed from what ran")]


def _epsilon(evidence: Evidence, policy: Policy) -> Finding:
    epsilon = max(evidence.epsilon, evidence.total or 0.0)
    whose = "of all releases together" if epsilon > evidence.epsilon else "of this release"
    if math.isinf(epsilon):
        return Finding("stop", "Budget", f"ε {whose} is infinite: nothing is promised")
    said = f"ε {whose} is {epsilon:.3g}"
    if epsilon > policy.largest_epsilon:
        return Finding("stop", "Budget", f"{said}, above {policy.largest_epsilon:g}")
    if epsilon > policy.fine_epsilon:
        return Finding("condition", "Budget", f"{said}, above {policy.fine_epsilon:g}: decide if these odds will do")
    return Finding("fine", "Budget", f"{said}; up to {policy.fine_epsilon:g} is fine")


def _delta(evidence: Evidence, policy: Policy) -> Finding:
    if evidence.nodes is None:
        return Finding("condition", "Failure probability", "the number of nodes is not in the certificate")
    share = evidence.delta * evidence.nodes
    said = f"δ is {evidence.delta:g} with {evidence.nodes:,} nodes"
    if share > policy.largest_delta:
        return Finding(
            "stop", "Failure probability", f"{said}; at most {policy.largest_delta / evidence.nodes:.2g} is allowed"
        )
    if share > policy.fine_delta:
        return Finding(
            "condition", "Failure probability", f"{said}; up to {policy.fine_delta / evidence.nodes:.2g} is fine"
        )
    return Finding("fine", "Failure probability", f"{said}; up to {policy.fine_delta / evidence.nodes:.2g} is fine")


def _level(evidence: Evidence, policy: Policy) -> Finding:
    kind = evidence.level_kind
    if kind == "none":
        return Finding("stop", "What is protected", "nothing")
    words = {
        "edge": "single connections alone; everything else must be public anyway",
        "neighbor": "one record and a bounded number of its connections",
        "node": "whole records with their connections",
        "local": "records, before they leave their owners"
        + ("" if evidence.level == "local" else "; the rest of each record must be public anyway"),
    }
    partly = kind == "local" and evidence.level != "local"
    grade: Grade = "condition" if partly else getattr(policy, f"{kind}_level")
    return Finding(grade, "What is protected", words[kind])


def _coverage(evidence: Evidence, policy: Policy) -> Finding:
    if evidence.covers == "weights+predictions":
        return Finding("fine", "What may be shown", "the model and all its predictions")
    words = {
        "weights": "the model, but not its predictions on the private data",
        "weights+others-predictions": "the model; each prediction to the one it is about, and to nobody else",
        "own-prediction": "the model; each prediction to the one it is about, and to nobody else",
    }
    return Finding(policy.partly_covered, "What may be shown", words.get(evidence.covers, "not known"))


def _arithmetic(evidence: Evidence, policy: Policy) -> Finding:
    if evidence.exact:
        return Finding("fine", "Arithmetic", "noise is exact")
    return Finding(policy.rounded_noise, "Arithmetic", "noise of a stage is drawn in floating point, without a proof")


def _statement(evidence: Evidence, policy: Policy) -> Finding:
    if evidence.stated:
        return Finding("fine", "Purpose and issuer", "stated")
    return Finding(policy.nothing_said, "Purpose and issuer", "not stated: nobody answers for this release yet")


def _audit(evidence: Evidence, policy: Policy) -> Finding:
    passed, violated = "found nothing against the guarantee", "found a violation of the guarantee"
    return _tested("Audit", evidence.audited, policy.no_audit, "none was shown", passed, violated)


def _attacks(evidence: Evidence, policy: Policy) -> Finding:
    held = None if evidence.refuted is None else not evidence.refuted
    passed, violated = "none reached more than the guarantee allows", "one reached more than the guarantee allows"
    return _tested(
        "Attacks", held, policy.no_attacks, "none was shown that the guarantee sets a ceiling to", passed, violated
    )


def _tested(name: str, held: bool | None, missing: Grade, absent: str, passed: str, violated: str) -> Finding:
    """A test of the guarantee: not shown, passed, or not."""
    if held is None:
        return Finding(missing, name, absent)
    return Finding("fine", name, passed) if held else Finding("stop", name, violated)


def _ledger(evidence: Evidence, policy: Policy) -> Finding:
    if evidence.total is None:
        return Finding(policy.no_ledger, "Earlier releases", "no ledger was shown: others may add to this one")
    return Finding("fine", "Earlier releases", "counted, from the ledger")
