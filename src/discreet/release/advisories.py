"""Versions whose releases are known not to keep what their certificates state, with the reason: `verify` fails on them.

A row is added when a break is found, and never removed. A release that is concerned stays readable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.version import InvalidVersion, Version

Certificate = Mapping[str, Any]


@dataclass(frozen=True)
class Advisory:
    """What is broken, before which version, in which releases of those, and why."""

    name: str
    before: str
    applies: Callable[[Certificate], bool]
    why: str

    def concerns(self, certificate: Certificate) -> bool:
        """Whether the release is one of those."""
        return _is_before(_made_by(certificate), self.before) and self.applies(certificate)


def _clips_ego_nets(certificate: Certificate) -> bool:
    return certificate["method"] == "dp-gnn" and "dpsgd" in _mechanisms(certificate)


def _releases_doubles(certificate: Certificate) -> bool:
    methods = ("hop-bayes", "gcon", "gcon-ssp")
    return certificate["method"] in methods and bool({"gaussian", "objective"} & _mechanisms(certificate))


def _needs_a_tiny_delta(certificate: Certificate) -> bool:
    return 0 < certificate["delta"] <= 1e-10 and "exact" not in certificate["epsilon_by_accountant"]


ADVISORIES = (
    Advisory(
        "clipping in single precision",
        "0.2.0.dev0",
        _clips_ego_nets,
        "norms of gradients of ego-nets were computed in single precision, which misses most of a term whose parts "
        "cancel: the guarantee does not hold (an attack reached epsilon 1.41 under a certificate of 1)",
    ),
    Advisory(
        "noise in floating point",
        "0.2.0.dev0",
        _releases_doubles,
        "noise was added to double-precision values in floating point, and their last bits give it away: whoever "
        "inverts the sampler tells two neighbours apart",
    ),
    Advisory(
        "composition at a tiny delta",
        "0.2.0.dev0",
        _needs_a_tiny_delta,
        "numerical composition at a delta of 1e-10 or less gave figures below the true epsilon",
    ),
)


def advisories(certificate: Certificate) -> list[Advisory]:
    """The advisories that concern a release."""
    return [advisory for advisory in ADVISORIES if advisory.concerns(certificate)]


def _mechanisms(certificate: Certificate) -> set[str]:
    """Of all stages that drew noise, those of a trial included."""
    stages = [*certificate["stages"], *(certificate.get("trial_stages") or ())]
    return {stage["mechanism"] for stage in stages if stage["event"].get("kind") != "NonPrivate"}


def _made_by(certificate: Certificate) -> str:
    """The version; of schema 1 an old one, whatever is stated: anybody can write a version."""
    return "0" if certificate["schema"] == 1 else certificate["versions"].get("discreet", "0")


def _is_before(version: str, mended: str) -> bool:
    """A version that cannot be read is taken as old."""
    try:
        return Version(version) < Version(mended)
    except InvalidVersion:
        return True
