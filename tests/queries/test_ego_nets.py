"""Ego-nets of bounded graphs: how many change between neighbours, counted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from discreet.ops.degrees import bound_degrees, cap_owned
from discreet.ops.egonets import sender_table
from discreet.ops.keyed_hash import derive_key
from discreet.privacy.levels import NeighborLevel, NodeLevel
from discreet.queries.reach import touched_examples
from tests.effort import effort
from tests.plain_graphs import KEY, make_graph, random_graph


def examples(bounded, fan_in, hops):
    """Per node a fingerprint of its ego-net, and which nodes stand in it."""
    n = bounded.num_nodes
    nets = sender_table(bounded, fan_in, KEY).ego_nets(np.arange(n), hops)
    members = np.zeros((n, n), dtype=bool)
    members[np.repeat(np.arange(n), nets.mask.sum(1)), nets.index[nets.mask]] = True
    return np.where(nets.mask, nets.index, -1), members


def count_changed(before, after, node):
    """Examples whose slots differ, or that hold the unit's node (whose record may differ) on either side."""
    differ = (before[0] != after[0]).any(axis=1)
    return int((differ | before[1][:, node] | after[1][:, node]).sum())


def every_owned_digraph(n, bound, fan_in, hops):
    slots = [(u, v) for u in range(n) for v in range(n) if u != v]
    return {
        chosen: examples(
            cap_owned(make_graph([s for s, c in zip(slots, chosen, strict=True) if c], n), bound, KEY), fan_in, hops
        )
        for chosen in itertools.product([0, 1], repeat=len(slots))
    }


@pytest.mark.parametrize(("bound", "fan_in", "hops"), [
    (1, 3, 2), (2, 3, 1), (2, 2, 2),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in ((1, 1, 1), (2, 1, 2))),
])  # fmt: skip
def test_owned_on_every_digraph_of_four_nodes(bound, fan_in, hops):
    family = every_owned_digraph(4, bound, fan_in, hops)
    for change in ("null", "replace"):
        k, _ = touched_examples(NodeLevel(bound, change=change), hops)
        worst = 0
        for chosen, before in family.items():
            news = itertools.product([0, 1], repeat=3) if change == "replace" else [(0, 0, 0)]
            for new in news:
                worst = max(worst, count_changed(before, family[(*new, *chosen[3:])], 0))
        assert worst <= k
        assert worst == min(k, 4) or fan_in < 3  # attained, up to the four examples that there are


@pytest.mark.effort
@pytest.mark.parametrize(("fan_in", "hops"), [(2, 1), (4, 2)])
def test_owned_on_undirected_graphs_of_five_nodes(fan_in, hops):
    """Each edge is two entries; one node's outgoing ones are dropped, or replaced by any others.

    All graphs in ``make slow``; every fifth otherwise.
    """
    slots = list(itertools.combinations(range(5), 2))
    rng = np.random.default_rng(0)
    for bound in (1, 2, 3):
        null, _ = touched_examples(NodeLevel(bound), hops)
        replace, _ = touched_examples(NodeLevel(bound, change="replace"), hops)
        for chosen in list(itertools.product([0, 1], repeat=len(slots)))[:: effort(5, 1)]:
            graph = make_graph([s for s, c in zip(slots, chosen, strict=True) if c], 5, directed=False).as_directed()
            source, target = graph.edges()
            node = int(rng.integers(5))
            others = np.delete(np.arange(5), node)
            new = others[rng.random(4) < 0.5]
            rest = source != node
            bare = graph.with_edges(source[rest], target[rest])
            moved = graph.with_edges(np.append(source[rest], np.full(len(new), node)), np.append(target[rest], new))
            before, without, after = (examples(cap_owned(g, bound, KEY), fan_in, hops) for g in (graph, bare, moved))
            assert count_changed(before, without, node) <= null
            assert count_changed(before, after, node) <= replace


@pytest.mark.parametrize("hops", [1, 2])
def test_promised_on_every_graph_of_five_nodes(hops):
    slots = list(itertools.combinations(range(5), 2))
    for bound in (1, 2, 3):
        family = {}
        for chosen in itertools.product([0, 1], repeat=len(slots)):
            graph = make_graph([s for s, c in zip(slots, chosen, strict=True) if c], 5, directed=False)
            if graph.in_degree().max() <= bound:
                family[chosen] = examples(graph, bound, hops)
        for change in ("null", "replace"):
            k, _ = touched_examples(NodeLevel(bound, edges="promised", change=change), hops)
            worst = 0
            for chosen, before in family.items():
                for new in itertools.product([0, 1], repeat=4) if change == "replace" else [(0,) * 4]:
                    other = (*new, *chosen[4:])
                    if other in family:
                        worst = max(worst, count_changed(before, family[other], 0))
            assert worst <= k
            assert worst == min(k, 5) or bound == 1


def unit_of(graph, other):
    """The node whose record or entries differ, found from the features that the level changed."""
    changed = np.flatnonzero((graph.features != other.features).any(axis=1))
    return int(changed[0]) if len(changed) else None


LEVELS = [
    NodeLevel(2),
    NodeLevel(2, change="replace"),
    NodeLevel(4),
    NodeLevel(4, change="replace"),
    NeighborLevel(2, 3),
    NeighborLevel(1, 2),
]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.spec)
@pytest.mark.parametrize("hops", [1, 2])
def test_owned_on_random_larger_graphs(level, hops):
    """Neighbours by the level's own definition; the largest share of k that was seen is near one."""
    rng = np.random.default_rng(7)
    k, _ = touched_examples(level, hops)
    worst = 0
    for _ in range(150):
        n = int(rng.integers(20, 90))
        graph = random_graph(rng, n, int(rng.integers(n, 8 * n))).with_features(rng.standard_normal((n, 2)))
        other = level.neighbor(graph, rng)
        node = unit_of(graph, other)
        if node is None:
            continue
        fan_in = int(rng.choice([2, 5, 40]))
        before, after = (examples(bound_degrees(g, level, KEY), fan_in, hops) for g in (graph, other))
        worst = max(worst, count_changed(before, after, node))
    assert 0.75 * k <= worst <= k


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("change", ["null", "replace"])
def test_the_bound_is_attained(hops, change):
    """A tree in which everybody sends to D nobody else sends to, and a second one for the replacement."""
    d = 3
    side = d * (1 + d)
    n = 2 * side + 1

    def tree(first):
        rest = np.arange(first + d, first + side).reshape(d, d)
        return [(first + j, int(leaf)) for j in range(d) for leaf in rest[j]]

    both = tree(1) + tree(1 + side)
    before = make_graph([(0, 1 + j) for j in range(d)] + both, n)
    after = make_graph([(0, 1 + side + j) for j in range(d)] + both if change == "replace" else both, n)
    k, _ = touched_examples(NodeLevel(d, change=change), hops)
    assert count_changed(examples(before, 2, hops), examples(after, 2, hops), 0) == k


def test_thinned_over_keys():
    """More examples change than k only as often as the failure probability allows."""
    d_max, p, failure = 20, 0.3, 0.1
    level = NodeLevel(edges="thinned", d_max=d_max, p=p)
    k, _ = touched_examples(level, 1, failure=failure)
    star = make_graph([(0, i) for i in range(1, 21)], 21, directed=False)
    bare = make_graph([], 21, directed=False)
    over = 0
    for seed in range(400):
        key = derive_key(str(seed).encode(), "thin")
        before, after = (examples(bound_degrees(g, level, key), 20, 1) for g in (star, bare))
        over += count_changed(before, after, 0) > k
    assert over <= 400 * failure + 3 * np.sqrt(400 * failure)
    two_hops, _ = touched_examples(level, 2, num_nodes=21, failure=failure)
    assert two_hops > k


def test_a_greedy_truncation_is_caught():
    """The planted fault: keep an entry while both ends have room. Its changes run through the graph."""

    def greedy(graph, bound):
        room_out, room_in, kept = np.full(graph.num_nodes, bound), np.full(graph.num_nodes, bound), []
        for u, v in zip(*graph.edges(), strict=True):
            if room_out[u] and room_in[v]:
                kept.append((u, v))
                room_out[u] -= 1
                room_in[v] -= 1
        return make_graph(kept, graph.num_nodes)

    rng = np.random.default_rng(3)
    bound = 2
    k, _ = touched_examples(NodeLevel(bound), 1)
    worst = {"greedy": 0, "owned": 0}
    for _ in range(20):
        graph = random_graph(rng, 60, 400)
        source, target = graph.edges()
        bare = graph.with_edges(source[source != 0], target[source != 0])
        for name, cap in (("greedy", greedy), ("owned", lambda g, d: cap_owned(g, d, KEY))):
            before, after = (examples(cap(g, bound), 4, 1) for g in (graph, bare))
            worst[name] = max(worst[name], count_changed(before, after, 0))
    assert worst["owned"] <= k < worst["greedy"] / 2
