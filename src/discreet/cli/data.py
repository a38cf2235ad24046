"""``discreet data``: the graphs that have a name, or what would be read of your own tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.declared import Columns, DataRoot, Directed, EdgesUntil, Json, LevelSpec, SchemaFile
from discreet.cli.options import GraphOptions
from discreet.cli.output import LOG, check_places, print_json, print_rows, printable, report
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.graph.graph import Graph

SHOWN = ("name", "nodes", "edges", "features", "classes", "status", "wanted")
PUT = (
    "\nwanted: the file under a data root (--data-root, $DISCREET_DATA or ~/.cache/discreet) by which a dataset is "
    "found, with the\nothers of its archive beside it. fb100:School reads any of the hundred schools: "
    "Facebook100/School/raw/School.mat"
)
CONVERT = "convert"
MOST_ROWS = 200  # what a person reads; --json has all of it
DRAFT = (
    "A draft, read off the table: ranges, categories and classes are those that occur.\n"
    "Before you use it at the levels node, neighbor or local, edit every range, category and class to what is public "
    "knowledge."
)


def data(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[convert] [DATA]", help="A folder of nodes and edges tables, a .npz file, or a name."),
    ] = None,
    data_root: DataRoot = None,
    columns: Columns = None,
    schema: SchemaFile = None,
    directed: Directed = None,
    edges_until: EdgesUntil = None,
    level: LevelSpec = "edge",
    write_schema: Annotated[
        Path | None, typer.Option("--write-schema", help="Draft a schema of the tables into this new file.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="With convert: write partitions to this new folder.")] = None,
    partitions: Annotated[int | None, typer.Option(help="With convert: how many, of about as many nodes each.")] = None,
    as_json: Json = False,
) -> None:
    """List the datasets that have a name; with DATA, say what would be read of it, and what is left out.

    convert DATA --out FOLDER --partitions K writes a graph, also one that has a name, in Parquet partitions.
    """
    command, source = _read_words(words or [])
    if command == CONVERT:
        options = GraphOptions(source, data_root, columns, schema, directed, edges_until=edges_until)
        _convert(options, out, partitions, as_json)
        return
    if out is not None or partitions is not None:
        raise ParameterError("--out and --partitions go with convert: discreet data convert DATA --out FOLDER …")
    if source:
        place = Path(source).absolute()  # a folder of your own counts for more than a name
        given = source if _is_name(source) and not place.exists() else str(place)
        options = GraphOptions(given, data_root, columns, schema, directed, edges_until=edges_until)
        _show(options, level, write_schema, as_json)
        return
    if write_schema is not None:
        raise ParameterError("--write-schema drafts the schema of a folder: discreet data FOLDER --write-schema FILE")
    from discreet.graph.datasets import available

    print_rows([{key: getattr(row, key) for key in SHOWN} for row in available(data_root)], as_json)
    if not as_json:
        print(PUT)


def _read_words(words: list[str]) -> tuple[str | None, str]:
    """Whether to convert, and what."""
    if words[:1] == [CONVERT]:
        if len(words) != 2:
            raise ParameterError("discreet data convert takes one graph: a name, a .npz file or a folder")
        return CONVERT, words[1]
    if len(words) > 1:
        raise ParameterError(f"discreet data takes one folder or file, not {len(words)}")
    return None, words[0] if words else ""


def _is_name(source: str) -> bool:
    from discreet.graph.datasets import DATASETS, SCHOOL_PREFIX, SYNTHETIC

    return source.startswith(SCHOOL_PREFIX) or source in (SYNTHETIC, *(known.name for known in DATASETS))


def _convert(options: GraphOptions, out: Path | None, partitions: int | None, as_json: bool) -> None:
    from discreet.graph.partition_writer import write_graph
    from discreet.limits import PARTITIONS

    if out is None or partitions is None:
        raise ParameterError("convert needs --out FOLDER and --partitions K")
    check_places(out)
    PARTITIONS.check("--partitions", partitions)
    graph = options.read()
    made = write_graph(graph, out, partitions)
    report({"data": graph.name, "nodes": made.num_nodes, "partitions": len(made.blocks), "out": str(out)}, as_json)


def _show(options: GraphOptions, level: str, write_schema: Path | None, as_json: bool) -> None:
    from discreet.graph.account import account_of, doubts_of
    from discreet.privacy.levels import parse_level

    private = parse_level(level).private
    check_places(write_schema)
    graph = options.read(drafting=True)
    if write_schema is not None:
        _draft(graph, write_schema)
    rows, doubts = account_of(graph, private), doubts_of(graph, private)
    if as_json:
        print_json({"name": graph.name, "nodes": graph.num_nodes, "rows": rows, "warnings": doubts})
        return
    print(f"{graph.name}: {graph.num_nodes} nodes, {'directed' if graph.directed else 'undirected'} edges\n")
    if not rows:
        print(f"{graph.num_features} features as they are, {graph.num_classes} classes: there are no columns to name")
        return
    print_rows(rows[:MOST_ROWS], as_json=False)
    if len(rows) > MOST_ROWS:
        print(f"… and {len(rows) - MOST_ROWS} more columns: --json has all of them")
    for sentence in doubts:
        print(f"\nwarning: {printable(sentence)}")
    if graph.schema is not None and graph.schema.label is None:
        print("\nno column holds labels (label, class or y): --column label=NAME names one, for training")


def _draft(graph: Graph, path: Path) -> None:
    from discreet.files import write_whole
    from discreet.graph.schema_file import write_schema

    if graph.schema is None:
        raise ParameterError("this graph has no columns to write a schema of")
    write_whole(path, write_schema(graph.schema, DRAFT))
    LOG.warning(f"{path} is a draft that was read off the table. {DRAFT.splitlines()[1]}")
