from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from discreet.errors import GraphError, ParameterError
from discreet.graph import Graph, NamedSplit, split
from discreet.graph.splits import usual_split


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(0)
    labels = np.arange(1200) % 3
    labels[1000:] = -1
    ends = rng.integers(1200, size=(2, 5000))
    return Graph.from_edges(*ends, np.zeros((1200, 1)), labels, directed=False, class_names=("a", "b", "c"))


def counts(graph: Graph) -> list[int]:
    return [int(graph.mask(name).sum()) for name in ("train", "val", "test")]


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        ("75/10/15", [900, 120, 180]),
        ("60/20/20", [720, 240, 240]),
        ("50/25/25", [600, 300, 300]),
        ("33.3/33.3/33.4", [400, 399, 401]),
        ("80/0/20", [960, 0, 240]),
    ],
)
def test_per_cent_is_of_all_nodes(graph, spec, sizes):
    made = split(graph, spec, seed=3)
    assert counts(made) == sizes
    np.testing.assert_array_equal(made.indices, graph.indices)


@pytest.mark.parametrize(("spec", "sizes"), [("20/500/300", [60, 500, 300]), ("1/1/1", [3, 1, 1])])
def test_labels_a_class_take_labelled_nodes(graph, spec, sizes):
    made = split(graph, spec, seed=3)
    assert counts(made) == sizes
    for name in ("train", "val", "test"):
        assert (made.labels[made.mask(name)] >= 0).all()


def test_labels_a_class(graph):
    made = split(graph, "20/500/300", seed=1)
    assert np.bincount(made.labels[made.mask("train")]).tolist() == [20, 20, 20]


@pytest.mark.parametrize("spec", ["75/10/15", "20/500/300", "80/20:inductive"])
def test_seeded_and_blind_to_edges(graph, spec):
    first, again, other = split(graph, spec, 7), split(graph, spec, 7), split(graph, spec, 8)
    bare = split(graph.with_edges([], []).with_features(np.ones((1200, 4))), spec, 7)
    np.testing.assert_array_equal(first.mask("train"), again.mask("train"))
    np.testing.assert_array_equal(first.mask("test"), bare.mask("test"))
    assert (first.mask("train") != other.mask("train")).any()


def test_per_cent_splits_do_not_see_labels(graph):
    other = graph.with_labels(np.where(np.arange(1200) % 2, 2, -1))
    np.testing.assert_array_equal(split(graph, "75/10/15", 7).mask("train"), split(other, "75/10/15", 7).mask("train"))


def test_inductive_cuts_between_the_parts(graph):
    made = split(graph, "80/20:inductive", seed=0)
    train = made.mask("train")
    assert train.sum() == 960
    np.testing.assert_array_equal(made.mask("test"), ~train)
    assert made.val_mask is None
    source, target = made.edges()
    assert (train[source] == train[target]).all()
    before, after = graph.edges()
    assert made.num_entries == (train[before] == train[after]).sum()
    assert not made.directed


def test_published_splits(graph):
    part = np.zeros(1200, dtype=np.int8)
    part[:4] = [1, 2, 3, 3]
    named = (NamedSplit("public", part), NamedSplit("geom-gcn:0", part[::-1]))
    labels, ends = graph.labels, graph.edges()
    held = Graph.from_edges(*ends, graph.features, labels, directed=False, named_splits=named)
    assert counts(split(held, "public")) == [1, 1, 2]
    assert split(held, "geom-gcn:0").mask("train")[-1]
    with pytest.raises(GraphError, match=r"no split named 'geom-gcn:3' .it came with: public, geom-gcn:0"):
        split(held, "geom-gcn:3")
    with pytest.raises(GraphError, match=r"no split named 'public' .it came with: none"):
        split(graph, "public")


@pytest.mark.parametrize("spec", ["", "75", "75/25", "75/10/15/0", "a/b/c", "-5/5/100", "80/20:transductive", 3, None])
def test_unknown_forms_are_listed(graph, spec):
    with pytest.raises(ParameterError, match="20/500/1000, 80/20:inductive, public"):
        split(graph, spec)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("33.5/33/33", ParameterError, r"sum to 100 per cent, not 99\.5"),
        ("80/30:inductive", ParameterError, "sum to 100 per cent, not 110"),
        ("0/5/5", ParameterError, "at least one training label"),
        ("400/5/5", GraphError, "class 'a' has 334 nodes, 400 are asked for"),
        ("20/500/1000", GraphError, "940 labelled nodes are left"),
        ("0.01/99.98/0.01", GraphError, "training set is empty"),
        ("100/0:inductive", GraphError, "one part is empty"),
    ],
)
def test_refusals(graph, spec, error, message):
    with pytest.raises(error, match=message):
        split(graph, spec)


@pytest.mark.parametrize("spec", ["75/10/15", "1/1/1", "80/20:inductive"])
def test_nothing_to_split(spec):
    with pytest.raises(GraphError, match="no labels"):
        split(Graph.from_edges([0], [1], np.eye(2)), spec)


def test_masks_that_the_graph_brings_are_a_split_of_their_own(graph):
    assert usual_split(graph) == "75/10/15"
    with pytest.raises(GraphError, match="brings no split"):
        split(graph, "own")
    ranked = replace(graph, named_splits=[("ogb", [1, *[2] * (graph.num_nodes - 1)])])
    assert usual_split(ranked) == "ogb"
    assert not split(ranked, "ogb").split_reads_labels
    with pytest.raises(GraphError, match="it came with ogb"):
        split(ranked, "own")
    masked = graph.with_masks([0, 1], [2], [3])
    assert usual_split(masked) == "own"
    assert split(masked, "own") is masked
    assert masked.split_by is None
    assert split(masked, "75/10/15", seed=7).split_by == ("75/10/15", 7)
    assert split(masked, "75/10/15", seed=7).with_masks([0], None, None).split_by is None
    assert split(masked, "75/10/15", seed=np.random.SeedSequence(1)).split_by is None
