"""Whether the configuration, the card and the certificate of a release say the same.

Figures, facts and names are compared for every version; words only where this version wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from packaging.version import InvalidVersion, Version

from discreet.errors import CertificateError
from discreet.files import from_json
from discreet.graph.graph import OWN_SPLIT, PublicFacts
from discreet.graph.parts import FEATURES, LABELS
from discreet.graph.schema import Schema
from discreet.graph.splits import reads_labels
from discreet.mechanisms.bits import FIXED, FRESH
from discreet.privacy.budget import Privacy, delta_reason
from discreet.privacy.card import guarantee_lines, render_card
from discreet.privacy.certificate import (
    CHARGED,
    FREE,
    GIVEN,
    NOT_ACCOUNTED,
    TASK,
    caveats_of,
    check_stated,
    duties,
    trust_in,
)
from discreet.privacy.coverage import COVERAGE
from discreet.privacy.levels import Level, NoPrivacy, parse_level
from discreet.privacy.release_folder import CARD, CONFIG, ReleaseFolder

_PLAIN = re.compile(r"[A-Za-z0-9.+!_-]{1,80}")
"""What names of packages and their versions are made of; the certificate of a release is no place for other texts."""

FIRST_OF_SCHEMA_2 = "0.2.0.dev0"
"""The first version that wrote certificates of schema 2, and no more of schema 1."""


def check_configuration(release: ReleaseFolder) -> str:
    """The configuration, the card and the certificate tell one story."""
    config, certificate = release.config(), release.certificate
    check_story(config, certificate)
    if same_version(certificate):
        if release.files[CARD] != render_card(certificate).encode():
            raise CertificateError(f"{CARD} does not say what the certificate says")
    else:
        _check_card_figures(release)
    return f"{config['method']} at level {certificate['level']['spec']}"


def check_story(config: Mapping[str, Any], certificate: Mapping[str, Any]) -> None:
    """Configuration and certificate tell one story: version, method, level, budget, δ, facts, issuer's words."""
    check_version(certificate)
    level, given, budget = parse_level(certificate["level"]["spec"]), config["privacy"], certificate["budget"]
    searched, added = certificate.get("trial_stages") is not None, config.get("extensions", [])
    facts = [config["public"], *config["extra_public"], *(extension["public"] for extension in added)]
    pairs = {
        "method": (certificate["method"], config["method"]),
        "level": (level.spec, parse_level(given["level"]).spec),
    }
    if added:  # its budget is what all of it costs; that this is so, is checked with the plan
        pairs["budget"] = (budget, {"epsilon": certificate["epsilon"], "delta": certificate["delta"]})
    elif searched:  # a trial has a part of the budget's epsilon, and its delta in figures
        pairs["delta"] = (certificate["delta"], given["delta"])
        if from_json(given["epsilon"]) > from_json(budget["epsilon"]):
            raise CertificateError(f"the budget is epsilon {budget['epsilon']}, a trial had {given['epsilon']} of it")
    else:
        pairs |= {"epsilon": (budget["epsilon"], given["epsilon"]), "delta": (budget["delta"], given["delta"])}
    if certificate["schema"] > 1:
        pairs["public facts"] = (certificate["facts"], facts)
    for name, (stated, configured) in pairs.items():
        if stated != configured:
            raise CertificateError(f"the certificate says {name} {stated!r:.80}, {CONFIG} says {configured!r:.80}")
    privacy = Privacy(level, from_json(budget["epsilon"]), budget["delta"])
    nodes = _check_facts(facts)
    expected = privacy.resolve_delta(nodes)
    if certificate["delta"] != expected:
        raise CertificateError(f"delta is stated as {certificate['delta']:g}, the budget gives {expected:g}")
    if certificate["delta"] == 0 and level.kind != "local":
        raise CertificateError(f"delta is 0, which level {level.spec} does not have")
    if certificate["covers"]["name"] not in COVERAGE:
        raise CertificateError(f"there is no coverage {certificate['covers']['name']!r:.80}")
    _check_noise(config, certificate)
    if certificate["schema"] > 1:
        check_stated(certificate)
        _check_columns(config, level)
    if same_version(certificate):
        _check_words(certificate, privacy, nodes)


def _check_noise(config: Mapping[str, Any], certificate: Mapping[str, Any]) -> None:
    """Noise that a seed fixed is not for release, whatever the certificate says."""
    if config["params"].get("insecure_noise_seed") is not None and certificate["noise"]["for_release"]:
        raise CertificateError(
            "the configuration fixes the noise by a seed, and the certificate calls it fit for release"
        )


def _check_tuning(certificate: Mapping[str, Any]) -> None:
    """A search that was charged has its stage; without one settings were given, or nobody paid for the search."""
    said, charged = certificate["tuning"], certificate.get("trial_stages") is not None
    free = said.endswith(FREE) and (not certificate["stages"] or certificate["level"]["spec"] == NoPrivacy().spec)
    if charged != said.startswith(CHARGED) or not (charged or free or said == GIVEN or said.startswith(NOT_ACCOUNTED)):
        raise CertificateError("what the certificate says of tuning is not what its stages say")


def _check_facts(listed: list[Mapping[str, Any]]) -> int:
    """The largest number of nodes, once the numbers of every graph can be true together."""
    for given in listed:
        facts = PublicFacts(**given)
        if facts.num_nodes < 1 or facts.num_train + facts.num_val > facts.num_nodes:
            raise CertificateError(f"these public facts are those of no graph: {asdict(facts)}")
    return max(int(facts["num_nodes"]) for facts in listed)


def _check_columns(config: Mapping[str, Any], level: Level) -> None:
    """What the configuration says of tables and split fits the facts and the level, as it does after every fit."""
    schema, facts = Schema.from_json(config.get("schema") or {}), PublicFacts(**config["public"])
    for what, named, count in (
        ("classes", schema.classes, facts.num_classes),
        ("features", schema.features, facts.num_features),
    ):
        if named is not None and len(named) != count:
            raise CertificateError(f"the schema names {len(named)} {what}, the public facts have {count}")
    if schema.directed and not facts.directed:
        raise CertificateError("the schema reads edges with directions, the public facts have none")
    if FEATURES in level.private and schema.measured:
        raise CertificateError("the schema was read off the features, which the level protects")
    if LABELS in level.private and reads_labels((config.get("split") or {"by": OWN_SPLIT})["by"]):
        raise CertificateError("the split was chosen by looking at labels, which the level protects")


def check_version(certificate: Mapping[str, Any]) -> None:
    """The version that wrote the certificate is said, in the one way it can be written, and can be true."""
    stated, now = certificate["versions"].get("discreet"), version("discreet")
    if not all(_PLAIN.fullmatch(text) for pair in certificate["versions"].items() for text in pair):
        raise CertificateError("the certificate names a version in words that are none of a version")
    if stated is None:
        raise CertificateError("the certificate does not say which version of discreet wrote it")
    try:
        made_by = Version(stated)
    except InvalidVersion:
        made_by = None
    if made_by is None or str(made_by) != stated:
        raise CertificateError(f"the certificate was written by version {stated!r:.60}, which is no version")
    if made_by > Version(now):
        raise CertificateError(f"the certificate was written by version {stated:.60}, which is newer than this, {now}")
    if (certificate["schema"] > 1) != (made_by >= Version(FIRST_OF_SCHEMA_2)):
        raise CertificateError(f"version {stated:.60} wrote no certificates of schema {certificate['schema']}")


def same_version(certificate: Mapping[str, Any]) -> bool:
    """Whether this version wrote it, so that every word can be compared."""
    return certificate["schema"] > 1 and certificate["versions"].get("discreet") == version("discreet")


def _check_card_figures(release: ReleaseFolder) -> None:
    """The card of another version: its words may be others, its figures and what is protected may not."""
    try:
        written = release.files[CARD].decode()
    except UnicodeDecodeError:
        raise CertificateError(f"{CARD} is not a text") from None
    if guarantee_lines(written) != guarantee_lines(render_card(release.certificate)):
        raise CertificateError(f"{CARD} does not state the guarantee that the certificate states")


def _check_words(certificate: Mapping[str, Any], privacy: Privacy, nodes: int) -> None:
    """What people read follows from the rest."""
    level, covers = privacy.level, certificate["covers"]["name"]
    weighted = any(graph.get("weighted", False) for graph in certificate["facts"])
    expected = {
        "level": {"spec": level.spec, "relation": level.describe_on(weighted)},
        "public": level.public_knowledge(),
        "covers": {"name": covers, "means": COVERAGE[covers]},
        "delta_reason": delta_reason(privacy, nodes),
        "duties": duties(covers, level),
        "task": TASK,
        "trust": trust_in(level.kind),
        "caveats": caveats_of(certificate["stages"]),
    }
    for name, words in expected.items():
        if certificate[name] != words:
            raise CertificateError(f"what the certificate says under {name} is not what this level and coverage mean")
    if certificate["noise"]["source"] != (FRESH if certificate["noise"]["for_release"] else FIXED):
        raise CertificateError("what the certificate says of the source of noise is not what this version says")
    _check_tuning(certificate)
