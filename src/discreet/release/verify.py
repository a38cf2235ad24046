"""Whether a release is what its certificate says: its files, its stages, its ε, and that it may be published.

That is integrity, not authenticity: it shows that the parts belong together, not who made them. Nothing in a release is
executed, every file is read once and within limits, and what is checked are the bytes that were read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from dp_accounting.dp_event import DpEvent

from discreet.arrays import Array
from discreet.errors import CertificateError, DiscreetError
from discreet.files import expand_home, from_json
from discreet.graph.parts import FEATURES, LABELS
from discreet.methods.base import NodeClassifier
from discreet.methods.extension import note_on
from discreet.methods.parameters import Compute
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of_version_0_1, group_note, spend
from discreet.privacy.certificate import (
    AUDIT,
    NOT_ACCOUNTED,
    RELEASE_FILES,
    SIGNATURE,
    UNVERIFIED,
    audit_digest,
    certified_epsilon,
    digest,
    sha256,
)
from discreet.privacy.levels import NoPrivacy, parse_level
from discreet.privacy.plan import Plan, Stage
from discreet.privacy.release_folder import WEIGHTS, ReleaseFolder, read_folder
from discreet.release.advisories import advisories
from discreet.release.ancestry import ancestors, check_ancestry
from discreet.release.consistency import check_configuration, check_story, same_version
from discreet.release.rebuild import compare_plan, rebuild
from discreet.untrusted import strict_json

# Recomputing with the same library gives the same figure; this is for rounding between machines.
_TOLERANCE = 1e-9

BEFORE_ALLOWANCE = "0.1.0.dev0"
"""The version whose certificates set nothing of δ aside for the rounding of compositions (by 1e-8 of ε at δ = 1e-6)."""

SIGNED = "signature"
"""The check of a signature; where a public key is given, :mod:`discreet.release.signature` does it with that key."""
WHOSE = "whose key that is, `discreet verify --key FILE` shows"

MAY_FAIL = ("noise", "accounting", "tuning", "advisory")
"""Checks that say a release is not to be published; its parts belong together all the same, so it can be read."""

LARGE_EPSILON = 10.0
"""Above this ε the guarantee alone says little: odds may change by a factor of 22,000."""

# What code that reads a hostile configuration may raise: a size that does not fit, a value that a formula cannot take.
_SURPRISES = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True)
class Check:
    """One thing that was checked, and how it went."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Examined:
    """All checks of a release, what its reader should be warned of, and the model where that could be read."""

    checks: list[Check]
    warnings: list[str] = field(default_factory=list)
    estimator: NodeClassifier | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The bytes that were checked, by name; none where the folder could not be read."""

    @property
    def passed(self) -> bool:
        """Whether every check did."""
        return all(check.passed for check in self.checks)

    def require_sound(self) -> NodeClassifier:
        """The estimator with its weights, where the parts belong together."""
        broken = [check for check in self.checks if not check.passed and check.name not in MAY_FAIL]
        if broken:
            raise CertificateError(f"this is not a sound release: {broken[0].name}: {broken[0].detail}")
        assert self.estimator is not None
        return self.estimator


def verify(folder: str | os.PathLike[str]) -> list[Check]:
    """Check a release: structure, digest, file hashes, the plan, ε from the events, and that it may be released."""
    return examine(folder).checks


def examine(folder: str | os.PathLike[str], compute: Compute | None = None) -> Examined:
    """Read a release once and check what was read; where the files are not those that were sealed, that is all."""
    try:
        release = read_folder(expand_home(folder))
    except (DiscreetError, OSError) as error:
        return Examined([Check("certificate", False, str(error))])
    certificate = release.certificate
    checks = [Check("certificate", True, f"schema {certificate['schema']}"), _check_digest(certificate)]
    checks += [*_check_files(release), *_check_signature(release)]
    if not all(check.passed for check in checks):
        return Examined(checks, files=release.files)
    made: list[NodeClassifier] = []
    checks.append(_attempt("weights", lambda: _check_weights(release)))
    checks.append(_attempt("configuration", lambda: check_configuration(release)))
    if checks[-1].passed:
        checks.append(_attempt("plan", lambda: _check_plan(release, made, compute)))
    if checks[-1].passed:
        checks += _check_epsilon(certificate)
    if all(check.passed for check in checks):
        checks.append(_attempt("model", lambda: _check_model(release, made[0])))
    lineage = [certificate, *(ancestors(certificate) if all(check.passed for check in checks) else ())]
    checks += [_check_accounting(certificate), _check_tuning(certificate), _check_noise(certificate)]
    checks += [*_check_advisories(lineage), *_check_audit(release)]
    return Examined(checks, list(_warnings(release, lineage)), made[0] if made else None, release.files)


def _attempt(name: str, check: Callable[[], str]) -> Check:
    """A check that raises where it fails: one sentence, whatever a hostile file makes of it."""
    try:
        return Check(name, True, check())
    except (DiscreetError, *_SURPRISES) as error:
        sentence = " ".join(str(error).split()) or type(error).__name__
        return Check(name, False, f"{sentence:.400}")


# -------------------------------------------------------------------- files


def _check_digest(certificate: Mapping[str, Any]) -> Check:
    same = digest(certificate) == certificate["digest"]
    return Check("digest", same, "certificate unchanged" if same else "the certificate was changed after sealing")


def _check_files(release: ReleaseFolder) -> Iterator[Check]:
    listed = release.certificate["files"]
    for name in sorted({*RELEASE_FILES, *listed}):
        if name not in release.files:
            yield Check(name, False, "missing")
            continue
        same = sha256(release.files[name]) == listed.get(name)
        yield Check(name, same, "hash matches" if same else "the file is not the one that was certified")


def _check_signature(release: ReleaseFolder) -> Iterator[Check]:
    """Of a signed release: that its signature is one on this certificate, by the key that it names."""
    if SIGNATURE in release.files:
        from discreet.release.signature_file import check_own_signature

        yield _attempt(SIGNED, lambda: f"by the key {check_own_signature(release.files)}; {WHOSE}")


def _check_weights(release: ReleaseFolder) -> str:
    return f"{len(release.arrays())} arrays of finite numbers"


# -------------------------------------------------------------------- the plan and the model


def _check_plan(release: ReleaseFolder, made: list[NodeClassifier], compute: Compute | None) -> str:
    """The configuration, planned again, asks for the stages that the certificate states."""
    certificate, config = release.certificate, release.config()
    estimator = rebuild(config, compute)
    *earlier, plan = estimator.plans()
    estimator.plan_ = plan
    made.append(estimator)
    check_ancestry(certificate, extensions=len(estimator.extensions_))
    for ancestor, planned in zip(ancestors(certificate), reversed(earlier), strict=True):
        _check_ancestor(ancestor, planned, config)
    _compare(plan, certificate)
    count = len(plan.stages)
    return "one stage, that of the configuration" if count == 1 else f"{count} stages are those of the configuration"


def _check_ancestor(ancestor: Mapping[str, Any], plan: Plan, config: Mapping[str, Any]) -> None:
    """What is asked of a release is asked of those that it extends: readers are shown their certificates, too."""
    try:
        check_story({**config, "extensions": config["extensions"][: _count_extensions(ancestor)]}, ancestor)
        _compare(plan, ancestor)
        _refuse_failed(_check_epsilon(ancestor))
    except DiscreetError as error:
        raise CertificateError(f"the parent's certificate: {error}") from None


def _count_extensions(certificate: Mapping[str, Any]) -> int:
    return sum(1 for _ in ancestors(certificate))


def _refuse_failed(checks: Sequence[Check]) -> None:
    for check in checks:
        if not check.passed:
            raise CertificateError(check.detail)


def _compare(plan: Plan, certificate: Mapping[str, Any]) -> None:
    """Refuse a certificate that states anything else than the plan."""
    if plan.covers != certificate["covers"]["name"]:
        raise CertificateError(
            f"the certificate covers {certificate['covers']['name']}, the configuration {plan.covers}"
        )
    if plan.accounting != certificate["accounting"]:
        raise CertificateError(
            f"the accounting is stated as {certificate['accounting']}, the configuration asks for {plan.accounting}"
        )
    if ("claim" in certificate) != (plan.claim is not None):
        raise CertificateError("the claim of a paper is stated by one of certificate and configuration")
    if plan.delta != certificate["delta"]:
        raise CertificateError(f"delta is stated as {certificate['delta']:g}, the configuration gives {plan.delta:g}")
    compare_plan(plan, certificate, words=same_version(certificate))  # of schema 1 too: all that it holds
    searched = certificate.get("trial_stages") is not None
    if same_version(certificate) and not searched and certificate["notes"] != _notes(plan, certificate):
        raise CertificateError("the notes of the certificate are not those of the configuration's plan")


def _notes(plan: Plan, certificate: Mapping[str, Any]) -> list[str]:
    """Those of the plan; what they say of two units follows from the noise that is stated, as calibration found it."""
    if certificate.get("extension") is not None:
        figures = certificate["extension"]
        return [note_on(float(from_json(figures["epsilon"])), float(figures["delta"]))]
    level, planned, stated = plan.privacy.level, plan.event(), _stated_event(certificate)
    if stated == planned:
        return list(plan.notes)
    of_two = group_note(level, planned, plan.delta)
    return [group_note(level, stated, plan.delta) or note if note == of_two else note for note in plan.notes]


def _stated_event(certificate: Mapping[str, Any]) -> DpEvent:
    """Everything that the stated stages run."""
    stages = [Stage.from_json(stage) for stage in certificate["stages"]]
    return events.compose(events.repeat(stage.event, stage.runs) for stage in stages)


def _check_model(release: ReleaseFolder, estimator: NodeClassifier) -> str:
    """The arrays are those of the model that the configuration describes: none is missing, and none is left over."""
    arrays = release.arrays()
    estimator.certificate_ = release.certificate
    try:
        estimator._restore(arrays)
        known = estimator._state()
    except _SURPRISES:
        raise CertificateError(f"{WEIGHTS} does not fit the configuration") from None
    unknown = sorted(arrays.keys() - known.keys())
    if unknown:
        raise CertificateError(f"{WEIGHTS} holds {unknown[0]!r:.60}, which the model does not know")
    other = [name for name in sorted(arrays) if not _same_array(arrays[name], known[name])]
    if other:
        raise CertificateError(
            f"{WEIGHTS} holds {other[0]!r:.60} in a form, or with values, that the model does not read"
        )
    return "the arrays are those of the model"


def _same_array(one: Array, two: Array) -> bool:
    return one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()


# -------------------------------------------------------------------- ε


def _check_epsilon(certificate: Mapping[str, Any]) -> list[Check]:
    """Recompute ε from the events alone."""
    found: list[float] = []
    recomputed = _attempt("epsilon", lambda: _recompute(certificate, found))
    if not found or not recomputed.passed:
        return [recomputed]
    if certificate["accounting"] != "rigorous":
        return [recomputed]
    budget = float(from_json(certificate["budget"]["epsilon"]))
    within = found[0] <= budget * (1 + _TOLERANCE)
    return [recomputed, Check("budget", within, f"epsilon {found[0]:.6g} of {budget:.6g}")]


def _recompute(certificate: Mapping[str, Any], found: list[float]) -> str:
    """What is proved for the stated events, and that the certificate says so; a claim is another matter."""
    event, delta = _stated_event(certificate), float(certificate["delta"])
    bounds = spend(event, delta)
    if certificate["schema"] == 1 and certificate["versions"].get("discreet") == BEFORE_ALLOWANCE:
        bounds = {**bounds, "pld": epsilon_of_version_0_1(event, delta) or math.inf}
    if not bounds:
        raise CertificateError("no accountant knows these events")
    proved = min(bounds.values())
    found.append(proved)
    listed = [float(from_json(value)) for value in certificate["epsilon_by_accountant"].values()]
    rigorous = certificate["accounting"] == "rigorous"
    stated = certified_epsilon(certificate) if rigorous else min(listed, default=math.nan)
    if not _same(proved, stated) or not _same(min(listed, default=math.nan), stated):
        raise CertificateError(f"recomputed {proved:.9g} at delta {delta:g}, stated {stated:.9g}")
    if same_version(certificate) and not _same_by_accountant(bounds, certificate["epsilon_by_accountant"]):
        raise CertificateError("the figures of the accountants are not those of these events")
    return f"recomputed {proved:.9g} at delta {delta:g}, stated {stated:.9g}"


def _same_by_accountant(bounds: Mapping[str, float], stated: Mapping[str, Any]) -> bool:
    return bounds.keys() == stated.keys() and all(
        _same(bounds[name], float(from_json(stated[name]))) for name in bounds
    )


def _same(one: float, two: float) -> bool:
    return one == two or math.isclose(one, two, rel_tol=_TOLERANCE, abs_tol=1e-12)


# -------------------------------------------------------------------- whether it may be published


def _check_accounting(certificate: Mapping[str, Any]) -> Check:
    rigorous = certificate["accounting"] == "rigorous"
    return Check("accounting", rigorous, "rigorous" if rigorous else f"{UNVERIFIED}: {certificate['epsilon']}")


def _check_tuning(certificate: Mapping[str, Any]) -> Check:
    """A search that nobody paid for leaks what no ε here covers."""
    said = certificate["tuning"]
    return Check("tuning", not said.startswith(NOT_ACCOUNTED), said)


def _check_noise(certificate: Mapping[str, Any]) -> Check:
    return Check("noise", certificate["noise"]["for_release"], certificate["noise"]["source"])


def _check_audit(release: ReleaseFolder) -> list[Check]:
    """Where an audit report is attached: it is unchanged, of this very certificate, and it passed."""
    if AUDIT not in release.files:
        return []
    return [_attempt("audit", lambda: _read_audit(release))]


def _read_audit(release: ReleaseFolder) -> str:
    found = strict_json(release.files[AUDIT], AUDIT)
    try:
        stated, about, passed = found["digest"], found["release"]["certificate"], found["passed"]
    except (KeyError, TypeError):
        raise CertificateError(f"{AUDIT} is not an audit report") from None
    if stated != audit_digest(found):
        raise CertificateError("the audit report was changed after it was written")
    if about != digest_before_audit(release.certificate):
        raise CertificateError("the audit report is about another release")
    if passed is not True:
        raise CertificateError("the audit found a violation")
    return "found nothing against the guarantee"


def digest_before_audit(certificate: Mapping[str, Any]) -> str:
    """The digest that the certificate had before an audit report was attached: what the report is about."""
    files = {name: found for name, found in certificate["files"].items() if name != AUDIT}
    return digest({**certificate, "files": files})


def _check_advisories(lineage: Sequence[Mapping[str, Any]]) -> list[Check]:
    """Of a release and those that it extends: what was released with a break is part of it."""
    found = dict.fromkeys(advisory for certificate in lineage for advisory in advisories(certificate))
    if not found:
        return [Check("advisory", True, "no known break concerns this version")]
    return [Check("advisory", False, f"{advisory.name}: {advisory.why}") for advisory in found]


# -------------------------------------------------------------------- what holds, and yet should be thought about


def _warnings(release: ReleaseFolder, lineage: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What a reader must not overlook although every check passed."""
    certificate = release.certificate
    other = [stated for stated in lineage if not same_version(stated)]
    if other:
        stated, now = other[0]["versions"].get("discreet"), version("discreet")
        which = "this release" if other[0] is certificate else "the release that it extends"
        yield f"THE WORDING WAS NOT COMPARED: version {stated!r:.60} wrote {which}, and this is {now}"
    try:
        level = parse_level(certificate["level"]["spec"])
        config = release.config()
    except DiscreetError:
        return
    if isinstance(level, NoPrivacy):
        yield "NOTHING IS PROTECTED: this model was trained without any guarantee"
        return
    epsilon, delta = certified_epsilon(certificate), float(certificate["delta"])
    if epsilon > LARGE_EPSILON:
        yield f"epsilon is {epsilon:.4g}: above {LARGE_EPSILON:g} the guarantee alone says little"
    added = (extension["public"] for extension in config.get("extensions", ()))
    nodes = max(facts["num_nodes"] for facts in (config["public"], *config["extra_public"], *added))
    if delta * nodes > 1:
        yield f"delta {delta:g} is above 1/n = {1 / nodes:.2g}: publishing one person's record whole could be within it"
    exposed = [part for part in (FEATURES, LABELS) if part not in level.private]
    if exposed:
        parts = " and ".join(exposed)
        yield f"{parts.upper()} ARE NOT PROTECTED at level {level.spec}: make sure that everyone may know them"
