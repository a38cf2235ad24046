"""A suite: which trials make a table or a figure, as a TOML file that a schema checks.

``docs/bench.md`` describes the format. What a suite *means* (which trials it expands to, and whether their
methods, graphs and settings exist) is in ``trials``; this file only knows the shape.
"""

from __future__ import annotations

import difflib
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from discreet.errors import ParameterError
from discreet.files import parse_toml, read_text
from discreet.limits import SEED, THREADS, TRIALS, plain_rule, shown
from discreet.methods.metrics import METRICS

MASKS = ("train", "val", "test")
SCORES = tuple(METRICS)
COSTS = ("seconds", "peak_rss_mb", "epsilon_spent")


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


Words = Annotated[list[str], BeforeValidator(_listed)]
Numbers = Annotated[list[float], BeforeValidator(_listed)]
Values = Annotated[list[Any], BeforeValidator(_listed)]
Figures = Annotated[list[float | None], BeforeValidator(_listed)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Case(_Strict):
    """One line of a table: a method with its settings, at one or more levels and budgets.

    Without a method nothing runs: the line holds what a paper printed for something that we do not have.
    """

    name: str | None = None
    method: str | None = None
    measure: str | None = None
    level: Words = Field(default_factory=list)
    epsilon: Numbers = Field(default_factory=list)
    delta: float | Literal["auto"] = "auto"
    settings: dict[str, Any] = Field(default_factory=dict)
    settings_if_known: dict[str, Any] = Field(default_factory=dict)
    grid: dict[str, Values] = Field(default_factory=dict)
    datasets: Words | None = None
    data_grid: dict[str, Values] = Field(default_factory=dict)
    split: str | None = None
    seeds: int | None = Field(default=None, ge=1, le=TRIALS.high)
    first_seed: int | None = Field(default=None, ge=0, le=SEED.high // 2)
    any_epsilon: bool = False
    paper: dict[str, Figures] = Field(default_factory=dict)
    note: str | None = None


class Table(_Strict):
    """A table: which coordinates tell rows apart, which columns, and what stands in a cell."""

    title: str
    rows: Words = Field(default_factory=lambda: ["level", "epsilon", "name"])
    columns: Words = Field(default_factory=lambda: ["dataset"])
    metric: str = "accuracy"
    mask: Literal["train", "val", "test"] = "test"
    where: dict[str, Values] = Field(default_factory=dict)
    best: bool = True


class Figure(_Strict):
    """A figure: a coordinate along x, one panel and one line for each value of two others."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    x: str
    line: Words = Field(default_factory=lambda: ["name"])
    panel: Words = Field(default_factory=lambda: ["dataset"])
    metric: str = "accuracy"
    mask: Literal["train", "val", "test"] = "test"
    where: dict[str, Values] = Field(default_factory=dict)
    log_x: bool = False
    x_label: str | None = None


class Suite(_Strict):
    """Everything that one ``discreet bench NAME`` runs and prints."""

    title: str
    about: str = ""
    source: str = ""
    datasets: Words = Field(default_factory=list)
    graphs: dict[str, str] = Field(default_factory=dict)
    split: str = "75/10/15"
    splits: dict[str, str] = Field(default_factory=dict)
    seeds: int = Field(default=10, ge=1, le=TRIALS.high)
    first_seed: int = Field(default=10, ge=0, le=SEED.high // 2)
    jobs: int | None = Field(default=None, ge=1, le=THREADS.high)
    cases: list[Case] = Field(min_length=1)
    tables: list[Table] = Field(default_factory=list)
    figures: list[Figure] = Field(default_factory=list)
    name: str = ""


def suite_names() -> list[str]:
    """The suites that come with the package."""
    folder = files("discreet.bench") / "suites"
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


def read_suite(name: str) -> Suite:
    """A suite of the package by name, or one of your own by the path of its ``.toml`` file."""
    if name.endswith(".toml"):
        path = Path(name)
        return parse_suite(read_text(path, "suite"), path.stem)
    known = suite_names()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}, or the path of a .toml file"
        raise ParameterError(f"there is no suite {name!r}: {hint}")
    text = (files("discreet.bench") / "suites" / f"{name}.toml").read_text(encoding="utf-8")
    return parse_suite(text, name)


def parse_suite(text: str, name: str) -> Suite:
    """Read a suite from text; one sentence says what does not fit the schema, and where."""
    content = parse_toml(text, f"suite {name}")
    try:
        return Suite(**{**content, "name": name})
    except (ValidationError, TypeError) as error:
        raise ParameterError(f"suite {name}: {_sentence(error, content)}") from None


def _sentence(error: ValidationError | TypeError, content: dict[str, Any]) -> str:
    if isinstance(error, TypeError):
        return str(error)
    first = error.errors()[0]
    where = _where(first["loc"], content)
    if first["type"] == "extra_forbidden":
        key = str(first["loc"][-1])
        known = list(_schema_at(first["loc"]).model_fields)
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(known)}"
        return f"{where} has no key {key!r}: {hint}"
    rule = plain_rule(first["msg"])
    keys = [str(part) for part in first["loc"] if isinstance(part, str)]
    given = "" if first["type"] == "missing" else f", not {shown(first['input'])}"
    return f"{where}: {keys[-1] if keys else '?'} {rule}{given}"


def _schema_at(loc: tuple[int | str, ...]) -> type[BaseModel]:
    parts: dict[Any, type[BaseModel]] = {"cases": Case, "tables": Table, "figures": Figure}
    return parts.get(loc[0], Suite) if len(loc) > 1 else Suite


def _where(loc: tuple[int | str, ...], content: dict[str, Any]) -> str:
    """``case 'gap'`` says more than ``cases.3``."""
    if len(loc) < 2 or not isinstance(loc[1], int) or not isinstance(content[str(loc[0])], list):
        return "the suite"
    kind = str(loc[0]).removesuffix("s")
    entry = content[str(loc[0])][loc[1]]
    label = next((entry[key] for key in ("name", "title", "method") if isinstance(entry, dict) and key in entry), None)
    return f"{kind} {label!r}" if label else f"{kind} {loc[1] + 1}"
