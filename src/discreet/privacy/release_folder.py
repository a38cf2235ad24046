"""The folder of a release: weights, configuration, card and certificate, written whole or not at all.

No pickle, and no fingerprint of private data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from discreet.arrays import Array, Arrays
from discreet.errors import CertificateError, DataNotFoundError
from discreet.files import write_folder
from discreet.privacy.card import render_card
from discreet.privacy.certificate import CERTIFICATE, read_certificate, seal, verify
from discreet.privacy.statement import Statement

WEIGHTS, CONFIG, CARD = "weights.safetensors", "config.json", "card.md"
_MAY_FAIL = ("noise", "accounting", "tuning")
"""Checks that say a release is not to be published; its parts belong together all the same, so it can be read."""


def write_release(
    folder: Path,
    certificate: Mapping[str, Any],
    state: Mapping[str, Array],
    config: Mapping[str, Any],
    statement: Statement | None = None,
) -> Path:
    """Write a new folder with everything that prediction needs, and a certificate that lists the rest by hash."""
    certificate = (statement or Statement()).added_to(certificate)
    files = release_files(certificate, state, config)
    write_folder(folder, {**files, CERTIFICATE: _json(seal(certificate, files))})
    return folder


def release_files(
    certificate: Mapping[str, Any], state: Mapping[str, Array], config: Mapping[str, Any]
) -> dict[str, bytes]:
    """The content of every file of the release but its certificate, by name."""
    arrays = {name: np.ascontiguousarray(array) for name, array in state.items()}
    return {
        WEIGHTS: save_tensors(arrays),
        CONFIG: _json(config),
        CARD: render_card(certificate).encode(),
    }


def read_release(folder: Path) -> tuple[dict[str, Any], Arrays, dict[str, Any]]:
    """Configuration, arrays and certificate of a release, after a check of its integrity.

    A release that was not meant for release (a fixed noise seed) is read; one whose parts do not belong together is
    refused.
    """
    if not folder.is_dir():
        raise DataNotFoundError(f"there is no release at {folder}")
    broken = [check for check in verify(folder) if not check.passed and check.name not in _MAY_FAIL]
    if broken:
        raise CertificateError(f"{folder} is not a sound release: {broken[0].name}: {broken[0].detail}")
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    return config, load_tensors((folder / WEIGHTS).read_bytes()), read_certificate(folder)


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
