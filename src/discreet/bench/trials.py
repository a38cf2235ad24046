"""From a suite to its trials: every combination, checked before anything runs, each with an address of its own."""

from __future__ import annotations

import difflib
import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.bench.constants import constants_digest
from discreet.bench.graphs import canonical, with_options
from discreet.bench.suite import Case, Suite
from discreet.errors import DiscreetError, InvalidInputError, ParameterError
from discreet.files import from_json, to_json
from discreet.methods.declaration import DISCREET

FORMAT = 1
"""Part of the key of a stored result: a new number makes every trial run again."""
EVERY = "*"
DEFAULT = "default"  # in a grid: the setting is left out
PRINTED = "paper: "  # the method of a trial that stands for a printed figure
OF_EVERY_TRIAL = ("name", "method", "dataset", "split", "level", "epsilon")
# How a suite that asks for every level of a method writes each kind of level.
LEVELS = {
    "none": "none",
    "edge": "edge",
    "neighbor": "neighbor:2,max_degree=5",
    "node": "node:owned,max_degree=5",
    "local": "local",
}


@dataclass(frozen=True)
class Trial:
    """One fit and its scores: everything that decides the outcome but the privacy noise."""

    dataset: str
    split: str
    method: str
    level: str
    epsilon: float
    delta: float | str
    settings: Mapping[str, Any] = field(hash=False)
    seed: int
    measure: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values; :meth:`from_json` is the inverse."""
        return {
            "dataset": self.dataset,
            "split": self.split,
            "method": self.method,
            "level": self.level,
            "epsilon": to_json(self.epsilon),
            "delta": self.delta,
            "settings": dict(self.settings),
            "seed": self.seed,
            "measure": self.measure,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trial:
        """Read what :meth:`to_json` wrote."""
        return cls(**{**data, "epsilon": float(from_json(data["epsilon"]))})

    @property
    def id(self) -> str:
        """The address: a hash of the content."""
        return _address(self.to_json())

    @property
    def cell(self) -> str:
        """The address without the seed: trials that differ in nothing else are one figure."""
        return _address({**self.to_json(), "seed": None})

    @property
    def settings_digest(self) -> str | None:
        """A hash of every parameter that the trial runs with, given or by default; None for a measure.

        A default that changed changes it, so that a row of the old default is known.
        """
        if self.measure is not None:
            return None
        parameters = estimator_of(self).get_params(deep=False)
        plain = {key: to_json(value) for key, value in parameters.items() if key not in ("privacy", "compute")}
        return _address({"settings": plain})[:12]

    @property
    def constants_digest(self) -> str | None:
        """A hash of the numbers that its method takes where a parameter is left to it; None for a measure."""
        return None if self.measure is not None else constants_digest(self.method)


@dataclass(frozen=True)
class Entry:
    """A trial in its place: the case that asks for it, and its coordinates for tables and figures."""

    trial: Trial
    case: Case
    at: Mapping[str, Any] = field(hash=False)
    paper: float | None = None


def expand(suite: Suite, *, seeds: int | None = None, first_seed: int | None = None) -> list[Entry]:
    """Every trial of a suite, in its order.

    Raises one sentence on the first method, graph, level, split or setting that does not exist.
    """
    entries = [entry for case in suite.cases for entry in _entries_of_case(suite, case, seeds, first_seed)]
    for entry in _one_a_cell(entries):
        try:
            check(entry.trial)
        except DiscreetError as error:
            raise type(error)(f"suite {suite.name}, case {entry.at['name']!r}: {error}") from None
    return entries


def check(trial: Trial) -> None:
    """Refuse what cannot run: an unknown name, a level that the method lacks, a setting of the wrong type."""
    if trial.measure is not None:
        from discreet.bench.measures import check_measure

        check_measure(trial.measure, trial.settings)
        return
    from discreet.graph.splits import check_public, check_split

    check_split(trial.split)
    check_public(trial.split, estimator_of(trial).checked_privacy().level.private)


def estimator_of(trial: Trial) -> Any:
    """The estimator of a trial, its parameters checked."""
    from discreet.methods.parameters import checked_settings
    from discreet.methods.registry import find_method, load_method
    from discreet.privacy.budget import Privacy
    from discreet.privacy.levels import parse_level

    kind = load_method(find_method(trial.method))
    delta: Any = trial.delta
    settings = checked_settings(kind, trial.method, trial.settings)
    return kind(Privacy(parse_level(trial.level), trial.epsilon, delta), **{"random_state": trial.seed, **settings})


def grid_key(key: str) -> str:
    """The coordinate of a grid's key: the key, but where that is a coordinate of every trial (``settings.split``)."""
    return f"settings.{key}" if key in OF_EVERY_TRIAL else key


def unique(entries: Iterable[Entry]) -> list[Trial]:
    """Each trial once, in the order in which they run: seed by seed, so that a run cut short is a whole table."""
    found = {entry.trial.id: entry.trial for entry in entries}
    return sorted(found.values(), key=lambda trial: (trial.seed, trial.dataset))


# -------------------------------------------------------------------- expansion


def _entries_of_case(suite: Suite, case: Case, seeds: int | None, first_seed: int | None) -> Iterator[Entry]:
    if case.method is None and case.measure is None:
        return
    first = first_seed if first_seed is not None else _or(case.first_seed, suite.first_seed)
    count = seeds if seeds is not None else _or(case.seeds, suite.seeds)
    budgets, grid_points, printed = list(_budgets(suite, case)), list(_grid(case.grid)), _printed(suite, case)
    places = itertools.product(enumerate(budgets), _datasets(suite, case), enumerate(grid_points))
    for (row, (method, level, epsilon)), (dataset, options), (column, grid) in places:
        at = {
            "name": _name(case, method),
            "method": method,
            "dataset": dataset,
            "split": _split(suite, case, dataset),
            "level": level,
            "epsilon": epsilon,
            **_of_level(level),
            **options,
        }
        at |= {grid_key(key): value for key, value in grid.items()}
        graph = with_options(_spec(suite, dataset), options)
        chosen = {key: value for key, value in grid.items() if value != DEFAULT}
        settings = {**_admitted_settings(case, method), **case.settings, **chosen}
        place, points = row * len(grid_points) + column, len(budgets) * len(grid_points)
        paper = _figure(printed, dataset, place, points, suite, case)
        for seed in range(first, first + count):
            spec = _normal(level)
            trial = Trial(graph, at["split"], method, spec, epsilon, case.delta, settings, seed, case.measure)
            yield Entry(trial, case, at, paper)


def _budgets(suite: Suite, case: Case) -> Iterator[tuple[str, str, float]]:
    """Every method, level and ε of a case; level none goes with an infinite ε."""
    if case.measure is not None:
        yield "", "none", math.inf
        return
    from discreet.methods.registry import find_method, list_methods
    from discreet.privacy.levels import parse_level

    assert case.method is not None
    for method in list_methods() if case.method == EVERY else [find_method(case.method).name]:
        wanted = case.level or ["none"]
        levels = [LEVELS[kind] for kind in find_method(method).levels] if wanted == [EVERY] else wanted
        for spec in levels:
            try:
                level = parse_level(spec)
            except InvalidInputError as error:
                near = difflib.get_close_matches(spec.partition(":")[0], list(LEVELS), n=1)
                hint = f" (did you mean {near[0]}?)" if near else ""
                raise type(error)(f"suite {suite.name}, case {_name(case, method)!r}: {error}{hint}") from None
            if level.kind == "none":
                yield method, "none", math.inf
                continue
            if not case.epsilon:
                raise ParameterError(f"suite {suite.name}, case {_name(case, method)!r}: level {spec} needs an epsilon")
            yield from ((method, spec, epsilon) for epsilon in case.epsilon)


def _datasets(suite: Suite, case: Case) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each graph as the suite writes it (in its one spelling), with each point of the case's data grid."""
    wanted = _or(case.datasets, suite.datasets)
    if case.measure is not None and not wanted:
        yield "", {}
        return
    if not wanted:
        raise ParameterError(f"suite {suite.name}, case {case.name!r} names no dataset")
    for dataset in wanted:
        one = _shown_as(suite, dataset)
        for options in _grid(case.data_grid):
            with_options(_spec(suite, one), options)
            yield one, options


def _shown_as(suite: Suite, dataset: str) -> str:
    """The name that tables show: one of the suite's own names for graphs, or the graph's one spelling."""
    if dataset in suite.graphs:
        return dataset
    try:
        return canonical(dataset)
    except InvalidInputError as error:
        near = difflib.get_close_matches(dataset, list(suite.graphs), n=1)
        hint = f" (or {near[0]}, which the suite names itself)" if near else ""
        raise type(error)(f"suite {suite.name}: {error}{hint}") from None


def _spec(suite: Suite, dataset: str) -> str:
    """The graph behind a name that tables show."""
    if dataset not in suite.graphs:
        return dataset
    if not suite.graphs[dataset]:
        raise ParameterError(f"suite {suite.name}: {dataset} is only printed, not run: it has no graph")
    return canonical(suite.graphs[dataset])


def _of_level(level: str) -> dict[str, Any]:
    """Numbers of a level that a figure may run along: the degree bound, and k neighbours."""
    from discreet.privacy.levels import parse_level

    parsed = parse_level(level)
    found = {name: getattr(parsed, name, None) for name in ("max_degree", "k")}
    return {name: value for name, value in found.items() if value is not None}


def _normal(level: str) -> str:
    from discreet.privacy.levels import parse_level

    return parse_level(level).spec


def _grid(axes: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for point in itertools.product(*axes.values()):
        yield dict(zip(axes, point, strict=True))


def _admitted_settings(case: Case, method: str) -> dict[str, Any]:
    """Of ``settings_if_known`` what the method has: for suites over every method."""
    if not case.settings_if_known:
        return {}
    from discreet.methods.parameters import admits
    from discreet.methods.registry import find_method, load_method

    kind = load_method(find_method(method))
    return {key: value for key, value in case.settings_if_known.items() if admits(kind, key, value)}


def _split(suite: Suite, case: Case, dataset: str) -> str:
    by_graph = {_shown_as(suite, name): split for name, split in suite.splits.items()}
    return case.split or by_graph.get(dataset, suite.split)


def _name(case: Case, method: str) -> str:
    if case.method == EVERY or case.name is None:
        preset = case.settings.get("preset", DISCREET)
        return (method or str(case.measure)) + ("" if preset == DISCREET else f", preset {preset}")
    return case.name


def with_preset(suite: Suite, preset: str) -> Suite:
    """The cases of methods that have the preset, which decides what the suite leaves open; names say so.

    Settings that a case gives are kept, since they are what tells it from others, and so are grids, and tables and
    figures that pick no line by its name. Cases that name the preset themselves stay as they are and come first, and
    another preset's are left out; so are printed figures, and coordinates that no case has any more.
    """
    from discreet.methods.registry import list_methods

    having = [name for name, declared in list_methods().items() if preset in declared.presets]
    named: list[Case] = []
    made: list[Case] = []
    for case in suite.cases:
        own = case.settings.get("preset")
        for method in having if case.method == EVERY else [case.method]:
            if method not in having or own not in (None, preset):
                continue
            name = case.name if own == preset else f"{case.name or method}, preset {preset}"
            changed = {"name": name, "method": method, "settings": {**case.settings, "preset": preset}, "paper": {}}
            (named if own == preset else made).append(case.model_copy(update=changed))
    cases = [*named, *made]
    if not cases:
        raise ParameterError(f"suite {suite.name} has no method with preset {preset!r}")
    axes = {key for case in suite.cases for key in (*map(grid_key, case.grid), *case.data_grid)}
    gone = axes - {key for case in cases for key in (*map(grid_key, case.grid), *case.data_grid)}
    figures = [figure for figure in suite.figures if "name" not in figure.where and figure.x not in gone]
    tables = [
        table.model_copy(
            update={
                "rows": [key for key in table.rows if key not in gone],
                "columns": [key for key in table.columns if key not in gone],
            }
        )
        for table in suite.tables
        if "name" not in table.where
    ]
    return suite.model_copy(update={"cases": cases, "figures": figures, "tables": tables})


def first_in_each_place(entries: Iterable[Entry]) -> list[Entry]:
    """Of entries with the same coordinates and seed the first: a suite may have a line for a preset already."""
    found: dict[tuple[str, int], Entry] = {}
    for entry in entries:
        found.setdefault((repr(sorted(entry.at.items())), entry.trial.seed), entry)
    return list(found.values())


def paper_only(suite: Suite) -> Iterator[Entry]:
    """What a paper printed for methods or graphs that we do not have. These trials never run."""
    for case in suite.cases:
        runs = case.method is not None or case.measure is not None
        if not runs and (case.name is None or not case.paper):
            raise ParameterError(
                f"suite {suite.name}: case {case.name!r} has no method: such a line needs a name and paper figures"
            )
        run_on = {dataset for dataset, _ in _datasets(suite, case)} if runs else set()
        name = case.name or case.method
        budgets = [
            (level, math.inf if level == "none" else epsilon)
            for level in case.level or ["none"]
            for epsilon in (case.epsilon if level != "none" else [math.inf]) or [math.inf]
        ]
        points = list(itertools.product(budgets, _grid(case.grid)))
        for dataset, figures in _printed(suite, case).items():
            if dataset in run_on:
                continue
            for place, ((level, epsilon), grid) in enumerate(points):
                at = {"name": name, "method": case.method or "", "dataset": dataset, "split": "", "level": level}
                trial = Trial(dataset, "", f"{PRINTED}{name}", level, epsilon, "auto", grid, 0)
                paper = _figure({dataset: figures}, dataset, place, len(points), suite, case)
                coordinates = {grid_key(key): value for key, value in grid.items()}
                yield Entry(trial, case, {**at, "epsilon": epsilon, **coordinates}, paper)


def _printed(suite: Suite, case: Case) -> dict[str, list[float | None]]:
    """The paper's figures by graph, in its one spelling."""
    if case.paper and case.data_grid:
        raise ParameterError(f"suite {suite.name}, case {case.name!r}: paper figures do not go with a data grid")
    return {_shown_as(suite, dataset): figures for dataset, figures in case.paper.items()}


def _figure(
    printed: Mapping[str, list[float | None]], dataset: str, place: int, points: int, suite: Suite, case: Case
) -> float | None:
    """What the paper prints at this place: one figure for each level, ε and point of the grid, in this order."""
    figures = printed.get(dataset)
    if figures is None:
        return None
    if len(figures) != points:
        which = "budgets and points of the grid" if case.grid else "budgets"
        raise ParameterError(
            f"suite {suite.name}, case {case.name!r}: {len(figures)} paper figures for {dataset}, but {points} {which}"
        )
    return figures[place]


def _one_a_cell(entries: Iterable[Entry]) -> Iterator[Entry]:
    seen = set()
    for entry in entries:
        if entry.trial.cell not in seen:
            seen.add(entry.trial.cell)
            yield entry


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _address(content: Mapping[str, Any]) -> str:
    text = json.dumps({"format": FORMAT, **content}, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


# -------------------------------------------------------------------- choosing some


def select(entries: list[Entry], only: Iterable[str]) -> list[Entry]:
    """Those that match: ``key=value`` for a coordinate, or one word for a name, method, dataset or level.

    The same key twice means either; different keys mean both.
    """
    chosen = entries
    wanted: dict[str, list[str]] = {}
    for text in only:
        key, equals, value = text.partition("=")
        wanted.setdefault(key if equals else "", []).append(value if equals else text)
    for key, values in wanted.items():
        known = sorted({shown for entry in entries for shown in _names_of(entry, key)})
        for value in values:
            if value not in known:
                near = difflib.get_close_matches(value, known, n=3, cutoff=0.5)
                hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known) or 'none'}"
                raise ParameterError(f"--only {key}{'=' if key else ''}{value} matches no trial of the suite: {hint}")
        chosen = [entry for entry in chosen if set(values) & _names_of(entry, key)]
    return chosen


def _names_of(entry: Entry, key: str) -> set[str]:
    if key:
        if key not in entry.at:
            return set()
        value = entry.at[key]
        return {str(value), f"{value:g}" if isinstance(value, float) else str(value)}
    level = str(entry.at["level"])
    return {str(entry.at["name"]), str(entry.at["method"]), str(entry.at["dataset"]), level, level.partition(":")[0]}
