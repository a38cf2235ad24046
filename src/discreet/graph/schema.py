"""What the columns of two tables mean: names, kinds, ranges and categories, classes, direction.

A schema is *declared* (by a person, a file, or a dataset's definition) or, where the data are public, partly measured;
every column knows which. It is all that the encoding of a table needs, so it travels with a release: the tables of next
month are read by it, column by column name. See ``discreet.graph.schema_file`` for its form as ``schema.toml``.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Any, Self

import numpy as np

from discreet.arrays import Array
from discreet.errors import GraphError
from discreet.limits import shown

NUMERIC, CATEGORY, BOOLEAN, AS_IS, IGNORE = "numeric", "category", "boolean", "as-is", "ignore"
KINDS = (NUMERIC, CATEGORY, BOOLEAN, AS_IS, IGNORE)
LINEAR, LOG = "linear", "log"
INDICATOR = "indicator"
"""The word that gives a missing value a column of its own."""

ROLES = ("id", "label", "split", "source", "target", "weight", "time")
SHOWN = 8  # how many columns a message names before it counts the rest


@dataclass(frozen=True)
class Column:
    """A feature column of the node table.

    Parameters
    ----------
    name
        The name in the header; in a file it may be a pattern (``word_*``) that stands for every column it matches.
    kind
        ``numeric`` (scaled by its range), ``category`` (one column per category), ``boolean``, ``as-is`` (numbers that
        are features already: word counts, embeddings), or ``ignore``.
    range
        The smallest and the largest value of a numeric column; what lies beyond is clipped.
    scale
        ``linear``, or ``log`` for amounts that span several powers of ten.
    categories
        The values of a category column, in order.
    other
        Whether a value that is not listed becomes a category of its own; otherwise it is refused.
    missing
        What a missing value becomes: a value of the column, or ``indicator``, a column of its own. None refuses it.
    measured
        Whether range or categories were read off the data, which is allowed only where features are public.
    """

    name: str
    kind: str
    range: tuple[float, float] | None = None
    scale: str = LINEAR
    categories: tuple[str, ...] | None = None
    other: bool = False
    missing: float | str | bool | None = None
    measured: bool = False

    def __post_init__(self) -> None:
        """One sentence for what contradicts itself."""
        if self.kind not in KINDS:
            raise GraphError(f"{self._words} has kind {self.kind!r}: use one of {', '.join(KINDS)}")
        if self.scale not in (LINEAR, LOG):
            raise GraphError(f"{self._words} has scale {self.scale!r}: use linear or log")
        if self.range is not None:
            object.__setattr__(self, "range", self._checked_range(self.range))
        if self.categories is not None:
            object.__setattr__(self, "categories", self._checked_categories(self.categories))
        for setting, kind in (("range", NUMERIC), ("categories", CATEGORY)):
            if getattr(self, setting) is not None and self.kind != kind:
                raise GraphError(f"{self._words} is of kind {self.kind}, and {setting} belongs to kind {kind}")
        if self.other and self.kind != CATEGORY:
            raise GraphError(f"{self._words} is of kind {self.kind}, and other belongs to kind category")
        self._check_missing()

    @property
    def _words(self) -> str:
        return f"the column {self.name!r} of the schema"

    def _checked_range(self, given: Any) -> tuple[float, float]:
        try:
            low, high = (float(value) for value in given)
        except (TypeError, ValueError, OverflowError):
            raise GraphError(f"{self._words} needs two numbers as its range, not {shown(given)}") from None
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise GraphError(f"{self._words} has the range {given!r}: the lower end comes first, both are finite")
        return low, high

    def _checked_categories(self, given: Any) -> tuple[str, ...]:
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise GraphError(f"{self._words} needs a list of categories, not {given!r}")
        names = tuple(str(value) for value in given)
        if not names or len(set(names)) < len(names) or "" in names:
            raise GraphError(f"{self._words} must list each category once, without empty names")
        return names

    def _check_missing(self) -> None:
        if self.missing is None or self.missing == INDICATOR:
            return
        if not isinstance(self.missing, str | int | float):
            raise GraphError(f"{self._words} needs a value or {INDICATOR!r} for a missing one, not {self.missing!r}")
        if self.kind in (NUMERIC, AS_IS) and not _is_number(self.missing):
            raise GraphError(f"{self._words} is a number: missing must be a number or {INDICATOR!r}")
        if self.kind == CATEGORY and self.categories is not None and self.missing not in self.categories:
            raise GraphError(f"{self._words} does not list {self.missing!r}, which a missing value becomes")
        if self.kind == BOOLEAN and not isinstance(self.missing, bool):
            raise GraphError(f"{self._words} is boolean: missing must be true, false or {INDICATOR!r}")

    @property
    def settled(self) -> bool:
        """Whether the column can be encoded without a look at other rows."""
        needed = {NUMERIC: self.range, CATEGORY: self.categories}
        return self.kind not in needed or needed[self.kind] is not None

    @property
    def is_pattern(self) -> bool:
        """Whether the name stands for several columns."""
        return any(mark in self.name for mark in "*?")

    def to_json(self) -> dict[str, Any]:
        """What differs from the defaults, as plain values, without the name."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "name"}
        defaults = {field.name: field.default for field in fields(self)}
        kept = {key: value for key, value in given.items() if key == "kind" or value != defaults[key]}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in kept.items()}

    @classmethod
    def from_json(cls, name: str, given: Mapping[str, Any]) -> Self:
        """Inverse of :meth:`to_json`; an unknown key is refused."""
        if not isinstance(given, Mapping):
            raise GraphError(f"the column {name!r} of the schema must be a table with a kind, not {given!r}")
        known = {field.name for field in fields(cls)} - {"name"}
        unknown = sorted(set(given) - known)
        if unknown:
            raise GraphError(
                f"the column {name!r} of the schema has the unknown key {unknown[0]!r}: use {_list(known)}"
            )
        if "kind" not in given:
            raise GraphError(f"the column {name!r} of the schema has no kind: use one of {', '.join(KINDS)}")
        for flag in ("other", "measured"):
            if not isinstance(given.get(flag, False), bool):
                raise GraphError(f"{flag} of the column {name!r} of the schema must be true or false")
        return cls(name, **given)


@dataclass(frozen=True)
class Schema:
    """Every column of a node table and of an edge table, by name.

    ``columns`` are the feature columns in the order of the features, ignored ones included; None where nothing is said
    of them (a matrix, or a table whose columns are still to be looked at). ``id``, ``label``, ``split``, ``source``,
    ``target``, ``weight`` and ``time`` name columns, or are None where the usual names are looked for. ``classes`` is
    the class list in order, ``features`` the names of the features once they are encoded. ``directed`` says whether
    edges have directions. ``full_weight`` is the weight that counts as a
    whole edge. ``edges_ignored`` are the columns of the edge table that are not read.
    """

    columns: tuple[Column, ...] | None = None
    id: str | None = None
    label: str | None = None
    split: str | None = None
    classes: tuple[str, ...] | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    time: str | None = None
    directed: bool | None = None
    edges_ignored: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    full_weight: float | None = None

    def __post_init__(self) -> None:
        """Names are text, stand once, and have one role."""
        for role in ROLES:
            name = getattr(self, role)
            if name is not None and not isinstance(name, str):
                raise GraphError(f"the schema names {name!r} as its {role}: a column name is a text")
        if self.directed is not None and not isinstance(self.directed, bool):
            raise GraphError(f"directed in the schema must be true or false, not {self.directed!r}")
        if self.full_weight is not None and not (_is_number(self.full_weight) and self.full_weight > 0):
            raise GraphError(f"full_weight in the schema must be a number above 0, not {self.full_weight!r}")
        if self.classes is not None:
            object.__setattr__(self, "classes", _checked_classes(self.classes))
        object.__setattr__(self, "edges_ignored", tuple(self.edges_ignored))
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))
            _check_once([column.name for column in self.columns], (self.id, self.label, self.split))

    @property
    def measured(self) -> tuple[Column, ...]:
        """The columns of which something was read off the data."""
        return tuple(column for column in self.columns or () if column.measured)

    @property
    def ignored(self) -> tuple[str, ...]:
        """The columns of the node table that are not read."""
        return tuple(column.name for column in self.columns or () if column.kind == IGNORE)

    def class_values(self, count: int) -> Array:
        """Classes, of which there are so many, as scikit-learn would hold them: whole numbers where they have no names
        or every name is one, as a table of numbers is read.
        """
        names = [str(number) for number in range(count)] if self.classes is None else self.classes
        whole = all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", name) for name in names)
        return np.array([int(name) for name in names], dtype=np.int64) if whole else np.array(names)

    def with_given(self, **given: Any) -> Schema:
        """The schema under what the caller names; None leaves what is there."""
        return replace(self, **{key: value for key, value in given.items() if value is not None})

    def declared_for(self, names: Sequence[str]) -> dict[str, Column]:
        """The declared column of each of these names, patterns read out; names without one are left out."""
        exact = {column.name: column for column in self.columns or () if not column.is_pattern}
        patterns = [column for column in self.columns or () if column.is_pattern]
        found = {}
        for name in names:
            column = exact.get(name)
            if column is None and patterns:
                matching = (pattern for pattern in patterns if fnmatch.fnmatchcase(name, pattern.name))
                column = next((replace(pattern, name=name) for pattern in matching), None)
            if column is not None:
                found[name] = column
        return found

    def to_json(self) -> dict[str, Any]:
        """Plain values; neighbouring columns that differ in their names alone share one entry."""
        plain = {role: getattr(self, role) for role in ROLES}
        columns = None
        if self.columns is not None:
            runs = groupby(self.columns, key=lambda column: replace(column, name=""))
            columns = [{"names": [column.name for column in run], **common.to_json()} for common, run in runs]
        classes = None if self.classes is None else list(self.classes)
        features = None if self.features is None else list(self.features)
        rest: dict[str, Any] = {
            "classes": classes,
            "directed": self.directed,
            "edges_ignored": list(self.edges_ignored),
        }
        rest |= {} if self.full_weight is None else {"full_weight": self.full_weight}
        return {**plain, **rest, "columns": columns, "features": features}

    @classmethod
    def from_json(cls, given: Any) -> Schema:
        """Inverse of :meth:`to_json`, for a release; what is malformed is refused in one sentence."""
        if not isinstance(given, Mapping):
            raise GraphError("the schema of the release is not a table of settings")
        unknown = sorted(set(given) - {field.name for field in fields(cls)})
        if unknown:
            raise GraphError(f"the schema of the release has the unknown key {unknown[0]!r}")
        settings = dict(given)
        runs = settings.pop("columns", None)
        if runs is not None and not isinstance(runs, list):
            raise GraphError("the columns of the schema of the release are not a list")
        columns = None if runs is None else tuple(column for run in runs for column in _columns_of_run(run))
        ignored, features = (_names_of(settings.pop(key, None)) for key in ("edges_ignored", "features"))
        return cls(columns, **settings, edges_ignored=ignored or (), features=features)


def _names_of(given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise GraphError("the schema of the release holds a list of names that is none")
    return tuple(given)


def shorten(names: Iterable[str]) -> str:
    """Names for a message: the first few, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more


def _columns_of_run(run: Any) -> list[Column]:
    if not isinstance(run, Mapping) or not isinstance(run.get("names"), list):
        raise GraphError("the schema of the release has a column without names")
    settings = {key: value for key, value in run.items() if key != "names"}
    return [Column.from_json(str(name), settings) for name in run["names"]]


def _checked_classes(given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise GraphError(f"classes must be a list of names, not {given!r}")
    names = tuple(str(name) for name in given)
    if len(set(names)) < len(names) or "" in names:
        raise GraphError("the class list must hold each class once, without empty names")
    return names


def _check_once(names: Sequence[str], roles: Sequence[str | None]) -> None:
    seen = {role for role in roles if role is not None}
    for name in names:
        if name in seen:
            raise GraphError(f"the schema gives the column {name!r} two meanings")
        seen.add(name)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
