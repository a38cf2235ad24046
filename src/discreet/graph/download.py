"""Fetching a public graph's raw files: by https alone, checked against known SHA-256 sums before anything reads them.

Guarantee: a file that does not have the sum in ``SHA256SUMS`` never reaches the cache; one whose sum is not known is
fetched only where the caller says so. Files are read by our own readers, which run no code from them.
"""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from discreet.errors import DataNotFoundError
from discreet.files import whole
from discreet.limits import DOWNLOAD_BYTES

_SECONDS = 60
"""Without an answer after which a server counts as gone."""
_CHUNK = 1 << 20
"""Bytes that are read, hashed and written at once."""


@cache
def checksums() -> Mapping[str, str]:
    """SHA-256 sums by path under a data root."""
    lines = (files("discreet.graph") / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    return {path: digest for digest, path in (line.split("  ", 1) for line in lines)}


def download(addresses: Mapping[str, str], cache_root: Path, trust: bool = False) -> None:
    """Fetch ``{path under the cache: address}``; each folder appears with all of its files, or not at all.

    ``trust`` allows files without a known sum. A sum that is known must be met in any case.
    """
    unknown = [path for path in addresses if path not in checksums()]
    if unknown and not trust:
        way_out = "discreet train --trust-download fetches it unchecked"
        raise DataNotFoundError(f"no checksum is known for {unknown[0]}: {way_out}")
    folders = list(dict.fromkeys(str(Path(path).parent) for path in addresses))
    for folder in reversed(folders):  # the first one marks presence, so it comes last
        if (cache_root / folder).exists():
            continue
        with whole(cache_root / folder) as temporary:
            temporary.mkdir()
            for path in (path for path in addresses if str(Path(path).parent) == folder):
                _fetch(addresses[path], temporary / Path(path).name, checksums().get(path))


def _fetch(address: str, target: Path, expected: str | None) -> None:
    digest, size = hashlib.sha256(), 0
    with _open(address) as source, target.open("xb") as file:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > DOWNLOAD_BYTES:
                raise DataNotFoundError(f"{address} is larger than {DOWNLOAD_BYTES >> 30} GiB")
            digest.update(chunk)
            file.write(chunk)
    if expected is not None and digest.hexdigest() != expected:
        raise DataNotFoundError(f"{address} is not the known file: its SHA-256 sum differs, and it was thrown away")


class _HttpsAlone(urllib.request.HTTPRedirectHandler):
    """Follow redirects, but never away from https."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """The next request."""
        _check_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(address: str) -> Any:
    """The answer of the host, whose certificate is checked."""
    _check_https(address)
    return urllib.request.build_opener(_HttpsAlone).open(address, timeout=_SECONDS)


def _check_https(address: str) -> None:
    if not address.startswith("https://"):
        raise DataNotFoundError(f"{address} is not an https address")
