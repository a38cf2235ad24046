"""A release that extends another: whether its certificate carries its parent's, and adds to it what it says.

Whoever reads an extended release is shown its parent's figures too, so they are recomputed as the release's own are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from discreet.errors import CertificateError
from discreet.files import from_json
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.certificate import AUDIT, RELEASE_FILES, digest
from discreet.privacy.certificate_form import check_certificate
from discreet.privacy.plan import Stage
from discreet.release.consistency import check_version

_TOLERANCE = 1e-9
"""For rounding in another order of additions."""


def check_ancestry(certificate: Mapping[str, Any], *, extensions: int) -> None:
    """Refuse an extension without its parent, with one that was changed, or with a figure that does not follow.

    ``extensions`` is how many graphs the configuration says were added: the certificate has as many ancestors.
    """
    extension, parent = certificate.get("extension"), certificate.get("parent")
    if (extension is not None) != (extensions > 0):
        raise CertificateError("an extension is stated by one of certificate and configuration")
    if extension is None:
        if parent is not None:
            raise CertificateError("the certificate carries a parent's, and the release extends none")
        return
    if parent is None:
        raise CertificateError("the certificate of an extended release does not carry its parent's")
    _check_parent(parent)
    _check_kinship(certificate, parent)
    own = len(certificate["stages"]) - extension["stages"]
    if certificate["stages"][:own] != parent["stages"]:
        raise CertificateError("the stages do not begin with those of the parent")
    if certificate["delta"] != max(parent["delta"], extension["delta"]):
        raise CertificateError("delta is not the larger one of the parent and of the new graph")
    _check_figure("for the new graph alone", certificate["stages"][own:], extension)
    check_ancestry(parent, extensions=extensions - 1)


def ancestors(certificate: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The certificates of the releases that were extended, the latest first; their form must be checked already."""
    while certificate.get("extension") is not None:
        certificate = certificate["parent"]
        yield certificate


def _check_parent(parent: Mapping[str, Any]) -> None:
    """The parent is a release that can be extended, and unchanged; what it states is compared elsewhere."""
    check_certificate(parent, "the parent's certificate")
    if digest(parent) != parent["digest"]:
        raise CertificateError("the parent's certificate was changed after sealing")
    check_version(parent)
    if parent["schema"] == 1 or "trial_stages" in parent or parent["accounting"] != "rigorous":
        raise CertificateError("the parent's certificate is of a release that cannot be extended")
    if not set(RELEASE_FILES) <= set(parent["files"]) <= {*RELEASE_FILES, AUDIT}:
        raise CertificateError("the parent's certificate does not list the files of a release")


def _check_kinship(certificate: Mapping[str, Any], parent: Mapping[str, Any]) -> None:
    """Both are of one model, and the parent was fit for release if its extension is."""
    pairs = {
        "method": (parent["method"], certificate["method"]),
        "level": (parent["level"]["spec"], certificate["level"]["spec"]),
        "coverage": (parent["covers"]["name"], certificate["covers"]["name"]),
        "search of settings": (parent["tuning"], certificate["tuning"]),
        "graph": (parent["facts"], certificate["facts"][:-1]),
    }
    for name, (one, two) in pairs.items():
        if one != two:
            raise CertificateError(f"the parent's certificate is of another {name}")
    if certificate["noise"]["for_release"] and not parent["noise"]["for_release"]:
        raise CertificateError("the noise of the parent was not for release, and that of its extension is said to be")


def _check_figure(whose: str, stages: Sequence[Mapping[str, Any]], figures: Mapping[str, Any]) -> None:
    """An ε that is stated follows from the stages, at the δ beside it."""
    read = [Stage.from_json(dict(stage)) for stage in stages]
    event = events.compose([events.repeat(stage.event, stage.runs) for stage in read])
    found, stated = epsilon_of(event, float(figures["delta"])), float(from_json(figures["epsilon"]))
    if not math.isclose(found, stated, rel_tol=_TOLERANCE, abs_tol=1e-12):
        raise CertificateError(f"{whose} {stated:.9g} is stated, its stages give {found:.9g}")
