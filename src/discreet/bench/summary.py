"""From rows to figures: the seeds of one cell, their mean and its 95 % interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.bench.suite import COSTS, SCORES, Case
from discreet.bench.trials import PRINTED, Entry
from discreet.files import from_json

Row = dict[str, Any]
CONFIDENCE = 0.95
"""Two-sided, for the intervals of tables."""
CLAIMED = "nothing (a claim)"


@dataclass
class Cell:
    """All seeds of one method with one setting on one graph, and what the paper printed for it."""

    at: Mapping[str, Any]
    case: Case
    paper: float | None
    values: list[float] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    wanted: int = 0

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return statistics.fmean(self.values) if self.values else math.nan

    @property
    def deviation(self) -> float:
        """The standard deviation over seeds; nan for one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else math.nan

    @property
    def half(self) -> float:
        """Half the width of Student's interval of the mean; nan for one seed."""
        return half_width(self.values)

    @property
    def covers(self) -> str:
        """What the guarantee covers, as the method said; nothing, where ε is a paper's claim."""
        return " / ".join(sorted({_covered(row) for row in self.rows if row.get("covers")}))

    @property
    def spent(self) -> float:
        """The largest ε spent by any seed."""
        found = [row.get("epsilon_spent") for row in self.rows]
        return max((float(from_json(spent)) for spent in found if spent is not None), default=math.nan)

    @property
    def made_by(self) -> str:
        """When its rows were made, by which of our sources (a hash), with which torch and on what."""
        return "; ".join(sorted({_maker(row) for row in self.rows}))

    @property
    def has_content(self) -> bool:
        """Whether there is anything to print: a result, a failure, or what a paper says."""
        return bool(self.values or self.reasons) or self.paper is not None

    def average(self, key: str) -> float:
        """The mean of a number that every row carries."""
        found = [float(from_json(row[key])) for row in self.rows if row.get(key) is not None]
        return statistics.fmean(found) if found else math.nan


def _covered(row: Row) -> str:
    return CLAIMED if row.get("accounting") == "as-published" else str(row["covers"])


def _maker(row: Row) -> str:
    versions = row.get("versions", {})
    named = [f"{name} {versions[name]}" for name in ("source", "torch") if name in versions]
    return ", ".join([str(row.get("started", ""))[:10], *named, str(row.get("device", "cpu"))])


def half_width(values: list[float]) -> float:
    """Half of the two-sided 95 % interval by Student's t."""
    if len(values) < 2:
        return math.nan
    from scipy.stats import t

    quantile = float(t.ppf(0.5 + CONFIDENCE / 2, len(values) - 1))
    return quantile * statistics.stdev(values) / math.sqrt(len(values))


def cells(
    entries: Iterable[Entry], rows: Mapping[str, Row], metric: str = "accuracy", mask: str = "test"
) -> list[Cell]:
    """Entries grouped by everything but the seed, in the suite's order, with the values of one metric."""
    found: dict[tuple[str, str], Cell] = {}
    for entry in entries:
        key = (entry.trial.cell, str(entry.at["name"]))
        cell = found.setdefault(key, Cell(entry.at, entry.case, entry.paper))
        if entry.trial.method.startswith(PRINTED):
            continue
        cell.wanted += 1
        row = rows.get(entry.trial.id)
        if row is None:
            continue
        if row["status"] != "ok":
            cell.reasons.append(row.get("reason") or "no reason was written")
            continue
        cell.rows.append(row)
        value = value_of(row, metric, mask)
        if value is not None:
            cell.values.append(value)
    return list(found.values())


def value_of(row: Row, metric: str, mask: str) -> float | None:
    """One number of a row; scores in per cent."""
    if metric in COSTS:
        cost: float | None = from_json(row.get(metric))
        return cost
    found = from_json(row.get("metrics", {}).get(metric))
    if isinstance(found, dict):
        found = found.get(mask)
    return 100 * found if found is not None and metric in SCORES else found
