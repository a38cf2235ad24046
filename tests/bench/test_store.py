"""Rows on disk: whole or not at all, one writer, mergeable."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from discreet.bench.store import RESULTS, Store, read_rows
from discreet.errors import DiscreetError


def row(number: int, status: str = "ok") -> dict[str, object]:
    return {"id": f"{number}", "status": status, "trial": {}, "text": "é" * 50_000}


def test_an_unfinished_last_line_is_cut_and_nothing_else(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append(row(1))
        store.append(row(2))
    path = tmp_path / RESULTS
    whole = path.read_bytes()
    for kept in (len(whole) - 1, len(whole) - 60_000, len(whole) // 2 + 1, 10, 0):
        path.write_bytes(whole[:kept])
        with Store(tmp_path) as store:
            survived = path.read_bytes()
            assert survived == whole[: len(survived)]
            assert survived.endswith(b"\n") or survived == b""
            store.append(row(3))
        assert [json.loads(line)["id"] for line in path.read_text().splitlines()][-1] == "3"
        assert set(read_rows(tmp_path)) == {*("12"[: survived.count(b"\n")]), "3"}


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with Store(tmp_path), pytest.raises(DiscreetError, match="another bench"), Store(tmp_path):
        pass
    with Store(tmp_path):
        pass


def test_results_of_other_machines_are_merged(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append(row(1, "failed"))
        store.append(row(2))
    lines = [json.dumps(row(1)), "half a li", json.dumps(row(2, "failed")), json.dumps(row(3)), "[1]"]
    (tmp_path / "elsewhere.jsonl").write_text("\n".join(lines))
    assert {key: found["status"] for key, found in read_rows(tmp_path).items()} == dict.fromkeys("123", "ok")


def test_rows_of_an_older_default_give_way_even_to_a_failure(tmp_path: Path) -> None:
    old = {**row(1), "settings": "old", "started": "2026-01-01"}
    new = {**row(1, "failed"), "settings": "new", "started": "2026-02-01"}
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, (new, old))))
    assert read_rows(tmp_path)["1"]["settings"] == "new"


def test_files_that_are_no_rows_count_as_not_run(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append(row(1))
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "deep.jsonl").write_text("[" * 100_000 + "\n")
    assert set(read_rows(tmp_path)) == {"1"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("id", []), ("status", 1), ("trial", "x"), ("metrics", []), ("metrics", {"accuracy": {"test": "x"}})),
        *(("metrics", {"accuracy": 1e308}), ("versions", {"source": 1}), ("reason", []), ("seconds", "x")),
    ],
)
def test_rows_with_values_of_another_kind_count_as_not_run(tmp_path: Path, key: str, value: object) -> None:
    (tmp_path / "elsewhere.jsonl").write_text("\n".join(map(json.dumps, [{**row(1), key: value}, row(2)])))
    assert set(read_rows(tmp_path)) == {"2"}
