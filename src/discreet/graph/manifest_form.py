"""The form of a manifest of partitions: which keys, of which types, within which limits.

A folder of partitions may come from anybody. What has the form can be read without a surprise; whether its files hold
what it says is checked where they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet.errors import GraphError
from discreet.limits import CLASSES, NODES, PARTITIONS, Count

_ENTRIES = Count(0, 2**62)
"""Sums over blocks must fit 64 bits."""


def _whole(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _or_none(form: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or form(value)


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


_BLOCK: dict[str, Callable[[Any], bool]] = {
    "first": _whole(0, NODES.high),
    "nodes": _whole(0, NODES.high),
    "entries": _whole(_ENTRIES.low, _ENTRIES.high),
    "sha256": lambda value: _is_table(value) and all(map(_is_text, value.values())),
}


def _are_blocks(value: Any) -> bool:
    return (
        isinstance(value, list)
        and PARTITIONS.low <= len(value) <= PARTITIONS.high
        and all(_is_table(block) and block.keys() == _BLOCK.keys() for block in value)
        and all(_BLOCK[key](item) for block in value for key, item in block.items())
    )


_FORMS: dict[str, Callable[[Any], bool]] = {
    "name": _is_text,
    "num_nodes": _whole(NODES.low, NODES.high),
    "num_features": _whole(0, NODES.high),
    "num_classes": _whole(CLASSES.low, CLASSES.high),
    "directed": _is_flag,
    "sparse": _is_flag,
    "blocks": _are_blocks,
    "class_names": _or_none(_are_names),
    "feature_names": _or_none(_are_names),
    "splits": _are_names,
    "inferred": _are_names,
    "split_reads_labels": _is_flag,
    "weighted": _is_flag,
    "schema": _or_none(_is_table),
}
_NEEDED = ("name", "num_nodes", "num_features", "num_classes", "directed", "sparse", "blocks")


def check_manifest(given: Mapping[str, Any], name: str) -> None:
    """Refuse, in one sentence, what does not have the form; values are not repeated, as some are private."""
    missing = [key for key in _NEEDED if key not in given]
    if missing:
        raise GraphError(f"{name} is not a manifest of partitions: it lacks {missing[0]}")
    for key, value in given.items():
        if key not in _FORMS:
            raise GraphError(f"{name} is not a manifest of partitions: it has {key!r:.60}, which is not known")
        if not _FORMS[key](value):
            raise GraphError(f"{name} is not a manifest of partitions: {key} is not what it may be")
    for key, count in (("class_names", "num_classes"), ("feature_names", "num_features")):
        if given.get(key) is not None and len(given[key]) != given[count]:
            raise GraphError(f"{name} is not a manifest of partitions: {key} and {count} do not agree")
