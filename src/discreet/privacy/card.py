"""The card: a certificate as a page that people read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from discreet.files import from_json
from discreet.privacy.certificate import NOT_ACCOUNTED

_NOT_SAID = "not said"
_PROTECTED = "- **Protected**:"


def render_card(certificate: Mapping[str, Any]) -> str:
    """Markdown, made from the certificate alone."""
    lines = [
        f"# {certificate['method']}: a model for {certificate['task']}",
        "",
        *_warnings(certificate),
        *_issued(certificate),
        "## What is promised",
        "",
        *_promise(certificate),
        "",
        *_listed("## What you must see to", certificate.get("duties", ())),
        "## What read private data",
        "",
        *_stage_table(certificate["stages"]),
        "",
        *_listed("## Also true of this release", [*certificate["notes"], *certificate["caveats"]]),
        "Check this release with `discreet verify FOLDER`.",
    ]
    return "\n".join(lines) + "\n"


def guarantee_lines(card: str) -> list[str]:
    """The lines of a card that hold a figure of the guarantee or say what is protected, in their order."""
    return [line for line in card.splitlines() if "ε" in line or "δ" in line or line.startswith(_PROTECTED)]


def _warnings(certificate: Mapping[str, Any]) -> list[str]:
    """What nobody may overlook."""
    found = []
    if not certificate["noise"]["for_release"]:
        found.append(f"**Not for release.** {certificate['noise']['source']}")
    claim = certificate.get("claim")
    if claim:
        found.append(
            f"**Not a guarantee.** ε = {_figure(certificate['epsilon'])} is {claim['status']} ({claim['by']})."
        )
    if from_json(certificate["epsilon"]) == math.inf:
        found.append("**Not private.** This model was trained without any guarantee (ε = ∞).")
    if certificate["tuning"].startswith(NOT_ACCOUNTED):
        found.append(f"**Tuning not accounted.** {certificate['tuning']}")
    return [line for warning in found for line in (f"> {warning}", "")]


def _issued(certificate: Mapping[str, Any]) -> list[str]:
    """Who issued what, when and why, in their own words."""
    if certificate["schema"] == 1:
        return []
    parent = certificate["parent"]
    return [
        f"- **Data**: {_text(certificate['data'])}",
        f"- **Purpose**: {_text(certificate['purpose'])}",
        f"- **Issued by**: {_text(certificate['issuer'])}",
        f"- **Date**: {_text(certificate['date'])}",
        *([] if certificate["ledger"] is None else [f"- **Entry in the ledger**: {_text(certificate['ledger'])}"]),
        *([] if parent is None else [f"- **Extends** the release whose certificate has digest {parent.get('digest')}"]),
        "",
    ]


def _promise(certificate: Mapping[str, Any]) -> list[str]:
    claim, reason = certificate.get("claim"), certificate.get("delta_reason")
    bounds = certificate["epsilon_by_accountant"]
    return [
        f"- **{'Claim' if claim else 'Guarantee'}**: ε = {_figure(certificate['epsilon'])}, "
        f"δ = {certificate['delta']:g} (budget ε = {_figure(certificate['budget']['epsilon'])})",
        *_alone(certificate.get("extension")),
        *([f"- **Why this δ**: {reason}"] if reason else []),
        f"{_PROTECTED} {certificate['level']['relation']}",
        f"- **Not protected, taken as known to everyone**: {certificate['public']}",
        f"- **Covers** ({certificate['covers']['name']}): {certificate['covers']['means']}",
        f"- **Who is trusted**: {certificate['trust']}",
        f"- **Accounting**: {certificate['accounting']}; {'proved for the same noise: ' if claim else ''}"
        + ", ".join(f"{name} ε = {_figure(value)}" for name, value in bounds.items()),
        f"- **Noise**: {certificate['noise']['source']}",
        f"- **Tuning**: {certificate['tuning']}",
    ]


def _alone(extension: Mapping[str, Any] | None) -> list[str]:
    """The second figure of a release that was extended to one more graph."""
    if extension is None:
        return []
    figures = f"ε = {_figure(extension['epsilon'])}, δ = {extension['delta']:g}"
    return [f"- **For somebody in the new graph alone**: {figures}; the line above is for somebody in every graph"]


def _stage_table(stages: list[Mapping[str, Any]]) -> list[str]:
    if not stages:
        return ["Nothing: no stage reads private data."]
    rows = [
        f"| {s['name']} | {s['query']} | {s['mechanism']} | {_figure(s['sensitivity'])} ({s['metric']}) "
        f"| {s['runs']} | {s['why']} | {s.get('proof', _NOT_SAID)} | {s.get('noise', {}).get('sampler', _NOT_SAID)} |"
        for s in stages
    ]
    head = "| stage | query | mechanism | sensitivity | runs | why | proof | noise |"
    return [head, "|---|---|---|---|---|---|---|---|", *rows]


def _listed(title: str, sentences: Any) -> list[str]:
    return [title, "", *(f"- {sentence}" for sentence in sentences), ""] if sentences else []


def _text(given: str | None) -> str:
    """Words of the issuer: they may not become markup."""
    if given is None:
        return _NOT_SAID
    return "".join(f"\\{c}" if c in "\\`*_[]|#!" else c for c in given).replace("<", "&lt;")


def _figure(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
