"""Figures: told apart without colour, one colour per method, readable ticks, intervals side by side."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from discreet.bench.figure_style import DARK, DASHES, LIGHT, METHODS, dash, markers
from discreet.bench.figures import LegendPlan, _by_column, _shifts, _ticks, draw, draw_panel, looks_of
from discreet.bench.points import Point, of_cells, read_points
from discreet.bench.suite import Figure
from discreet.bench.summary import CLAIMED, cells
from discreet.bench.writers import cells_csv
from discreet.methods.registry import list_methods
from discreet.privacy.coverage import COVERAGE, NOTHING
from tests.bench.helpers import suite
from tests.bench.test_tables import APART, TEXT, made

OVER_EPSILON = Figure(name="curves", title="Curves", x="epsilon", log_x=True)


def point(name: str, method: str, epsilon: float, mean: float, covers: str = "weights+predictions") -> Point:
    at = {"name": name, "method": method, "dataset": "cora", "level": "edge", "epsilon": epsilon}
    return Point(at, mean, 1.0, covers)


def test_four_files_whose_text_is_text(tmp_path: Path) -> None:
    entries, rows = made(APART)
    figure = suite(TEXT).figures[0]
    names = draw(figure, of_cells(cells(entries, rows)), tmp_path / "curves")
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted(names)
    assert set(names) == {"curves.svg", "curves.png", "curves-dark.svg", "curves-dark.png"}
    words = "".join(ElementTree.parse(tmp_path / "curves.svg").getroot().itertext())
    assert "cora" in words
    assert "free" in words
    assert "covers weights+predictions" in words
    assert draw(figure, [], tmp_path / "none") == []


def test_points_come_back_from_the_csv(tmp_path: Path) -> None:
    entries, rows = made(APART)
    whole = cells(entries, rows)
    (tmp_path / "cells.csv").write_text(cells_csv(whole), encoding="utf-8")
    for here, there in zip(of_cells(whole), read_points(tmp_path / "cells.csv", suite(TEXT)), strict=True):
        assert (there.at["name"], there.at["epsilon"]) == (here.at["name"], here.at["epsilon"])
        assert there.mean == pytest.approx(here.mean, rel=1e-5)
        assert there.half == pytest.approx(here.half, rel=1e-3, nan_ok=True)
        assert (there.covers, there.any_epsilon, there.seeds) == (here.covers, here.any_epsilon, here.seeds)


def test_every_method_has_a_colour_of_its_own_and_every_coverage_a_dash() -> None:
    assert set(METHODS) == set(list_methods())
    for theme in (LIGHT, DARK):
        assert len({theme.colour(method) for method in METHODS}) == len(METHODS)
    assert set(DASHES) == {*COVERAGE} - {NOTHING} | {CLAIMED}
    assert len({str(dash(covers)) for covers in DASHES}) == len(DASHES)


def test_a_method_looks_the_same_in_every_figure_and_its_variants_do_not() -> None:
    alone = looks_of(OVER_EPSILON, [point("gap", "gap", 1, 80)], LIGHT)
    beside = [point("two hops", "gap", 1, 80), point("mlp", "mlp", 1, 70), point("gap", "gap", 1, 81)]
    looks = looks_of(OVER_EPSILON, beside, LIGHT)
    assert looks[("gap",)] == alone[("gap",)]
    assert len({(look.marker, look.colour) for look in looks.values()}) == 3
    assert len(set(markers(["dpar"] * 7))) == 7


def test_ticks_stand_at_the_values_and_do_not_crowd() -> None:
    assert _ticks([0.5, 1, 2, 4, 8], log_x=True) == [0.5, 1, 2, 4, 8]
    many = _ticks([float(value) for value in range(1, 101)], log_x=False)
    assert len(many) <= 10
    assert many[0] == 1


@pytest.mark.parametrize("log_x", [False, True])
def test_intervals_at_one_value_stand_side_by_side(log_x: bool) -> None:
    values = [0.5, 1.0, 4.0]
    shifts = _shifts(values, 5, log_x)
    assert len(set(shifts)) == 5
    moved = [[value * by if log_x else value + by for by in shifts] for value in values]
    assert max(moved[0]) < min(moved[1])
    assert max(moved[1]) < min(moved[2])


def test_dashes_say_what_is_covered() -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    found = [
        *(point("all", "gap", epsilon, 80) for epsilon in (1, 4)),
        *(point("own", "gcon", epsilon, 85, "own-prediction") for epsilon in (1, 4)),
    ]
    drawing, axis = plt.subplots()
    draw_panel(axis, OVER_EPSILON, found, looks_of(OVER_EPSILON, found, LIGHT))
    drawn: dict[str, Any] = {bars.get_label(): bars[0] for bars in axis.containers}
    assert drawn["all"].get_linestyle() == "-"
    assert drawn["own"].get_linestyle() != "-"
    assert [text.get_text() for text in axis.get_xticklabels()] == ["1", "4"]
    plt.close(drawing)


def test_a_legend_reads_row_by_row_with_dashes_last() -> None:
    plan = LegendPlan(["a", "b", "c"], ["covers x"], 2)
    by_column = _by_column(plan)
    rows = [by_column[row :: math.ceil(len(by_column) / 2)] for row in range(plan.rows)]
    assert rows == [["a", "b"], ["c", ""], ["covers x", ""]]
