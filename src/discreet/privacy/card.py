"""The card: a certificate as a page that people read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from discreet.files import from_json
from discreet.privacy.certificate import NOT_ACCOUNTED


def render_card(certificate: Mapping[str, Any]) -> str:
    """Markdown, made from the certificate alone."""
    warning = (
        [] if certificate["noise"]["for_release"] else ["> **Not for release.** " + certificate["noise"]["source"], ""]
    )
    claim = certificate.get("claim")
    if claim:
        warning += [
            f"> **Not a guarantee.** ε = {_figure(certificate['epsilon'])} is {claim['status']} ({claim['by']}).",
            "",
        ]
    if from_json(certificate["epsilon"]) == math.inf:
        warning += ["> **Not private.** This model was trained without any guarantee (ε = ∞).", ""]
    if certificate["tuning"].startswith(NOT_ACCOUNTED):
        warning += [f"> **Tuning not accounted.** {certificate['tuning']}", ""]
    lines = [
        f"# {certificate['method']}: a model for {certificate['task']}",
        "",
        *warning,
        f"- **{'Claim' if claim else 'Guarantee'}**: ε = {_figure(certificate['epsilon'])}, "
        f"δ = {certificate['delta']:g} (budget ε = {_figure(certificate['budget']['epsilon'])})",
        f"- **Protected**: {certificate['level']['relation']}",
        f"- **Covers** ({certificate['covers']['name']}): {certificate['covers']['means']}",
        f"- **Taken as public**: {certificate['public']}",
        f"- **Trust**: {certificate['trust']}",
        f"- **Accounting**: {certificate['accounting']}; {'proved for the same noise: ' if claim else ''}"
        + ", ".join(f"{name} ε = {_figure(value)}" for name, value in certificate["epsilon_by_accountant"].items()),
        f"- **Noise**: {certificate['noise']['source']}",
        f"- **Tuning**: {certificate['tuning']}",
        "",
        "## What read private data",
        "",
        *_stage_table(certificate["stages"]),
        "",
        *(f"- {note}" for note in [*certificate["notes"], *certificate["caveats"]]),
        "",
        "Check this release with `discreet verify FOLDER`.",
    ]
    return "\n".join(lines) + "\n"


def _stage_table(stages: list[Mapping[str, Any]]) -> list[str]:
    if not stages:
        return ["Nothing: no stage reads private data."]
    rows = [
        f"| {s['name']} | {s['query']} | {s['mechanism']} | {_figure(s['sensitivity'])} ({s['metric']}) "
        f"| {s['runs']} | {s['why']} |"
        for s in stages
    ]
    return ["| stage | query | mechanism | sensitivity | runs | why |", "|---|---|---|---|---|---|", *rows]


def _figure(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
