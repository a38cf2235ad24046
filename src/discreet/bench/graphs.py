"""The graphs of trials: public ones by name, and generated ones with their options in the name.

``csbm:num_nodes=5000,phi=0.5`` and ``scale-free:num_nodes=10000,num_edges=50000`` are drawn afresh for each seed
of a trial, unless ``seed=`` is among the options. Anything else is what ``--data`` of the command takes.
"""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from discreet.errors import DataNotFoundError, ParameterError
from discreet.files import expand_home
from discreet.graph import csbm, scale_free
from discreet.graph.datasets import data_roots, find, is_path, load, resolve
from discreet.graph.graph import Graph

GENERATORS: dict[str, Callable[..., Graph]] = {"csbm": csbm, "scale-free": scale_free}


def canonical(text: str) -> str:
    """One spelling for a graph, or a sentence with the nearest names where there is none."""
    kind, _, options = text.strip().partition(":")
    if kind.lower() in GENERATORS:
        return with_options(kind.lower(), _parse(kind.lower(), options))
    return text if is_path(text) else find(text).name


def with_options(text: str, options: Mapping[str, Any]) -> str:
    """The name of a generated graph with more options."""
    if not options:
        return text
    kind, _, given = text.strip().partition(":")
    if kind.lower() not in GENERATORS:
        raise ParameterError(
            f"{text} is not a generated graph ({', '.join(GENERATORS)}): it has no {next(iter(options))}"
        )
    merged = {**_parse(kind.lower(), given), **options}
    _check(kind.lower(), merged)
    return f"{kind.lower()}:" + ",".join(f"{key}={json.dumps(value)}" for key, value in sorted(merged.items()))


def is_here(name: str, root: Path | None) -> bool:
    """Whether a graph can be had without a download."""
    if name.partition(":")[0] in GENERATORS:
        return True
    if is_path(name):
        return expand_home(name).exists()
    return any(find(name).where(place) is not None for place in data_roots(root))


def missing(name: str, root: Path | None) -> str | None:
    """Why a graph cannot be had here, or None. A graph that can be downloaded is, once."""
    if is_here(name, root):
        return None
    if is_path(name):
        return f"there is nothing at {name}"
    try:
        load(name, root)
    except DataNotFoundError as error:
        return str(error)
    return None


def graph_of(name: str, seed: int, root: Path | None) -> Graph:
    """The graph of a trial with this seed."""
    kind, _, options = name.partition(":")
    if kind in GENERATORS:
        return GENERATORS[kind](**{"seed": seed, **_parse(kind, options)})
    return _loaded(name, root)


@lru_cache(maxsize=1)
def _loaded(name: str, root: Path | None) -> Graph:
    """The last graph stays in memory: the next trial of a worker is often on the same."""
    return resolve(name, root) if is_path(name) else load(name, root, fetch=False)


def _parse(kind: str, options: str) -> dict[str, Any]:
    found = {}
    for pair in filter(None, options.split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise ParameterError(f"graph {kind}:{options}: {pair!r} is not of the form key=value")
        try:
            found[key.strip()] = json.loads(value)
        except json.JSONDecodeError:
            raise ParameterError(f"graph {kind}: {key} must be a number, not {value!r}") from None
    _check(kind, found)
    return found


def _check(kind: str, options: Mapping[str, Any]) -> None:
    known = list(inspect.signature(GENERATORS[kind]).parameters)
    for key in options:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
            raise ParameterError(f"graph {kind} has no option {key!r}: {hint}")
