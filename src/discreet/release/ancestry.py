"""A release that extends another: whether its certificate carries its parent's, and adds to it what it says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from discreet.errors import CertificateError
from discreet.files import from_json
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.certificate import digest
from discreet.privacy.certificate_form import check_certificate
from discreet.privacy.plan import Stage

_TOLERANCE = 1e-9
"""For rounding in another order of additions."""


def check_ancestry(certificate: Mapping[str, Any], *, extended: bool) -> None:
    """Refuse an extension without its parent, with one that was changed, or with a figure that does not follow."""
    extension, parent = certificate.get("extension"), certificate.get("parent")
    if (extension is not None) != extended:
        raise CertificateError("an extension is stated by one of certificate and configuration")
    if extension is None:
        return
    if parent is None:
        raise CertificateError("the certificate of an extended release does not carry its parent's")
    check_certificate(parent, "the parent's certificate")
    if digest(parent) != parent["digest"]:
        raise CertificateError("the parent's certificate was changed after sealing")
    for name in ("method", "level"):
        if parent[name] != certificate[name]:
            raise CertificateError(f"the parent's certificate is of another {name}")
    own = len(certificate["stages"]) - extension["stages"]
    if certificate["stages"][:own] != parent["stages"]:
        raise CertificateError("the stages do not begin with those of the parent")
    _check_alone(certificate["stages"][own:], extension)
    if parent["schema"] > 1:
        check_ancestry(parent, extended=parent.get("extension") is not None)


def _check_alone(stages: list[Mapping[str, Any]], extension: Mapping[str, Any]) -> None:
    """The figure for somebody in the new graph alone follows from the new stages."""
    read = [Stage.from_json(dict(stage)) for stage in stages]
    event = events.compose([events.repeat(stage.event, stage.runs) for stage in read])
    found, stated = epsilon_of(event, float(extension["delta"])), float(from_json(extension["epsilon"]))
    if not math.isclose(found, stated, rel_tol=_TOLERANCE, abs_tol=1e-12):
        raise CertificateError(f"for the new graph alone {stated:.9g} is stated, its stages give {found:.9g}")
