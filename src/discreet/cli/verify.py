"""``discreet verify``: whether the parts of a release belong together and say what they spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from discreet.cli.options import Json, Release
from discreet.cli.output import print_json
from discreet.errors import DataNotFoundError

if TYPE_CHECKING:
    from discreet.privacy.certificate import Check


def verify(release: Release, as_json: Json = False) -> None:
    """Check a release: recompute ε from its events and compare the hash of every file."""
    from discreet.privacy.certificate import verify as run_checks

    if not release.is_dir():
        raise DataNotFoundError(f"there is no release at {release}")
    checks = run_checks(release)
    passed = all(check.passed for check in checks)
    if as_json:
        rows = [{"check": c.name, "passed": c.passed, "detail": c.detail} for c in checks]
        print_json({"release": str(release), "verified": passed, "checks": rows})
    else:
        _print(checks, passed)
    if not passed:
        raise typer.Exit(1)


def _print(checks: Sequence[Check], passed: bool) -> None:
    for check in checks:
        print(f"{'ok  ' if check.passed else 'FAIL'}  {check.name:20} {check.detail}")
    sound = "verified: the parts belong together (this shows integrity, not who made them)"
    print(sound if passed else "NOT VERIFIED")
