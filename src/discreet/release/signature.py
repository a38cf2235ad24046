"""Who issued a release: an Ed25519 signature on the bytes of its certificate, which lists every other file by hash.

Keys are PEM files, as other tools write and read them; the private one is readable by its owner alone. A signature is
checked against a key that the reader already has and trusts: the release itself cannot say whom to believe.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from discreet.errors import CertificateError, ParameterError
from discreet.files import check_free, read_text, write_whole
from discreet.privacy.certificate import CERTIFICATE, SIGNATURE
from discreet.release.signature_file import ALGORITHM, check_own_signature, fingerprint, make_signature
from discreet.release.verify import SIGNED, Check, examine


def new_key(path: Path) -> Path:
    """Write a new private key to ``path`` (mode 0600) and its public key beside it; return the path of the latter."""
    public = path.with_name(f"{path.name}.pub")
    check_free(path)
    check_free(public)
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret)
    write_whole(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return public


def sign(folder: Path, key: Path) -> Path:
    """Sign a release that verifies; one that does not is refused, for a signature vouches for it."""
    secret = _private_key(key)
    check_free(folder / SIGNATURE)
    found = examine(folder)
    failed = next((check for check in found.checks if not check.passed), None)
    if failed is not None:
        raise CertificateError(f"{folder} does not verify, so it is not signed: {failed.name}: {failed.detail}")
    write_whole(folder / SIGNATURE, make_signature(secret, found.files[CERTIFICATE]))
    return folder / SIGNATURE


def check_signature(files: Mapping[str, bytes], key: Path) -> Check:
    """Whether the owner of a public key signed this very certificate, in the bytes that ``examine`` read."""
    public = read_public_key(key)
    if CERTIFICATE not in files:
        return Check(SIGNED, False, "there is no certificate that can be read")
    if SIGNATURE not in files:
        return Check(SIGNED, False, "the release is not signed")
    try:
        named = check_own_signature(files)
    except CertificateError as error:
        return Check(SIGNED, False, str(error))
    if named != fingerprint(public):
        return Check(SIGNED, False, f"by another key ({named}), not by the owner of {key}")
    return Check(SIGNED, True, f"by the owner of {key} ({named})")


def read_public_key(path: Path) -> Ed25519PublicKey:
    """A public key from its file; a private key, or one of another kind, is refused by name."""
    text = read_text(path, "public key")
    if "PRIVATE KEY" in text:
        raise ParameterError(f"{path} is a private key: --key takes the public one, {path.name}.pub")
    try:
        key = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ParameterError(f"{path} is not a public key of kind {ALGORITHM} in PEM form")
    return key


def _private_key(path: Path) -> Ed25519PrivateKey:
    text = read_text(path, "private key")
    try:
        key = load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it is encrypted
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ParameterError(f"{path} is not a private key of kind {ALGORITHM}: make one with discreet sign --new-key")
    return key
