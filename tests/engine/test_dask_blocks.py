"""Dask: the bits of the local engine for every query, whoever computes a block and however often."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from discreet.audit.replay import replay_pair
from discreet.engine import cluster
from discreet.errors import EngineError, ParameterError
from discreet.graph.graph import Graph
from discreet.graph.graph_in_blocks import GraphInBlocks
from discreet.graph.partition_writer import write_graph
from discreet.graph.partitions import PartitionedGraph
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods.gap.estimator import GAP
from discreet.methods.hop_bayes.estimator import HopBayes
from discreet.methods.registry import find_method, load_method
from discreet.ops.sparse import sums_over_edges
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel
from discreet.privacy.query import Query
from discreet.queries.class_degrees import ClassDegrees
from discreet.queries.evidence import ReceivedMessages
from discreet.queries.links import LinkTable
from discreet.queries.moments import SmoothedFeatureMoments, SmoothedLabelMoments
from discreet.queries.propagated import PropagatedRows
from discreet.queries.sums import NeighbourSums

distributed = pytest.importorskip("distributed")

from discreet.engine.dask_blocks import DaskBlocks  # noqa: E402  (after the check that Dask is there)

SIZE, CLASSES, PARTITIONS = 200, 3, 5
Open = Callable[..., GraphInBlocks]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with cluster.connected(workers=2) as made:
        yield made


@pytest.fixture
def opened(client: Any, tmp_path: Path) -> Iterator[Open]:
    """A graph in partitions whose blocks the workers sum."""
    folders = []

    def make(graph: Graph, **options: Any) -> GraphInBlocks:
        folder = tmp_path / f"parts {len(folders)}"
        write_graph(graph, folder, PARTITIONS)
        folders.append(PartitionedGraph(folder))
        return folders[-1].graph(DaskBlocks(client, folders[-1], **options))

    yield make
    for folder in folders:
        with folder:
            assert not list(folder.scratch.glob("tables-*"))


def graph_of(*, weighted: bool = False) -> Graph:
    graph = split(csbm(num_nodes=SIZE, num_features=8), "50/25/25", 0)
    if not weighted:
        return graph
    ends = graph.edges()
    return graph.with_edges(*ends, np.random.default_rng(2).random(len(ends[0])))


def restart(kind: type, **more: Any) -> Query:
    made: Query = kind(level=EdgeLevel(), alpha=0.5, steps=(1, 3), everyone=False, classes=CLASSES, **more)
    return made


RNG = np.random.default_rng(7)
ROWS, LABELS = RNG.normal(size=(2, SIZE, CLASSES))
CHOSEN = RNG.integers(2, size=SIZE) == 1
QUERIES: dict[str, tuple[Query, dict[str, Any]]] = {
    "sum": (NeighbourSums(EdgeLevel(), SIZE, CLASSES, "sum"), {"rows": torch.tensor(ROWS, dtype=torch.float32)}),
    "mean": (NeighbourSums(EdgeLevel(), SIZE, CLASSES, "mean"), {"rows": torch.tensor(ROWS, dtype=torch.float32)}),
    "evidence": (ReceivedMessages(EdgeLevel(), "", SIZE, CLASSES), {"messages": ROWS, "receivers": CHOSEN}),
    "links": (LinkTable(EdgeLevel(), CLASSES), {"rows": ROWS}),
    "classes": (ClassDegrees(EdgeLevel(), SIZE, CLASSES), {"classes": RNG.integers(CLASSES, size=SIZE)}),
    "label moments": (restart(SmoothedLabelMoments, width=CLASSES), {"rows": ROWS, "labels": LABELS}),
    "feature moments": (
        restart(SmoothedFeatureMoments, width=2 * CLASSES, gram_weight=0.5),
        {"rows": ROWS, "labels": LABELS},
    ),
    "propagated rows": (
        restart(
            PropagatedRows,
            count=SIZE // 2,
            width=2 * CLASSES,
            loss="",
            loss_width=1.0,
            ridge=1.0,
            num_nodes=SIZE,
        ),
        {"rows": ROWS, "targets": LABELS[: SIZE // 2], "usable": CHOSEN[: SIZE // 2, None]},
    ),
}


@pytest.mark.parametrize(
    ("name", "weighted"),
    [*((name, False) for name in QUERIES), ("sum", True), ("evidence", True), ("links", True)],
)
def test_every_answer_has_the_bits_of_the_local_engine(opened: Open, name: str, weighted: bool) -> None:
    query, inputs = QUERIES[name]
    graph = graph_of(weighted=weighted)
    assert query.adds_over_edges
    local, spread = (EdgeLevel().split(given)[1] for given in (graph, opened(graph)))
    assert np.array_equal(query.answer(local, **inputs), query.answer(spread, **inputs))


@pytest.mark.parametrize("method", ["gap", "hop-bayes", "lpgnet", "progap"])
def test_a_fit_is_the_fit_of_the_local_engine(opened: Open, method: str) -> None:
    """Under the same noise: plan, certificate, weights, caches and predictions, to the bit."""
    graph = graph_of()
    spread = opened(graph)
    kind = load_method(find_method(method))
    one, two = (
        kind(Privacy(EdgeLevel(), 2.0), insecure_noise_seed=1, epochs=2).fit(given) for given in (graph, spread)
    )
    assert one.plan_ == two.plan_
    assert one.certificate_ == two.certificate_
    first, second = one._state(), two._state()
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert np.array_equal(one.predict_proba(graph), two.predict_proba(spread))


def test_a_local_cluster_talks_to_those_with_its_keys_alone(client: Any) -> None:
    assert client.scheduler.address.startswith("tls://127.0.0.1:")


def test_a_worker_that_is_killed_changes_nothing(opened: Open, client: Any) -> None:
    graph, killed = graph_of(), []

    def kill(title: str, done: int, total: int) -> None:
        if done == 1:
            worker, pid = next(iter(client.run(os.getpid).items()))
            os.kill(pid, signal.SIGKILL)
            killed.append(worker)

    def fitted(given: Graph) -> GAP:
        return GAP(Privacy(EdgeLevel(), 2.0), insecure_noise_seed=1, epochs=1).fit(given)

    found, wanted = fitted(opened(graph, progress=kill)), fitted(graph)
    assert killed
    assert torch.equal(found.caches_[0][0], wanted.caches_[0][0])


def test_replay_under_distribution(opened: Open) -> None:
    """Conditioned on the same answers, a neighbour's blocks move every stage as little as the plan says."""
    small = split(csbm(num_nodes=12, num_features=3, average_degree=3, seed=1), "50/25/25", 0)
    neighbor = EdgeLevel().neighbor(small, np.random.default_rng(0))
    model = HopBayes(Privacy(EdgeLevel(), 2.0), epochs=0, hidden=4)
    report = replay_pair(model, opened(small), opened(neighbor))
    assert report.passed, report.violations
    assert 0 < report.tightness <= 1 + 1e-9


@pytest.mark.filterwarnings("ignore:Port .* is already in use")
def test_workers_that_are_gone_for_good_are_an_error(tmp_path: Path) -> None:
    write_graph(graph_of(), tmp_path / "parts", 2)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1") as empty,
        distributed.Client(empty, set_as_default=False) as client,
        PartitionedGraph(tmp_path / "parts") as folder,
    ):
        model = GAP(Privacy(EdgeLevel(), 2.0), epochs=0)
        with pytest.raises(EngineError, match=r"no worker for 0\.1 seconds"):
            model.fit(folder.graph(DaskBlocks(client, folder, patience=0.1)))
        assert not hasattr(model, "plan_")
        assert not list(folder.scratch.glob("tables-*"))


def test_what_a_worker_cannot_do_is_one_sentence(opened: Open, client: Any, tmp_path: Path) -> None:
    spread = opened(graph_of())
    (tmp_path / "parts 0" / "edges-00003.parquet").unlink()
    with pytest.raises(Exception, match=r"there is no partition .*edges-00003"):
        sums_over_edges(spread, np.ones((SIZE, 1)))
    with pytest.raises(EngineError, match=r"workers could not sum over block \d \(ValueError\)"):
        sums_over_edges(spread, np.ones((SIZE - 1, 1)))


def test_bad_addresses_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.2)
    with pytest.raises(EngineError, match="no Dask scheduler answers"), cluster.connected("tcp://127.0.0.1:1"):
        pass
    with pytest.raises(ParameterError, match="has its own workers"), cluster.connected("tcp://127.0.0.1:1", 2):
        pass
