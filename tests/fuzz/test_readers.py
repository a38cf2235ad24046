"""Readers of files that others wrote, with inputs that hypothesis makes and shrinks: a value, or a sentence of ours.

The grammars of ``tests.fuzz`` know what a sound file looks like; hypothesis does not, but tries texts and values that
nobody wrote down, and shrinks what fails.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.bench.suite import parse_suite
from discreet.errors import DiscreetError
from discreet.graph.io import read_graph
from discreet.graph.schema import Schema
from discreet.graph.schema_file import read_schema, write_schema
from discreet.graph.table_files import read_table
from discreet.privacy.certificate_form import check_certificate, check_config
from discreet.privacy.events import event_from_json
from discreet.privacy.levels import parse_level
from discreet.release.report.inputs import read_attacks, read_audit, read_rows
from discreet.release.report.policy import read_policy
from discreet.tuning.space import read_space
from discreet.untrusted import strict_json

STORED = Path(__file__).parents[1] / "release" / "stored"
FEW = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

WORDS = st.text(st.characters(codec="utf-8"), max_size=8)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | WORDS
JSON = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3))
CELLS = st.one_of(
    st.sampled_from(["", "NA", "a", "1", "-1", "0.5", "1e400", "inf", "nan", "true", '"', "'", "9" * 30, "2024-01-01"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=6),
    st.floats().map(repr),
    st.integers().map(str),
)
KEYS = [
    *("id", "label", "classes", "directed", "ignore", "kind", "range", "missing", "hidden", "method", "level"),
    *("epsilon", "seeds", "datasets", "title", "settings", "grid", "low", "high", "log", "categories", "other"),
]
ODD_TOML = ["nan", "inf", "1979-05-27", "07:32:00", "{low = 1, high = 0}", "0x10", "[1, 'a']"]
TOML_LINES = st.one_of(
    st.sampled_from(["[search]", "[nodes]", "[edges]", "[columns.a]", "[[cases]]", "[graphs]", "[", "]", "x = {"]),
    st.tuples(st.sampled_from(KEYS), JSON.map(json.dumps) | st.sampled_from(ODD_TOML)).map(" = ".join),
)
TEXTS = st.lists(TOML_LINES, max_size=8).map("\n".join) | st.text(st.characters(codec="utf-8"), max_size=60)


def ends_well(read: Callable[[], Any]) -> Any:
    """What was read, or None after a sentence; anything else that is raised is a bug."""
    try:
        return read()
    except DiscreetError:
        return None


def in_file(content: str | bytes, read: Callable[[Path], Any], name: str = "it.toml") -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        ends_well(lambda: read(path))


@FEW
@given(TEXTS)
def test_texts_in_toml(text: str) -> None:
    for read in (read_schema, read_space, read_policy):
        in_file(text, read)
    ends_well(lambda: parse_suite(text, "it"))


@FEW
@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_bytes_of_json(content: bytes) -> None:
    ends_well(lambda: strict_json(content, "it"))
    for read in (read_attacks, read_audit):
        in_file(content, read, "it.json")
    in_file(content, read_rows, "it.csv")


def spots(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(spot for key, item in inner for spot in spots(item, (*path, key)))]


def changed(value: Any, spot: tuple[Any, ...], to: Any) -> Any:
    if not spot:
        return to
    made = dict(value) if isinstance(value, dict) else list(value)
    made[spot[0]] = changed(value[spot[0]], spot[1:], to)
    return made


SOUND = {
    name: json.loads((STORED / "gap-edge" / name).read_text(encoding="utf-8"))
    for name in ("certificate.json", "config.json")
}


@FEW
@given(st.data())
def test_a_sound_record_with_one_value_changed(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(SOUND)))
    spot = data.draw(st.sampled_from(spots(SOUND[name])))
    made = changed(SOUND[name], spot, data.draw(JSON))
    check = check_certificate if name == "certificate.json" else check_config
    ends_well(lambda: check(made, name))
    ends_well(lambda: strict_json(json.dumps(made).encode(), name))


@FEW
@given(st.data())
def test_a_sound_event_with_one_value_changed(data: st.DataObject) -> None:
    event = SOUND["certificate.json"]["stages"][0]["event"]
    made = changed(event, data.draw(st.sampled_from(spots(event))), data.draw(JSON))
    ends_well(lambda: event_from_json(made))


@FEW
@given(st.text(st.sampled_from("edgnoilcavsrthmp_x:,=.-+0123456789 é"), max_size=30) | WORDS)
def test_words_for_a_level(text: str) -> None:
    made = ends_well(lambda: parse_level(text))
    if made is not None:
        assert parse_level(made.spec).spec == made.spec


@FEW
@given(JSON)
def test_schemas_of_any_form(value: Any) -> None:
    made = ends_well(lambda: Schema.from_json(value))
    if made is not None:
        write_schema(made)


ROWS = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=5)
)


@FEW
@given(ROWS, ROWS, st.sampled_from([",", "\t"]), st.booleans())
def test_tables_of_any_cells(nodes: list[list[str]], edges: list[list[str]], separator: str, headed: bool) -> None:
    suffix = ".csv" if separator == "," else ".tsv"
    heads = ["id", "label", "f", "g"], ["source", "target", "time", "weight"]
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, rows, head in zip(("nodes", "edges"), (nodes, edges), heads, strict=True):
            lines = [head[: len(rows[0])], *rows] if headed else rows
            paths.append(Path(folder) / f"{name}{suffix}")
            paths[-1].write_text("\n".join(separator.join(line) for line in lines), encoding="utf-8", newline="")
        ends_well(lambda: read_table(paths[0], {"id"}))
        ends_well(lambda: read_graph(paths[1], paths[0]))


@pytest.mark.parametrize("kind", ["object", "string", "category"])
def test_neighbouring_columns_of_text_that_are_declared_as_numbers(kind: str) -> None:
    """Pandas holds text in types of its own, which are no numbers either."""
    from discreet.graph import from_pandas
    from discreet.graph.schema import Column

    nodes = pd.DataFrame({"id": [0, 1], "a": ["1", "x"], "b": ["2", "3"]}).astype({"a": kind, "b": kind})
    schema = Schema((Column("a", "as-is"), Column("b", "as-is")))
    edges = pd.DataFrame({"source": [0], "target": [1]})
    with pytest.raises(DiscreetError, match="not a number"):
        from_pandas(edges, nodes, schema=schema)


@pytest.mark.parametrize(
    ("key", "value"),
    [("auc_interval", []), ("auc_interval", [0.5]), ("auc", 10**400), ("tpr_at_fpr", {"0.01": 10**400}), ("pairs", [])],
)
def test_reports_of_attacks_with_values_of_another_kind(key: str, value: Any) -> None:
    row = {"kind": "link", "against": "release", "auc": 0.6, key: value}
    in_file(json.dumps({"refuted": False, "attacks": [row]}), read_attacks, "it.json")
