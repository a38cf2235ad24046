"""Plain decimal numbers from the bytes of a table, for tables of tens of thousands of columns.

A number of at most 18 digits and a small exponent is one exact integer times or over one exact power of ten, so that
its double is rounded once; whatever is written in another way is handed to Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numba
import numpy as np

from discreet.arrays import IntArray, SingleArray
from discreet.errors import GraphError
from discreet.graph.cells import MISSING_WORDS

_POWERS = 10.0 ** np.arange(23)  # exact in double precision up to 10²²


def parse_block(
    path: Path, block: bytes, separator: str, columns: Sequence[str], text: Sequence[int], into: SingleArray, row: int
) -> tuple[int, list[list[str]]]:
    """Fill rows of ``into`` from whole lines, and give their number and the cells of the text columns.

    Every filled line has as many cells as there are columns (checked before); ``row`` counts the rows that came before.
    """
    cells = np.frombuffer(block, dtype=np.uint8)
    place = np.full(len(columns), -1, dtype=np.int64)
    numbers = [at for at in range(len(columns)) if at not in set(text)]
    place[numbers] = np.arange(len(numbers))
    lines = int(np.count_nonzero(cells == ord("\n")))
    starts = np.zeros((len(text), lines), dtype=np.int64)
    stops = np.zeros((len(text), lines), dtype=np.int64)
    odd = np.zeros((1 << 16, 4), dtype=np.int64)
    found, strange = _parse(cells, ord(separator), place, into, np.array(text, dtype=np.int64), starts, stops, odd)
    if strange > len(odd):
        odd = np.zeros((strange, 4), dtype=np.int64)
        found, strange = _parse(cells, ord(separator), place, into, np.array(text, dtype=np.int64), starts, stops, odd)
    for at, column, start, stop in odd[:strange].tolist():
        into[at, place[column]] = _by_python(path, block[start:stop], columns[column], row + at)
    bounds = zip(starts[:, :found], stops[:, :found], strict=True)
    return found, [_words(path, block, *pair) for pair in bounds]


def _by_python(path: Path, written: bytes, column: str, row: int) -> float:
    word = written.decode("utf-8", errors="replace").strip()
    if word in MISSING_WORDS:
        return float("nan")
    try:
        return float(word)
    except ValueError:
        raise GraphError(
            f"column {column!r} of {path} holds {word[:40]!r} in row {row}, which is not a number: "
            "mend the cell, or declare the column category or ignore"
        ) from None


def _words(path: Path, block: bytes, starts: IntArray, stops: IntArray) -> list[str]:
    try:
        return [block[start:stop].decode("utf-8") for start, stop in zip(starts, stops, strict=True)]
    except UnicodeDecodeError as error:
        raise GraphError(f"{path} cannot be read as a table: it is not written in UTF-8") from error


@numba.njit(cache=True)
def _parse(cells, separator, place, into, text, starts, stops, odd):
    """Rows and odd cells found; an odd cell is noted as (row, column, start, stop)."""
    width, size, row, strange, at = len(place), len(cells), 0, 0, 0
    while at < size:
        if cells[at] == 10 or (cells[at] == 13 and at + 1 < size and cells[at + 1] == 10):  # an empty line
            at += 1 if cells[at] == 10 else 2
            continue
        words = 0
        for column in range(width):
            start = at
            target = place[column]
            if target < 0:
                while cells[at] != separator and cells[at] != 10:
                    at += 1
                stop = at
                if column == width - 1 and stop > start and cells[stop - 1] == 13:
                    stop -= 1
                starts[words, row], stops[words, row] = start, stop
                words += 1
            else:
                negative = cells[at] == 45
                if negative or cells[at] == 43:
                    at += 1
                mantissa, digits, decimals, plain = 0, 0, 0, True
                while 48 <= cells[at] <= 57:
                    mantissa = mantissa * 10 + (cells[at] - 48)
                    digits += 1
                    at += 1
                    if digits > 18:
                        break
                if cells[at] == 46:
                    at += 1
                    while 48 <= cells[at] <= 57:
                        if digits >= 18:
                            plain = False
                            break
                        mantissa = mantissa * 10 + (cells[at] - 48)
                        digits += 1
                        decimals += 1
                        at += 1
                ended = cells[at] == separator or cells[at] == 10 or (cells[at] == 13 and cells[at + 1] == 10)
                if plain and ended and 0 < digits <= 18 and mantissa < 9007199254740992 and decimals < 23:
                    value = mantissa / _POWERS[decimals]
                    into[row, target] = -value if negative else value
                else:
                    while cells[at] != separator and cells[at] != 10:
                        at += 1
                    if strange < len(odd):
                        odd[strange, 0], odd[strange, 1], odd[strange, 2], odd[strange, 3] = row, column, start, at
                    strange += 1
                if cells[at] == 13:
                    at += 1
            at += 1
        row += 1
    return row, strange
