"""The signature that lies in a release: read, and checked against the certificate and the key that it names.

That shows that whoever has the private half of that key signed this very certificate. Whose key it is, is for the
reader to know: ``discreet verify --key`` compares.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from discreet.errors import CertificateError, DiscreetError
from discreet.privacy.certificate import CERTIFICATE, SIGNATURE
from discreet.untrusted import strict_json

ALGORITHM = "Ed25519"
_PURPOSE = b"discreet certificate\n"
"""Signed before the certificate, so that a signature on something else is never one on a certificate."""


def make_signature(secret: Ed25519PrivateKey, certificate: bytes) -> bytes:
    """The content of the file: the algorithm, the public key and the signature."""
    signed = secret.sign(_PURPOSE + certificate)
    return _written(ALGORITHM, fingerprint(secret.public_key()), _text(signed))


def check_own_signature(files: Mapping[str, bytes]) -> str:
    """The public key that signed this certificate, as one word; anything else raises.

    Guarantee: one signature has one file. Bytes that are not as :func:`make_signature` writes them are refused.
    """
    content = files[SIGNATURE]
    try:
        found = strict_json(content, SIGNATURE)
        algorithm, key, signed = (str(found[name]) for name in ("algorithm", "key", "signature"))
        raw = base64.b64decode(signed, validate=True), base64.b64decode(key, validate=True)
    except (DiscreetError, ValueError, KeyError, TypeError):
        raise CertificateError(f"{SIGNATURE} is not a signature") from None
    if algorithm != ALGORITHM:
        raise CertificateError(f"{SIGNATURE} is not of the kind {ALGORITHM}")
    if content != _written(algorithm, _text(raw[1]), _text(raw[0])):
        raise CertificateError(f"{SIGNATURE} is not written as signatures are written")
    try:
        Ed25519PublicKey.from_public_bytes(raw[1]).verify(raw[0], _PURPOSE + files[CERTIFICATE])
    except (InvalidSignature, ValueError):
        raise CertificateError(f"{SIGNATURE} does not match the certificate: one of them was changed since") from None
    return key


def fingerprint(key: Ed25519PublicKey) -> str:
    """The public key as one word."""
    return _text(key.public_bytes(Encoding.Raw, PublicFormat.Raw))


def _written(algorithm: str, key: str, signature: str) -> bytes:
    content: dict[str, Any] = {"algorithm": algorithm, "key": key, "signature": signature}
    return (json.dumps(content, indent=2) + "\n").encode()


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
