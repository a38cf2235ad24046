"""The certificate: what was promised, what ran, and what it cost, in a form that anyone can check.

``release.verify`` checks it. That is integrity, not authenticity: it shows that the parts belong together, not who made
them. :class:`Statement` is what the issuer adds in words: which data, what for, by whom, when, and what came before.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dp_accounting.dp_event import DpEvent

from discreet.errors import CertificateError, ParameterError
from discreet.files import from_json, to_json
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import EDGES, FEATURES, LABELS
from discreet.privacy.coverage import COVERAGE, NOTHING
from discreet.privacy.levels import Level
from discreet.privacy.plan import Plan

SCHEMA = 2
"""What is written. Schema 1 (versions before 0.2) is still read."""
CERTIFICATE = "certificate.json"
SIGNATURE = "certificate.sig"
"""The one file that may lie in a release without being listed."""
AUDIT = "audit.json"
AUDIT_SCHEMA = 1
"""Of ``audit.json``."""
RELEASE_FILES = ("weights.safetensors", "config.json", "card.md")
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


TASK = "node classification"
GIVEN = "hyper-parameters were given, not searched by this run; a search on private data is not accounted"
NOT_ACCOUNTED = "tuning not accounted"
CHARGED = "charged: "
"""How ``tuning`` begins where a search was paid for."""
FREE = "the search read nothing that the level protects"
"""How ``tuning`` ends where there was nothing to pay for: of a method without a private stage."""


def make_certificate(
    plan: Plan,
    facts: Sequence[PublicFacts],
    *,
    noise: str,
    for_release: bool,
    spent: Sequence[DpEvent],
    versions: Mapping[str, str],
    tuning: str = GIVEN,
) -> dict[str, Any]:
    """The certificate of a finished fit; ``write_release`` adds the statement of its issuer and the hashes of files.

    ``facts`` are the public facts that the plan was made from, the fitted graph's first. ``spent`` holds the
    events that the curator's ledger says ran; a certificate is made only if they are those of the plan.
    """
    if not plan.is_what_ran(spent):
        raise CertificateError("the ledger does not match the plan")
    level, planned, promised = plan.privacy.level, plan.to_json(), plan.promise(facts)
    content = {
        "schema": SCHEMA,
        "task": TASK,
        **planned,
        **({"claim": {"by": plan.claim.formulas, "status": UNVERIFIED}} if plan.claim else {}),
        "level": promised["level"],
        "public": promised["public"],
        "trust": trust_in(level.kind),
        "covers": {"name": plan.covers, "means": COVERAGE[plan.covers]},
        "delta_reason": promised["delta_reason"],
        "facts": [asdict(graph) for graph in facts],
        "noise": {"source": noise, "for_release": for_release},
        "tuning": tuning,
        "duties": duties(plan.covers, level),
        "caveats": caveats_of(planned["stages"]),
        "versions": {**promised["versions"], **versions},
    }
    made: dict[str, Any] = to_json({**content, **dict.fromkeys(STATED_FIELDS)})
    return made


_PREDICTIONS = {
    "weights": "Do not publish predictions on private data: they read that data again.",
    "weights+others-predictions": "Give each prediction to the person it is about, and to nobody else.",
    "own-prediction": "Give each prediction to the node it is about, and to nobody else.",
}
_NOTHING_IS_PROTECTED = "Treat the release as you treat the data: nothing is protected."
_ALWAYS = (
    "Do not publish accuracy or any other figure that was measured on private data, unless its own noise was paid for.",
    "Do not publish how long training took or how much memory it used.",
    "Count every release from the same data: their costs add up.",
)


def duties(covers: str, level: Level) -> list[str]:
    """What whoever holds a release must see to, because no noise does."""
    if level.kind == "none" or covers == NOTHING:
        return [_NOTHING_IS_PROTECTED]
    unprotected = [part for part in (EDGES, FEATURES, LABELS) if part not in level.private]
    parts = " and ".join(unprotected)
    exposed = [f"Make sure that {parts} may be known to everyone: this guarantee does not protect them."]
    own = [_PREDICTIONS[covers]] if covers in _PREDICTIONS else []
    return [*own, *(exposed if unprotected else []), *_ALWAYS]


def caveats_of(stages: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader of these stages, as a plan writes them, must know beside the figures."""
    return [_arithmetic(stages), *CAVEATS]


def _arithmetic(stages: Sequence[Mapping[str, Any]]) -> str:
    """What is true of the noise in the machine's arithmetic."""
    inexact = [stage["name"] for stage in stages if not stage["noise"]["exact"]]
    return IN_FLOATING_POINT.format(stages=", ".join(map(repr, inexact))) if inexact else ON_A_GRID


def seal(certificate: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    """Add the hash of every released file, and the certificate's own digest."""
    sealed = {**certificate, "files": {name: sha256(content) for name, content in sorted(files.items())}}
    return {**sealed, "digest": digest(sealed)}


def digest(certificate: Mapping[str, Any]) -> str:
    """Hash of the certificate's content, the digest itself left out."""
    content = {key: value for key, value in certificate.items() if key != "digest"}
    return sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode())


def certified_epsilon(certificate: Mapping[str, Any]) -> float:
    """What the whole release cost, a search included."""
    return float(from_json(certificate["epsilon"]))


def audit_digest(report: Mapping[str, Any]) -> str:
    """Hash of an audit report's content, the digest itself left out."""
    return digest(report)


def trust_in(kind: str) -> str:
    """Who is trusted at this kind of level."""
    if kind == "local":
        return "none: every record is perturbed before it leaves its owner"
    if kind == "none":
        return "everyone who sees the release"
    return "the curator who runs the training sees the private graph; nobody else is trusted"


def sha256(content: bytes) -> str:
    """The hash that certificates list files by."""
    return hashlib.sha256(content).hexdigest()


# -------------------------------------------------------------------- what the issuer says

LONGEST = 500
"""Characters of one text: a name or a sentence, no document."""
TEXTS = ("data", "purpose", "issuer", "ledger")
STATED_FIELDS = (*TEXTS, "date", "parent")


@dataclass(frozen=True)
class Statement:
    """Words of the issuer, as given; nothing here is read off the data, and nobody checks that it is true.

    Parameters
    ----------
    data, purpose, issuer
        The name of the data, what the release is for, and who answers for it.
    date
        ``2026-01-31``; today (UTC) where none is given.
    ledger
        The id of this release's entry in a ledger.
    """

    data: str | None = None
    purpose: str | None = None
    issuer: str | None = None
    date: str | None = None
    ledger: str | None = None

    def __post_init__(self) -> None:
        """Refuse texts that are too long or do not stand on one line, and dates that are none."""
        for name in TEXTS:
            _check_text(name, getattr(self, name))
        if self.date is not None:
            check_date(self.date)

    def added_to(self, certificate: Mapping[str, Any]) -> dict[str, Any]:
        """The certificate with this statement; what is not given stays as the certificate has it."""
        given = {name: getattr(self, name) for name in TEXTS if getattr(self, name) is not None}
        date = self.date or certificate.get("date") or datetime.datetime.now(datetime.UTC).date().isoformat()
        return {**certificate, **given, "date": date}


def check_stated(certificate: Mapping[str, Any]) -> None:
    """Refuse words of an issuer that a :class:`Statement` does not take: the card would show them as its own lines."""
    Statement(**{name: certificate[name] for name in (*TEXTS, "date")})


def check_date(text: str) -> None:
    """Refuse what is no date as ISO 8601 writes it."""
    try:
        right = datetime.date.fromisoformat(text).isoformat() == text
    except (TypeError, ValueError):
        right = False
    if not right:
        raise ParameterError(f"a date is written as 2026-01-31, not {text!r}")


def _check_text(name: str, text: str | None) -> None:
    if text is None:
        return
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST or not text.isprintable():
        raise ParameterError(f"{name} must be one line of 1 to {LONGEST} printable characters, not {text!r:.80}")
