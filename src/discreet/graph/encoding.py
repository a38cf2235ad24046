"""From the columns of a node table to numbers, as a schema says.

Encoding is a function of one row and the schema alone, so it may be applied to private rows: nothing is read off other
rows. What a schema leaves open is measured before (``graph.measuring``).

============  ==============================================================================================
``numeric``   clipped to its range and moved to [-1, 1]; with ``scale = "log"`` by the logarithm, three powers of
              ten of the range being told apart
``category``  one column of 0 and 1 per category, and one for every other value where ``other`` is set
``boolean``   0 or 1
``as-is``     the number itself
============  ==============================================================================================

A missing value becomes what ``missing`` says; with ``indicator`` a further column holds 1, and the value itself is the
middle of the range, no category, or 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from discreet.arrays import Array, BoolArray
from discreet.errors import GraphError
from discreet.graph.cells import is_number_kind, is_sparse, read_numbers, read_truths, read_words
from discreet.graph.schema import AS_IS, BOOLEAN, CATEGORY, IGNORE, INDICATOR, LOG, NUMERIC, Column

if TYPE_CHECKING:
    import pandas as pd

DECADES = 1000.0
"""What a log scale tells apart: three powers of ten."""
WIDE_CATEGORIES = 64
"""Beyond so many columns of 0 and 1 the matrix is stored sparse."""


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
    if all(is_sparse(kind) for kind in part.dtypes):
        return sp.csr_array(part.sparse.to_coo()), names
    if all(is_number_kind(kind) or kind == np.bool_ for kind in set(part.dtypes)):
        with np.errstate(over="ignore"):  # a value beyond float32 becomes infinite and is refused as such
            return part.to_numpy(dtype=np.float32, na_value=np.nan), names
    return np.stack([read_numbers(part[name]) for name in names], axis=1).astype(np.float32), names


def _encode_column(values: pd.Series, column: Column) -> tuple[Any, list[str]]:
    if column.kind == CATEGORY:
        return _encode_category(values, column)
    if column.kind == BOOLEAN:
        number, gone = read_truths(values)
        neutral = 0.0
    else:
        number = read_numbers(values)
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
    words = read_words(values, keep=set(listed))
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
