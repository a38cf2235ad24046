"""Suites are refused before anything runs where they name something that does not exist; all of ours expand."""

from __future__ import annotations

import math

import pytest

from discreet.bench.measures import run_measure
from discreet.bench.suite import read_suite, suite_names
from discreet.bench.tables import check_layout, tables_of
from discreet.bench.trials import LEVELS, Trial, expand, paper_only, select, unique
from discreet.errors import InvalidInputError, ParameterError
from discreet.methods.registry import list_methods
from tests.bench.helpers import TINY, suite

HEAD = 'title = "t"\ndatasets = ["cora"]\n'


@pytest.mark.parametrize("name", suite_names())
def test_our_suites_are_sound(name: str) -> None:
    read = read_suite(name)
    entries = expand(read)
    check_layout(read, [*entries, *paper_only(read)])
    assert entries


def test_smoke_holds_every_method_at_every_level() -> None:
    found = {(entry.trial.method, entry.trial.level.partition(":")[0]) for entry in expand(read_suite("smoke"))}
    assert found == {(name, kind) for name, info in list_methods().items() for kind in info.levels}
    assert set(LEVELS) == {"none", "edge", "neighbor", "node", "local"}


@pytest.mark.parametrize(
    ("case", "near"),
    [
        ('method = "gapp"\nlevel = "edge"\nepsilon = 1', "gap"),
        ('method = "gap"\nlevel = "edgy"\nepsilon = 1', "edge"),
        ('method = "gap"\nlevel = "edge"', "epsilon"),
        ('method = "gap"\nlevel = "edge"\nepsilon = 1\nsettings = { hiden = 3 }', "hidden"),
        ('method = "gap"\nlevel = "edge"\nepsilon = 1\nsettings = { hidden = "wide" }', "hidden"),
        ('method = "gap"\nlevel = "edge"\nepsilon = 1\ngrid = { hidden = [3, -1] }', "hidden"),
        ('method = "gap"\nlevel = "edge"\nepsilon = 1\ndatasets = ["coar"]', "cora"),
        ('method = "gap"\nlevel = "edge"\nepsilon = 1\ndatasets = ["csbm:phy=0.5"]', "phi"),
        ('method = "gap"\nlevel = "edge"\nepsilon = 1\ndata_grid = { phi = [0.5] }', "not a generated graph"),
        ('method = "gap"\nlevel = "edge"\nepsilon = 1\nsplit = "75/10/16.5"', "100"),
        ('method = "gap"\nlevel = "node"\nepsilon = 1\nsplit = "20/500/1000"', "labels"),
        ('method = "gap"\nlevel = "edge"\nepsilon = -1', "positive"),
        ('method = "gap"\nlevel = "edge"\nepsilon = 1\nmetod = 3', "method"),
        ('method = "gap"\nlevel = "edge"\nepsilon = [1, 4]\npaper = { cora = 3 }', "2 budgets"),
        ('method = "gap"\nlevel = "edge"\nepsilon = 1\npaper = { coar = 3 }', "cora"),
        (
            'method = "gap"\nlevel = "edge"\nepsilon = 1\ngrid = { hops = [1, 2] }\npaper = { cora = 3 }',
            "but 2 budgets and",
        ),
        ('method = "gcn"\nlevel = "edge"\nepsilon = 1', "does not support"),
        ('measure = "hop-over-scipi"', "hop-over-scipy"),
        ('name = "nothing"', "paper figures"),
    ],
)
def test_a_misspelled_suite_is_refused_with_the_nearest_name(case: str, near: str) -> None:
    def whole() -> None:
        read = suite(f"{HEAD}[[cases]]\n{case}\n")
        list(paper_only(read))
        expand(read)

    with pytest.raises(InvalidInputError, match=near):
        whole()


@pytest.mark.parametrize(
    ("part", "near"),
    [
        ('[[tables]]\ntitle = "x"\nrows = ["nam"]', "name"),
        ('[[tables]]\ntitle = "x"\nrows = ["level"]', "tell them apart by name"),
        ('[[tables]]\ntitle = "x"\nmetric = "acuracy"', "accuracy"),
        ('[[figures]]\nname = "x"\ntitle = "x"\nx = "epsylon"', "epsilon"),
        ('[[figures]]\nname = "x"\ntitle = "x"\nx = "seed"', "no trial has a coordinate"),
    ],
)
def test_a_table_that_would_mix_trials_is_refused(part: str, near: str) -> None:
    case = '[[cases]]\nmethod = "{}"\nlevel = "edge"\nepsilon = 1\n'
    read = suite(HEAD + case.format("gap") + case.format("mlp") + part)
    with pytest.raises(ParameterError, match=near):
        check_layout(read, expand(read))


def test_one_spelling_is_one_trial() -> None:
    case = '[[cases]]\nname = "{}"\nmethod = "gap"\nlevel = "{}"\nepsilon = {}\ndatasets = ["{}"]\n'
    read = suite(
        'title = "t"\n' + case.format("a", "node", "1", "Cora") + case.format("b", "node:owned", "1.0", "cora")
    )
    assert len(expand(read, seeds=2)) == 4
    assert len(unique(expand(read, seeds=2))) == 2


def test_trials_survive_json_and_differ_in_their_address() -> None:
    trials = unique(expand(suite()))
    assert [Trial.from_json(trial.to_json()) for trial in trials] == trials
    assert len({trial.id for trial in trials}) == len(trials) == 4
    assert len({trial.cell for trial in trials}) == 2
    free = Trial("cora", "75/10/15", "gcn", "none", math.inf, "auto", {}, 0)
    assert Trial.from_json(free.to_json()).id == free.id


def test_a_grid_has_a_printed_figure_for_each_point() -> None:
    """Levels first, then budgets, then the grid; alone where the graph is not among those that run."""
    text = (
        TINY + '\n[[cases]]\nname = "x"\nmethod = "gap"\nlevel = "edge"\nepsilon = [1, 2]\ngrid = { hidden = [4, 8] }\n'
    )
    text += 'datasets = ["cora"]\npaper = { cora = [10, 11, 20, 21], photo = [30, 31, 40, 41] }\n'
    read = suite(text)
    for entries, figures in ((expand(read), [10, 11, 20, 21]), (paper_only(read), [30, 31, 40, 41])):
        places = {
            (entry.at["epsilon"], entry.at["hidden"]): entry.paper for entry in entries if entry.at["name"] == "x"
        }
        assert places == dict(zip([(1.0, 4), (1.0, 8), (2.0, 4), (2.0, 8)], figures, strict=True))


def test_grids_and_seeds() -> None:
    text = TINY + '\n[[cases]]\nmethod = "gap"\nlevel = "edge"\nepsilon = [1, 2]\n'
    text += "grid = { hidden = [4, 8] }\ndata_grid = { phi = [0, 0.5, 1] }\n"
    entries = expand(suite(text), seeds=2, first_seed=5)
    assert {entry.trial.seed for entry in entries} == {5, 6}
    gap = select(entries, ["gap"])
    assert len(gap) == 2 * 2 * 3 * 2
    assert len(select(entries, ["method=gap", "phi=0.5", "epsilon=1"])) == 4
    assert len(select(entries, ["method=gap", "phi=0.5", "phi=0"])) == 16
    assert [trial.seed for trial in unique(gap)] == [5] * 12 + [6] * 12
    with pytest.raises(ParameterError, match="gap"):
        select(entries, ["gpa"])
    with pytest.raises(ParameterError, match="phi"):
        select(entries, ["phi=0.6"])


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("hop-over-scipy", {"nodes": 200, "degree": 4, "width": 2}),
        ("step-over-plain", {"batch": 16, "hidden": 4}),
    ],
)
def test_measurements_give_ratios(name: str, settings: dict[str, int]) -> None:
    found = run_measure(name, settings, 0)
    assert found["ratio"] == pytest.approx(found["ours_ms"] / found["theirs_ms"])
    assert found["ratio"] > 0


def test_a_setting_named_as_a_coordinate_keeps_both() -> None:
    text = TINY + '\n[[cases]]\nmethod = "gap"\nlevel = "node"\nepsilon = 1\n'
    text += "grid = { split = [[0.6, 0.3, 0.1], [0.3, 0.6, 0.1]] }\n"
    entries = select(expand(suite(text), seeds=1), ["gap"])
    assert {entry.at["split"] for entry in entries} == {entries[0].trial.split}
    assert [entry.at["settings.split"] for entry in entries] == [[0.6, 0.3, 0.1], [0.3, 0.6, 0.1]]
    assert "settings.split" in tables_of(suite(text))[0].rows


def test_default_in_a_grid_leaves_the_setting_out() -> None:
    text = TINY + '\n[[cases]]\nmethod = "gap"\nlevel = "edge"\nepsilon = 1\ngrid = { hops = ["default", 2] }\n'
    entries = [entry for entry in expand(suite(text), seeds=1) if "hops" in entry.at]
    assert [entry.trial.settings for entry in entries] == [{}, {"hops": 2}]
    assert [entry.at["hops"] for entry in entries] == ["default", 2]


def test_graphs_whose_files_are_often_absent_are_named() -> None:
    named = {entry.at["dataset"] for name in suite_names() for entry in expand(read_suite(name), seeds=1)}
    assert {"squirrel", "computers", "physics", "reddit"} <= named
