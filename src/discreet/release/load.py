"""The estimator of a release, ready to predict."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from discreet.files import from_json
from discreet.graph.graph import PublicFacts
from discreet.graph.schema import Schema
from discreet.methods.base import NodeClassifier
from discreet.methods.parameters import Compute
from discreet.methods.registry import find_method, load_method
from discreet.privacy.budget import Privacy
from discreet.privacy.certificate import certified_epsilon
from discreet.privacy.levels import parse_level
from discreet.privacy.release_folder import read_release


def load_release(folder: str | os.PathLike[str], compute: Compute | None = None) -> NodeClassifier:
    """Read a release after a check of its integrity; see ``privacy.release_folder``. ``compute`` says where it runs."""
    config, state, certificate = read_release(Path(folder))
    estimator = _rebuild(config, compute)
    estimator.certificate_ = certificate
    estimator._restore(state)
    estimator.plan_ = estimator.plan(estimator.public_, estimator.extra_public_)
    estimator.epsilon_spent_ = certified_epsilon(certificate)
    return estimator


def _rebuild(config: dict[str, Any], compute: Compute | None) -> NodeClassifier:
    given = config["privacy"]
    privacy = Privacy(parse_level(given["level"]), from_json(given["epsilon"]), given["delta"])
    estimator = load_method(find_method(config["method"]))(privacy, compute=compute)
    estimator.set_params(**{key: _tuples(from_json(value)) for key, value in config["params"].items()})
    schema = Schema.from_json(config.get("schema") or {})  # releases of before had none
    facts = PublicFacts(**config["public"])
    estimator._resume(facts, [PublicFacts(**extra) for extra in config["extra_public"]], schema)
    return estimator


def _tuples(value: Any) -> Any:
    """Parameters hold tuples, which JSON writes as lists."""
    return tuple(value) if isinstance(value, list) else value
