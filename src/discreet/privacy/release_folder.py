"""The folder of a release: weights, configuration, card and certificate, written whole or not at all, read once.

No pickle, and no fingerprint of private data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from discreet.arrays import Array, Arrays
from discreet.errors import CertificateError, DataNotFoundError
from discreet.files import write_folder
from discreet.limits import RECORD_BYTES, SIGNATURE_BYTES, TEXT_BYTES, WEIGHTS_BYTES
from discreet.privacy.card import render_card
from discreet.privacy.certificate import AUDIT, CERTIFICATE, RELEASE_FILES, SIGNATURE, Statement, seal
from discreet.privacy.certificate_form import check_certificate, check_config
from discreet.untrusted import list_plain, read_regular, strict_json

WEIGHTS, CONFIG, CARD = RELEASE_FILES
LARGEST = {
    WEIGHTS: WEIGHTS_BYTES,
    CONFIG: RECORD_BYTES,
    CARD: TEXT_BYTES,
    AUDIT: TEXT_BYTES,
    CERTIFICATE: RECORD_BYTES,
    SIGNATURE: SIGNATURE_BYTES,
}
"""Bytes of each file."""


# -------------------------------------------------------------------- written


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
    write_folder(folder, {**files, CERTIFICATE: json_bytes(seal(certificate, files))})
    return folder


def release_files(
    certificate: Mapping[str, Any], state: Mapping[str, Array], config: Mapping[str, Any]
) -> dict[str, bytes]:
    """The content of every file of the release but its certificate, by name."""
    arrays = {name: np.ascontiguousarray(array) for name, array in state.items()}
    return {
        WEIGHTS: save_tensors(arrays),
        CONFIG: json_bytes(config),
        CARD: render_card(certificate).encode(),
    }


def json_bytes(content: Any) -> bytes:
    """JSON as every file of a release has it: one text for one value."""
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


# -------------------------------------------------------------------- read


@dataclass(frozen=True)
class ReleaseFolder:
    """What a folder held when it was read. Everything that is checked or used comes from these bytes.

    ``files`` has the bytes of each file by name, ``certificate.json`` among them.
    """

    folder: Path
    files: Mapping[str, bytes]
    certificate: dict[str, Any]

    def config(self) -> dict[str, Any]:
        """The configuration, in its form."""
        found = strict_json(self.files[CONFIG], CONFIG)
        check_config(found, CONFIG)
        config: dict[str, Any] = found
        return config

    def arrays(self) -> Arrays:
        """The weights and caches by name: numbers, every one of them finite."""
        try:
            found: Arrays = load_tensors(self.files[WEIGHTS])
        except (SafetensorError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
            raise CertificateError(f"{WEIGHTS} is not a file of arrays") from None
        _check_header(self.files[WEIGHTS])
        for name, array in found.items():
            if array.dtype.kind not in "biuf":
                raise CertificateError(f"{WEIGHTS}: {name!r:.60} does not hold numbers")
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise CertificateError(f"{WEIGHTS}: {name!r:.60} holds a value that is not a finite number")
        return found


_ALIGNED = 8
"""Arrays begin at a multiple of so many bytes, up to which the header is filled with spaces."""


def _check_header(weights: bytes) -> None:
    """The header lists names, types, shapes and places of the arrays, in the one way to write that, and nothing else.

    Guarantee: what the file holds is in its arrays. Readers skip what they do not know, so a text could hide there.
    """
    header = weights[_ALIGNED : _ALIGNED + int.from_bytes(weights[:_ALIGNED], "little")]
    listed = strict_json(header, f"the header of {WEIGHTS}")
    plain = {
        name: {key: entry.get(key) for key in ("dtype", "shape", "data_offsets")} for name, entry in listed.items()
    }
    written = json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()
    if header != written.ljust(-(-len(written) // _ALIGNED) * _ALIGNED):
        raise CertificateError(f"{WEIGHTS} holds text beside its arrays")


def read_folder(folder: Path) -> ReleaseFolder:
    """Read every file of a release, each once, after a check that nothing else lies there.

    Guarantee: links are not followed, and what is not a regular file, too large, or not listed by the certificate is
    refused. Hashes are for ``release.verify`` to compare: until then the content is whatever somebody put there.
    """
    if not folder.is_dir():
        raise DataNotFoundError(f"there is no release at {folder}")
    names = list_plain(folder)
    if CERTIFICATE not in names:
        raise CertificateError(f"{folder} has no {CERTIFICATE}: is this the folder of a release?")
    content = read_regular(folder / CERTIFICATE, LARGEST[CERTIFICATE])
    certificate = _certificate(content, folder)
    _check_names(folder, names, certificate)
    rest = {name: read_regular(folder / name, LARGEST[name]) for name in names if name != CERTIFICATE}
    return ReleaseFolder(folder, {**rest, CERTIFICATE: content}, certificate)


def read_certificate(folder: str | Path) -> dict[str, Any]:
    """The certificate of a release, in its form; see ``release.verify`` for whether it is true."""
    path = Path(folder) / CERTIFICATE
    return _certificate(read_regular(path, LARGEST[CERTIFICATE]), Path(folder))


def _certificate(content: bytes, folder: Path) -> dict[str, Any]:
    name = str(folder / CERTIFICATE)
    found = strict_json(content, name)
    check_certificate(found, name)
    if content != json_bytes(found):  # of schema 1 too: one value has one text
        raise CertificateError(f"{name} is not written as certificates are written")
    certificate: dict[str, Any] = found
    return certificate


def _check_names(folder: Path, names: list[str], certificate: Mapping[str, Any]) -> None:
    """Refuse a file that the certificate does not list, and a certificate that lists one that no release has."""
    listed = set(certificate["files"])
    unknown = sorted(listed - {*RELEASE_FILES, AUDIT})
    if unknown:
        raise CertificateError(f"{folder}: the certificate lists {unknown[0]!r:.80}, which no release has")
    beside = {CERTIFICATE, SIGNATURE, *([AUDIT] if certificate["schema"] == 1 else [])}
    unlisted = [name for name in names if name not in listed | beside]
    if unlisted:
        raise CertificateError(f"{folder} holds {unlisted[0]}, which its certificate does not list")
