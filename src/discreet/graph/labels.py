"""Class names to class ids and back, the same way for every source of graphs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from discreet.arrays import IntArray
from discreet.errors import GraphError
from discreet.graph.clean import UNLABELLED

MOST_CLASSES = 1000  # no task of ours has more; a column with more holds names or numbers


def encode_classes(
    values: Sequence[Any], classes: Sequence[Any] | None = None, *, refuse_unknown: bool = True
) -> tuple[IntArray, tuple[str, ...]]:
    """Class ids and class names of one value per node.

    None, NaN (also as text), an empty string and -1 mean *unlabelled*. Without ``classes`` the names are the values
    seen, numbers in numeric order and anything else in alphabetical order. Give ``classes`` where the
    list is public: its order is kept, a class may be absent, and a value outside it is an error, or unlabelled.
    """
    names = [_class_name(value) for value in values]
    if classes is None:
        ordered = _sorted_names({name for name in names if name is not None})
    else:
        if isinstance(classes, str | bytes | set | frozenset | dict) or not isinstance(classes, Iterable):
            raise GraphError(f"classes must be a list, not {type(classes).__name__}")
        ordered = [_class_name(value) or "" for value in classes]
        if len(set(ordered)) != len(ordered) or "" in ordered:
            raise GraphError("the class list must hold each class once, without empty names")
    ids: dict[str | None, int] = {name: place for place, name in enumerate(ordered)}
    ids[None] = UNLABELLED
    unknown = next((name for name in names if name not in ids), None)
    if unknown is not None and refuse_unknown:
        raise GraphError(f"label {unknown!r} is not in the class list ({', '.join(ordered)})")
    return np.array([ids.get(name, UNLABELLED) for name in names], dtype=np.int64), tuple(ordered)


def check_class_values(values: Sequence[Any], column: str) -> None:
    """Refuse values that are no classes where no class list is declared: amounts, or names without end."""
    names = {_class_name(value) for value in values} - {None}
    wrong = next((name for name in names if name is not None and _is_fraction(name)), None)
    if wrong is None and len(names) <= MOST_CLASSES:
        return
    what = f"numbers such as {wrong}" if wrong is not None else f"{len(names)} different values"
    raise GraphError(
        f"the label column {column!r} holds {what}, which are no classes: group them into classes, declare these "
        "(--column classes=low,high), or name another column (--column label=NAME)"
    )


def _is_fraction(name: str) -> bool:
    try:
        return not float(name).is_integer()
    except (ValueError, OverflowError):
        return name.lower() in ("inf", "-inf")


def decode_classes(labels: IntArray, class_names: tuple[str, ...] | None) -> list[str | int | None]:
    """The class name (or the id, where classes have no names) of each node, None for an unlabelled one."""
    if class_names is None:
        return [None if label == UNLABELLED else label for label in labels.tolist()]
    return [None if label == UNLABELLED else class_names[label] for label in labels.tolist()]


def _class_name(value: Any) -> str | None:
    """One spelling for one class: 3, 3.0 and "3" are the same."""
    if value is None or type(value).__name__ == "NAType" or value != value:
        return None  # NaN and pandas.NaT differ from themselves, and pandas.NA does not even compare
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    text = re.sub(r"^(-?[0-9]+)\.0$", r"\1", str(value).strip())
    return None if text in ("", "-1", "<NA>", "nan", "NaN") else text


def _sorted_names(names: set[str]) -> list[str]:
    try:
        return sorted(names, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(names)
