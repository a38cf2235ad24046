"""What the columns mean: declared, kept through a file and a release, and refused where it contradicts itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.errors import DataNotFoundError, GraphError, InvalidInputError
from discreet.graph.schema import Column, Schema
from discreet.graph.schema_file import read_schema, write_schema

FULL = Schema(
    (
        Column("age", "numeric", range=(18, 100), missing="indicator"),
        Column("income in €", "numeric", range=(0, 1e6), scale="log", missing=0.0),
        Column("country", "category", categories=("NL", 'say "BE"'), other=True, missing="NL"),
        Column("member", "boolean", missing=False),
        Column("word_*", "as-is"),
        Column("note", "ignore"),
    ),
    id="account",
    label="status",
    classes=("legit", "fraud"),
    source="payer",
    target="payee",
    directed=True,
    edges_ignored=("memo",),
)


def test_it_survives_a_file_and_a_release(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(write_schema(FULL, "a note\nof two lines"))
    assert read_schema(tmp_path / "schema.toml") == FULL
    assert Schema.from_json(FULL.to_json()) == FULL
    assert Schema.from_json(Schema().to_json()) == Schema()


def test_columns_alike_share_one_entry_of_a_release() -> None:
    wide = Schema(tuple(Column(f"w{i}", "as-is") for i in range(1000)))
    assert len(wide.to_json()["columns"]) == 1
    assert Schema.from_json(wide.to_json()) == wide


def test_patterns_and_exact_names() -> None:
    found = FULL.declared_for(["word_7", "age", "stranger"])
    assert {name: column.kind for name, column in found.items()} == {"word_7": "as-is", "age": "numeric"}
    assert found["word_7"].name == "word_7"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[columns.a]\nkind = 'number'", "kind 'number'"),
        ("[columns.a]\nrange = [0, 1]", "has no kind"),
        ("[columns.a]\nkind = 'numeric'\nrange = [2, 1]", "lower end comes first"),
        ("[columns.a]\nkind = 'numeric'\nrange = [0, inf]", "both are finite"),
        ("[columns.a]\nkind = 'numeric'\nrange = 3", "two numbers"),
        ("[columns.a]\nkind = 'numeric'\nmissing = 'no'", "must be a number"),
        ("[columns.a]\nkind = 'category'\nrange = [0, 1]", "belongs to kind numeric"),
        ("[columns.a]\nkind = 'category'\ncategories = ['x', 'x']", "each category once"),
        ("[columns.a]\nkind = 'category'\ncategories = ['x']\nmissing = 'y'", "does not list 'y'"),
        ("[columns.a]\nkind = 'boolean'\nmissing = 1", "true, false"),
        ("[columns.a]\nkind = 'boolean'\nother = true", "belongs to kind category"),
        ("[columns.a]\nkind = 'numeric'\nunit = 'm'", "unknown key 'unit'"),
        ("[columns]\na = 1", "must be a table"),
        ("[nodes]\nclasses = 'ab'", "must be a list"),
        ("[nodes]\nclasses = ['a', 'a']", "each class once"),
        ("[nodes]\nid = 3", "a column name is a text"),
        ("[nodes]\nid = 'a'\n[columns.a]\nkind = 'numeric'", "two meanings"),
        ("[edges]\ndirected = 'no'", "true or false"),
        ("[edges]\nignore = 'memo'", "list of column names"),
        ("[rows]\nx = 1", "unknown key 'rows'"),
        ("nodes = 1", "table of settings"),
        ("[nodes", "not valid TOML"),
    ],
)
def test_a_schema_that_contradicts_itself(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(GraphError, match=words) as error:
        read_schema(path)
    assert str(path) in str(error.value)


def test_files_that_are_no_schema(tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError):
        read_schema(tmp_path / "schema.toml")
    (tmp_path / "schema.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInputError, match="not text in UTF-8"):
        read_schema(tmp_path / "schema.toml")
    (tmp_path / "schema.toml").write_text(f"nodes = {'9' * 5000}")
    with pytest.raises(GraphError, match="not valid TOML"):
        read_schema(tmp_path / "schema.toml")
    with pytest.raises(GraphError, match="unknown key"):
        Schema.from_json({"colour": 1})
    with pytest.raises(GraphError, match="not a list"):
        Schema.from_json({"columns": 5})
    with pytest.raises(GraphError, match="needs a value"):
        Schema.from_json({"columns": [{"names": ["a"], "kind": "as-is", "missing": [1]}]})
    with pytest.raises(GraphError, match="without names"):
        Schema.from_json({"columns": [{"kind": "as-is"}]})
