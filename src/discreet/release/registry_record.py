"""A release as a record of the public registry of deployments of differential privacy: one YAML file.

What the certificate knows is filled in. What only people know is given by them (``basic.intended_use=…``) or marked
:data:`TO_DO`. The tier (1 basic, 3 complete) says how much is filled.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.errors import ParameterError
from discreet.files import from_json
from discreet.privacy.levels import LocalLevel, parse_level

TO_DO = "TO DO"
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
BASIC = (
    *("name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region"),
    *("publication_date", "data_product_sector"),
)
FIELDS: dict[str, tuple[str, ...]] = {
    "basic": BASIC,
    "dp_variant": ("variant_name", "data_domain", "unprotected_quantities"),
    "privacy_loss": ("privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"),
    "deployment_model": (
        *("model_name", "model_name_details", "actors", "release_type", "release_type_details"),
        *("data_source_type", "data_source_type_details", "access_type", "access_type_details"),
    ),
    "accounting": ("post_processing", "composition"),
    "implementation": ("preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"),
    "administrative": ("sources", "notes", "registry_authors"),
}
"""Every field that the registry takes, by section; no other key is allowed."""
LISTS = {("basic", "data_curators"), ("administrative", "registry_authors")}
NOT_FOR_PEOPLE = {("privacy_loss", "privacy_parameters")}
GUARANTEE = {("dp_variant", "variant_name"), ("privacy_loss", "privacy_unit"), ("privacy_loss", "privacy_parameters")}
OPTIONAL = {("basic", "data_product_sector")}


def registry_record(certificate: Mapping[str, Any], given: Sequence[str] = (), *, folder: str = "") -> dict[str, Any]:
    """The record of a release; ``given`` holds ``section.field=text``, lists with their items between semicolons.

    A record whose name is still :data:`TO_DO` is filed under the name of the release's ``folder``.
    """
    deployment = _from_certificate(certificate)
    for section, field, value in map(_parse_field, given):
        deployment[section][field] = value
    name = str(deployment["basic"]["name"])
    slug = _slug(folder if name == TO_DO else name)
    return {"url_slug": slug, "status": "Draft", "tier": _tier(deployment), "deployment": deployment}


def file_name(record: Mapping[str, Any]) -> str:
    """Lower-case letters, digits and underscores, as the registry wants."""
    return f"{record['url_slug']}.yaml"


def to_yaml(record: Mapping[str, Any]) -> str:
    """The record as YAML: texts in double quotes, as in JSON, which YAML reads alike."""
    return "\n".join(_lines(record, 0)) + "\n"


def _from_certificate(certificate: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    level = parse_level(certificate["level"]["spec"])
    epsilon, delta = from_json(certificate["epsilon"]), float(certificate["delta"])
    stages = certificate["stages"]
    facts = (certificate.get("facts") or [None])[0]
    method, task = certificate["method"], certificate["task"]
    versions = certificate.get("versions") or {}
    data = certificate.get("data") or TO_DO
    size = f" ({facts['num_nodes']} nodes, {facts['num_features']} features)" if facts else ""
    mechanisms = "; ".join(
        f"{s['name']}: {s['mechanism']}, sensitivity {s['sensitivity']} ({s['metric']}), {s['runs']} run(s)"
        + (f", noise {s['noise']['sampler']}" if isinstance(s.get("noise"), Mapping) else "")
        for s in stages
    )
    said = [*certificate.get("notes", ()), *certificate.get("caveats", ())]
    notes = "; ".join(str(sentence).rstrip(".") for sentence in said)
    return {
        "basic": {
            "name": f"{data}: {method}" if data != TO_DO else TO_DO,
            "data_curators": [certificate.get("issuer") or TO_DO],
            "description": f"A model for {task} by the method {method}, trained on {data}{size}.",
            "intended_use": certificate.get("purpose") or TO_DO,
            "data_product_type": "Machine learning model",
            "data_product_region": TO_DO,
            "publication_date": certificate.get("date") or TO_DO,
            "data_product_sector": TO_DO,
        },
        "dp_variant": {
            "variant_name": "Approximate DP" if delta > 0 else "Pure DP",
            "data_domain": "graphs with features and labels of nodes; " + certificate["level"]["relation"],
            "unprotected_quantities": str(certificate.get("public", TO_DO)),
        },
        "privacy_loss": {
            "privacy_unit": level.kind,
            "privacy_unit_details": certificate["level"]["relation"],
            "privacy_parameters": {"epsilon": epsilon if math.isfinite(epsilon) else None, "delta": delta, "rho": None},
            "privacy_parameters_details": str(certificate.get("delta_reason") or TO_DO)
            + ("" if certificate["accounting"] == "rigorous" else "; CLAIMED BY A PAPER, NOT VERIFIED"),
        },
        "deployment_model": {
            "model_name": "Local" if isinstance(level, LocalLevel) else "Central",
            "model_name_details": str(certificate.get("trust", TO_DO)),
            "actors": TO_DO,
            "release_type": "Many releases" if certificate.get("parent") else "One release",
            "release_type_details": str(certificate["covers"]["means"]),
            "data_source_type": "Static",
            "data_source_type_details": TO_DO,
            "access_type": "Non-interactive",
            "access_type_details": "the files of a release: weights, configuration, card and certificate",
        },
        "accounting": {
            "post_processing": "training and prediction from noisy answers; no other access to private data",
            "composition": ", ".join(
                f"{name} epsilon {value}" for name, value in certificate.get("epsilon_by_accountant", {}).items()
            ),
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": str(certificate.get("tuning", TO_DO)),
            "mechanisms": (mechanisms or "no stage reads what is protected")
            + f"; {certificate['noise']['source']}; "
            + ", ".join(f"{name} {version}" for name, version in versions.items()),
            "justification": TO_DO,
        },
        "administrative": {
            "sources": f"certificate with digest {certificate['digest']}",
            "notes": notes,
            "registry_authors": [TO_DO],
        },
    }


def _parse_field(text: str) -> tuple[str, str, Any]:
    path, equals, value = text.partition("=")
    section, _, field = path.partition(".")
    known = field in FIELDS.get(section, ()) and (section, field) not in NOT_FOR_PEOPLE
    if not equals or not known:
        example = "--set basic.intended_use=TEXT"
        raise ParameterError(f"--set takes a field of the registry, as in {example}, not {text!r:.80}")
    if (section, field) == ("basic", "data_product_sector") and value not in SECTORS:
        raise ParameterError(f"basic.data_product_sector is one of {', '.join(SECTORS)}, not {value!r:.60}")
    if (section, field) == ("basic", "publication_date") and not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        raise ParameterError(f"basic.publication_date is written as 2026-01-31, not {value!r:.60}")
    listed = [item.strip() for item in value.split(";") if item.strip()]
    if not listed:
        raise ParameterError(f"{path} is given no text")
    return section, field, listed if (section, field) in LISTS else value


def _tier(deployment: Mapping[str, Mapping[str, Any]]) -> int:
    """3 where all is filled, 2 where the basics, the guarantee and its model are, 1 otherwise."""
    fields = {(section, name): value for section, parts in deployment.items() for name, value in parts.items()}
    missing = {key for key, value in fields.items() if _is_open(value) and key not in OPTIONAL}
    if not missing:
        return 3
    needed = {key for key in missing if key[0] in ("basic", "deployment_model") or key in GUARANTEE}
    return 1 if needed else 2


def _is_open(value: Any) -> bool:
    return TO_DO in (json.dumps(value) if not isinstance(value, str) else value)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:80] or "release"


def _lines(value: Mapping[str, Any], depth: int) -> list[str]:
    lines = []
    for key, item in value.items():
        if isinstance(item, Mapping):
            lines += [f"{'  ' * depth}{key}:", *_lines(item, depth + 1)]
        elif isinstance(item, list):
            lines += [f"{'  ' * depth}{key}:", *(f"{'  ' * depth}  - {_scalar(entry)}" for entry in item)]
        elif item is not None:
            lines.append(f"{'  ' * depth}{key}: {_scalar(item)}")
    return lines


def _scalar(value: Any) -> str:
    """A number (YAML 1.1 takes an exponent for a number only after a point), or a text in double quotes."""
    if isinstance(value, float):
        text = repr(value)
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)
