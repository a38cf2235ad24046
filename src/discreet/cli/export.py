"""``discreet export``: a release as a record for a public registry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.declared import Json, Release
from discreet.cli.output import check_places, report
from discreet.errors import DataNotFoundError, ParameterError


def export(
    release: Release,
    registry: Annotated[bool, typer.Option("--registry", help="The deployments registry's YAML.")] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="What only people know: SECTION.FIELD=TEXT. Repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write to this new file; by default named after the data or RELEASE.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the public record of a release: what the certificate knows is filled in, the rest is marked TO DO."""
    from discreet.files import write_whole
    from discreet.privacy.release_folder import read_certificate
    from discreet.release.registry_record import file_name, registry_record, to_yaml

    if not registry:
        raise ParameterError("say what to export: --registry writes the deployments registry's record")
    if not release.is_dir():
        raise DataNotFoundError(f"there is no release at {release}")
    record = registry_record(read_certificate(release), settings or (), folder=release.resolve().name)
    path = Path(file_name(record)) if out is None else out
    check_places(path)
    write_whole(path, to_yaml(record))
    report({"record": str(path), "tier": record["tier"], "status": record["status"]}, as_json)
