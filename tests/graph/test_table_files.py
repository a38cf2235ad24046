"""Tables from files: wide ones in linear time and exactly, ragged ones not at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from discreet.errors import GraphError
from discreet.graph import load
from discreet.graph.table_files import WIDE, read_table

NUMBERS = ("0", "-1.5", "+2", "1e-3", "0.1", "123456789012345678901", "9007199254740993", "", "NA", ".5", "1.", "-0")


def write_wide(path: Path, rows: int, end: str = "\n", seed: int = 0) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    cells = [[NUMBERS[at] for at in rng.integers(0, len(NUMBERS), WIDE)] for _ in range(rows)]
    header = ",".join(["id", *(f"w{place}" for place in range(WIDE)), "label"])
    lines = [",".join([f"n{row}", *cells[row], "NA"]) for row in range(rows)]
    path.write_bytes(end.join([header, *lines]).encode() + end.encode())
    return cells


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_wide_tables_are_read_exactly(tmp_path: Path, end: str) -> None:
    cells = write_wide(tmp_path / "nodes.csv", 30, end)
    table = read_table(tmp_path / "nodes.csv", {"id", "label"})
    expected = [[np.nan if cell in ("", "NA") else float(cell) for cell in row] for row in cells]
    held = table[[f"w{place}" for place in range(WIDE)]].to_numpy()
    np.testing.assert_array_equal(held, np.array(expected).astype(np.float32))
    assert table["id"].tolist() == [f"n{row}" for row in range(30)]
    assert table["label"].tolist() == ["NA"] * 30  # a name, not a missing number


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    write_wide(tmp_path / "nodes.csv", 3)
    (tmp_path / "nodes.csv").write_bytes((tmp_path / "nodes.csv").read_bytes().rstrip(b"\n"))
    assert len(read_table(tmp_path / "nodes.csv", {"id", "label"})) == 3


def test_wide_tables_refuse_text_and_ragged_rows(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    write_wide(path, 3)
    text = path.read_text()
    path.write_text(text.replace("n1,", "n1,red,", 1))
    with pytest.raises(GraphError, match=f"line 3: {WIDE + 3} cells"):
        read_table(path, {"id", "label"})
    lines = text.splitlines()
    lines[2] = ",".join(["n1", "red", *lines[2].split(",")[2:]])
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(GraphError, match=r"'w0' of .* holds 'red' in row 1"):
        read_table(path, {"id", "label"})


def test_quoted_cells_may_hold_separators(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text('id,town,a\n1,"Paris, Texas",2\n2,"two\nlines",3\n')
    assert read_table(path, {"id", "town"})["town"].tolist() == ["Paris, Texas", "two\nlines"]


def test_what_never_ends_is_not_opened(tmp_path: Path) -> None:
    """A pipe waits for a writer, and /dev/zero never ends a line."""
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "folder.csv").mkdir()
    for name in ("pipe.csv", "zero.csv", "folder.csv"):
        with pytest.raises(GraphError, match="not a plain file"):
            read_table(tmp_path / name, {"id"})


def test_cells_of_lists_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for cell in ([1, 2], {"a": 1}):
        pd.DataFrame({"id": [0, 1], "label": [cell, cell]}).to_parquet(tmp_path / "nodes.parquet")
        with pytest.raises(GraphError, match="'label' holds lists or records"):
            read_table(tmp_path / "nodes.parquet", {"id", "label"})


def test_numbers_too_large_for_ids_are_text(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text(f"source,target\n0,{'9' * 400}\n")
    with pytest.raises(GraphError, match="cannot be read"):
        read_table(tmp_path / "edges.csv", ["source", "target"], np.int64)
    assert read_table(tmp_path / "edges.csv", ["source", "target"])["target"].tolist() == ["9" * 400]


def test_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    """What spreadsheets write where a comma stands before the decimals, with a mark before the header."""
    path = tmp_path / "nodes.csv"
    text = 'id;amount;share;town;grade\n007;1606,46;0,5;"Bonn; Köln";1,5\n8;;-2;Ulm, Neu;gut\n9;12;1e-3;;\n'
    path.write_text(text, encoding="utf-8-sig")
    table = read_table(path, {"id"})
    assert table["id"].tolist() == ["007", "8", "9"]
    np.testing.assert_array_equal(table["amount"], [1606.46, np.nan, 12])
    np.testing.assert_array_equal(table["share"], [0.5, -2, 0.001])
    assert table["town"].tolist()[:2] == ["Bonn; Köln", "Ulm, Neu"]
    assert table["grade"].tolist()[:2] == ["1,5", "gut"]  # text, as one cell is no number
    path.write_text(text.replace("-2;", "-2;;"))
    with pytest.raises(GraphError, match="line 3: 6 cells where the header names 5"):
        read_table(path, {"id"})


def test_a_header_with_commas_is_separated_by_them(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("id,a;b\n1,2;3\n")
    assert list(read_table(path, {"id"})) == ["id", "a;b"]


@pytest.mark.parametrize("width", [2, WIDE])
def test_rows_of_empty_cells_are_skipped(tmp_path: Path, width: int) -> None:
    header = ",".join(["id", *(f"w{place}" for place in range(width)), "label"])
    rows = [",".join([name, *["1.5"] * width, label]) for name, label in (("a", "x"), ("b", ""))]
    nothing = "," * (width + 1)
    (tmp_path / "nodes.csv").write_text("\n".join([header, rows[0], nothing, "", rows[1], nothing, nothing]) + "\n")
    table = read_table(tmp_path / "nodes.csv", {"id", "label"})
    assert table["id"].tolist() == ["a", "b"]
    assert table.index.tolist() == [0, 1]
    (tmp_path / "nodes.csv").write_text("\n".join([header, rows[0], rows[1].removeprefix("b")]) + "\n")
    assert len(read_table(tmp_path / "nodes.csv", {"id", "label"})) == 2  # a row without an id is no empty one


def write_tables(folder: Path, nodes: str | bytes, edges: str = "s,t\na,b\n") -> None:
    content = nodes if isinstance(nodes, bytes) else nodes.encode()
    (folder / "nodes.csv").write_bytes(content)
    (folder / "edges.csv").write_text(edges)


def test_tabs_and_spaces_in_a_header_are_not_names(tmp_path: Path) -> None:
    for nodes in ("id\ta\tlabel\na\t1.5\tx\nb\t2.5\ty\n", "id, a, label\na, 1.5, x\nb, 2.5, y\n"):
        write_tables(tmp_path, nodes)
        graph = load(str(tmp_path))
        assert graph.feature_names == ("a",)
        assert graph.class_names == ("x", "y")
        assert graph.node_ids.tolist() == ["a", "b"]
    write_tables(tmp_path, "id,a, a\nb,1,2\n")
    with pytest.raises(GraphError, match="more than one column 'a'"):
        load(str(tmp_path))


@pytest.mark.parametrize(
    ("nodes", "edges", "sentence"),
    [
        (
            "id,a\n007,1\n8,2\n",
            "s,t\n7,8\n",
            r"node '7' \(.*\), which is not in the node table: that has '007', and ids",
        ),
        ("id,a\nAnn,1\nbob,2\n", "s,t\nann,bob\n", "that has 'Ann', and ids must be written alike in both"),
        ("id,a\n3,1\n4,2\n3,5\n", "s,t\n3,4\n", "node id '3' stands more than once"),
        ("id,a\nä,1\n".encode("latin-1"), "s,t\n", "it is not written in UTF-8: save it so"),
        ("id,a\nä,1\n".encode("utf-16"), "s,t\n", "it is not written in UTF-8: save it so"),
        ("id,a\rb,1\rc,2\r", "s,t\n", "lines end in a carriage return alone"),
        ("id,a,label\n", "s,t\n", "the node table has no rows"),
        ("id;a\na;1.234,50\nb;2.500,75\n", "s,t\n", r"looks like numbers, but '1\.234,50' in row 0 is none"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_in_plain_words(
    tmp_path: Path, nodes: str | bytes, edges: str, sentence: str
) -> None:
    write_tables(tmp_path, nodes, edges)
    with pytest.raises(GraphError, match=sentence):
        load(str(tmp_path))


def test_a_date_in_another_form_is_shown(tmp_path: Path) -> None:
    write_tables(tmp_path, "id,a\na,1\nb,2\n", "s,t,date\na,b,2024-01-31\na,b,31.01.2024\n")
    with pytest.raises(GraphError, match=r"holds '31\.01\.2024' in row 1: write dates as 2024-06-30"):
        load(str(tmp_path), edges_until="2024-06-30")
