"""Tables from files: CSV, TSV and Parquet, each with a header that names every column.

A CSV file is separated by commas, or by semicolons where its header has those and no comma, as spreadsheets write it in
countries that put a comma before the decimals; in such a file a column of numbers may have decimal commas. Where the
header has tabs alone, these separate. Spaces around names in the header are not a part of them.

A row with too few or too many cells is refused with its line, before anything else reads the file: parsers fill or drop
cells in silence, and a shifted row trains a wrong model without a word. Empty lines, and rows of nothing but empty
cells, which spreadsheets leave at the end, are skipped.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from discreet.errors import DataNotFoundError, GraphError
from discreet.graph.cells import MISSING_WORDS, UNKNOWN_WORDS

if TYPE_CHECKING:
    import pandas as pd

TEXT, PARQUET = (".csv", ".tsv"), (".parquet", ".pq")
TABLE_SUFFIXES = (*TEXT, *PARQUET)
COMMA, SEMICOLON, TAB = ",", ";", "\t"
DECIMAL_COMMA = r"[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?"
WIDE = 500  # from so many columns on, a reader of plain numbers is many times faster than a general one
_BLOCK = 1 << 24
"""Bytes that are read at once."""
_LINE_END, _QUOTE = ord("\n"), b'"'


def find_table(folder: Path, stem: str) -> Path:
    """The one table of that name in a folder."""
    found = [folder / f"{stem}{suffix}" for suffix in TABLE_SUFFIXES if (folder / f"{stem}{suffix}").exists()]
    if not found:
        names = ", ".join(f"{stem}{suffix}" for suffix in TABLE_SUFFIXES)
        raise DataNotFoundError(f"the folder {folder} has none of {names}")
    if len(found) > 1:
        raise GraphError(f"the folder {folder} has both {found[0].name} and {found[1].name}: remove one")
    return found[0]


def read_header(path: Path) -> list[str]:
    """The names of the columns; one that is missing or stands twice is refused."""
    _check_table(path)
    if path.suffix in PARQUET:
        names = [name for name in _reading(path, _parquet_schema, path).names if not name.startswith("__")]
    else:
        names = [name.strip() for name in _reading(path, _first_row, path)]
    nameless = next((place for place, name in enumerate(names, start=1) if not name.strip()), None)
    if nameless is not None:
        raise GraphError(
            f"{path}: column {nameless} has no name: name it in the first line, or remove it "
            "(pandas writes such a column for its index: to_csv(index=False) does not)"
        )
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise GraphError(f"{path} has more than one column {name!r}")
        seen.add(name)
    return names


def read_table(path: Path, as_text: Collection[str], kind: type = str) -> pd.DataFrame:
    """The whole table; the cells of ``as_text`` as they are written (or as ``kind``), others as the library reads."""
    import pandas as pd

    if path.suffix in PARQUET:
        _check_cells(path)
        table = _reading(path, pd.read_parquet, path)
        return table if table.index.names == [None] else table.reset_index()
    columns, separator = read_header(path), _reading(path, _separator, path)
    rows, quoted = _check_rows(path, separator, len(columns))
    if len(columns) >= WIDE and not quoted:
        return _without_empty_rows(_read_wide(path, separator, columns, as_text, rows), as_text)
    # A class called "NA" or a node called "null" is a name; in other columns these mean a missing number.
    missing = {column: list(MISSING_WORDS) for column in columns if column not in as_text}
    table = _reading(
        path,
        pd.read_csv,
        path,
        sep=separator,
        names=columns,
        header=0,
        dtype={column: kind for column in columns if column in as_text},
        na_values=missing,
        keep_default_na=False,
        index_col=False,
        encoding="utf-8-sig",
        low_memory=False,
    )
    table = _without_empty_rows(table, as_text)
    return _with_decimal_points(table, as_text) if separator == SEMICOLON else table


def _without_empty_rows(table: pd.DataFrame, as_text: Collection[str]) -> pd.DataFrame:
    """The table without rows of which every cell is empty; only rows whose names are empty are looked at further."""
    names = [name for name in table.columns if name in as_text]
    empty = np.ones(len(table), dtype=np.bool_)
    for name in names:
        empty &= (table[name] == "").to_numpy()
    rows = np.flatnonzero(empty)
    rows = rows[table.iloc[rows].drop(columns=names).isna().all(axis=1).to_numpy()]
    return table.drop(index=table.index[rows]).reset_index(drop=True) if len(rows) else table


def _with_decimal_points(table: pd.DataFrame, as_text: Collection[str]) -> pd.DataFrame:
    """The table with columns of numbers that have decimal commas read as numbers; every known cell must be one."""
    import pandas as pd

    for name in table.columns:
        cells = table[name]
        if name in as_text or pd.api.types.is_numeric_dtype(cells.dtype):
            continue
        known = cells.dropna().astype(str).str.strip()
        known = known[~known.str.lower().isin(UNKNOWN_WORDS)]
        if len(known) and known.str.fullmatch(DECIMAL_COMMA).all():
            table[name] = known.str.replace(COMMA, ".").astype(np.float64).reindex(table.index)
    return table


# -------------------------------------------------------------------- rows of one length


def _check_rows(path: Path, separator: str, width: int) -> tuple[int, bool]:
    """How many rows there are under the header, and whether cells are quoted; a ragged row is refused with its line."""
    try:
        with path.open("rb") as file:
            rows = _check_plain_rows(path, file, separator.encode(), width)
    except _QuotedError:
        return _reading(path, _check_quoted_rows, path, separator, width), True
    return rows, False


class _QuotedError(Exception):
    """A quote was met: separators and line ends may stand inside cells."""


def _check_plain_rows(path: Path, file: IO[bytes], separator: bytes, width: int) -> int:
    line, rows = 0, 0
    for block in _blocks(file):
        if _QUOTE in block:
            raise _QuotedError
        cells = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(cells == _LINE_END)
        counts = np.diff(np.searchsorted(np.flatnonzero(cells == separator[0]), ends), prepend=0) + 1
        filled = np.diff(ends, prepend=-1) > np.where(cells[np.maximum(ends - 1, 0)] == ord("\r"), 2, 1)
        if width == 1:
            filled[:] = True
        wrong = filled & (counts != width)
        if wrong.any():
            place = int(wrong.argmax())
            _refuse_row(path, line + place + 1, int(counts[place]), width)
        line, rows = line + len(ends), rows + int(filled.sum())
    return rows - 1


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """The file in portions of whole lines, the last with an end of line too."""
    while block := file.read(_BLOCK):
        block += file.readline()
        yield block if block.endswith(b"\n") else block + b"\n"


def _check_quoted_rows(path: Path, separator: str, width: int) -> int:
    rows = 0
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator, strict=True)
        for cells in reader:
            if cells and len(cells) != width:
                _refuse_row(path, reader.line_num, len(cells), width)
            rows += bool(cells)
    return rows - 1


def _refuse_row(path: Path, line: int, found: int, width: int) -> None:
    if line == 1:  # which has as many cells as it has: it holds more lines than one
        raise GraphError(f"{path}: lines end in a carriage return alone: save the file with the usual line ends")
    raise GraphError(
        f"{path}, line {line}: {found} {'cell' if found == 1 else 'cells'} where the header names {width} columns; "
        "a decimal comma, or a separator inside a cell, must stand in quotes"
    )


# -------------------------------------------------------------------- wide tables of numbers


def _read_wide(path: Path, separator: str, columns: list[str], as_text: Collection[str], rows: int) -> pd.DataFrame:
    """The numbers of a wide table in one float32 array, and its text columns beside them."""
    import pandas as pd

    from discreet.graph.wide_numbers import parse_block

    text = [place for place, name in enumerate(columns) if name in as_text]
    numbers = [name for name in columns if name not in as_text]
    matrix = np.empty((rows, len(numbers)), dtype=np.float32)
    words: dict[str, list[str]] = {columns[place]: [] for place in text}
    done = 0
    with path.open("rb") as file:
        while not file.readline().strip():  # the header, after empty lines that may stand before it
            pass
        for block in _blocks(file):
            found, cells = parse_block(path, block, separator, columns, text, matrix[done:], done)
            for place, written in zip(text, cells, strict=True):
                words[columns[place]] += written
            done += found
    table = pd.DataFrame(matrix[:done], columns=numbers, copy=False)
    return pd.concat([pd.DataFrame(words, dtype=object), table], axis=1) if text else table


# -------------------------------------------------------------------- libraries and their complaints


def _separator(path: Path) -> str:
    """What stands between the cells; a header of names has commas or semicolons, not both."""
    if path.suffix == ".tsv":
        return TAB
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next((line for line in file if line.strip()), "")
    return next((separator for separator in (COMMA, SEMICOLON, TAB) if separator in header), COMMA)


def _first_row(path: Path) -> list[str]:
    separator = _separator(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        for cells in csv.reader(file, delimiter=separator, strict=True):
            if cells:
                return cells
    raise ValueError("it is empty")


def _check_table(path: Path) -> None:
    if not path.exists():
        raise DataNotFoundError(f"there is no file {path}")
    if not path.is_file():  # a pipe waits for a writer, and some devices never end
        raise GraphError(f"{path} is not a plain file")
    if path.suffix not in TABLE_SUFFIXES:
        raise GraphError(f"{path} must be one of {', '.join(TABLE_SUFFIXES)}")


def _check_cells(path: Path) -> None:
    """Refuse a column whose cells are lists or records: a table has one value per cell."""
    for field in _reading(path, _parquet_schema, path):
        if field.type.num_fields:
            raise GraphError(f"{path}: column {field.name!r:.60} holds lists or records: write one column per value")


def _parquet_schema(path: Path) -> Any:
    import pyarrow.parquet as parquet

    return parquet.read_schema(path)


def _reading(path: Path, read: Any, *args: Any, **options: Any) -> Any:
    """Turn a library's complaint about a file into one sentence."""
    try:
        return read(*args, **options)
    except GraphError:
        raise
    except ImportError as error:
        raise GraphError(f"reading {path} needs pyarrow: install discreet[parquet]") from error
    except UnicodeDecodeError:
        reason = "it is not written in UTF-8: save it so (spreadsheets call it CSV UTF-8)"
        raise GraphError(f"{path} cannot be read as a table: {reason}") from None
    except (ValueError, OverflowError, OSError, KeyError, csv.Error) as error:  # of parsers, encodings and Arrow too
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise GraphError(f"{path} cannot be read as a table: {reason}") from error
