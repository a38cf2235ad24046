"""When two things are the same for an audit: the same bytes, of the same type and in the same shape.

Equal numbers are not enough: −0.0 equals 0.0, a number equals itself in another precision, and what is no number equals
nothing. Whoever reads a release sees all of that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CellType, FunctionType
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

_PLAIN = (str, int, float, complex, bool, type(None))


def fingerprint(value: Any) -> bytes:
    """A digest of a value with everything that it holds: arrays, networks, generators, containers and plain objects."""
    parts: list[bytes] = []
    _collect(value, (), parts)
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.digest()


def form(value: Any) -> str:
    """How an array is held: sparse or dense, type and shape."""
    held = f"{value.format} " if sp.issparse(value) else ""
    array = value if sp.issparse(value) else np.asarray(value)
    return f"{held}{array.dtype}{array.shape}"


def _collect(value: Any, around: tuple[int, ...], parts: list[bytes]) -> None:
    """``around`` are the objects that hold this one: one that holds itself is not followed again."""
    kind = type(value)
    parts.append(f"{kind.__module__}.{kind.__qualname__}".encode())
    if kind in _PLAIN:  # most of what there is
        parts.append(repr(value).encode())
        return
    if id(value) in around:
        return
    inside = (*around, id(value))
    if isinstance(value, torch.Tensor):
        _collect_array(value.detach().cpu().to_dense().numpy(), parts)
        _collect(_beside_numbers(value), inside, parts)
    elif isinstance(value, torch.Generator):
        parts.append(value.get_state().numpy().tobytes())
    elif isinstance(value, torch.nn.Module):
        _collect({**_tensors(value), **_settings(value)}, inside, parts)
    elif isinstance(value, np.ndarray | np.generic):
        if value.dtype == object:
            _collect(value.tolist(), inside, parts)
        else:
            _collect_array(np.asarray(value), parts)
    elif sp.issparse(value):
        for array in (*value.tocoo().coords, value.tocoo().data):
            _collect_array(array, parts)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            _collect(key, inside, parts)
            _collect(one, inside, parts)
    elif isinstance(value, list | tuple):
        for one in value:
            _collect(one, inside, parts)
    elif isinstance(value, set | frozenset):
        parts.extend(sorted(fingerprint(one) for one in value))
    elif isinstance(value, bytes | bytearray):
        parts.append(bytes(value))
    elif isinstance(value, str | int | float | complex | bool):
        parts.append(repr(value).encode())
    elif isinstance(value, FunctionType | BuiltinFunctionType | type):
        parts.append(value.__qualname__.encode())
        _collect(_around_code(value), inside, parts)
    else:
        _collect([_fields(value), _reduced(value)], inside, parts)


def _collect_array(array: np.ndarray, parts: list[bytes]) -> None:
    parts.append(form(array).encode())
    parts.append(np.ascontiguousarray(array).tobytes())


def _beside_numbers(tensor: torch.Tensor) -> list[Any]:
    """What a tensor holds beside its numbers: whether it asks for gradients, the last one, hooks, and attributes."""
    gradient = tensor.grad if tensor.is_leaf else None
    return [tensor.requires_grad, gradient, list((tensor._backward_hooks or {}).values()), vars(tensor)]


def _tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The tensors themselves, where the dictionary of a network's state has copies without hooks and gradients."""
    return {**module.state_dict(), **dict(module.named_buffers()), **dict(module.named_parameters())}


def _settings(module: torch.nn.Module) -> dict[str, Any]:
    """What the parts of a network hold beside parameters and buffers, hooks among them."""
    return {
        f"{name}.{key}": value
        for name, part in module.named_modules()
        for key, value in vars(part).items()
        if not key.startswith("_") or (key.endswith("_hooks") and value)
    }


def _around_code(value: Any) -> list[Any]:
    """What a function carries along: values that it closes over, defaults and attributes. A class has a name alone."""
    if not isinstance(value, FunctionType):
        return []
    cells = [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]
    return [cells, value.__defaults__, value.__kwdefaults__, vars(value)]


def _fields(value: Any) -> dict[str, Any]:
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return {**{name: getattr(value, name) for name in slots if hasattr(value, name)}, **getattr(value, "__dict__", {})}


def _reduced(value: Any) -> list[Any]:
    """What a copy would be made of, where code that is not Python's keeps it: queues, generators, dates."""
    try:
        made = value.__reduce_ex__(4)
    except Exception:  # whatever forbids copies has no more to show
        return []
    return [] if isinstance(made, str) else [list(one) if isinstance(one, Iterator) else one for one in made[1:]]
