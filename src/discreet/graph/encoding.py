"""From the columns of a node table to numbers, as a schema says; and the measuring of what it leaves open.

Encoding is a function of one row and the schema alone, so it may be applied to private rows: nothing is read off other
rows. Measuring reads all rows; it is for tables whose features are public, and what it found is marked.

============  ==============================================================================================
``numeric``   clipped to its range and moved to [-1, 1]; with ``scale = "log"`` by the logarithm, three powers of
              ten of the range being told apart
``category``  one column of 0 and 1 per category, and one for every other value where ``other`` is set
``boolean``   0 or 1
``as-is``     the number itself
============  ==============================================================================================

A missing value becomes what ``missing`` says; with ``indicator`` a further column holds 1, and the value itself is the
middle of the range, no category, or 0.

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
import scipy.sparse as sp

from discreet.arrays import Array, BoolArray
from discreet.errors import GraphError
from discreet.graph.schema import AS_IS, BOOLEAN, CATEGORY, IGNORE, INDICATOR, LOG, NUMERIC, Column

if TYPE_CHECKING:
    import pandas as pd

MOST_CATEGORIES = 100
"""Words of a column that is read without a schema: more are names or texts, and are refused by name."""
MOST_SCALED = 100  # tables of more numbers are word counts, embeddings or measurements that come scaled
BLOCK = 16  # from so many columns of one stem on, they are one vector
LOWER, UPPER = 0.01, 0.99  # percentiles between which a range is measured: a few wild values do not stretch it
SKEWED = 10.0  # an upper end so many times further than the middle asks for a log scale
DECADES = 1000.0  # what a log scale tells apart: three powers of ten
WIDE_CATEGORIES = 64  # beyond so many columns of 0 and 1 the matrix is stored sparse
MISSING_WORDS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")
UNKNOWN_WORDS = (
    "n/a",
    "#n/a",
    "n.a.",
    "na",
    "<na>",
    "nan",
    "null",
    "nil",
    "none",
    "missing",
    "unknown",
    "-",
    "--",
    "?",
)
"""In small letters: what also stands for a missing value among numbers or truths, where no such word is one."""
_NUMBER_LIKE = r"[-+]?[0-9]+(,[0-9]{3})*([.,][0-9]+)?([eE][-+]?[0-9]+)?"
_TRUE, _FALSE = ("true", "yes", "t", "y", "1", "1.0"), ("false", "no", "f", "n", "0", "0.0")


# -------------------------------------------------------------------- encoding


def encode(table: pd.DataFrame, columns: Sequence[Column]) -> tuple[Any, tuple[str, ...]]:
    """The feature matrix of a table and the names of its columns; ignored columns are left out."""
    blocks: list[Any] = []
    names: list[str] = []
    with np.errstate(over="ignore"):  # what single precision does not hold becomes infinite, which the graph refuses
        for run in _runs(columns):
            block, named = _encode_run(table, run)
            blocks.append(block)
            names += named
    if not names:
        raise GraphError("the node table has no feature columns")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise GraphError(f"two columns of the node table give a feature called {twice!r}: rename one of them")
    if len(blocks) == 1:
        return blocks[0], tuple(names)
    if any(sp.issparse(block) for block in blocks):
        return sp.hstack([sp.csr_array(block) for block in blocks], format="csr"), tuple(names)
    return np.concatenate(blocks, axis=1), tuple(names)


def _runs(columns: Sequence[Column]) -> list[list[Column]]:
    """Neighbouring columns that are taken as they are stand together: a wide table is one block, not 50,000."""
    runs: list[list[Column]] = []
    for column in columns:
        if column.kind == IGNORE:
            continue
        plain = column.kind == AS_IS and column.missing is None
        if plain and runs and runs[-1][0].kind == AS_IS and runs[-1][0].missing is None:
            runs[-1].append(column)
        else:
            runs.append([column])
    return runs


def _encode_run(table: pd.DataFrame, run: list[Column]) -> tuple[Any, list[str]]:
    if len(run) == 1:
        return _encode_column(table[run[0].name], run[0])
    names = [column.name for column in run]
    part = table if list(table.columns) == names else table[names]
    if all(_is_sparse(kind) for kind in part.dtypes):
        return sp.csr_array(part.sparse.to_coo()), names
    if all(_is_number_kind(kind) or kind == np.bool_ for kind in set(part.dtypes)):
        return part.to_numpy(dtype=np.float32, na_value=np.nan), names
    return np.stack([_numbers(part[name]) for name in names], axis=1).astype(np.float32), names


def _encode_column(values: pd.Series, column: Column) -> tuple[Any, list[str]]:
    if column.kind == CATEGORY:
        return _encode_category(values, column)
    if column.kind == BOOLEAN:
        number, gone = _truths(values)
        neutral = 0.0
    else:
        number = _numbers(values)
        gone, neutral = np.isnan(number), 0.0
        if column.kind == NUMERIC:
            _check_finite(number, column)
            if column.missing not in (None, INDICATOR):
                number, gone = np.where(gone, column.missing, number), np.zeros(len(number), np.bool_)
            number = _scaled(number, column)
    if not gone.any() and column.missing != INDICATOR:
        return number.astype(np.float32)[:, None], [column.name]
    if column.missing is None:
        if column.kind == AS_IS:  # the graph refuses it, and says in which row
            return number.astype(np.float32)[:, None], [column.name]
        _refuse_missing(column, gone)
    filled = neutral if column.missing == INDICATOR else float(column.missing or 0)
    number = np.where(gone, filled, number)
    if column.missing != INDICATOR:
        return number.astype(np.float32)[:, None], [column.name]
    return np.stack([number, gone], axis=1).astype(np.float32), [column.name, f"{column.name} (missing)"]


def _scaled(number: Array, column: Column) -> Array:
    assert column.range is not None
    low, high = column.range
    if low == high:
        return np.where(np.isnan(number), np.nan, 0.0)
    share = (np.clip(number, low, high) - low) / (high - low)
    if column.scale == LOG:
        share = np.log1p(share * DECADES) / np.log1p(DECADES)
    return 2 * share - 1


def _encode_category(values: pd.Series, column: Column) -> tuple[Any, list[str]]:
    listed = column.categories or ()
    place = {name: number for number, name in enumerate(listed)}
    words = _words(values, keep=set(listed))
    names = [f"{column.name}={name}" for name in listed]
    missing = place[str(column.missing)] if column.missing not in (None, INDICATOR) else None
    if column.other:
        names.append(f"{column.name} (other)")
    if column.missing == INDICATOR:
        names.append(f"{column.name} (missing)")
        missing = len(names) - 1
    other = len(listed) if column.other else None
    codes = np.fromiter((_code(word, place, missing, other) for word in words), dtype=np.int64, count=len(words))
    if (codes == _NO_VALUE).any():
        _refuse_missing(column, codes == _NO_VALUE)
    if (codes == _UNKNOWN).any():
        row = int((codes == _UNKNOWN).argmax())
        raise GraphError(
            f"column {column.name!r} holds {words[row]!r} (row {row}), which is not among its categories "
            f"({', '.join(listed[:12])}): list it, or declare other = true, in the schema that the model is trained "
            "with"
        )
    shape, rows = (len(words), len(names)), np.arange(len(words))
    if len(names) > WIDE_CATEGORIES:
        return sp.csr_array((np.ones(len(words), dtype=np.float32), (rows, codes)), shape=shape), names
    block = np.zeros(shape, dtype=np.float32)
    block[rows, codes] = 1
    return block, names


_NO_VALUE, _UNKNOWN = -1, -2  # in the place of a column, which is 0 or more


def _code(word: str | None, place: dict[str, int], missing: int | None, other: int | None) -> int:
    if word is None:
        return _NO_VALUE if missing is None else missing
    found = place.get(word, other)
    return _UNKNOWN if found is None else found


def _refuse_missing(column: Column, gone: BoolArray) -> None:
    raise GraphError(
        f"column {column.name!r} has {int(gone.sum())} missing values (first in row {int(gone.argmax())}), and its "
        'schema does not say what they become: declare missing = a value, or missing = "indicator", in the schema '
        "that the model is trained with"
    )


def _check_finite(number: Array, column: Column) -> None:
    wild = np.isinf(number)
    if wild.any():
        raise GraphError(f"column {column.name!r} is infinite in row {int(wild.argmax())}: fill or drop it")


# -------------------------------------------------------------------- reading cells


def _is_sparse(kind: Any) -> bool:
    import pandas as pd

    return isinstance(kind, pd.SparseDtype)


def _numbers(values: pd.Series) -> Array:
    """The cells as numbers, NaN for a missing one; a cell that is no number is refused with its row."""
    import pandas as pd

    if _is_sparse(values.dtype):
        values = values.sparse.to_dense()
    if pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        raise GraphError(f"column {values.name!r} of the node table holds dates: declare it ignore, or write numbers")
    words = pd.Series(_known_words(values), dtype=object)
    number = pd.to_numeric(words, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.isnan(number) & words.notna().to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        raise GraphError(
            f"column {values.name!r} of the node table holds {words[row]!r} in row {row}, which is not a number: "
            "mend the cell, or declare the column category or ignore"
        )
    return number


def _truths(values: pd.Series) -> tuple[Array, BoolArray]:
    words = [None if word is None else word.lower() for word in _known_words(values)]
    known: dict[str | None, float] = {**dict.fromkeys(_TRUE, 1.0), **dict.fromkeys(_FALSE, 0.0), None: np.nan}
    wrong = next((row for row, word in enumerate(words) if word not in known), None)
    if wrong is not None:
        raise GraphError(
            f"column {values.name!r} of the node table holds {words[wrong]!r} in row {wrong}: a boolean is written "
            "true or false, yes or no, 1 or 0"
        )
    number = np.array([known[word] for word in words], dtype=np.float64)
    return number, np.isnan(number)


def _words(values: pd.Series, keep: set[str]) -> list[str | None]:
    """The cells as text, None for a missing one; a word for *missing* that is a category stays a category."""
    gone = values.isna().to_numpy()
    found: list[str | None] = []
    for value, missing in zip(values.tolist(), gone, strict=True):
        if missing:
            found.append(None)
            continue
        whole = isinstance(value, float | np.floating) and float(value).is_integer()
        word = str(int(value)) if whole else str(value).strip()
        found.append(None if word in MISSING_WORDS and word not in keep else word)
    return found


def _known_words(values: pd.Series) -> list[str | None]:
    """The cells of a column of numbers or truths as text, None for whatever stands for a missing one."""
    return [None if word is None or word.lower() in UNKNOWN_WORDS else word for word in _words(values, keep=set())]


# -------------------------------------------------------------------- measuring


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
    numbers = [name for name in names if _is_number_kind(kinds[name])]
    if len(numbers) > MOST_SCALED:
        return set(numbers)
    stems = Counter(_stem(name) for name in numbers)
    first = {f"x{place}" for place in range(len(numbers))}
    return {
        name
        for name in numbers
        if name in first or (_stem(name) and stems[_stem(name)] >= BLOCK) or _is_sparse(kinds[name])
    }


def _is_number_kind(kind: Any) -> bool:
    import pandas as pd

    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)


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
    import pandas as pd

    name = str(values.name)
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        raise GraphError(f"column {name!r} of the node table holds dates: declare it ignore, or write numbers")
    if _is_number_kind(values.dtype):
        number = _numbers(values)
        known = number[~np.isnan(number)]
        kind = BOOLEAN if len(known) and np.isin(known, (0.0, 1.0)).all() else NUMERIC
        return _measured(values, Column(name, kind))
    words = {word for word in _words(values, keep=set()) if word is not None}
    if words and all(word.lower() in (*_TRUE, *_FALSE) for word in words):
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
        row = next(row for row, word in enumerate(_words(values, keep=set())) if word in broken)
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
        number = _numbers(values)
        changes |= _measured_range(number[np.isfinite(number)], column)
        gone = bool(np.isnan(number).any())
    elif column.kind == CATEGORY:
        words = _words(values, keep=set())
        known = sorted({word for word in words if word is not None})
        changes["categories"] = tuple(known) or None
        gone = None in words
        if not known:
            return Column(column.name, IGNORE, measured=True)
    else:
        gone = bool(_truths(values)[1].any())
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
