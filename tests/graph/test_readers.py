"""Readers of layouts whose graphs are too large to hand around: small files of the same form, written here."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.errors import DataNotFoundError, GraphError
from discreet.graph import load
from discreet.graph.datasets import available
from discreet.graph.ogb import read_ogb
from discreet.graph.readers import read_musae

RNG = np.random.default_rng(0)
EDGES = np.array([[0, 1], [1, 2], [4, 2], [3, 3]])
LABELS = np.array([0, 39, 2, 1, 0])


def gz(path: Path, rows: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(",".join(map(str, np.atleast_1d(row))) for row in rows)
    path.write_bytes(gzip.compress(lines.encode()))


def ogb(folder: Path, split: str, kind: str = "", relation: str = "") -> np.ndarray:
    features = RNG.normal(size=(5, 128)).astype(np.float32)
    raw = folder / "raw"
    gz(raw / "relations" / relation / "edge.csv.gz" if kind else raw / "edge.csv.gz", EDGES)
    gz(raw / "node-feat" / kind / "node-feat.csv.gz" if kind else raw / "node-feat.csv.gz", features)
    gz(raw / "node-label" / kind / "node-label.csv.gz" if kind else raw / "node-label.csv.gz", LABELS)
    for name, ids in {"train": [0, 3], "valid": [1], "test": [2, 4]}.items():
        gz(folder / "split" / split / kind / f"{name}.csv.gz", np.array(ids))
    return features


@pytest.mark.parametrize(
    ("name", "split", "kind", "relation"),
    [
        ("ogbn-arxiv", "time", "", ""),
        ("ogbn-products", "sales_ranking", "", ""),
        ("ogbn-mag", "time", "paper", "paper___cites___paper"),
    ],
)
def test_ogb(tmp_path: Path, name: str, split: str, kind: str, relation: str) -> None:
    features = ogb(tmp_path / name.replace("-", "_"), split, kind, relation)
    graph = load(name, tmp_path, directed=True, fetch=False)
    assert np.allclose(graph.features, features)
    assert graph.labels.tolist() == LABELS.tolist()
    assert sorted(zip(*(part.tolist() for part in graph.edges()), strict=True)) == [(0, 1), (1, 2), (4, 2)]
    assert graph.num_classes == {"ogbn-arxiv": 40, "ogbn-products": 47, "ogbn-mag": 349}[name]
    assert graph.named_splits[0].name == "ogb"
    assert graph.named_splits[0].part.tolist() == [1, 2, 3, 1, 3]


def test_ogb_refuses_what_is_not_whole(tmp_path: Path) -> None:
    ogb(tmp_path, "time")
    gz(tmp_path / "split" / "time" / "test.csv.gz", np.array([9]))
    with pytest.raises(GraphError, match="not among the 5"):
        read_ogb(tmp_path, "time")
    (tmp_path / "raw" / "node-label.csv.gz").unlink()
    with pytest.raises(GraphError, match="lacks the file"):
        read_ogb(tmp_path, "time")


def test_reddit(tmp_path: Path) -> None:
    folder = tmp_path / "Reddit" / "raw"
    folder.mkdir(parents=True)
    features = RNG.normal(size=(5, 602))
    kinds = np.array([1, 1, 2, 3, 3])
    np.savez(folder / "reddit_data.npz", feature=features, label=LABELS, node_types=kinds, node_ids=np.arange(5))
    square = sp.coo_matrix((np.ones(4), (EDGES[:, 0], EDGES[:, 1])), shape=(5, 5))
    sp.save_npz(folder / "reddit_graph.npz", square)
    graph = load("Reddit", tmp_path, fetch=False)
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (5, 602, 41)
    assert graph.named_splits[0].part.tolist() == kinds.tolist()


def test_lastfm_asia(tmp_path: Path) -> None:
    folder = tmp_path / "LastFMAsia" / "raw"
    folder.mkdir(parents=True)
    (folder / "lastfm_asia_edges.csv").write_text("node_1,node_2\n0,1\n2,1\n")
    (folder / "lastfm_asia_target.csv").write_text("id,target\n2,17\n0,3\n1,0\n")
    (folder / "lastfm_asia_features.json").write_text(json.dumps({"1": [5, 5, 7841], "0": [], "2": [0]}))
    graph = load("lastfm-asia", tmp_path, fetch=False)
    assert graph.labels.tolist() == [3, 0, 17]
    assert (graph.num_features, graph.num_classes) == (7842, 18)
    assert [(row, column) for row, column in zip(*graph.features.nonzero(), strict=True)] == [(1, 5), (1, 7841), (2, 0)]
    with pytest.raises(GraphError, match="beyond the 9"):
        read_musae(folder, "lastfm_asia", 9)
    (folder / "lastfm_asia_edges.csv").unlink()
    with pytest.raises(GraphError, match=r"lastfm-asia lacks a file .*lastfm_asia_edges\.csv"):
        load("lastfm-asia", tmp_path, fetch=False)


def test_absent_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    wanted = {row.name: row.wanted for row in available(tmp_path)}
    for name in ("ogbn-arxiv", "ogbn-products", "ogbn-mag", "reddit", "lastfm-asia"):
        with pytest.raises(DataNotFoundError, match=wanted[name].replace(".", r"\.")):
            load(name, tmp_path)
