"""Arrays of a release as a model expects them; anybody may have made the release.

What does not fit raises ``ValueError``, and verification says that the weights do not fit the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from discreet.arrays import Array, IntArray

SINGLE, DOUBLE = "float32", "float64"


def stored_rows(state: Mapping[str, Array], name: str, *shape: int | None, types: Sequence[str] = (DOUBLE,)) -> Array:
    """The array of this name: numbers of one of these types in this shape, of any length where that says None."""
    found = state[name]
    lengths = zip(found.shape, shape, strict=False)
    if found.ndim != len(shape) or any(wanted not in (None, length) for length, wanted in lengths):
        raise ValueError(f"{name} has the shape {found.shape}")
    if found.dtype.name not in types:
        raise ValueError(f"{name} holds {found.dtype}")
    return found


def stored_ids(state: Mapping[str, Array], name: str, below: int) -> IntArray:
    """The array of this name: rising whole numbers from 0, below a limit."""
    found = state[name]
    if found.ndim != 1 or found.dtype.name != "int64":
        raise ValueError(f"{name} is no list of whole numbers")
    if len(found) and (found[0] < 0 or found[-1] >= below or (found[1:] <= found[:-1]).any()):
        raise ValueError(f"{name} holds numbers that are none of its graph's")
    return found


def stored_if(
    state: Mapping[str, Array], name: str, asked: bool, *shape: int | None, types: Sequence[str] = (DOUBLE,)
) -> Array | None:
    """An array that is there if it was ``asked`` for, and only then."""
    if (name in state) != asked:
        raise ValueError(f"{name} is there, or missing, by mistake")
    return stored_rows(state, name, *shape, types=types) if asked else None
