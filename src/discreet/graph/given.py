"""What a caller hands over, of whatever type, as an array, a matrix, names, a count or a truth value; or one sentence.

Objects of other libraries raise what they like when they are asked for their values, and some hold less than they
seem to: a masked entry has a value under its mask, and a sparse matrix can name columns that it does not have, which
loops in machine code would follow out of their memory.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from discreet.arrays import Array
from discreet.errors import GraphError, ParameterError
from discreet.limits import shown


def as_array(given: Any, what: str) -> Array:
    """An array of it; a tensor is taken off its graph of gradients and its device."""
    try:
        if hasattr(given, "detach"):
            given = given.detach().cpu()
        array = np.asarray(given)
    except MemoryError:
        raise
    except Exception as error:
        raise GraphError(f"{what} cannot be read as an array: {_reason(error)}") from error
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise GraphError(f"{what} hold masked entries, which have no value: fill or drop them first")
    return array


def sound_sparse(given: Any, what: str) -> Any:
    """A copy of a sparse matrix, in its own format, of which every entry lies inside its shape."""
    try:
        if given.format == "coo":  # its constructor looks at every coordinate
            return type(given)((given.data.copy(), given.coords), shape=given.shape)
        copy = given.copy()
        if hasattr(copy, "check_format"):
            copy.check_format(full_check=True)
    except MemoryError:
        raise
    except Exception as error:
        raise GraphError(f"{what} are not a sound sparse matrix: {_reason(error)}") from error
    return copy


def as_names(given: Any, what: str) -> tuple[str, ...]:
    """Texts in an order, no one twice."""
    if isinstance(given, str | bytes | set | frozenset | dict) or not isinstance(given, Iterable):
        raise GraphError(f"{what} must be a list of texts, not {type(given).__name__}")
    names = tuple(as_text(str(name), what) for name in given)
    if len(set(names)) != len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise GraphError(f"{what} must differ: {shown(twice)} is there twice")
    return names


def as_text(given: Any, what: str) -> str:
    """A text that can be written to a file: half a surrogate pair cannot, and a fit with one could not be saved."""
    if not isinstance(given, str):
        raise GraphError(f"{what} must be text, not {type(given).__name__}")
    if not given.isascii():
        try:
            given.encode()
        except UnicodeEncodeError:
            raise GraphError(f"{what} must be text that can be written as UTF-8, not {ascii(given)[:60]}") from None
    return given


def as_count(given: Any, what: str) -> int:
    """A whole number, also of NumPy or torch; 2.0 is one, 2.5 is none."""
    if isinstance(given, float | np.floating) and float(given).is_integer():
        return int(given)
    try:
        if not isinstance(given, bool | np.bool_):
            return operator.index(given)
    except (TypeError, ValueError):  # a tensor of fractions raises either
        pass
    raise GraphError(f"{what} must be a whole number, not {shown(given)}")


def as_truth(given: Any, what: str) -> bool:
    """True or False themselves: a word such as "no" would count as true."""
    if not isinstance(given, bool | np.bool_):
        raise GraphError(f"{what} must be True or False, not {shown(given)}")
    return bool(given)


def as_generator(seed: Any) -> np.random.Generator:
    """The generator of a seed, whatever NumPy takes for one."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"seed must be a whole number of at least 0, not {shown(seed)}") from error


def _reason(error: Exception) -> str:
    """What another library said, on one line."""
    return " ".join(f"{type(error).__name__}, {error}".split())[:200]
