"""Measuring the columns of a node table: what its schema leaves open, read off all rows.

It is for tables whose features are public, and what it found is marked.

A column of which nothing is declared is looked at by this rule. Numbers are taken *as they are* where they look like
features already: columns ``x0, x1, …``, sixteen or more columns of one stem (``word1``, ``word2``, …), sparse columns,
or more than a hundred columns of numbers. Any other column of numbers is numeric, with the range between its 1st and
its 99th percentile (on a log scale where the upper end is far from the middle), or boolean if it holds 0 and 1 alone.
Text is boolean (yes and no, true and false), or a category of at most a hundred values, or it is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array
from discreet.errors import GraphError
from discreet.graph.cells import (
    FALSE_WORDS,
    TRUE_WORDS,
    UNKNOWN_WORDS,
    is_number_kind,
    is_sparse,
    read_numbers,
    read_truths,
    read_words,
    refuse_other_kinds,
)
from discreet.graph.schema import AS_IS, BOOLEAN, CATEGORY, IGNORE, INDICATOR, LOG, NUMERIC, Column

if TYPE_CHECKING:
    import pandas as pd

MOST_CATEGORIES = 100
"""Words of a column that is read without a schema: more are names or texts, and are refused by name."""
MOST_SCALED = 100
"""Tables of more numbers are word counts, embeddings or measurements that come scaled."""
BLOCK = 16
"""From so many columns of one stem on, they are one vector."""
LOWER, UPPER = 0.01, 0.99
"""Percentiles between which a range is measured: a few wild values do not stretch it."""
SKEWED = 10.0
"""An upper end so many times further than the middle asks for a log scale."""
_NUMBER_LIKE = r"[-+]?[0-9]+((,[0-9]{3})*|(\.[0-9]{3})*)([.,][0-9]+)?([eE][-+]?[0-9]+)?"
"""What was meant as a number, signs for thousands and commas for points included."""


def measure(
    table: pd.DataFrame, names: Sequence[str], declared: dict[str, Column], *, drafting: bool = False
) -> tuple[Column, ...]:
    """A settled column for each name: what is declared stands, the rest is read off the table and marked so.

    With ``drafting`` a column that cannot be read (free text, dates) is ignored instead of refused.
    """
    open_names = [name for name in names if name not in declared]
    untouched = _taken_as_they_are(table, open_names)
    found = []
    for name in names:
        column = declared.get(name)
        if column is None:
            column = Column(name, AS_IS, measured=True) if name in untouched else _look(table[name], drafting)
        elif not column.settled:
            column = _measured(table[name], column)
        found.append(column)
    return tuple(found)


def _taken_as_they_are(table: pd.DataFrame, names: Sequence[str]) -> set[str]:
    """Columns of numbers that are features already, by their names, number and storage."""
    kinds = dict(zip(table.columns, table.dtypes, strict=True))
    numbers = [name for name in names if is_number_kind(kinds[name])]
    if len(numbers) > MOST_SCALED:
        return set(numbers)
    stems = Counter(_stem(name) for name in numbers)
    first = {f"x{place}" for place in range(len(numbers))}
    return {
        name
        for name in numbers
        if name in first or (_stem(name) and stems[_stem(name)] >= BLOCK) or is_sparse(kinds[name])
    }


def _stem(name: str) -> str | None:
    match = re.fullmatch(r"(.*?\D|)\d+", str(name))
    return None if match is None else match.group(1)


def _look(values: pd.Series, drafting: bool) -> Column:
    """The kind of a column of which nothing is declared, and what that kind needs."""
    try:
        return _look_closely(values)
    except GraphError:
        if drafting:
            return Column(str(values.name), IGNORE, measured=True)
        raise


def _look_closely(values: pd.Series) -> Column:

    name = str(values.name)
    refuse_other_kinds(values)
    if is_number_kind(values.dtype):
        number = read_numbers(values)
        known = number[~np.isnan(number)]
        kind = BOOLEAN if len(known) and np.isin(known, (0.0, 1.0)).all() else NUMERIC
        return _measured(values, Column(name, kind))
    words = {word for word in read_words(values, keep=set()) if word is not None}
    if words and all(word.lower() in (*TRUE_WORDS, *FALSE_WORDS) for word in words):
        return _measured(values, Column(name, BOOLEAN))
    if _are_written_numbers(words):
        truths = all(word in ("0", "1") or word.lower() in UNKNOWN_WORDS for word in words)
        return _measured(values, Column(name, BOOLEAN if truths else NUMERIC))
    _refuse_broken_numbers(values, words)
    if len(words) > MOST_CATEGORIES:
        raise GraphError(
            f"column {name!r} of the node table is text with {len(words)} different values, too many for categories: "
            f"leave it out (--column ignore={name}), or declare its kind in schema.toml"
        )
    return _measured(values, Column(name, CATEGORY))


def _are_written_numbers(words: set[str]) -> bool:
    """Whether a text column holds numbers alone, fractions among them, or numbers beside words for an unknown one.

    Whole numbers that are written as text and nothing else may be codes: they are categories.
    """
    known = {word for word in words if word.lower() not in UNKNOWN_WORDS}
    if not known or not all(_is_number(word) for word in known):
        return False
    return len(known) < len(words) or any("." in word for word in known)


def _refuse_broken_numbers(values: pd.Series, words: set[str]) -> None:
    """Refuse what would become a category of numbers: most values are fractions, or too many for categories."""
    numbers = {word for word in words if re.fullmatch(_NUMBER_LIKE, word)}
    fractions = {word for word in numbers if re.search("[.,]", word)}
    broken = {word for word in words if not _is_number(word)}
    if broken and 2 * len(numbers if len(words) > MOST_CATEGORIES else fractions) >= len(words):
        row = next(row for row, word in enumerate(read_words(values, keep=set())) if word in broken)
        raise GraphError(
            f"column {values.name!r} of the node table looks like numbers, but {values.iloc[row]!r:.60} in row {row} "
            "is none: mend such cells (no signs for thousands or units), or declare the column category or ignore"
        )


def _is_number(word: str) -> bool:
    try:
        return np.isfinite(float(word))
    except ValueError:
        return False


def _measured(values: pd.Series, column: Column) -> Column:
    """The column with what it lacks read off the data."""
    changes: dict[str, Any] = {"measured": True}
    if column.kind == NUMERIC:
        number = read_numbers(values)
        changes |= _measured_range(number[np.isfinite(number)], column)
        gone = bool(np.isnan(number).any())
    elif column.kind == CATEGORY:
        words = read_words(values, keep=set())
        known = sorted({word for word in words if word is not None})
        changes["categories"] = tuple(known) or None
        gone = None in words
        if not known:
            return Column(column.name, IGNORE, measured=True)
    else:
        gone = bool(read_truths(values)[1].any())
    if gone and column.missing is None:
        changes["missing"] = INDICATOR
    return replace(column, **changes)


def _measured_range(known: Array, column: Column) -> dict[str, Any]:
    if len(known) == 0:
        return {"range": (0.0, 0.0)}
    low, middle, high = (float(value) for value in np.quantile(known, (LOWER, 0.5, UPPER)))
    if low == high:
        low, high = float(known.min()), float(known.max())
    skewed = known.min() >= 0 and high - low > SKEWED * (middle - low)
    return {"range": (low, high), "scale": LOG if skewed else column.scale}
