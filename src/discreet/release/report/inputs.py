"""What a report shows besides the release: attacks, audits and sweeps, read with limits and taken at their word."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from discreet.errors import InvalidInputError
from discreet.files import from_json, read_text
from discreet.limits import REPORT_ATTACKS, REPORT_ROWS


class Attack(NamedTuple):
    """One attack against the release, or against a model without privacy."""

    kind: str
    against: str
    knows: str
    auc: float
    interval: tuple[float, float] | None
    hits: dict[str, float]
    ceiling: dict[str, float]
    pairs: int | None


class Attacks(NamedTuple):
    """What attacks reached."""

    rows: list[Attack]
    refuted: bool

    @property
    def verdict(self) -> bool | None:
        """Whether the guarantee is refuted; None where no attack has a ceiling, which then says nothing of it."""
        return self.refuted if self.refuted or any(row.ceiling for row in self.rows) else None


def read_json(path: Path, what: str) -> Mapping[str, Any]:
    """A JSON object from a file that somebody gave."""
    try:
        found = json.loads(read_text(path, what))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{path} is not valid JSON") from None
    if not isinstance(found, dict):
        raise InvalidInputError(f"{path} does not hold the report of {what}")
    return found


def read_attacks(path: Path) -> Attacks:
    """What ``discreet attack --out`` wrote."""
    found = read_json(path, "attacks")
    try:
        rows = [_attack(row) for row in found["attacks"] if row["auc"] is not None]
        refuted = found["refuted"]
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        raise InvalidInputError(f"{path} does not hold the report of attacks") from None
    if len(rows) > REPORT_ATTACKS or not isinstance(refuted, bool):
        raise InvalidInputError(f"{path} does not hold the report of attacks")
    return Attacks(rows, refuted)


def read_audit(path: Path) -> Mapping[str, Any]:
    """What ``discreet audit --out`` wrote."""
    found = read_json(path, "audit")
    if not isinstance(found.get("passed"), bool):
        raise InvalidInputError(f"{path} does not hold the report of an audit")
    return found


def read_rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Columns and rows of a CSV file of bench results."""
    table = csv.DictReader(io.StringIO(read_text(path, "table of results")))
    rows = []
    try:
        for row in table:
            rows.append({str(key): value or "" for key, value in row.items() if key is not None})
            if len(rows) > REPORT_ROWS:
                raise InvalidInputError(f"{path} has more than {REPORT_ROWS:,} rows")
    except csv.Error as error:
        raise InvalidInputError(f"{path} is not a table: {error}") from None
    columns = [column for column in table.fieldnames or [] if column is not None]
    if not rows or "mean" not in columns:
        raise InvalidInputError(f"{path} is not a table of bench results: it needs a column mean, and a row")
    return columns, rows


def number(text: Any) -> float | None:
    """A finite number, or None."""
    try:
        value = float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def sweep_lines(rows: Sequence[Mapping[str, str]]) -> dict[str, list[tuple[float, float]]]:
    """Curves of the mean over ε, by name and dataset; a curve needs two points."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        epsilon, mean = number(row.get("epsilon")), number(row.get("mean"))
        if epsilon is None or mean is None:
            continue
        parts = (row.get("name") or row.get("method") or "", row.get("dataset"), row.get("level"))
        found.setdefault(", ".join(part for part in parts if part), []).append((epsilon, mean))
    return {name: sorted(points) for name, points in found.items() if len({e for e, _ in points}) > 1}


def _attack(row: Mapping[str, Any]) -> Attack:
    interval = row.get("auc_interval")
    return Attack(
        str(row["kind"])[:60],
        str(row["against"])[:60],
        str(row.get("knows") or "")[:200],
        _share(row["auc"]),
        None if interval is None else (_share(interval[0]), _share(interval[1])),
        _shares(row.get("tpr_at_fpr")),
        _shares(row.get("ceiling")),
        None if row.get("pairs") is None else int(row["pairs"]),
    )


def _shares(given: Any) -> dict[str, float]:
    if given is None:
        return {}
    return {str(key)[:12]: _share(value) for key, value in list(given.items())[:20] if number(value) is not None}


def _share(value: Any) -> float:
    found = float(from_json(value))
    if not 0 <= found <= 1:
        raise ValueError("not a share")
    return found
