"""What was found by review: extreme records, splits that read labels, and own predictions that read too far."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import small_graph
from discreet.cli import main
from discreet.errors import GraphError, UnsupportedError
from discreet.graph.graph import Graph, NamedSplit
from discreet.graph.parts import PublicPart
from discreet.graph.splits import reads_labels, split
from discreet.methods.baselines.mlp import MLPClassifier
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel, LocalLevel, NeighborLevel, NodeLevel
from tests.effort import caught, replay_until

OF_ALL = NamedSplit("public", np.ones(12, dtype=np.int8))


def test_features_beyond_single_precision_are_refused_at_the_door() -> None:
    """A record of 1e19 overflows a layer norm, and 0 times infinity reaches examples that it must not touch."""
    with pytest.raises(GraphError, match="rescale"):
        Graph.from_edges([0], [1], np.array([[1e19], [1.0]]))
    Graph.from_edges([0], [1], np.array([[1e12], [-1e12]]))


def test_neighbours_have_extreme_records() -> None:
    rng = np.random.default_rng(0)
    graph = small_graph(rng)
    level = NodeLevel(5, change="replace")
    sizes = [np.abs(np.asarray(level.neighbor(graph, rng).features)).max() for _ in range(60)]
    assert max(sizes) == pytest.approx(1e12)
    assert min(np.abs(np.asarray(level.neighbor(graph, rng).features)).max(axis=1).min() for _ in range(60)) < 1e-20


def test_a_split_by_per_cent_does_not_look_at_labels() -> None:
    """One node's label taken away must not move the split, let alone the number of training nodes."""
    graph = small_graph(np.random.default_rng(1))
    labels = graph.labels.copy()
    labels[0] = -1
    one, two = (split(g, "50/25/25", seed=3) for g in (graph, graph.with_labels(labels)))
    assert np.array_equal(one.train_mask, two.train_mask)
    assert np.array_equal(one.test_mask, two.test_mask)
    assert one.public == two.public


def test_splits_that_look_at_labels_are_refused_where_labels_are_private(capsys: pytest.CaptureFixture[str]) -> None:
    assert reads_labels("20/500/1000")
    assert not reads_labels("75/10/15")
    assert not reads_labels("80/20:inductive")
    for level in ("node", "neighbor:2"):
        for form in ("20/100/100", "public", "geom-gcn:3"):
            assert main(["train", "--method", "dp-mlp", "--level", level, "--split", form]) == 2
            assert "looking at labels" in capsys.readouterr().err
    assert main(["tune", "--method", "dp-mlp", "--level", "node", "--split", "public", "--search", "hidden=4"]) == 2
    assert "looking at labels" in capsys.readouterr().err


def test_a_graph_remembers_that_its_split_looked_at_labels() -> None:
    """Without the command too, for the masks are public at every level."""
    graph = small_graph(np.random.default_rng(1), num_nodes=12)
    by_class, published = split(graph, "1/2/2"), split(replace(graph, named_splits=(OF_ALL,)), "public")
    for chosen in (by_class, published, by_class.with_labels(graph.labels), published.as_directed()):
        for level in (NodeLevel(3), NeighborLevel(1), LocalLevel(), LocalLevel("labels")):
            with pytest.raises(UnsupportedError, match="looking at labels"):
                level.split(chosen)
        EdgeLevel().split(chosen) if not chosen.directed else None
        LocalLevel("features").split(chosen)
        NodeLevel(3).split(split(chosen, "50/25/25"))
        NodeLevel(3).split(chosen.with_masks(chosen.train_mask, None, None))  # the caller says what is public


class ReadsTwoHops(MLPClassifier):
    """An own prediction that passes on what its neighbours see."""

    def _probabilities(self, part: PublicPart) -> np.ndarray:
        found = super()._probabilities(part)
        two_hops = part.adjacency @ (part.adjacency @ found)
        return (found + two_hops) / (found + two_hops).sum(axis=1, keepdims=True)


def test_own_predictions_that_read_two_hops_are_caught() -> None:
    own = MLPClassifier(Privacy(EdgeLevel(), 1.0), inference="own-hop", epochs=0, hidden=4)
    assert replay_audit(own, small_graph, pairs=15).passed
    far = ReadsTwoHops(Privacy(EdgeLevel(), 1.0), inference="own-hop", epochs=0, hidden=4)
    report = replay_until(caught, far, small_graph, most=15)
    assert any("own prediction" in violation for violation in report.violations)


def test_promised_k_neighbours_use_the_room_there_is() -> None:
    rng = np.random.default_rng(2)
    level = NeighborLevel(3, 4, "promised")
    changed = []
    for _ in range(60):
        n = 9
        graph = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n, np.eye(n), np.zeros(n, int), directed=False)
        other = level.neighbor(graph, rng)
        assert max(other.in_degree().max(), other.out_degree().max()) <= 4
        changed.append((graph.adjacency != other.adjacency).nnz)
    assert max(changed) >= 4


DP_MLP = ("--level", "node:owned,max_degree=2", "--method", "dp-mlp", "--set", "steps=1", "--set", "hidden=2")


def _write_people(first_label: str) -> None:
    """Tables in which nobody has a label but, perhaps, the first; the classes are not declared."""
    folder = Path("people")
    folder.mkdir()
    labels = [first_label, *[""] * 11]
    (folder / "nodes.csv").write_text("id,x,label\n" + "".join(f"p{i},{i % 3},{y}\n" for i, y in enumerate(labels)))
    (folder / "edges.csv").write_text("s,t\n" + "".join(f"p{i},p{i + 1}\n" for i in range(11)))
    (folder / "schema.toml").write_text('[columns.x]\nkind = "numeric"\nrange = [0, 2]\n')


def test_the_only_label_decides_no_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether anybody has a label is private where labels are, declared or not (if so: test_commands)."""
    said = []
    for label in ("a", ""):
        (tmp_path / f"side {label}").mkdir()
        monkeypatch.chdir(tmp_path / f"side {label}")
        _write_people(label)
        for form in ("50/25/25", "80/20:inductive"):
            assert main(["plan", "--data", "people", *DP_MLP, "--split", form]) == 2
            said.append(capsys.readouterr().err)
    assert said[:2] == said[2:]
    assert "declare them" in said[0]
