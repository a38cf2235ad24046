"""Predictions as files: one row per node, with the caller's own ids and the release's own class names."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from discreet.arrays import Array, IntArray, SingleArray
from discreet.errors import GraphError, ParameterError
from discreet.files import check_free, whole, write_folder, write_whole
from discreet.graph.graph import Graph

if TYPE_CHECKING:
    import pandas as pd

_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".tsv", ".txt", "")
_LONGEST_NAME = 200  # names of files end at 255 bytes


def check_file_type(path: Path) -> None:
    """Refuse a file type that cannot be written, before anything is predicted."""
    if path.suffix.lower() not in (*_TEXT, *_PARQUET):  # a table of commas called .xlsx would open nowhere
        raise ParameterError(f"predictions are written as .csv, .tsv or .parquet, not as {path.suffix!r:.20}")
    if path.suffix in _PARQUET:
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise ParameterError(f"writing {path.name} needs pyarrow: install discreet[parquet]") from error


def find_nodes(graph: Graph, wanted: Sequence[str]) -> IntArray:
    """The rows of these node ids, in their order; an id that is not there is refused."""
    ids = np.arange(graph.num_nodes) if graph.node_ids is None else graph.node_ids
    place = {str(name): row for row, name in enumerate(ids.tolist())}
    unknown = next((name for name in wanted if name not in place), None)
    if unknown is not None:
        raise GraphError(f"there is no node {unknown!r} in {graph.name}")
    return np.array([place[name] for name in wanted], dtype=np.int64)


@dataclass(frozen=True)
class Top:
    """``K``: the K most probable classes of each node. ``K:CLASS``: the K nodes most probably of that class."""

    count: int
    of_class: str | None = None

    @classmethod
    def parse(cls, text: str) -> Top:
        """``3`` or ``100:fraud``."""
        number, _, name = text.partition(":")
        if not number.isascii() or not number.isdigit() or not 0 < int(number) < 10**9:
            raise ParameterError(f"--top takes K (classes of each node) or K:CLASS (nodes of a class), not {text!r}")
        return cls(int(number), name or None)


def prediction_table(
    graph: Graph,
    rows: IntArray,
    probabilities: SingleArray,
    classes: Sequence[Any],
    top: Top | None = None,
) -> pd.DataFrame:
    """``id``, ``prediction`` and a column per class; with ``top``, a few classes of each node, or a few nodes."""
    import pandas as pd

    ids = rows if graph.node_ids is None else graph.node_ids[rows]
    names = np.array([str(name) for name in classes], dtype=object)
    head: dict[str, Array] = {"id": ids, "prediction": names[probabilities.argmax(axis=1)]}
    if top is not None and top.of_class is None:
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, : top.count]
        for place in range(order.shape[1]):
            found = order[:, place]
            head |= {f"class_{place + 1}": names[found]}
            head |= {f"probability_{place + 1}": probabilities[np.arange(len(rows)), found]}
        return pd.DataFrame({"id": head.pop("id"), **{k: v for k, v in head.items() if k != "prediction"}})
    columns = {f"probability_{name}": probabilities[:, place] for place, name in enumerate(names)}
    table = pd.DataFrame({**head, **columns})
    if top is None:
        return table
    if top.of_class not in names:
        raise ParameterError(f"there is no class {top.of_class!r}: the release has {', '.join(names[:12])}")
    return table.sort_values(f"probability_{top.of_class}", ascending=False, kind="stable").head(top.count)


def write_predictions(path: Path, table: pd.DataFrame) -> None:
    """Write a new CSV, TSV or Parquet file, whole or not at all; its mode follows the umask."""
    write_whole(path, _content(table, path.suffix))


def write_prediction_blocks(folder: Path, tables: Iterable[pd.DataFrame]) -> int:
    """Write a new folder with one Parquet file per table as they come, whole or not at all; how many rows there are."""
    check_free(folder)
    rows = 0
    with whole(folder) as temporary:
        temporary.mkdir()
        for number, table in enumerate(tables):
            (temporary / f"predictions-{number:05d}.parquet").write_bytes(_content(table, _PARQUET[0]))
            rows += len(table)
    return rows


def write_for_owners(folder: Path, table: pd.DataFrame) -> None:
    """Write a new folder with one CSV file per node, named by its id, so that each owner can be handed their row."""
    rows = [table.iloc[[row]] for row in range(len(table))]
    names = [_file_name(name, row) for row, name in enumerate(table["id"].tolist())]
    write_folder(folder, {name: _content(part, ".csv") for name, part in zip(names, rows, strict=True)})


def _file_name(name: Any, row: int) -> str:
    spelled = quote(str(name), safe=" ")
    return f"{spelled if len(spelled) <= _LONGEST_NAME and spelled.strip('. ') else f'row {row}'}.csv"


def _content(table: pd.DataFrame, suffix: str) -> bytes:
    if suffix in _PARQUET:
        found = io.BytesIO()
        table.to_parquet(found, index=False)
        return found.getvalue()
    separator = "\t" if suffix == ".tsv" else ","
    return table.to_csv(index=False, sep=separator, float_format="%.6g", lineterminator="\n").encode()
