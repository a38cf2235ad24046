"""``discreet methods``: what there is to train."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.cli.declared import Json
from discreet.cli.output import print_json, print_rows

if TYPE_CHECKING:
    from discreet.methods.declaration import Declaration


def methods(as_json: Json = False) -> None:
    """List the methods, the levels that each supports, and what its guarantee covers."""
    from discreet.methods.registry import broken_methods, list_methods

    rows, broken = [_row(declared, as_json) for declared in list_methods().values()], broken_methods()
    if as_json:
        print_json({"rows": rows, "broken": broken})
        return
    print_rows(rows, as_json)
    for name, reason in broken.items():
        print(f"broken: {name}: {reason}")


def _row(declared: Declaration, as_json: bool) -> dict[str, Any]:
    """A method as a person reads it, or as JSON with the coverage of each level and the paper that it is from."""
    row: dict[str, Any] = {
        "method": declared.name,
        "levels": list(declared.levels),
        "covers": dict(declared.covers) if as_json else _grouped(declared.covers),
        "summary": declared.summary,
    }
    if not as_json:
        return row
    if declared.presets:
        row["presets"] = {name: preset.to_json() for name, preset in declared.presets.items()}
    return {**row, "paper": declared.paper} if declared.paper else row


def _grouped(covers: Mapping[str, str]) -> str:
    """``none, edge: weights+predictions; node: weights``; the coverage alone where all levels have the same."""
    by_coverage: dict[str, list[str]] = {}
    for level, coverage in covers.items():
        by_coverage.setdefault(coverage, []).append(level)
    if len(by_coverage) == 1:
        return next(iter(by_coverage))
    return "; ".join(f"{', '.join(levels)}: {coverage}" for coverage, levels in by_coverage.items())
