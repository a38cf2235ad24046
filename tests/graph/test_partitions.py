"""Graphs in partitions: what was written is read back, and sums over blocks have the bits of the whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.errors import DataNotFoundError, GraphError, OutputExistsError, ParameterError, UnsupportedError
from discreet.files import leftovers
from discreet.graph import graph_in_blocks, partition_writer
from discreet.graph.edge_weights import SUM_PLACES
from discreet.graph.graph import Graph, NamedSplit
from discreet.graph.graph_in_blocks import GraphInBlocks
from discreet.graph.io import load_path, save_npz
from discreet.graph.partition_files import file_digest
from discreet.graph.partition_manifest import MANIFEST, Manifest, StoredBlock
from discreet.graph.partition_writer import EdgeBuckets, NewBlock, write_graph, write_partitions
from discreet.graph.partitions import PartitionedGraph
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods.gap.estimator import GAP
from discreet.methods.gcon.moments import GCONSSP
from discreet.ops.sparse import sums_over_edges
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel
from tests.graph.helpers import assert_same

pytest.importorskip("pyarrow")
SIZE = 61


def small(*, sparse: bool = False, directed: bool = False, weighted: bool = False) -> Graph:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(SIZE, 4)).astype(np.float32)
    graph = Graph.from_edges(
        rng.integers(SIZE, size=300),
        rng.integers(SIZE, size=300),
        sp.csr_array(np.where(features > 0, features, 0)) if sparse else features,
        rng.integers(-1, 3, size=SIZE),
        directed=directed,
        num_classes=3,
        class_names=("a", "b", "c"),
        node_ids=np.array([f"node {number}" for number in range(SIZE)]),
        named_splits=(NamedSplit("fold:0", rng.integers(4, size=SIZE).astype(np.int8)),),
        name="small",
        edge_weights=rng.random(300) if weighted else None,
    )
    return split(graph, "50/25/25", 0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_what_is_written_is_read_back(tmp_path: Path, sparse: bool, directed: bool) -> None:
    graph = small(sparse=sparse, directed=directed, weighted=directed)
    write_graph(graph, tmp_path / "parts", 5)
    found = load_path(tmp_path / "parts")
    assert_same(graph, found, splits=True)
    assert np.array_equal(found.edge_weights, graph.edge_weights) if directed else found.edge_weights is None
    assert sp.issparse(found.features) == sparse
    assert (found.name, found.inferred, found.schema) == (graph.name, graph.inferred, graph.schema)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("partitions", [1, 2, 7, SIZE])
def test_sums_over_blocks_have_the_bits_of_the_whole(tmp_path: Path, partitions: int, weighted: bool) -> None:
    graph, rng = small(directed=True, weighted=weighted), np.random.default_rng(0)
    write_graph(graph, tmp_path / "parts", partitions)
    tables = [rng.normal(size=(SIZE, 3)) * 10.0 ** rng.integers(-9, 9, size=(SIZE, 1)) for _ in range(2)]
    hears = rng.integers(2, size=SIZE)
    with PartitionedGraph(tmp_path / "parts") as opened:
        blocks = opened.graph()
        assert np.array_equal(sums_over_edges(blocks, tables[0]), sums_over_edges(graph, tables[0]))
        assert np.array_equal(
            sums_over_edges(blocks, *tables, hears=hears), sums_over_edges(graph, *tables, hears=hears)
        )
        assert blocks.public == graph.public
        assert isinstance(blocks.features, np.memmap)
        plain = blocks.without_weights()
        assert np.array_equal(sums_over_edges(plain, tables[0]), sums_over_edges(graph.without_weights(), tables[0]))
    assert sorted(path.name[:5] for path in (tmp_path / "parts").iterdir() if path.is_dir()) == []
    by_hand = np.zeros((SIZE, 3))
    weights = np.ones(len(graph.indices)) if graph.edge_weights is None else graph.edge_weights.astype(float)
    for source, target, weight in zip(*graph.edges(), weights, strict=True):
        sent = weight * tables[hears[target]][source]
        by_hand[target] += np.trunc(sent * 2**SUM_PLACES) / 2**SUM_PLACES if weighted else sent
    assert np.array_equal(sums_over_edges(graph, *tables, hears=hears), by_hand)


@pytest.mark.parametrize("at_once", [1, 7, 50])
def test_a_block_is_summed_a_portion_at_a_time(tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes without an edge, first and last ones included, stand between portions too."""
    monkeypatch.setattr(graph_in_blocks, "_AT_ONCE", at_once)
    graph, rng = small(directed=True, weighted=True), np.random.default_rng(0)
    source, target = graph.edges()
    kept = (target > 2) & (target < SIZE - 2) & (target % 5 > 0)
    graph = graph.with_edges(source[kept], target[kept], graph.edge_weights[kept])  # type: ignore[index]
    write_graph(graph, tmp_path / "parts", 3)
    for rows in (rng.normal(size=(SIZE, 3)), rng.normal(size=(SIZE, 3)).astype(np.float32)):
        with PartitionedGraph(tmp_path / "parts") as opened:
            hears = rng.integers(2, size=SIZE)
            found = sums_over_edges(opened.graph(), rows, 2 * rows, hears=hears)
            assert np.array_equal(found, sums_over_edges(graph, rows, 2 * rows, hears=hears))


def test_threads_and_blocks_give_the_same_bits(tmp_path: Path) -> None:
    """Where rows are many, the whole graph is summed over by threads with machine code of their own."""
    graph = csbm(num_nodes=1500, num_features=2, average_degree=20)
    rows = np.random.default_rng(0).normal(size=(1500, 100))
    write_graph(graph, tmp_path / "parts", 3)
    with PartitionedGraph(tmp_path / "parts") as opened:
        assert np.array_equal(sums_over_edges(graph, rows), sums_over_edges(opened.graph(), rows))


@pytest.fixture
def in_blocks(tmp_path: Path) -> Iterator[GraphInBlocks]:
    write_graph(split(csbm(num_nodes=80), "75/10/15", 0), tmp_path / "parts", 4)
    with PartitionedGraph(tmp_path / "parts") as opened:
        yield opened.graph()


def test_single_edges_are_refused(in_blocks: GraphInBlocks, tmp_path: Path) -> None:
    for read in (
        in_blocks.edges,
        in_blocks.in_degree,
        in_blocks.out_degree,
        lambda: in_blocks.adjacency,
        lambda: in_blocks.weighted_adjacency,
        lambda: in_blocks.num_edges,
        lambda: in_blocks.with_edges([0], [1]),
        lambda: split(in_blocks, "80/20:inductive", 0),
        lambda: save_npz(in_blocks, tmp_path / "graph.npz"),
        lambda: write_graph(in_blocks, tmp_path / "again", 2),
    ):
        with pytest.raises(UnsupportedError, match="can only be summed over"):
            read()
    assert not (tmp_path / "graph.npz").exists()
    assert not (tmp_path / "again").exists()


def test_what_needs_single_edges_is_refused_before_anything_is_asked(in_blocks: GraphInBlocks) -> None:
    privacy = Privacy(EdgeLevel(), 4.0)
    with pytest.raises(UnsupportedError, match=r"gap: stage 'hop 1' asks for more than sums"):
        GAP(privacy, aggregation="symmetric", epochs=0).fit(in_blocks)
    with pytest.raises(UnsupportedError, match="can only be summed over"):
        GAP(Privacy.none(), epochs=0).fit(in_blocks)
    fitted = GCONSSP(privacy, epochs=0).fit(in_blocks)
    with pytest.raises(UnsupportedError, match="can only be summed over"):
        fitted.predict(in_blocks, audience="owner")


def test_a_changed_partition_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    write_graph(small(), folder, 3)
    path = folder / "nodes-00001.parquet"
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(GraphError, match=r"nodes-00001.parquet is not the partition that the manifest states"):
        PartitionedGraph(folder)
    path.unlink()
    with pytest.raises(DataNotFoundError, match="there is no partition"):
        PartitionedGraph(folder)


@pytest.mark.parametrize("plant", ["sender outside", "receiver outside", "no order", "fewer"])
def test_entries_that_the_manifest_does_not_state_are_refused(tmp_path: Path, plant: str) -> None:
    """The kernel that sums checks no bounds: what it is given has to be checked."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path / "parts"
    write_graph(small(), folder, 3)
    path = folder / "edges-00001.parquet"
    source, target = (column.to_numpy().copy() for column in pq.read_table(path).columns)
    if plant == "sender outside":
        source[0] = SIZE
    elif plant == "receiver outside":
        target[0] = 0
    elif plant == "no order":
        source[[0, -1]], target[[0, -1]] = source[[-1, 0]], target[[-1, 0]]
    else:
        source, target = source[:-1], target[:-1]
    pq.write_table(pa.table({"source": source, "target": target}), path)
    known = json.loads((folder / MANIFEST).read_text())
    known["blocks"][1]["sha256"][path.name] = file_digest(path)
    (folder / MANIFEST).write_text(json.dumps(known))
    with PartitionedGraph(folder) as opened, pytest.raises(GraphError, match="does not hold the entries"):
        sums_over_edges(opened.graph(), np.ones((SIZE, 1)))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "discreet partitions", "version": 1}'])
def test_a_malformed_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(GraphError, match="manifest of partitions"):
        PartitionedGraph(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("num_nodes", "61"), ("num_nodes", 61.0), ("num_nodes", True), ("num_nodes", 2**40), ("num_classes", -1)),
        *(("name", None), ("name", ["x"]), ("directed", 0), ("sparse", "no"), ("blocks", []), ("blocks", {})),
        *(("class_names", ["a"]), ("class_names", [1, 2, 3]), ("splits", "x"), ("schema", []), ("extra", 1)),
    ],
)
def test_values_of_a_manifest_are_of_their_kind(tmp_path: Path, key: str, value: object) -> None:
    write_graph(small(), tmp_path / "parts", 2)
    path = tmp_path / "parts" / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(GraphError, match="is not a manifest of partitions"):
        Manifest.read(tmp_path / "parts")


def test_sizes_that_lie_are_refused_before_memory_is_taken(tmp_path: Path) -> None:
    write_graph(small(), tmp_path / "parts", 2)
    path = tmp_path / "parts" / MANIFEST
    stated = json.loads(path.read_text())
    stated["blocks"][1]["nodes"] += 900_000_000
    stated["num_nodes"] += 900_000_000
    path.write_text(json.dumps(stated))
    for read in (PartitionedGraph.whole, PartitionedGraph.graph):
        with pytest.raises(GraphError, match="does not hold the nodes"):
            read(PartitionedGraph(tmp_path / "parts"))


@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "folder"])
def test_files_that_are_none_are_not_waited_for(tmp_path: Path, kind: str) -> None:
    write_graph(small(), tmp_path / "parts", 2)
    path = tmp_path / "parts" / "nodes-00001.parquet"
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path.name)
    with pytest.raises(DataNotFoundError, match="there is no partition"):
        load_path(tmp_path / "parts")


def test_labels_and_parts_are_in_range(tmp_path: Path) -> None:
    write_graph(small(), tmp_path / "parts", 2)
    path = tmp_path / "parts" / MANIFEST
    stated = json.loads(path.read_text())
    path.write_text(json.dumps({**stated, "num_classes": 2, "class_names": None}))
    with PartitionedGraph(tmp_path / "parts") as opened, pytest.raises(GraphError, match="the column 'label'"):
        opened.graph()


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    graph = small()
    folder = tmp_path / "parts"

    def blocks() -> Iterator[NewBlock]:
        yield NewBlock(np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int64), graph.features[:1], graph.labels[:1])
        raise KeyboardInterrupt

    facts = Manifest("x", SIZE, 4, 3, directed=False, sparse=False, blocks=())
    with pytest.raises(KeyboardInterrupt):
        write_partitions(folder, facts, blocks())
    with pytest.raises(GraphError, match="the blocks hold 0 nodes"):
        write_partitions(folder, facts, [])
    assert list(tmp_path.iterdir()) == []
    write_graph(graph, folder, 2)
    with pytest.raises(OutputExistsError):
        write_graph(graph, folder, 2)
    with pytest.raises(GraphError, match="no 62 partitions"):
        write_graph(graph, tmp_path / "more", SIZE + 1)
    with pytest.raises(ParameterError, match="number of partitions"):
        write_graph(graph, tmp_path / "none", 0)


def test_what_a_killed_run_leaves_is_found(tmp_path: Path) -> None:
    write_graph(small(), tmp_path / "parts", 2)
    opened = PartitionedGraph(tmp_path / "parts")
    opened.graph()
    assert leftovers(tmp_path / "parts", older_than=-1) == [opened.scratch]
    assert opened.scratch.stat().st_mode & 0o077 == 0


def test_edges_in_no_order_become_blocks(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    sources, targets = rng.integers(SIZE, size=(2, 400))
    wanted = Graph.from_edges(sources, targets, np.zeros((SIZE, 1)), directed=True)
    buckets = EdgeBuckets(tmp_path / "scratch", SIZE, 4)
    for at in range(0, 400, 90):
        buckets.add(sources[at : at + 90], targets[at : at + 90])
    with pytest.raises(GraphError, match="outside"):
        buckets.add(np.array([SIZE]), np.array([0]))
    found = list(buckets.blocks())
    buckets.close()
    assert not (tmp_path / "scratch").exists()
    assert [rows.start for rows, _, _ in found] == partition_writer.block_bounds(SIZE, 4)[:-1]
    assert np.array_equal(np.concatenate([indices for _, _, indices in found]), wanted.indices)
    assert np.array_equal(np.concatenate([np.diff(indptr) for _, indptr, _ in found]), np.diff(wanted.indptr))


def test_buckets_that_several_filled_are_handed_over(tmp_path: Path) -> None:
    sources, targets = np.random.default_rng(6).integers(SIZE, size=(2, 300))
    whole, first, second = (EdgeBuckets(tmp_path / name, SIZE, 3) for name in ("whole", "first", "second"))
    whole.add(sources, targets)
    first.add(sources[:100], targets[:100])
    second.add(sources[100:], targets[100:])
    for number, wanted in enumerate(whole.blocks()):
        second.hand_over(number, first)
        second.hand_over(number, first)  # nothing is left to give
        found = first.block(number)
        assert found[0] == wanted[0]
        assert all(np.array_equal(*pair) for pair in zip(found[1:], wanted[1:], strict=True))


def test_direction_that_was_guessed_stays_guessed(tmp_path: Path) -> None:
    """A level that protects edges refuses a direction that was read off them, partitions or not."""
    graph = replace(small(), inferred=frozenset({"direction"}))
    write_graph(graph, tmp_path / "parts", 2)
    with PartitionedGraph(tmp_path / "parts") as opened:
        assert opened.graph().inferred == {"direction"}


@pytest.mark.parametrize("weighted", [False, True])
def test_an_undirected_graph_holds_both_directions(tmp_path: Path, weighted: bool) -> None:
    """Bounds rest on it, and only whoever wrote the partitions knew."""
    one_way = small(directed=True, weighted=weighted)
    write_graph(one_way, tmp_path / "one", 3)
    write_graph(one_way.to_undirected(), tmp_path / "both", 3)
    for name in ("one", "both"):
        path = tmp_path / name / MANIFEST
        path.write_text(json.dumps({**json.loads(path.read_text()), "directed": False}))
    with PartitionedGraph(tmp_path / "both") as partitions:
        partitions.graph()
    with PartitionedGraph(tmp_path / "one") as partitions, pytest.raises(GraphError, match="lacks its reverse"):
        partitions.graph()


def test_a_worker_shows_no_counts() -> None:
    assert "77" not in repr(StoredBlock(0, 0, 5, 77, {}))


def test_a_column_of_lists_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_graph(small(), tmp_path / "parts", 2)
    path = tmp_path / "parts" / "nodes-00000.parquet"
    table = pq.read_table(path)
    place = table.column_names.index("label")
    pq.write_table(table.set_column(place, "label", pa.array([[1.0]] * table.num_rows)), path)
    with PartitionedGraph(tmp_path / "parts", check=False) as opened, pytest.raises(GraphError, match="'label' holds"):
        opened.outline(labels=True)
