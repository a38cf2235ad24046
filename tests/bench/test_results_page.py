"""The page of results keeps what a folder of new results lacks, and says what made what."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import pytest

from discreet.bench.summary import Cell, cells
from discreet.bench.tables import lay_out_cells, tables_of
from discreet.bench.trials import expand
from discreet.bench.writers import cells_csv
from tests.bench.helpers import row, suite

TEXT = """
title = "Two lines"
datasets = ["cora"]
seeds = 6
[[cases]]
name = "ours"
method = "gap"
level = "edge"
epsilon = [1, 4]
[[cases]]
name = "free"
method = "mlp"
level = "none"
"""


@pytest.fixture(scope="module")
def page() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "results_page.py"
    spec = importlib.util.spec_from_file_location("results_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(values: dict[tuple[str, float], list[float]]) -> list[Cell]:
    entries = expand(suite(TEXT))
    rows = {}
    for entry in entries:
        given = values.get((entry.at["name"], entry.at["epsilon"]), [])
        if entry.trial.seed - 10 < len(given):
            rows[entry.trial.id] = row(entry, given[entry.trial.seed - 10], started="2026-01-02")
    return cells(entries, rows)


def test_cells_that_a_folder_lacks_stay(page: ModuleType, tmp_path: Path) -> None:
    before = measured({("ours", 1.0): [0.5] * 6, ("ours", 4.0): [0.6, 0.7], ("free", math.inf): [0.8, 0.9, 0.8]})
    path = tmp_path / "mine.csv"
    path.write_text(cells_csv(before), encoding="utf-8")
    now = measured({("ours", 1.0): [0.4] * 5, ("ours", 4.0): [0.1]})
    merged = page.with_stored(now, path)
    assert [cell.mean for cell in merged] == pytest.approx([40.0, 65.0, before[2].mean], rel=1e-4)
    assert [len(cell.values) for cell in merged] == [5, 2, 3]  # five of the present code count for more than six
    assert [cell.half for cell in merged[1:]] == pytest.approx([cell.half for cell in before[1:]], rel=1e-4)
    table = tables_of(suite(TEXT))[0]
    text = [line[-2].text for line in lay_out_cells(table, merged).rows]
    assert text == ["40.0 ± 0.0 (5 of 6)", "65.0 ± 63.5 (2 of 6)", "83.3 ± 14.3 (3 of 6)"]
    path.write_text(cells_csv(merged), encoding="utf-8")
    again = page.with_stored(measured({}), path)
    assert [cell.made_by for cell in again] == ["2026-01-02, cpu"] * 3
    assert cells_csv(again) == cells_csv(merged)
