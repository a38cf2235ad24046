"""What the modules of a method hold under their names: all later fits of the process can read it.

Modules hold caches, which grow while something runs for the first time. So two readings are compared between which a
fit on a neighbour saw the same public facts and the same answers as the fit before it.
"""

from __future__ import annotations

import builtins
import sys
from collections import deque
from collections.abc import Iterable
from functools import cache, lru_cache
from operator import is_
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch

_DEEPEST = 6
"""How far lists within lists are followed."""
_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_CLOSED = frozenset({*_PLAIN, ModuleType, type, BuiltinFunctionType})
"""Kinds of values that are what they are: another value is another object."""


class ModuleGlobals:
    """One reading of the names of modules. It keeps what it read, so that nothing new takes its place in memory."""

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        """Read which object stands under each name, and what those that can change hold."""
        self._values = {module.__name__: vars(module).copy() for module in modules}
        self._held = {
            (home, name): held
            for home, values in self._values.items()
            for name, value in values.items()
            if type(value) not in _CLOSED and not name.startswith("__") and (held := _held(value)) is not None
        }

    def apart_from(self, other: ModuleGlobals) -> list[str]:
        """The names under which two readings of the same modules differ, in words."""
        apart = {
            (home, name): None
            for home, values in self._values.items()
            if not same_objects(values, other._values[home])
            for name in {**values, **other._values[home]}
            if values.get(name, _NOTHING) is not other._values[home].get(name, _NOTHING)
        }
        apart.update({where: None for where in self._held if self._held[where] != other._held.get(where)})
        return [f"{name} of module {home}" for home, name in apart if not name.startswith("__")]


_NOTHING = object()


def own_modules(objects: Iterable[object]) -> list[ModuleType]:
    """The modules in which the classes of the objects stand, those beside the first object's, the modules of base
    classes in the same packages and in ours, and Python's builtins.
    """
    return [builtins, *(sys.modules[name] for name in _names(tuple(type(one) for one in objects), len(sys.modules)))]


@lru_cache(maxsize=8)
def _names(kinds: tuple[type, ...], loaded: int) -> list[str]:
    """Of modules that are loaded; ``loaded`` is how many there are, because searching them takes a while."""
    packages = {_package(kind.__module__) for kind in kinds} | {_package(__name__)}
    homes = {base.__module__ for kind in kinds for base in kind.__mro__ if _package(base.__module__) in packages}
    folder = kinds[0].__module__.rpartition(".")[0] + "."
    beside = {name for name in list(sys.modules) if folder != "." and name.startswith(folder)}
    return sorted(name for name in homes | beside if name in sys.modules)


def _package(module: str) -> str:
    return module.partition(".")[0]


def same_objects(one: dict[Any, Any], two: dict[Any, Any]) -> bool:
    """Whether two tables have the same names with the very same objects under them."""
    return one.keys() == two.keys() and all(map(is_, one.values(), two.values()))


class _Same:
    """Equals what stands for the same object alone."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


def _held(value: Any, depth: int = 0) -> Any:
    """Something that equals the next reading of the same object while that holds the same; None where it cannot hold
    anything that we know of.
    """
    kind = type(value)
    if kind is FunctionType:
        return _held(vars(value), depth) if vars(value) else None
    if kind in (list, tuple, set, frozenset, deque):
        return kind, [_part(one, depth) for one in value]
    if isinstance(value, dict):
        return kind, [(_part(key, depth), _part(one, depth)) for key, one in value.items()]
    if kind is np.ndarray and value.dtype != object:
        return kind, value.dtype, value.shape, value.tobytes()
    if issubclass(kind, torch.Tensor):
        return kind, _held(value.detach().cpu().to_dense().numpy(), depth)
    return value.cache_info().currsize if kind is _Remembering else None


_Remembering = type(cache(lambda: None))


def _part(value: Any, depth: int) -> Any:
    """What stands inside another: its own object may be another one of the same value."""
    if type(value) in _PLAIN:
        return type(value), value
    return _Same(value), None if depth == _DEEPEST else _held(value, depth + 1)
