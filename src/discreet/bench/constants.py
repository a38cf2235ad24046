"""Numbers that a method takes where a parameter is left to it: they stand in its modules, not among its parameters."""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
from collections.abc import Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any

_OURS = "discreet."


@lru_cache(maxsize=64)
def constants_digest(method: str) -> str:
    """A hash of the named numbers of a method's family; one that changed changes it.

    Of a method of ours every module of its folder counts, of another's the one that its class is in.
    """
    from discreet.methods.registry import find_method, load_method

    home = load_method(find_method(method)).__module__
    found = {module.__name__: dict(_numbers_of(module)) for module in _family(home)}
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:12]


def _family(home: str) -> Iterator[ModuleType]:
    if not home.startswith(_OURS):
        yield importlib.import_module(home)
        return
    folder = importlib.import_module(home.rpartition(".")[0])
    for found in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
        yield importlib.import_module(found.name)


def _numbers_of(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Names in capitals that stand for a number, or for several."""
    for name, value in vars(module).items():
        if name.isupper() and _is_number(value):
            yield name, value


def _is_number(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_number, value))
    if isinstance(value, dict):
        return all(isinstance(key, str | int) and _is_number(inner) for key, inner in value.items())
    return isinstance(value, int | float)
