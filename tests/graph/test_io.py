from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from discreet.errors import DataNotFoundError, GraphError, OutputExistsError, ParameterError
from discreet.graph import Graph, load_npz, load_path, npz, read_graph, save_npz, to_pandas
from discreet.graph.synthetic import csbm
from tests.graph.helpers import assert_same, files_in

EDGES = "source,target\nann,bob\nbob,eve\n"
NODES = "id,height,label,split\nann,1.5,NA,train\nbob,2,dog,test\neve,0,,\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text(NODES)
    return tmp_path


class TestTables:
    def test_read(self, folder):
        graph = read_graph(folder / "edges.csv", folder / "nodes.csv", directed=False)
        assert graph.node_ids.tolist() == ["ann", "bob", "eve"]
        assert graph.class_names == ("NA", "dog")  # a class may be called NA
        assert graph.labels.tolist() == [0, 1, -1]
        np.testing.assert_allclose(graph.features, [[0.5], [1], [-1]], atol=0.05)
        assert graph.train_mask.tolist() == [True, False, False]
        assert graph.test_mask.tolist() == [False, True, False]
        assert graph.num_edges == 2

    @pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
    def test_round_trip(self, small, kind, tmp_path):
        for name, table in zip(("edges", "nodes"), to_pandas(small), strict=True):
            path = tmp_path / f"{name}.{kind}"
            if kind == "parquet":
                table.astype({c: "float64" for c in table.columns if c.startswith("x")}).to_parquet(path)
            else:
                table.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
        assert_same(load_path(tmp_path, directed=True), small)

    def test_numbers_as_ids(self, folder):
        (folder / "edges.csv").write_text("a,b\n3,10\n10,700\n")
        (folder / "nodes.csv").write_text("name,x\n700,1\n3,2\n10,3\n")
        graph = load_path(folder, directed=True)
        assert graph.node_ids.tolist() == [700, 3, 10]
        assert list(zip(*graph.edges(), strict=True)) == [(2, 0), (1, 2)]
        assert graph.name == folder.name
        (folder / "edges.csv").write_text("a,b\n3.0,10.0\n10.0,700.0\n")
        assert_same(load_path(folder, directed=True), graph)

    def test_columns_called_like_nodes(self, folder):
        (folder / "edges.csv").write_text("0,1\n0,1\n1,2\n")
        (folder / "nodes.csv").write_text("id,x\n0,1\n1,2\n2,3\n")
        with pytest.raises(GraphError, match="no header"):
            load_path(folder)
        assert load_path(folder, source="0", target="1").num_edges == 2

    def test_parquet_with_an_index(self, folder):
        table = pd.DataFrame({"id": ["ann", "bob", "eve"], "x": [1.0, 2, 3]}).set_index("id")
        table.to_parquet(folder / "nodes.parquet")
        (folder / "nodes.csv").unlink()
        assert load_path(folder).node_ids.tolist() == ["ann", "bob", "eve"]

    def test_labels_written_as_floats(self, folder):
        (folder / "nodes.csv").write_text("id,x,label\nann,1,1.0\nbob,2,\neve,3,0.0\n")
        assert load_path(folder).class_names == ("0", "1")
        assert load_path(folder).labels.tolist() == [1, -1, 0]

    @pytest.mark.parametrize(
        ("edges", "nodes", "message"),
        [
            ("source,target\nann,zoe\n", NODES, "names node 'zoe'"),
            ("source,target\nann,\n", NODES, "row 0 of the edge table has no 'target'"),
            ("ann,bob\nbob,eve\n", NODES, "seems to have no header"),
            ("source\nann\n", NODES, "two columns"),
            (EDGES, "id,a\nann,1\nbob,0,5\neve,3\n", r"nodes\.csv, line 3: 3 cells where the header names 2 columns"),
            (EDGES, "id,a\nann,1\nbob\neve,3\n", r"nodes\.csv, line 3: 1 cell where"),
            (EDGES, 'id,a\nann,1\n"bob",0,5\neve,3\n', r"nodes\.csv, line 3: 3 cells"),
            (EDGES, "id,,a\nann,0,1\nbob,0,1\neve,0,3\n", r"nodes\.csv: column 2 has no name"),
            (EDGES, "id,a,a\nann,0,1\nbob,0,1\neve,0,3\n", "more than one column 'a'"),
            (EDGES, "id,a\nann,1\nann,2\neve,3\n", "more than once"),
            (EDGES, "id,a\nann,1\n,2\neve,3\n", "row 1 of the node table has no id"),
            (EDGES, "", "cannot be read as a table"),
            ("", NODES, "cannot be read as a table"),
            ('source,target\n"ann,bob\n', NODES, "cannot be read as a table"),
        ],
    )
    def test_bad_files(self, folder, edges, nodes, message):
        (folder / "edges.csv").write_text(edges)
        (folder / "nodes.csv").write_text(nodes)
        with pytest.raises(GraphError, match=message):
            load_path(folder)

    def test_bad_bytes(self, folder):
        (folder / "nodes.csv").write_bytes(b"id,a\n\xff\xfe,1\n")
        with pytest.raises(GraphError, match="cannot be read as a table"):
            load_path(folder)
        (folder / "nodes.csv").unlink()
        (folder / "nodes.parquet").write_bytes(b"not parquet")
        with pytest.raises(GraphError, match="cannot be read as a table"):
            load_path(folder)

    def test_missing_files(self, folder):
        with pytest.raises(DataNotFoundError, match=r"there is no file .*none\.csv"):
            read_graph(folder / "none.csv", folder / "nodes.csv")
        with pytest.raises(DataNotFoundError, match="no file or folder"):
            load_path(folder / "none")
        (folder / "edges.csv").unlink()
        with pytest.raises(DataNotFoundError, match=r"none of edges\.csv"):
            load_path(folder)

    def test_odd_paths_and_options(self, folder):
        (folder / "edges.tsv").write_text(EDGES)
        with pytest.raises(GraphError, match=r"both edges\.csv and edges\.tsv"):
            load_path(folder)
        (folder / "graph.txt").write_text("")
        with pytest.raises(GraphError, match=r"neither a \.npz file nor a folder"):
            load_path(folder / "graph.txt")
        with pytest.raises(GraphError, match=r"must be one of \.csv"):
            read_graph(folder / "graph.txt", folder / "nodes.csv")
        with pytest.raises(ParameterError, match="unknown option 'labels'"):
            read_graph(folder / "edges.csv", folder / "nodes.csv", labels="a")


class TestNpz:
    def test_round_trip(self, small, tmp_path):
        path = save_npz(small, tmp_path / "graph.npz")
        back = load_npz(path)
        assert_same(back, small, splits=True)
        assert back.name == small.name
        assert sp.issparse(back.features) == sp.issparse(small.features)
        assert_same(load_path(path), small)
        assert_same(load_path(path, directed=False), small.to_undirected())

    def test_bare_graph(self, tmp_path):
        graph = Graph.from_edges([0], [1], np.eye(2), directed=False)
        assert_same(load_npz(save_npz(graph, tmp_path / "graph.npz")), graph)
        with pytest.raises(GraphError, match="undirected"):
            load_path(tmp_path / "graph.npz", directed=True)
        with pytest.raises(ParameterError, match="label cannot be used"):
            load_path(tmp_path / "graph.npz", label="y")

    def test_nothing_is_overwritten(self, small, tmp_path):
        path = save_npz(small, tmp_path / "graph.npz")
        before = path.read_bytes()
        with pytest.raises(OutputExistsError):
            save_npz(small.to_undirected(), path)
        assert path.read_bytes() == before
        save_npz(small.to_undirected(), path, overwrite=True)
        assert not load_npz(path).directed

    @pytest.mark.parametrize("broken", ["numpy.lib.format.write_array", "os.replace"])
    def test_failure_leaves_nothing(self, small, tmp_path, monkeypatch, broken):
        def fail(*args, **options):
            if broken == "numpy.lib.format.write_array":
                args[0].write(b"half a file")
            raise OSError("disk full")

        save_npz(small, tmp_path / "kept.npz")
        before = (tmp_path / "kept.npz").read_bytes()
        monkeypatch.setattr(broken, fail)
        with pytest.raises(OSError, match="disk full"):
            save_npz(small, tmp_path / "graph.npz")
        with pytest.raises(OSError, match="disk full"):
            save_npz(small, tmp_path / "kept.npz", overwrite=True)
        assert files_in(tmp_path) == ["kept.npz"]
        assert (tmp_path / "kept.npz").read_bytes() == before

    def test_refusals(self, tmp_path, small):
        with pytest.raises(GraphError, match=r"must end in \.npz"):
            save_npz(small, tmp_path / "graph.bin")
        with pytest.raises(DataNotFoundError, match="no folder"):
            save_npz(small, tmp_path / "none" / "graph.npz")
        with pytest.raises(DataNotFoundError, match="there is no file"):
            load_npz(tmp_path / "graph.npz")
        odd = Graph.from_edges([0], [1], np.eye(2), node_ids=[(1, 2), "a"])
        with pytest.raises(GraphError, match="type tuple cannot be saved"):
            save_npz(odd, tmp_path / "graph.npz")
        assert files_in(tmp_path) == []

    def test_bad_files(self, tmp_path, small):
        path = tmp_path / "graph.npz"
        path.write_bytes(b"PK\x03\x04 but no archive")
        with pytest.raises(GraphError, match="plain arrays"):
            load_npz(path)
        np.savez(path, format=np.array([{}], dtype=object))
        with pytest.raises(GraphError, match="pickled objects"):
            load_npz(path)
        np.savez(path, a=np.zeros(3))
        with pytest.raises(GraphError, match="not written by discreet"):
            load_npz(path)
        with np.load(save_npz(small, path, overwrite=True)) as stored:
            arrays = dict(stored)
        np.savez(path, **(arrays | {"version": 2}))
        with pytest.raises(GraphError, match="layout version 2"):
            load_npz(path)
        np.savez(path, **{key: value for key, value in arrays.items() if key != "labels"})
        with pytest.raises(GraphError, match="lacks the array 'labels'"):
            load_npz(path)
        np.savez(path, **(arrays | {"indices": arrays["indices"] + 100}))
        with pytest.raises(GraphError, match="names node"):
            load_npz(path)
        if "features_indices" in arrays:
            np.savez(path, **(arrays | {"features_indices": arrays["features_indices"] + 100}))
            with pytest.raises(GraphError, match="valid CSR"):
                load_npz(path)


def test_features_can_be_left_on_disk(tmp_path: Path) -> None:
    graph = csbm(70, 5)
    path = save_npz(graph, tmp_path / "graph.npz")
    found = load_npz(path, mmap=True)
    assert isinstance(found.features, np.memmap)
    assert found.features.flags.aligned
    assert not found.features.flags.writeable
    assert np.array_equal(found.features, graph.features)
    assert np.array_equal(load_npz(path).features, graph.features)
    split = found.with_masks(np.arange(40), None, np.arange(40, 70))
    assert isinstance(split.features, np.memmap)  # no graph that is made of it holds a copy


@pytest.mark.parametrize("kind", ["sparse", "compressed", "unaligned"])
def test_features_that_cannot_be_left_on_disk_are_refused(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, path = csbm(70, 5), tmp_path / "graph.npz"
    if kind == "sparse":
        graph = graph.with_features(sp.csr_array(graph.features))
    if kind == "unaligned":
        monkeypatch.setattr(npz, "_LARGE_SIZES", 21)
    save_npz(graph, path)
    if kind == "compressed":
        with np.load(path) as stored:
            np.savez_compressed(path, **dict(stored))
    with pytest.raises(GraphError, match="on disk"):
        load_npz(path, mmap=True)


def test_only_one_file_can_be_left_on_disk(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"one \.npz file"):
        load_path(tmp_path, mmap=True)
