"""What a figure shows: points with their intervals, from the cells of a run or from the CSV that a run left."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.bench.suite import Figure, Suite
from discreet.bench.summary import Cell
from discreet.bench.tables import shown
from discreet.files import read_text

NUMBERS = ("mean", "low", "high", "deviation", "seeds", "failed", "paper", "epsilon_spent", "seconds", "peak_rss_mb")
NO_COORDINATES = (*NUMBERS, "covers", "made_by")


@dataclass(frozen=True)
class Point:
    """A mean over seeds, half of its interval (nan for one seed), where it stands and what its guarantee covers."""

    at: Mapping[str, Any] = field(hash=False)
    mean: float
    half: float
    covers: str
    any_epsilon: bool = False
    seeds: int = 0

    @property
    def no_privacy(self) -> bool:
        """Whether nothing is protected."""
        return self.at.get("level") == "none"


def of_cells(cells: Iterable[Cell]) -> list[Point]:
    """The cells that have results."""
    return [
        Point(cell.at, cell.mean, cell.half, cell.covers, _free(cell.at, cell.case.any_epsilon), len(cell.values))
        for cell in cells
        if cell.values
    ]


def read_points(path: Path, suite: Suite) -> list[Point]:
    """What ``cells.csv`` of a suite holds; the suite says which lines stand for every ε."""
    free = {case.name or case.method for case in suite.cases if case.any_epsilon}
    rows = csv.DictReader(read_text(path, "cells").splitlines())
    found = []
    for row in rows:
        if not row["mean"]:
            continue
        at = {key: _value(key, text) for key, text in row.items() if text and key not in NO_COORDINATES}
        half = (float(row["high"]) - float(row["low"])) / 2 if row["high"] else math.nan
        any_epsilon = _free(at, at["name"] in free)
        found.append(Point(at, float(row["mean"]), half, row["covers"], any_epsilon, int(row["seeds"])))
    return found


def chosen_points(points: Iterable[Point], figure: Figure) -> list[Point]:
    """The points that a figure is about; numbers that a CSV wrote as text count as the numbers that they are."""
    wanted = {key: {shown(value) for value in values} for key, values in figure.where.items()}
    return [p for p in points if all(shown(p.at.get(key)) in values for key, values in wanted.items())]


def distinct(points: Sequence[Point], keys: Sequence[str]) -> list[tuple[str, ...]]:
    """The texts of these coordinates, in the order in which they first occur."""
    return list(dict.fromkeys(tuple(shown(point.at.get(key)) for key in keys) for point in points))


def _free(at: Mapping[str, Any], any_epsilon: bool) -> bool:
    return any_epsilon or math.isinf(at.get("epsilon", 0.0))


def _value(key: str, text: str) -> Any:
    """A number where it can be one; infinite is a word but for ε (``steps`` are numbers or ``inf``)."""
    try:
        number = float(text)
    except ValueError:
        return text
    return number if key == "epsilon" or math.isfinite(number) else text
