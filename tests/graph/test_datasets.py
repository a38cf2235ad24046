from __future__ import annotations

import hashlib
import io
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.errors import DataNotFoundError, GraphError, ParameterError
from discreet.graph import available, download, from_pyg, load, resolve, save_npz, split
from discreet.graph import datasets as registry
from discreet.graph.datasets import DATASETS
from discreet.graph.readers import read_planetoid
from tests.data_root import DATA_ROOT, needs_data
from tests.graph.helpers import assert_same, dense, files_in

# nodes, undirected edges, features, classes: written out here, so that the table in the code is checked too
STATISTICS = {
    "cora": (2708, 5278, 1433, 7),
    "citeseer": (3327, 4552, 3703, 6),
    "pubmed": (19717, 44324, 500, 3),
    "cora_ml": (2995, 8158, 2879, 7),
    "photo": (7650, 119081, 745, 8),
    "cs": (18333, 81894, 6805, 15),
    "chameleon": (2277, 31371, 2325, 5),
    "actor": (7600, 26659, 932, 5),
    "tolokers": (11758, 519000, 10, 2),
    "facebook-pages": (22470, 170823, 4714, 4),
    "twitch-de": (9498, 153138, 3170, 2),
    "twitch-en": (7126, 35324, 3170, 2),
    "twitch-es": (4648, 59382, 3170, 2),
    "twitch-fr": (6549, 112666, 3170, 2),
    "fb100:UCLA26": (15900, 558817, 469, 5),
}


@needs_data
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(name):
    graph = load(name, DATA_ROOT, fetch=False)
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == STATISTICS[name]
    row = next(row for row in available(DATA_ROOT) if row.name == name)
    assert (row.nodes, row.edges, row.features, row.classes) == STATISTICS[name]
    assert row.status == "found"
    assert not graph.directed
    assert graph.name == name
    assert sp.issparse(graph.features) == (name != "tolokers")
    labelled = graph.labels[graph.labels >= 0]
    assert (np.bincount(labelled, minlength=graph.num_classes) > 0).all()


@needs_data
def test_facts_of_single_graphs():
    citeseer = load("CiteSeer", DATA_ROOT)
    assert (citeseer.in_degree() == 0).sum() == 48
    missing = citeseer.labels == -1
    assert missing.sum() == 15
    assert dense(citeseer)[missing].sum() == 0
    assert (load("photo", DATA_ROOT).in_degree() == 0).sum() == 115
    school = load("fb100:UCLA26", DATA_ROOT)
    assert school.class_names == ("2005", "2006", "2007", "2008", "2009")
    assert (school.in_degree() == 0).sum() == 49  # who has no friend stays: dropping them would look at edges
    assert not school.inferred
    assert dense(school).sum(axis=1).max() == 5


@needs_data
@pytest.mark.parametrize(("name", "edges"), [("chameleon", 36051), ("actor", 29926), ("cora_ml", 8416)])
def test_directed_as_stored(name, edges):
    stored = load(name, DATA_ROOT, directed=True)
    assert stored.directed
    assert stored.num_edges == edges
    assert_same(stored.to_undirected(), load(name, DATA_ROOT))


@needs_data
def test_small_schools_need_a_smaller_class():
    with pytest.raises(GraphError, match=r"Caltech36 has 0 years of at least 1000 people .*fb100:Caltech36:76"):
        load("fb100:Caltech36", DATA_ROOT)
    graph = load("fb100:Caltech36:100", DATA_ROOT)
    assert graph.num_classes == 4
    assert graph.class_names == ("2005", "2006", "2007", "2008")
    assert_same(graph, load("fb100:Caltech36", DATA_ROOT, min_class_size=100))
    assert graph.inferred == {"classes", "columns"}


@needs_data
def test_published_splits():
    def sizes(name: str, spec: str) -> list[int]:
        graph = split(load(name, DATA_ROOT), spec)
        return [int(graph.mask(part).sum()) for part in ("train", "val", "test")]

    assert sizes("cora", "public") == [140, 500, 1000]
    assert sizes("citeseer", "public") == [120, 500, 1000]
    assert sizes("pubmed", "public") == [60, 500, 1000]
    assert sizes("chameleon", "geom-gcn:0") == [1092, 729, 456]
    assert sizes("cora", "geom-gcn:9") == [1192, 796, 497]
    assert sizes("tolokers", "heterophilous:3")[0] > 0
    graph = load("actor", DATA_ROOT)
    assert [named.name for named in graph.named_splits] == [f"geom-gcn:{place}" for place in range(10)]
    with pytest.raises(GraphError, match="no split named 'public'"):
        split(graph, "public")


@needs_data
def test_every_random_split_works_on_real_labels():
    graph = load("citeseer", DATA_ROOT)
    made = split(graph, "75/10/15", 0)
    assert sum(int(made.mask(part).sum()) for part in ("train", "val", "test")) == 3327
    assert split(graph, "20/500/1000", 0).mask("train").sum() == 120


@needs_data
def test_nothing_is_written(tmp_path):
    assert DATA_ROOT is not None
    shutil.copytree(DATA_ROOT / "Cora", tmp_path / "Cora")
    before = files_in(tmp_path)
    load("cora", tmp_path)
    assert files_in(tmp_path) == before


@needs_data
@pytest.mark.parametrize(
    ("name", "folder", "make"),
    [
        ("cora", "Cora/raw", lambda ds, root: ds.Planetoid(root, "Cora")),
        ("pubmed", "PubMed/raw", lambda ds, root: ds.Planetoid(root, "PubMed")),
        ("photo", "Photo/raw", lambda ds, root: ds.Amazon(root, "Photo")),
        ("cora_ml", "cora_ml/raw", lambda ds, root: ds.CitationFull(root, "Cora_ML")),
        ("chameleon", "chameleon/geom_gcn/raw", lambda ds, root: ds.WikipediaNetwork(root, "chameleon")),
        ("actor", "Actor/raw", lambda ds, root: ds.Actor(f"{root}/Actor")),
        ("tolokers", "tolokers/raw", lambda ds, root: ds.HeterophilousGraphDataset(root, "Tolokers")),
    ],
)
def test_same_as_torch_geometric(name, folder, make, tmp_path):
    datasets = pytest.importorskip("torch_geometric.datasets")
    assert DATA_ROOT is not None
    shutil.copytree(DATA_ROOT / folder, tmp_path / folder)
    os.chmod(tmp_path / folder, 0o755)
    theirs = from_pyg(make(datasets, str(tmp_path))[0])
    ours = load(name, DATA_ROOT, directed=theirs.directed)
    np.testing.assert_array_equal(theirs.indptr, ours.indptr)
    np.testing.assert_array_equal(theirs.indices, ours.indices)
    np.testing.assert_array_equal(dense(theirs), dense(ours))
    np.testing.assert_array_equal(theirs.labels, ours.labels)
    if theirs.train_mask is not None:
        for mine, other in zip(ours.named_split("public"), (theirs.train_mask, theirs.val_mask), strict=False):
            np.testing.assert_array_equal(mine, other)
    for place, named in enumerate(theirs.named_splits):
        np.testing.assert_array_equal(named.part, ours.named_splits[place].part)


# -------------------------------------------------------------------- without real data


def fake_npz(root: Path, folder: str = "Photo", file: str = "amazon_electronics_photo.npz") -> Path:
    path = root / folder / "raw" / file
    path.parent.mkdir(parents=True)
    adjacency = sp.csr_matrix(np.array([[1, 1, 0], [0, 0, 1], [0, 1, 0]], dtype=np.float32))
    features = sp.csr_matrix(np.array([[2.0, 0], [0, 0.5], [0, 0]], dtype=np.float32))
    arrays = {}
    for prefix, matrix in (("adj", adjacency), ("attr", features)):
        arrays |= {f"{prefix}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}
        arrays[f"{prefix}_shape"] = np.array(matrix.shape)
    np.savez(path, labels=np.array([0, 1, 0]), node_names=np.array([{}], dtype=object), **arrays)
    return path


def test_npz_features_become_binary_and_pickled_extras_are_left(tmp_path):
    fake_npz(tmp_path)
    graph = load("photo", tmp_path)
    assert dense(graph).tolist() == [[1, 0], [0, 1], [0, 0]]
    assert graph.num_edges == 2
    assert load("PHOTO", tmp_path, directed=True).num_edges == 3


def test_search_order(tmp_path, monkeypatch):
    for place in ("root", "env", "home/.cache/discreet"):
        fake_npz(tmp_path / place)
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path / "env"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def found(root: Path | None = None) -> Path:
        path = next(row for row in available(root) if row.name == "photo").path
        assert path is not None
        return path

    assert found(tmp_path / "root") == tmp_path / "root/Photo/raw"
    assert found() == tmp_path / "env/Photo/raw"
    shutil.rmtree(tmp_path / "env")
    assert found() == tmp_path / "home/.cache/discreet/Photo/raw"


def test_available_lists_everything(tmp_path):
    rows = available(tmp_path)
    names = [row.name for row in rows]
    assert names[0] == "csbm"
    assert set(STATISTICS) <= set(names)
    assert len(names) == len(set(names))
    assert {row.status for row in rows} == {"generated", "can be downloaded", "not found"}
    assert all(row.nodes and row.features and row.classes for row in rows)


def test_unknown_names():
    with pytest.raises(ParameterError, match="no graph named 'coraml2': did you mean cora_ml"):
        load("coraml2")
    with pytest.raises(ParameterError, match="known names are csbm, cora"):
        load("zzz")
    with pytest.raises(ParameterError, match=r"fb100:School"):
        load("fb100:")
    with pytest.raises(ParameterError, match=r"fb100:School"):
        load("fb100:../../etc")
    with pytest.raises(ParameterError, match="whole number above 0"):
        load("fb100:UCLA26:many")
    with pytest.raises(ParameterError, match="whole number above 0"):
        load("fb100:UCLA26", min_class_size=0)
    with pytest.raises(ParameterError, match="min_class_size is for"):
        load("cora", min_class_size=3)


@pytest.mark.parametrize("name", ["cora", "github", "fb100:MIT8", "squirrel"])
def test_absent_without_fetching(name, tmp_path):
    with pytest.raises(DataNotFoundError, match=r"are not at .*DISCREET_DATA") as caught:
        load(name, tmp_path, fetch=False)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def host(monkeypatch, content):
    """A host that has every file, with this content; gives the addresses that were asked for."""
    asked = []

    def answer(address):
        asked.append(address)
        if isinstance(content, Exception):
            raise content
        return io.BytesIO(content)

    monkeypatch.setattr(download, "_open", answer)
    return asked


def test_failed_download_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    host(monkeypatch, OSError("no route\nto host"))
    with pytest.raises(DataNotFoundError, match=r"the download failed \(no route to host\)") as caught:
        load("cora")
    assert "\n" not in str(caught.value)
    assert files_in(tmp_path) == []


def test_a_file_with_another_sum_is_thrown_away(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    asked = host(monkeypatch, b"cos\nsystem\n(S'touch pwned'\ntR.")
    for trust in (False, True):
        with pytest.raises(DataNotFoundError, match="SHA-256"):
            load("cora", trust_download=trust)
    assert files_in(tmp_path) == []
    assert len(asked) == 2
    assert all(address.startswith("https://") for address in asked)


def test_a_file_without_a_sum_is_not_even_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    asked = host(monkeypatch, b"")
    with pytest.raises(DataNotFoundError, match="--trust-download"):
        load("photo")
    assert asked == []


def test_download_lands_in_the_cache(tmp_path, monkeypatch):
    content = fake_npz(tmp_path / "host").read_bytes()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    asked = host(monkeypatch, content)
    assert load("photo", trust_download=True).num_nodes == 3
    assert files_in(tmp_path / "home") == [".cache/discreet/Photo/raw/amazon_electronics_photo.npz"]
    assert load("photo").num_nodes == 3
    assert len(asked) == 1


def test_what_is_known_of_downloads_is_whole():
    """Addresses are https, sums belong to files that some dataset names, and every redirect is checked too."""
    addresses = {path: address for dataset in DATASETS for path, address in dataset.addresses.items()}
    assert set(download.checksums()) <= set(addresses)
    assert all(address.startswith("https://") for address in addresses.values())
    for known in DATASETS:
        assert not known.addresses or f"{known.folder}/{known.file}" in known.addresses
    with pytest.raises(DataNotFoundError, match="https"):
        download._open("http://example.org/x")
    with pytest.raises(DataNotFoundError, match="https"):
        download._HttpsAlone().redirect_request(None, None, 302, "", {}, "http://example.org/x")


@needs_data
def test_sums_are_those_of_the_files_at_hand():
    there = {path: DATA_ROOT / path for path in download.checksums() if (DATA_ROOT / path).is_file()}
    assert there
    for path, file in there.items():
        assert hashlib.sha256(file.read_bytes()).hexdigest() == download.checksums()[path]


def test_damaged_files_are_refused(tmp_path):
    path = fake_npz(tmp_path)
    path.write_bytes(b"no archive")
    with pytest.raises(GraphError, match="plain arrays"):
        load("photo", tmp_path)
    path.write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(GraphError, match="plain arrays"):
        load("photo", tmp_path)
    np.savez(path, labels=np.array([{}], dtype=object))
    with pytest.raises(GraphError, match="lacks the array 'adj_data'"):
        load("photo", tmp_path)
    path = tmp_path / "Twitch/DE/raw/DE.npz"
    path.parent.mkdir(parents=True)
    np.savez(path, edges=np.array([{}], dtype=object))
    with pytest.raises(GraphError, match="'edges' as pickled objects, which are not read"):
        load("twitch-de", tmp_path)
    path = tmp_path / "Facebook100/MIT8/raw/MIT8.mat"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no matrix")
    with pytest.raises(GraphError, match=r"files of fb100:MIT8 in .* cannot be read"):
        load("fb100:MIT8", tmp_path)


class _Evil:
    def __reduce__(self):
        return os.mkdir, ("pwned",)


def test_pickles_cannot_run_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for part in ("tx", "allx", "y", "ty", "ally", "graph"):
        (tmp_path / f"ind.cora.{part}").write_bytes(pickle.dumps(_Evil(), protocol=2))
    with pytest.raises(GraphError, match="not allowed"):
        read_planetoid(tmp_path, "cora")
    assert not (tmp_path / "pwned").exists()


def test_resolve(tmp_path, monkeypatch, small):
    assert resolve("csbm").name == "csbm"
    path = save_npz(small, tmp_path / "graph.npz")
    assert_same(resolve(str(path)), small)
    assert_same(resolve(path), small)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "edges.csv").write_text("s,t\na,b\n")
    (tmp_path / "mine" / "nodes.csv").write_text("id,v,kind\na,1,x\nb,2,y\n")
    monkeypatch.chdir(tmp_path)
    assert resolve("mine", label="kind").num_classes == 2
    with pytest.raises(DataNotFoundError, match="no file or folder"):
        resolve("./none")
    with pytest.raises(ParameterError, match="no columns to choose: label"):
        resolve("csbm", label="kind")
    with pytest.raises(GraphError, match="csbm is undirected"):
        resolve("csbm", directed=True)


def test_folders_are_unique():
    places = [(dataset.folder.lower(), dataset.file) for dataset in registry.DATASETS]
    assert len(places) == len(set(places))
