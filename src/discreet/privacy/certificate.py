"""The certificate: what was promised, what ran, and what it cost, in a form that anyone can check.

``verify`` recomputes ε from the events alone and checks every file against its hash. That is integrity,
not authenticity: it shows that the parts belong together, not who made them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dp_accounting.dp_event import DpEvent

from discreet.errors import CertificateError, DiscreetError
from discreet.files import from_json, to_json
from discreet.graph.graph import PublicFacts
from discreet.privacy import events
from discreet.privacy.accountants import accountant_versions, epsilon_of_version_0_1, spend
from discreet.privacy.assurance import is_exact
from discreet.privacy.budget import delta_reason
from discreet.privacy.coverage import COVERAGE, duties
from discreet.privacy.levels import parse_level
from discreet.privacy.plan import Plan, Stage
from discreet.privacy.statement import FIELDS as STATEMENT

SCHEMA = 2
"""What is written. Schema 1 (versions before 0.2) is still read."""
CERTIFICATE = "certificate.json"
AUDIT = "audit.json"
AUDIT_SCHEMA = 1
RELEASE_FILES = ("weights.safetensors", "config.json", "card.md")
# Recomputing with the same library gives the same figure; this is for rounding between machines.
_TOLERANCE = 1e-9

BEFORE_ALLOWANCE = "0.1.0.dev0"
"""The version whose certificates set nothing of δ aside for the rounding of compositions (by 1e-8 of ε at δ = 1e-6)."""

UNVERIFIED = "claimed by the paper, not verified"

ON_A_GRID = "Noise and coins are exact: whole numbers of steps on a public grid, made of cryptographic random bits."
IN_FLOATING_POINT = (
    "Noise of {stages} is drawn and added in floating point; attacks on exact floating-point arithmetic are out of "
    "scope there."
)

CAVEATS = (
    "Bad data (a broken promise on degrees, a feature outside the range that was given) ends in an error; that there "
    "was one is not private.",
    "Accuracy figures measured on private data are research figures, outside this guarantee.",
    "Verification shows integrity (the files, events and epsilon belong together), not who issued them.",
)


GIVEN = "hyper-parameters were given, not searched by this run; a search on private data is not accounted"
NOT_ACCOUNTED = "tuning not accounted"


def make_certificate(
    plan: Plan,
    facts: Sequence[PublicFacts],
    *,
    noise: str,
    for_release: bool,
    spent: DpEvent,
    versions: Mapping[str, str],
    tuning: str = GIVEN,
) -> dict[str, Any]:
    """The certificate of a finished fit; ``write_release`` adds the statement of its issuer and the hashes of files.

    ``facts`` are the public facts that the plan was made from, the fitted graph's first. ``spent`` is what the
    curator's ledger says ran; a certificate is made only if that equals the plan.
    """
    planned = [leaf for stage in plan.stages for _ in range(stage.runs) for leaf in events.leaves(stage.event)]
    if list(events.leaves(spent)) != planned:
        raise CertificateError("the ledger does not match the plan")
    level = plan.privacy.level
    content = {
        "schema": SCHEMA,
        "task": "node classification",
        "method": plan.method,
        "accounting": plan.accounting,
        **({"claim": {"by": plan.claim.formulas, "status": UNVERIFIED}} if plan.claim else {}),
        "level": {"spec": level.spec, "relation": level.describe()},
        "public": level.public_knowledge(),
        "trust": _trust(level.kind),
        "covers": {"name": plan.covers, "means": COVERAGE[plan.covers]},
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "delta_reason": delta_reason(plan.privacy, max(graph.num_nodes for graph in facts)),
        "budget": {"epsilon": plan.privacy.epsilon, "delta": plan.privacy.delta},
        "epsilon_by_accountant": plan.spend(),
        "facts": [asdict(graph) for graph in facts],
        "stages": [stage.to_json() for stage in plan.stages],
        "noise": {"source": noise, "for_release": for_release},
        "tuning": tuning,
        "notes": list(plan.notes),
        "duties": duties(plan.covers, level),
        "caveats": [_arithmetic(plan), *CAVEATS],
        "versions": {**accountant_versions(), **versions},
    }
    made: dict[str, Any] = to_json({**content, **dict.fromkeys(STATEMENT)})
    return made


def _arithmetic(plan: Plan) -> str:
    """What is true of the noise in the machine's arithmetic."""
    rough = [stage.name for stage in plan.stages if stage.is_private and not is_exact(stage.mechanism)]
    return IN_FLOATING_POINT.format(stages=", ".join(map(repr, rough))) if rough else ON_A_GRID


def seal(certificate: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    """Add the hash of every released file, and the certificate's own digest."""
    sealed = {**certificate, "files": {name: _sha256(content) for name, content in sorted(files.items())}}
    return {**sealed, "digest": digest(sealed)}


def digest(certificate: Mapping[str, Any]) -> str:
    """Hash of the certificate's content, the digest itself left out."""
    content = {key: value for key, value in certificate.items() if key != "digest"}
    return _sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode())


# -------------------------------------------------------------------- checking


@dataclass(frozen=True)
class Check:
    """One thing that was checked, and how it went."""

    name: str
    passed: bool
    detail: str


def verify(folder: str | Path) -> list[Check]:
    """Check a release: structure, digest, file hashes, ε from the events, and that it may be released."""
    folder = Path(folder)
    try:
        certificate = read_certificate(folder)
    except CertificateError as error:
        return [Check("certificate", False, str(error))]
    return [
        Check("certificate", True, f"schema {certificate['schema']}"),
        _check_digest(certificate),
        *_check_files(folder, certificate),
        *_check_epsilon(certificate),
        _check_accounting(certificate),
        _check_tuning(certificate),
        _check_noise(certificate),
        *_check_audit(folder, certificate),
    ]


def read_certificate(folder: str | Path) -> dict[str, Any]:
    """The certificate of a release as a dictionary, or one sentence that says what is wrong with it."""
    path = Path(folder) / CERTIFICATE
    try:
        certificate = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise CertificateError(f"{path} cannot be read: is this the folder of a release?") from None
    except ValueError:
        raise CertificateError(f"{path} is not valid JSON") from None
    needed = {"schema", "level", "epsilon", "delta", "budget", "stages", "files", "digest", "noise", "accounting"}
    if not isinstance(certificate, dict) or not needed <= certificate.keys():
        raise CertificateError(f"{path} lacks parts that every certificate has")
    if certificate["schema"] not in (1, SCHEMA):
        raise CertificateError(f"{path} has schema {certificate['schema']!r}; this version reads 1 and {SCHEMA}")
    return certificate


def certified_epsilon(certificate: Mapping[str, Any]) -> float:
    """What the whole release cost, a search included."""
    return _parse(certificate["epsilon"])


def _check_digest(certificate: Mapping[str, Any]) -> Check:
    same = digest(certificate) == certificate["digest"]
    return Check("digest", same, "certificate unchanged" if same else "the certificate was changed after sealing")


def _check_files(folder: Path, certificate: Mapping[str, Any]) -> list[Check]:
    listed = certificate["files"]
    checks = []
    for name in sorted({*RELEASE_FILES, *listed}):
        try:
            found = _sha256((folder / name).read_bytes())
        except OSError:
            checks.append(Check(name, False, "missing"))
            continue
        same = found == listed.get(name)
        checks.append(Check(name, same, "hash matches" if same else "the file is not the one that was certified"))
    return checks


def _check_epsilon(certificate: Mapping[str, Any]) -> list[Check]:
    """Recompute ε from the events alone."""
    try:
        parse_level(certificate["level"]["spec"])
        stages = [Stage.from_json(stage) for stage in certificate["stages"]]
        event = events.compose(events.repeat(stage.event, stage.runs) for stage in stages)
        bounds = spend(event, float(certificate["delta"]))
        if certificate.get("versions", {}).get("discreet") == BEFORE_ALLOWANCE:
            bounds = {**bounds, "pld": epsilon_of_version_0_1(event, float(certificate["delta"])) or math.inf}
        stated, budget = _parse(certificate["epsilon"]), _parse(certificate["budget"]["epsilon"])
    except (DiscreetError, KeyError, TypeError, ValueError) as error:
        return [Check("epsilon", False, f"cannot be recomputed: {error}")]
    if not bounds:
        return [Check("epsilon", False, "no accountant knows these events")]
    found = min(bounds.values())
    if certificate["accounting"] != "rigorous":
        return [_check_proved(certificate, found)]
    same = found == stated or math.isclose(found, stated, rel_tol=_TOLERANCE, abs_tol=1e-12)
    within = found <= budget * (1 + _TOLERANCE)
    return [
        Check("epsilon", same, f"recomputed {found:.9g} at delta {certificate['delta']:g}, stated {stated:.9g}"),
        Check("budget", within, f"epsilon {found:.6g} of {budget:.6g}"),
    ]


def _check_proved(certificate: Mapping[str, Any], found: float) -> Check:
    """With a claim, what was stated as proved for the same noise must still be that; the claim is another matter."""
    try:
        stated = min(_parse(value) for value in certificate["epsilon_by_accountant"].values())
    except (KeyError, AttributeError, TypeError, ValueError):
        return Check("epsilon", False, "the certificate does not say what is proved for its noise")
    same = found == stated or math.isclose(found, stated, rel_tol=_TOLERANCE, abs_tol=1e-12)
    return Check("epsilon", same, f"proved for this noise: {found:.6g} at delta {certificate['delta']:g}")


def _check_accounting(certificate: Mapping[str, Any]) -> Check:
    rigorous = certificate["accounting"] == "rigorous"
    return Check("accounting", rigorous, "rigorous" if rigorous else f"{UNVERIFIED}: {certificate['epsilon']}")


def _check_tuning(certificate: Mapping[str, Any]) -> Check:
    """A search that nobody paid for leaks what no ε here covers."""
    said = str(certificate.get("tuning", ""))
    return Check("tuning", not said.startswith(NOT_ACCOUNTED), said)


def _check_noise(certificate: Mapping[str, Any]) -> Check:
    return Check("noise", bool(certificate["noise"].get("for_release")), str(certificate["noise"].get("source")))


def audit_digest(report: Mapping[str, Any]) -> str:
    """Hash of an audit report's content, the digest itself left out."""
    return digest(report)


def _check_audit(folder: Path, certificate: Mapping[str, Any]) -> list[Check]:
    """Where an audit report is attached: it is unchanged, of this very certificate, and it passed."""
    if not (folder / AUDIT).exists():
        return []
    try:
        found = json.loads((folder / AUDIT).read_text(encoding="utf-8"))
        stated, about, passed = found["digest"], found["release"]["certificate"], found["passed"]
    except (OSError, ValueError, KeyError, TypeError):
        return [Check("audit", False, f"{AUDIT} is not an audit report")]
    if stated != audit_digest(found):
        return [Check("audit", False, "the audit report was changed after it was written")]
    if about != certificate["digest"]:
        return [Check("audit", False, "the audit report is about another release")]
    return [Check("audit", bool(passed), "found nothing against the guarantee" if passed else "found a violation")]


def _trust(kind: str) -> str:
    if kind == "local":
        return "none: every record is perturbed before it leaves its owner"
    if kind == "none":
        return "everyone who sees the release"
    return "the curator who runs the training sees the private graph; nobody else is trusted"


def _parse(value: float | str) -> float:
    return float(from_json(value))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
