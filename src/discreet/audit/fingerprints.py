"""When two things are the same for an audit: the same bytes, of the same type and in the same shape.

Equal numbers are not enough: −0.0 equals 0.0, a number equals itself in another precision, and what is no number equals
nothing. Whoever reads a release sees all of that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch


def fingerprint(value: Any) -> bytes:
    """A digest of a value with everything that it holds: arrays, networks, generators, containers and plain objects."""
    found = hashlib.blake2b(digest_size=16)
    for part in _parts(value, ()):
        found.update(len(part).to_bytes(8, "little") + part)
    return found.digest()


def form(value: Any) -> str:
    """How an array is held: sparse or dense, type and shape."""
    held = f"{value.format} " if sp.issparse(value) else ""
    array = value if sp.issparse(value) else np.asarray(value)
    return f"{held}{array.dtype}{array.shape}"


def _parts(value: Any, around: tuple[int, ...]) -> Iterator[bytes]:
    """``around`` are the objects that hold this one: one that holds itself is not followed again."""
    yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
    if id(value) in around:
        return
    inside = (*around, id(value))
    if isinstance(value, torch.Tensor):
        yield from _array(value.detach().cpu().to_dense().numpy())
    elif isinstance(value, torch.Generator):
        yield value.get_state().numpy().tobytes()
    elif isinstance(value, torch.nn.Module):
        yield from _parts({**dict(value.state_dict()), **_settings(value)}, inside)
    elif isinstance(value, np.ndarray | np.generic):
        yield from _array(np.asarray(value)) if value.dtype != object else _parts(value.tolist(), inside)
    elif sp.issparse(value):
        yield from (part for array in value.tocoo().coords for part in _array(array))
        yield from _array(value.tocoo().data)
    elif isinstance(value, Mapping):
        yield from (part for pair in value.items() for one in pair for part in _parts(one, inside))
    elif isinstance(value, list | tuple):
        yield from (part for one in value for part in _parts(one, inside))
    elif isinstance(value, set | frozenset):
        yield from sorted(fingerprint(one) for one in value)
    elif isinstance(value, bytes | bytearray):
        yield bytes(value)
    elif not callable(value) and _fields(value):
        yield from _parts(_fields(value), inside)
    elif isinstance(value, str | int | float | complex | bool | None):
        yield repr(value).encode()


def _array(array: np.ndarray) -> Iterator[bytes]:
    yield form(array).encode()
    yield np.ascontiguousarray(array).tobytes()


def _settings(module: torch.nn.Module) -> dict[str, Any]:
    """What the parts of a network hold beside parameters and buffers."""
    return {
        f"{name}.{key}": value
        for name, part in module.named_modules()
        for key, value in vars(part).items()
        if not key.startswith("_")
    }


def _fields(value: Any) -> dict[str, Any]:
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return {**{name: getattr(value, name) for name in slots if hasattr(value, name)}, **getattr(value, "__dict__", {})}
