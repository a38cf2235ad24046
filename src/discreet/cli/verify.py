"""``discreet verify``: whether the parts of a release belong together and say what they spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.declared import Json, Release
from discreet.cli.output import print_json
from discreet.errors import DataNotFoundError

if TYPE_CHECKING:
    from discreet.release.verify import Examined


def verify(
    release: Release,
    key: Annotated[Path | None, typer.Option(help="The issuer's public key: check who signed it, too.")] = None,
    as_json: Json = False,
) -> None:
    """Check a release: its files, its stages against its configuration, and ε recomputed from its events."""
    from discreet.release.verify import examine

    if not release.is_dir():
        raise DataNotFoundError(f"there is no release at {release}")
    found = examine(release)
    if key is not None:
        from discreet.release.signature import check_signature
        from discreet.release.verify import SIGNED

        found.checks[:] = [check for check in found.checks if check.name != SIGNED]
        found.checks.append(check_signature(found.files, key))
    if as_json:
        rows = [{"check": c.name, "passed": c.passed, "detail": c.detail} for c in found.checks]
        print_json({"release": str(release), "verified": found.passed, "checks": rows, "warnings": found.warnings})
    else:
        _print(found, signed=key is not None)
    if not found.passed:
        raise typer.Exit(1)


def _print(found: Examined, signed: bool) -> None:
    for check in found.checks:
        print(f"{'ok  ' if check.passed else 'FAIL'}  {check.name:20} {check.detail}")
    for warning in found.warnings:
        print(f"WARNING  {warning}")
    who = "and the owner of the key signed them" if signed else "(this shows integrity, not who made them)"
    sound = f"verified: the parts belong together {who}"
    print(sound if found.passed else "NOT VERIFIED")
