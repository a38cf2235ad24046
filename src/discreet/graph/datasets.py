"""Public graphs by name: what is known of each, where its files are looked for, and how to get them."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from discreet.errors import DataNotFoundError, DiscreetError, GraphError, ParameterError
from discreet.files import expand_home, home_folder
from discreet.graph import readers
from discreet.graph.download import download
from discreet.graph.graph import CLASS_LIST, COLUMNS, Graph
from discreet.graph.io import load_path
from discreet.graph.ogb import read_ogb
from discreet.graph.partitions import has_partitions
from discreet.graph.readers import Raw
from discreet.graph.schema import AS_IS, Column, Schema
from discreet.graph.tables import OtherLabels
from discreet.limits import shown

ENVIRONMENT = "DISCREET_DATA"
SYNTHETIC = "csbm"
SCHOOL_PREFIX = "fb100:"
SCHOOL_FOLDER = "Facebook100"
DEFAULT_MIN_CLASS_SIZE = 1000
"""Facebook networks: classes of fewer nodes are left out, as the paper of GAP does."""


@dataclass(frozen=True)
class Dataset:
    """A public graph: its statistics, its place under the data root, and its reader.

    ``edges`` counts undirected edges without self-loops. ``addresses`` says where each of its files comes from, by
    path under a data root; it is empty where no host is known to have these files.
    """

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    folder: str
    file: str
    read: Callable[[Path], Raw]
    addresses: Mapping[str, str] = field(default_factory=dict)

    def where(self, root: Path) -> Path | None:
        """The folder of its files under a root, or None where they are not there."""
        folder = root / self.folder
        return folder if (folder / self.file).is_file() else None


@dataclass(frozen=True)
class Availability:
    """One row of the table of known graphs. ``path`` is where its files are, None if they were not found; ``wanted`` is
    the file under a data root by which they are found, with the others of the same archive beside it.
    """

    name: str
    nodes: int | None
    edges: int | None
    features: int | None
    classes: int | None
    path: Path | None
    status: str
    wanted: str = ""


def load(
    name: str,
    root: str | Path | None = None,
    directed: bool | None = None,
    *,
    min_class_size: int | None = None,
    fetch: bool = True,
    trust_download: bool = False,
    **options: Any,
) -> Graph:
    """Load a public graph by name (case, ``-`` and ``_`` do not matter), or your own from a folder or a ``.npz`` file.

    A folder or a file is read as :func:`discreet.graph.load_path` does, with its options.

    Files are looked for under ``root``, ``$DISCREET_DATA`` and ``~/.cache/discreet``, in that order. Where they
    are absent and ``fetch`` is true, they are downloaded into ``~/.cache/discreet`` and checked against known sums;
    those without a known sum only with ``trust_download``.

    Every graph is undirected unless ``directed=True`` asks for the edges as stored (Chameleon, Squirrel, Actor,
    Cora-ML, … are stored directed). ``min_class_size`` is for Facebook100 schools, ``fb100:School`` or
    ``fb100:School:size``; ``csbm`` is the synthetic default and needs no files.
    """
    if not isinstance(name, str | os.PathLike):
        raise ParameterError(f"a graph is named by a text, or by the path of its files, not by {shown(name)}")
    if is_path(name):
        if min_class_size is not None:
            raise ParameterError("min_class_size is for Facebook100 schools (fb100:School), not for files")
        return load_path(name, directed=directed, **options)
    if options:
        raise ParameterError(f"the graph {name!r} has no columns to choose: {', '.join(sorted(options))}")
    if normalise(name) == SYNTHETIC:
        return _synthetic(directed)
    dataset = find(name, min_class_size)
    roots = data_roots(root)
    folder = next((place for place in map(dataset.where, roots) if place is not None), None)
    if folder is None and fetch and dataset.addresses:
        folder = _fetched(dataset, roots, trust_download)
    if folder is None:
        raise DataNotFoundError(_not_found(dataset, roots))
    raw = _read(dataset, folder)
    return Graph.from_edges(
        raw.sources,
        raw.targets,
        raw.features,
        raw.labels,
        directed=bool(directed),
        num_classes=len(raw.class_names) if raw.class_names is not None else dataset.classes,
        inferred=frozenset({CLASS_LIST, COLUMNS}) if raw.inferred else frozenset(),
        named_splits=raw.splits,
        node_ids=raw.node_ids,
        class_names=raw.class_names,
        name=dataset.name,
    )


def resolve(
    data: str | Path,
    root: str | Path | None = None,
    directed: bool | None = None,
    *,
    reader: Schema | None = None,
    other_labels: OtherLabels = "ignore",
    trust_download: bool = False,
    **options: Any,
) -> Graph:
    """A graph by name or by path: what the command does with ``--data``.

    A ``.npz`` file, an existing folder, or anything with a path separator is a path (see
    :func:`discreet.graph.load_path`); everything else is a name. A known name wins over a folder called so.

    ``reader`` is the schema of a model (``model.schema_``) by which tables are to be read for a prediction: labels that
    the model does not know are left out, or refused, as ``other_labels`` says. A model that was not trained on tables
    takes their numbers as they are.
    """
    if is_path(data):
        folder = expand_home(data)
        if reader is not None and folder.is_dir() and not has_partitions(folder):
            options = {"schema": _for_prediction(reader), "other_labels": other_labels, **options}
        return load_path(data, directed=directed, **options)
    if options.get("mmap"):
        raise ParameterError("features can be left on disk where a graph is one .npz file: give its path")
    if options:
        raise ParameterError(f"the graph {str(data)!r} has no columns to choose: {', '.join(sorted(options))}")
    return load(str(data), root, directed, trust_download=trust_download)


def is_path(data: str | Path) -> bool:
    """Whether this means a file or a folder, not the name of a known graph."""
    if isinstance(data, Path):
        return True
    if normalise(data) == SYNTHETIC or data.lower().startswith(SCHOOL_PREFIX) or normalise(data) in _BY_KEY:
        return False
    return data.endswith(".npz") or os.sep in data or expand_home(data).is_dir()


def _for_prediction(reader: Schema) -> Schema:
    return reader if reader.columns is not None else replace(reader, columns=(Column("*", AS_IS),))


def available(root: str | Path | None = None) -> list[Availability]:
    """Every known graph with its public statistics, and whether its files are found."""
    roots = data_roots(root)
    rows = [Availability(SYNTHETIC, 2000, None, 100, 2, None, "generated")]
    schools = [_school(name, DEFAULT_MIN_CLASS_SIZE) for name in _schools_found(roots) if name != "UCLA26"]
    for dataset in (*DATASETS, _school("UCLA26", DEFAULT_MIN_CLASS_SIZE), *schools):
        path = next((place for place in map(dataset.where, roots) if place is not None), None)
        absent = "can be downloaded" if dataset.addresses else "not found"
        rows.append(
            Availability(
                dataset.name,
                dataset.nodes or None,
                dataset.edges or None,
                dataset.features or None,
                dataset.classes or None,
                path,
                "found" if path is not None else absent,
                f"{dataset.folder}/{dataset.file}",
            )
        )
    return rows


def data_roots(root: str | Path | None = None) -> list[Path]:
    """Where files are looked for, in order."""
    given = [root, os.environ.get(ENVIRONMENT), cache_root()]
    return [expand_home(place) for place in given if place]


def cache_root() -> Path:
    """Where downloads go."""
    return home_folder() / ".cache" / "discreet"


def find(name: str, min_class_size: int | None = None) -> Dataset:
    """The dataset of that name, or an error that lists the nearest names."""
    if name.lower().startswith(SCHOOL_PREFIX):
        return _find_school(name[len(SCHOOL_PREFIX) :], min_class_size)
    if min_class_size is not None:
        raise ParameterError(f"min_class_size is for Facebook100 schools (fb100:School), not {name!r}")
    dataset = _BY_KEY.get(normalise(name))
    if dataset is None:
        names = [SYNTHETIC, *(known.name for known in DATASETS), "fb100:UCLA26"]
        near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known names are {', '.join(names)}"
        raise ParameterError(f"there is no graph named {name!r}: {hint}")
    return dataset


def normalise(name: str) -> str:
    """One key for the spellings of a name."""
    return name.strip().lower().replace("-", "").replace("_", "")


# -------------------------------------------------------------------- parts


def _read(dataset: Dataset, folder: Path) -> Raw:
    try:
        return dataset.read(folder)
    except DiscreetError:
        raise
    except FileNotFoundError as error:
        raise GraphError(f"{dataset.name} lacks a file ({error.filename or _one_line(error)})") from error
    except Exception as error:  # damaged files raise nearly anything, depending on the library that reads them
        raise GraphError(f"the files of {dataset.name} in {folder} cannot be read ({_one_line(error)})") from error


def _synthetic(directed: bool | None) -> Graph:
    from discreet.graph.synthetic import csbm

    if directed:
        raise GraphError("csbm is undirected: directed=True cannot be asked of it")
    return csbm()


def _find_school(given: str, min_class_size: int | None) -> Dataset:
    school, _, size = given.partition(":")
    if size and not re.fullmatch(r"0*[1-9][0-9]{,8}", size):
        raise ParameterError(f"the smallest class of fb100:{given} must be a whole number above 0, not {size!r}")
    if not school or os.sep in school or school.startswith("."):
        raise ParameterError(f"a Facebook100 graph is named fb100:School, as in fb100:UCLA26, not fb100:{given}")
    if min_class_size is None:
        min_class_size = int(size) if size else DEFAULT_MIN_CLASS_SIZE
    if min_class_size < 1:
        raise ParameterError(f"min_class_size must be a whole number above 0, not {min_class_size}")
    return _school(school, min_class_size)


def _school(school: str, min_class_size: int) -> Dataset:
    counts = (15900, 558817, 469, 5) if (school, min_class_size) == ("UCLA26", 1000) else (0, 0, 0, 0)
    suffix = "" if min_class_size == DEFAULT_MIN_CLASS_SIZE else f":{min_class_size}"
    read = partial(readers.read_facebook100, school=school, min_class_size=min_class_size)
    folder = f"{SCHOOL_FOLDER}/{school}/raw"
    return Dataset(f"{SCHOOL_PREFIX}{school}{suffix}", *counts, folder, f"{school}.mat", read)


def _schools_found(roots: list[Path]) -> list[str]:
    found = {path.stem for root in roots for path in root.glob(f"{SCHOOL_FOLDER}/*/raw/*.mat")}
    return sorted(found)


def _fetched(dataset: Dataset, roots: list[Path], trust: bool) -> Path:
    try:
        download(dataset.addresses, cache_root(), trust)
    except Exception as error:  # no network, a host that changed, another file: one sentence for all
        raise DataNotFoundError(_not_found(dataset, roots, error)) from error
    return cache_root() / dataset.folder


def _not_found(dataset: Dataset, roots: list[Path], error: Exception | None = None) -> str:
    looked = ", ".join(str(root / dataset.folder / dataset.file) for root in roots)
    failed = f", and the download failed ({_one_line(error)})" if error is not None else ""
    return (
        f"the files of {dataset.name} are not at {looked}{failed}: put them under one of these roots, "
        f"or set ${ENVIRONMENT} or the data root to the folder that holds {dataset.folder}"
    )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text[:200] if text else type(error).__name__


# -------------------------------------------------------------------- the table


GITHUB = "https://raw.githubusercontent.com"
GEOM_GCN = f"{GITHUB}/graphdml-uiuc-jlu/geom-gcn/master"
PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


def _planetoid(name: str, spelling: str, *counts: int) -> Dataset:
    read = partial(readers.read_planetoid, name=name)
    nodes, edges, features, classes = counts
    parts = [f"ind.{name}.{part}" for part in PLANETOID_PARTS]
    addresses = {f"{spelling}/raw/{part}": f"{GITHUB}/kimiyoung/planetoid/master/data/{part}" for part in parts}
    addresses |= _split_addresses(f"{spelling}/geom-gcn/raw", name)
    folder, file = f"{spelling}/raw", f"ind.{name}.graph"
    return Dataset(name, nodes, edges, features, classes, folder, file, read, addresses)


def _split_addresses(folder: str, name: str) -> dict[str, str]:
    files = [f"{name}_split_0.6_0.2_{place}.npz" for place in range(readers.NUM_GEOM_GCN_SPLITS)]
    return {f"{folder}/{file}": f"{GEOM_GCN}/splits/{file}" for file in files}


def _geom_gcn_addresses(folder: str, name: str) -> dict[str, str]:
    files = ("out1_node_feature_label.txt", "out1_graph_edges.txt")
    found = {f"{folder}/{file}": f"{GEOM_GCN}/new_data/{name}/{file}" for file in files}
    return found | _split_addresses(folder, name)


def _npz(name: str, file: str, folder: str, counts: tuple[int, int, int, int], host: str | None = None) -> Dataset:
    addresses = {} if host is None else {f"{folder}/raw/{file}": f"{GITHUB}/{host}/{file}"}
    return Dataset(name, *counts, f"{folder}/raw", file, partial(readers.read_benchmark_npz, file=file), addresses)


def _twitch(code: str, nodes: int, edges: int) -> Dataset:
    # The host that torch_geometric knows has other features (128 numbers), so no download is offered here.
    file = f"{code}.npz"
    read = partial(readers.read_edges_npz, file=file)
    return Dataset(f"twitch-{code.lower()}", nodes, edges, 3170, 2, f"Twitch/{code}/raw", file, read)


def _geom_gcn(name: str, nodes: int, edges: int, features: int) -> Dataset:
    read, folder = partial(readers.read_geom_gcn, name=name), f"{name}/geom_gcn/raw"
    addresses = _geom_gcn_addresses(folder, name)
    return Dataset(name, nodes, edges, features, 5, folder, "out1_node_feature_label.txt", read, addresses)


def _heterophilous(name: str, *counts: int) -> Dataset:
    nodes, edges, features, classes = counts
    file = f"{name}.npz"
    read = partial(readers.read_heterophilous_npz, file=file)
    addresses = {f"{name}/raw/{file}": f"{GITHUB}/yandex-research/heterophilous-graphs/main/data/{file}"}
    return Dataset(name, nodes, edges, features, classes, f"{name}/raw", file, read, addresses)


def _attributed(name: str, *counts: int) -> Dataset:
    nodes, edges, features, classes = counts
    read, folder = partial(readers.read_attributed, name=name), f"AttributedGraph/{name}/raw"
    return Dataset(name, nodes, edges, features, classes, folder, "attrs.npz", read)


def _ogb(name: str, split: str, *counts: int, kind: str = "", relation: str = "") -> Dataset:
    nodes, edges, features, classes = counts
    first = f"raw/relations/{relation}/edge.csv.gz" if relation else "raw/edge.csv.gz"
    read = partial(read_ogb, split=split, kind=kind, relation=relation)
    return Dataset(name, nodes, edges, features, classes, name.replace("-", "_"), first, read)


GRAPH2GAUSS, SHCHUR = "abojchevski/graph2gauss/master/data", "shchur/gnn-benchmark/master/data/npz"
DATASETS: tuple[Dataset, ...] = (
    _planetoid("cora", "Cora", 2708, 5278, 1433, 7),
    _planetoid("citeseer", "CiteSeer", 3327, 4552, 3703, 6),
    _planetoid("pubmed", "PubMed", 19717, 44324, 500, 3),
    _npz("cora_ml", "cora_ml.npz", "cora_ml", (2995, 8158, 2879, 7), GRAPH2GAUSS),
    _npz("dblp", "dblp.npz", "dblp", (17716, 52867, 1639, 4), GRAPH2GAUSS),
    _npz("citeseer_full", "citeseer.npz", "citeseer", (4230, 5337, 602, 6), GRAPH2GAUSS),
    _npz("photo", "amazon_electronics_photo.npz", "Photo", (7650, 119081, 745, 8), SHCHUR),
    _npz(
        "computers",
        "amazon_electronics_computers.npz",
        "Computers",
        (13752, 245861, 767, 10),
        SHCHUR,
    ),
    _npz("cs", "ms_academic_cs.npz", "CS", (18333, 81894, 6805, 15), SHCHUR),
    _npz("physics", "ms_academic_phy.npz", "Physics", (34493, 247962, 8415, 5), SHCHUR),
    _geom_gcn("chameleon", 2277, 31371, 2325),
    _geom_gcn("squirrel", 5201, 198353, 2089),
    Dataset(
        "actor",
        7600,
        26659,
        932,
        5,
        "Actor/raw",
        "out1_node_feature_label.txt",
        partial(readers.read_actor, name="film"),
        _geom_gcn_addresses("Actor/raw", "film"),
    ),
    _heterophilous("tolokers", 11758, 519000, 10, 2),
    _heterophilous("minesweeper", 10000, 39402, 7, 2),
    # The hosts that torch_geometric knows have other features (128 numbers) than these files.
    _npz("facebook-pages", "facebook.npz", "FacebookPagePage_full", (22470, 170823, 4714, 4)),
    _npz("github", "github.npz", "GitHub_full", (37700, 289003, 4005, 2)),
    _twitch("DE", 9498, 153138),
    _twitch("EN", 7126, 35324),
    _twitch("ES", 4648, 59382),
    _twitch("FR", 6549, 112666),
    _twitch("PT", 1912, 31299),
    _twitch("RU", 4385, 37304),
    _attributed("blogcatalog", 5196, 171743, 8189, 6),
    _attributed("flickr", 7575, 239738, 12047, 9),
    # Large or behind a form: unpack what their hosts hand out. Edges that nobody here has counted are 0.
    _ogb("ogbn-arxiv", "time", 169343, 1157799, 128, 40),
    _ogb("ogbn-products", "sales_ranking", 2449029, 0, 100, 47),
    _ogb("ogbn-mag", "time", 736389, 0, 128, 349, kind="paper", relation="paper___cites___paper"),
    Dataset("reddit", 232965, 0, 602, 41, "Reddit/raw", "reddit_data.npz", readers.read_reddit),
    Dataset(
        "lastfm-asia",
        7624,
        27806,
        7842,
        18,
        "LastFMAsia/raw",
        "lastfm_asia_target.csv",
        partial(readers.read_musae, name="lastfm_asia", width=7842),
    ),
)
_BY_KEY = {normalise(dataset.name): dataset for dataset in DATASETS}
