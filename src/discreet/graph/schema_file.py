"""A schema as a file: ``schema.toml``, read and drafted.

.. code-block:: toml

    [nodes]
    id = "account"
    label = "status"
    classes = ["legit", "fraud"]

    [edges]
    source = "payer"
    target = "payee"
    directed = false
    weight = "amount"
    full_weight = 1000
    ignore = ["memo"]

    [columns.age]
    kind = "numeric"
    range = [18, 100]
    missing = "indicator"

    [columns."word_*"]
    kind = "as-is"
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.errors import GraphError, ParameterError
from discreet.files import expand_home, parse_toml, read_text
from discreet.graph.schema import Column, Schema

SCHEMA_FILE = "schema.toml"
_NODE_KEYS = ("id", "label", "split", "classes")
_EDGE_KEYS = ("source", "target", "directed", "weight", "full_weight", "time", "ignore")


def read_schema(path: str | Path) -> Schema:
    """Read a schema file; anything that it holds beyond what is known is refused by name."""
    path = expand_home(path)
    try:
        given = parse_toml(read_text(path, "schema file"), str(path))
    except ParameterError as error:
        raise GraphError(str(error)) from None
    try:
        return _from_tables(given)
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from error


def write_schema(schema: Schema, note: str = "") -> str:
    """The text of a schema file, with a note as a comment at its top."""
    lines = [f"# {line}".rstrip() for line in note.splitlines()]
    nodes = {key: getattr(schema, key) for key in _NODE_KEYS}
    edges = {key: getattr(schema, key) for key in _EDGE_KEYS if key != "ignore"}
    lines += _table("nodes", nodes) + _table("edges", edges | {"ignore": schema.edges_ignored or None})
    for column in schema.columns or ():
        settings = {key: value for key, value in column.to_json().items() if key != "measured"}
        lines += _table(f"columns.{_key(column.name)}", settings)
    return "\n".join(lines).lstrip("\n") + "\n"


def lines_to_add(name: str) -> str:
    """What to add to the file for a column of this name, its kind and values left for a person to say."""
    kinds = 'kind = "numeric", range = [LOWEST, HIGHEST] or kind = "category", categories = ["ONE", "TWO"]'
    return f"[columns.{_key(name)}] with {kinds}"


def _from_tables(given: Mapping[str, Any]) -> Schema:
    _check_keys(given, ("nodes", "edges", "columns"), "the schema")
    nodes, edges, columns = (given.get(name, {}) for name in ("nodes", "edges", "columns"))
    for name, table in (("nodes", nodes), ("edges", edges), ("columns", columns)):
        if not isinstance(table, Mapping):
            raise GraphError(f"[{name}] must be a table of settings")
    _check_keys(nodes, _NODE_KEYS, "[nodes]")
    _check_keys(edges, _EDGE_KEYS, "[edges]")
    ignored = edges.get("ignore", [])
    if not isinstance(ignored, list) or not all(isinstance(name, str) for name in ignored):
        raise GraphError("ignore in [edges] must be a list of column names")
    declared = tuple(Column.from_json(name, settings) for name, settings in columns.items())
    rest = {key: value for key, value in edges.items() if key != "ignore"}
    return Schema(declared if "columns" in given else None, **nodes, **rest, edges_ignored=tuple(ignored))


def _check_keys(given: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise GraphError(f"{where} has the unknown key {unknown[0]!r}: use {', '.join(known)}")


def _table(name: str, settings: Mapping[str, Any]) -> list[str]:
    lines = [f"{key} = {_value(value)}" for key, value in settings.items() if value is not None]
    return ["", f"[{name}]", *lines] if lines else []


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, float):
        return f"{value:.10g}" if not value.is_integer() or abs(value) >= 1e15 else str(int(value))
    return str(value) if isinstance(value, int) else _text(str(value))


def _text(value: str) -> str:
    """A basic TOML string: JSON's escapes are a part of TOML's; the one character that JSON leaves is DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
