"""Means, intervals, bold, and the four ways to write them."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from discreet.bench.summary import cells, half_width
from discreet.bench.tables import lay_out, layouts, tables_of, with_metric
from discreet.bench.trials import Entry, expand, paper_only
from discreet.bench.writers import cells_csv, latex, markdown, terminal
from discreet.cli import main
from discreet.errors import ParameterError
from tests.bench.helpers import row, suite

TEXT = """
title = "Comparison"
datasets = ["cora", "photo"]
seeds = 4

[[cases]]
name = "ours"
method = "gap"
level = "edge"
epsilon = [1, 4]
paper = { cora = [76.95, 80] }

[[cases]]
name = "free"
method = "mlp"
level = "edge"
epsilon = 1
any_epsilon = true

[[cases]]
name = "theirs"
level = "edge"
epsilon = 1
paper = { photo = 46.42 }

[[tables]]
title = "By budget"
rows = ["name"]
columns = ["dataset", "epsilon"]

[[figures]]
name = "curves"
title = "Curves"
x = "epsilon"
"""


def made(values: dict[tuple[str, str, float], list[float]]) -> tuple[list[Entry], dict[str, dict[str, object]]]:
    read = suite(TEXT)
    entries = expand(read)
    rows = {}
    for entry in entries:
        given = values.get((entry.at["name"], entry.at["dataset"], entry.at["epsilon"]))
        if given is not None and entry.trial.seed - 10 < len(given):
            rows[entry.trial.id] = row(entry, given[entry.trial.seed - 10])
    return [*entries, *paper_only(read)], rows


APART = {
    ("ours", "cora", 1.0): [0.80, 0.81, 0.80, 0.81],
    ("ours", "cora", 4.0): [0.70, 0.80, 0.75, 0.72],
    ("free", "cora", 1.0): [0.70, 0.71, 0.70, 0.71],
    ("ours", "photo", 1.0): [0.9, 0.9, 0.91],
}


def test_the_interval_is_students() -> None:
    values = list(np.random.default_rng(0).normal(size=7))
    low, high = stats.t.interval(0.95, 6, np.mean(values), stats.sem(values))
    assert half_width(values) == pytest.approx((high - low) / 2)
    assert math.isnan(half_width([1.0]))


def test_bold_only_where_intervals_lie_apart() -> None:
    entries, rows = made(APART)
    layout = lay_out(tables_of(suite(TEXT))[0], entries, rows)
    assert layout.heads == ["method", "cora, ε = 1", "cora, ε = 4", "photo, ε = 1", "photo, ε = 4", "covers"]
    ours, free, theirs = layout.rows
    assert [cell.best for cell in ours] == [False, True, False, False, False, False]
    assert not any(cell.best for cell in free)
    assert ours[1].text.startswith("80.5 ± 0.9 [76.95]")
    assert free[1].text == free[2].text == "70.5 ± 0.9"  # one run stands for every ε
    assert ours[3].text == "90.3 ± 1.4 (3 of 4)"
    assert theirs[3].text == "[46.42]"
    assert ours[2].text.endswith("[80]")


def test_graphs_are_not_compared_where_they_are_rows() -> None:
    entries, rows = made(APART)
    table = tables_of(suite(TEXT))[0].model_copy(update={"rows": ["dataset", "name"], "columns": ["epsilon"]})
    best = {(line[0].text, line[1].text) for line in lay_out(table, entries, rows).rows if line[2].best}
    assert best == {("cora", "ours")}  # and not photo, whose line has no other beside it


def test_a_printed_score_does_not_stand_beside_seconds() -> None:
    entries, rows = made(APART)
    table = tables_of(suite(TEXT))[0].model_copy(update={"metric": "seconds"})
    layout = lay_out(table, entries, rows)
    assert not any("[" in cell.text for line in layout.rows for cell in line)
    assert not any("paper" in note for note in layout.notes)


def test_methods_of_another_coverage_are_not_compared() -> None:
    entries, rows = made(APART)
    for found in rows.values():
        if found["trial"]["method"] == "mlp":
            found["covers"] = "own-prediction"
    layout = lay_out(tables_of(suite(TEXT))[0], entries, rows)
    assert not any(cell.best for line in layout.rows for cell in line)


def test_a_claim_covers_nothing_and_is_not_compared() -> None:
    entries, rows = made(APART)
    for found in rows.values():
        if found["trial"]["method"] == "mlp":
            found["accounting"] = "as-published"
    layout = lay_out(tables_of(suite(TEXT))[0], entries, rows)
    assert "nothing (a claim)" in {line[-1].text for line in layout.rows}
    assert not any(cell.best for line in layout.rows for cell in line)


def test_a_failed_trial_is_told_with_its_reason() -> None:
    entries, rows = made(APART)
    for found in list(rows.values())[:2]:
        found.update(status="failed", reason="out of luck")
    layout = lay_out(tables_of(suite(TEXT))[0], entries, rows)
    assert any("failed" in note and "out of luck" in note for note in layout.notes)


def test_tables_without_results_are_left_out() -> None:
    read = suite(TEXT + '\n[[tables]]\ntitle = "Free"\nrows = ["name", "epsilon"]\nwhere = { name = ["free"] }\n')
    entries, rows = made({key: values for key, values in APART.items() if key[0] == "ours"})
    assert [layout.title for layout in layouts(read, entries, rows)] == ["By budget"]
    assert [line[0].text for line in layouts(read, entries, rows)[0].rows] == ["ours", "theirs"]


def test_four_ways_to_write_it() -> None:
    entries, rows = made(APART)
    layout = lay_out(tables_of(suite(TEXT))[0], entries, rows)
    text, page, tex = terminal(layout), markdown(layout), latex(layout)
    assert "80.5 ± 0.9 [76.95]*" in text
    assert "| **80.5 ± 0.9 [76.95]** |" in page
    assert {line.count("|") for line in page.splitlines() if line.startswith("|")} == {7}
    assert r"\textbf{80.5 $\pm$ 0.9 [76.95]}" in tex
    assert "%" not in tex.replace(r"\%", "")
    lines = list(csv.DictReader(io.StringIO(cells_csv(cells(entries, rows)))))
    first = next(line for line in lines if line["name"] == "ours" and line["dataset"] == "cora")
    assert float(first["mean"]) == pytest.approx(80.5)
    assert float(first["high"]) - float(first["low"]) == pytest.approx(2 * half_width([80, 81, 80, 81]), rel=1e-4)
    assert first["seeds"] == "4"


def test_a_cell_says_what_made_it() -> None:
    entries, rows = made(APART)
    code = {"source": "abc", "torch": "2.0"}
    some = {key: {**row, "versions": code, "started": "2026-01-02T03:04"} for key, row in rows.items()}
    elsewhere = {**some, **{key: {**row, "device": "cuda"} for key, row in list(some.items())[:1]}}
    (first, *_), (mixed, *_) = cells(entries, some), cells(entries, elsewhere)
    assert first.made_by == "2026-01-02, source abc, torch 2.0, cpu"
    assert mixed.made_by == f"{first.made_by}; 2026-01-02, source abc, torch 2.0, cuda"
    (line, *_) = csv.DictReader(io.StringIO(cells_csv([mixed])))
    assert line["made_by"] == mixed.made_by


def test_without_matplotlib_there_are_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entries, rows = made(APART)
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    out = tmp_path / "out"
    out.mkdir()
    (out / "elsewhere.jsonl").write_text("".join(json.dumps(found) + "\n" for found in rows.values()))
    command = ["bench", str(path), "--out", str(out), "--tables-only"]
    with monkeypatch.context() as absent:
        absent.setitem(sys.modules, "matplotlib", None)
        assert main(command) == 0
    captured = capsys.readouterr()
    assert "80.5 ± 0.9 [76.95]" in captured.out
    assert "no figures" in captured.err
    assert main([*command, "--format", "csv"]) == 0
    assert {"curves.svg", "curves.png", "curves-dark.svg", "curves-dark.png"} <= {item.name for item in out.iterdir()}
    assert capsys.readouterr().out == cells_csv(cells(entries, rows))


def test_another_metric_leaves_out_what_papers_printed() -> None:
    shown = with_metric(suite(TEXT), "roc-auc")
    assert {part.metric for part in (*shown.tables, *shown.figures)} == {"roc-auc"}
    assert [case.name for case in shown.cases] == ["ours", "free"]
    entries = expand(shown)
    rows = {e.trial.id: row(e, 0.5) for e in entries}
    for one in rows.values():
        one["metrics"]["roc-auc"] = {"test": 0.75}
    text = markdown(lay_out(shown.tables[0], entries, rows))
    assert "75.0" in text
    assert "76.95" not in text
    with pytest.raises(ParameterError, match="metric"):
        with_metric(suite(TEXT), "auc")
