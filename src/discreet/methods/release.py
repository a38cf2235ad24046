"""The release: a folder with weights, configuration, card and certificate, written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from discreet.errors import CertificateError, DataNotFoundError, OutputExistsError
from discreet.graph.graph import PublicFacts
from discreet.methods.parameters import OBJECTS
from discreet.methods.registry import find_method
from discreet.privacy.budget import Privacy
from discreet.privacy.card import render_card
from discreet.privacy.certificate import CERTIFICATE, certified_epsilon, read_certificate, seal, verify
from discreet.privacy.level_specs import parse_level

if TYPE_CHECKING:
    from discreet.methods.base import NodeClassifier

FORMAT = 1


def save_release(estimator: NodeClassifier, folder: str | Path) -> Path:
    """Write the release of a fitted estimator to a folder that does not exist yet."""
    target = Path(folder)
    check_free(target)
    files = release_files(estimator)
    certificate = seal(estimator.certificate_, files)
    files[CERTIFICATE] = _json(certificate)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for name, content in files.items():
            (temporary / name).write_bytes(content)
        temporary.chmod(0o755)
        os.rename(temporary, target)
    except BaseException:  # a full disk or Ctrl-C must leave nothing behind
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return target


def check_free(target: Path) -> None:
    """Refuse an output folder that exists."""
    if target.exists():
        raise OutputExistsError(f"{target} exists already: choose another output folder, or remove it")


def load_release(folder: str | Path) -> NodeClassifier:
    """The estimator of a release, ready to predict, after a check of its integrity.

    A release that was not meant for release (a fixed noise seed) loads; one whose parts do not belong
    together does not.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataNotFoundError(f"there is no release at {folder}")
    broken = [
        check for check in verify(folder) if not check.passed and check.name not in ("noise", "accounting", "tuning")
    ]
    if broken:
        raise CertificateError(f"{folder} is not a sound release: {broken[0].name}: {broken[0].detail}")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    estimator = _rebuild(config)
    estimator.certificate_ = read_certificate(folder)
    estimator._restore(load_tensors((folder / "weights.safetensors").read_bytes()))
    estimator.plan_ = estimator.plan(estimator.public_, estimator.extra_public_)
    estimator.epsilon_spent_ = certified_epsilon(estimator.certificate_)
    return estimator


def release_files(estimator: NodeClassifier) -> dict[str, bytes]:
    """The content of every file of the release but its certificate, by name."""
    state = {name: np.ascontiguousarray(array) for name, array in estimator._state().items()}
    return {
        "weights.safetensors": save_tensors(state),
        "config.json": _json(_config(estimator)),
        "card.md": render_card(estimator.certificate_).encode(),
    }


def _config(estimator: NodeClassifier) -> dict[str, Any]:
    privacy = estimator._checked_privacy()
    params = {key: _finite(value) for key, value in estimator.get_params(deep=False).items() if key not in OBJECTS}
    return {
        "format": FORMAT,
        "method": estimator.method,
        "params": params,
        "privacy": {
            "level": privacy.level.spec,
            "epsilon": "infinite" if np.isinf(privacy.epsilon) else privacy.epsilon,
            "delta": privacy.delta,
        },
        "public": asdict(estimator.public_),
        "extra_public": [asdict(facts) for facts in estimator.extra_public_],
    }


def _rebuild(config: dict[str, Any]) -> NodeClassifier:
    given = config["privacy"]
    epsilon = float("inf") if given["epsilon"] == "infinite" else given["epsilon"]
    privacy = Privacy(parse_level(given["level"]), epsilon, given["delta"])
    params = {key: _read(value) for key, value in config["params"].items()}
    estimator = find_method(config["method"]).load()(privacy)
    estimator.set_params(**params)
    estimator.public_ = PublicFacts(**config["public"])
    estimator.extra_public_ = [PublicFacts(**facts) for facts in config["extra_public"]]
    estimator._prepare()
    return estimator


def _finite(value: Any) -> Any:
    """JSON has no infinity."""
    return "infinite" if isinstance(value, float) and np.isinf(value) else value


def _read(value: Any) -> Any:
    if value == "infinite":
        return float("inf")
    return tuple(value) if isinstance(value, list) else value


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
