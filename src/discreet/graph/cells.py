"""Reading the cells of a node table: as numbers, as truths, as words, and what stands for a missing one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, BoolArray
from discreet.errors import GraphError

if TYPE_CHECKING:
    import pandas as pd

MISSING_WORDS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")
"""What tables write where a value is missing, unless the schema lists it as a category."""
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
TRUE_WORDS, FALSE_WORDS = ("true", "yes", "t", "y", "1", "1.0"), ("false", "no", "f", "n", "0", "0.0")
"""In small letters: how a truth may be written."""


def is_sparse(kind: Any) -> bool:
    """Whether pandas stores a column of this type sparse."""
    import pandas as pd

    return isinstance(kind, pd.SparseDtype)


def is_number_kind(kind: Any) -> bool:
    """Whether a column of this type holds numbers; truths are none."""
    import pandas as pd

    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)


def read_numbers(values: pd.Series) -> Array:
    """The cells as numbers, NaN for a missing one; a cell that is no number is refused with its row."""
    import pandas as pd

    if is_sparse(values.dtype):
        values = values.sparse.to_dense()
    refuse_other_kinds(values)
    if pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    words = pd.Series(read_known_words(values), dtype=object)
    number = pd.to_numeric(words, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.isnan(number) & words.notna().to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        raise GraphError(
            f"column {values.name!r} of the node table holds {words[row]!r} in row {row}, which is not a number: "
            "mend the cell, or declare the column category or ignore"
        )
    return number


def refuse_other_kinds(values: pd.Series) -> None:
    """Refuse a column of a type that is no number, though it could be turned into one."""
    import pandas as pd

    kinds = pd.api.types
    found = next(
        (
            what
            for what, is_one in (
                ("dates", kinds.is_datetime64_any_dtype(values.dtype)),
                ("lengths of time", kinds.is_timedelta64_dtype(values.dtype)),
                ("complex numbers", kinds.is_complex_dtype(values.dtype)),
            )
            if is_one
        ),
        None,
    )
    if found is not None:
        raise GraphError(f"column {values.name!r} of the node table holds {found}: declare it ignore, or write numbers")


def read_truths(values: pd.Series) -> tuple[Array, BoolArray]:
    """The cells as 0 and 1, and which of them are missing (NaN); any other cell is refused with its row."""
    words = [None if word is None else word.lower() for word in read_known_words(values)]
    known: dict[str | None, float] = {**dict.fromkeys(TRUE_WORDS, 1.0), **dict.fromkeys(FALSE_WORDS, 0.0), None: np.nan}
    wrong = next((row for row, word in enumerate(words) if word not in known), None)
    if wrong is not None:
        raise GraphError(
            f"column {values.name!r} of the node table holds {words[wrong]!r} in row {wrong}: a boolean is written "
            "true or false, yes or no, 1 or 0"
        )
    number = np.array([known[word] for word in words], dtype=np.float64)
    return number, np.isnan(number)


def read_words(values: pd.Series, keep: set[str]) -> list[str | None]:
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


def read_known_words(values: pd.Series) -> list[str | None]:
    """The cells of a column of numbers or truths as text, None for whatever stands for a missing one."""
    return [None if word is None or word.lower() in UNKNOWN_WORDS else word for word in read_words(values, keep=set())]
