"""An audit report put into the release that it is about, and into the list of its certificate."""

from __future__ import annotations

from pathlib import Path

from discreet.errors import CertificateError, InvalidInputError
from discreet.files import check_output, write_whole
from discreet.privacy.certificate import AUDIT, CERTIFICATE, SIGNATURE, digest, sha256
from discreet.privacy.release_folder import json_bytes, read_folder


def check_attachable(folder: Path) -> None:
    """Refuse a release that has a report, or a signature, which a new certificate would break."""
    check_output(folder / AUDIT)
    if SIGNATURE in read_folder(folder).files:
        raise InvalidInputError(
            f"{folder} is signed, so its certificate must not change: attach the report before signing"
        )


def attach_report(folder: Path, report: bytes) -> Path:
    """Write the report into the release and list it in the certificate; its place.

    Of schema 1, whose certificates never list a report, the report is written beside.
    """
    check_attachable(folder)
    certificate = read_folder(folder).certificate
    if digest(certificate) != certificate["digest"]:  # a new digest must not mend what was broken
        raise CertificateError(f"{folder}: the certificate was changed after sealing")
    write_whole(folder / AUDIT, report)
    if certificate["schema"] > 1:
        listed = {**certificate, "files": {**certificate["files"], AUDIT: sha256(report)}}
        write_whole(folder / CERTIFICATE, json_bytes({**listed, "digest": digest(listed)}))
    return folder / AUDIT
