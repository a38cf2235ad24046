"""``discreet sign``: say who issued a release, and make the keys for that."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.declared import Json
from discreet.cli.output import check_places, report
from discreet.errors import DataNotFoundError, ParameterError


def sign(
    release: Annotated[Path | None, typer.Argument(help="A folder that `discreet train --out` wrote.")] = None,
    key: Annotated[Path | None, typer.Option(help="Your private key.")] = None,
    new_key: Annotated[
        Path | None, typer.Option("--new-key", help="Make a private key at this path, and FILE.pub beside it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Sign a release that verifies, so that others can check who issued it: discreet verify RELEASE --key FILE.pub."""
    from discreet.release.signature import new_key as make_key
    from discreet.release.signature import sign as sign_release

    if new_key is not None and release is None and key is None:
        check_places(new_key)
        public = make_key(new_key)
        report({"private_key": str(new_key), "public_key": str(public), "note": "keep the private key secret"}, as_json)
        return
    if new_key is not None or release is None or key is None:
        raise ParameterError("write discreet sign RELEASE --key FILE, or discreet sign --new-key FILE")
    if not release.is_dir():
        raise DataNotFoundError(f"there is no release at {release}")
    report({"release": str(release), "signature": str(sign_release(release, key))}, as_json)
