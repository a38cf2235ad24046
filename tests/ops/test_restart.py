"""Propagation with restart: the operation against its definition, and Ψ against brute force."""

import itertools
import math

import numpy as np
import pytest

from discreet.errors import ParameterError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.ops import restart

INF = math.inf
ALPHAS = (0.05, 0.1, 0.2, 1 / 3, 0.4, 0.5, 0.6, 0.8, 0.95)
STEPS = (1, 2, 3, 5, 10, INF)


def graph_of(n, edges, features=None, directed=False):
    pairs = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    x = np.eye(n, dtype=np.float32) if features is None else features
    return Graph.from_edges(pairs[:, 0], pairs[:, 1], x, np.zeros(n, dtype=np.int64), directed=directed, num_classes=2)


def star(leaves, centre=0, first=1):
    return {(centre, first + i) for i in range(leaves)}


def double_star(left, right):
    return star(left, 0, 2) | star(right, 1, 2 + left)


def matrix(n, edges, alpha, m):
    """R_m by its definition, dense."""
    a = np.eye(n)
    for u, v in edges:
        a[u, v] = a[v, u] = 1
    walk = a / a.sum(1, keepdims=True)
    if m == INF:
        return alpha * np.linalg.inv(np.eye(n) - (1 - alpha) * walk)
    total = np.zeros((n, n))
    power = np.eye(n)
    for i in range(int(m)):
        total += alpha * (1 - alpha) ** i * power
        power = power @ walk
    return total + (1 - alpha) ** m * power


def worst_signs(change, rng):
    """max over unit rows x_j of Σ_i ‖Σ_j change_ij x_j‖: every sign vector if few, else ascent from many starts."""
    n = len(change)
    if n <= 9:
        signs = np.array(list(itertools.product([1, -1], repeat=n - 1)))
        signs = np.hstack([np.ones((len(signs), 1)), signs])
        best = np.abs(signs @ change.T).sum(1).max()
    else:
        best = 0.0
    for width in (1, 3):
        for _ in range(4):
            x = restart.unit_rows(rng.standard_normal((n, width)))
            for _ in range(30):
                x = restart.unit_rows(change.T @ restart.unit_rows(change @ x))
            best = max(best, np.linalg.norm(change @ x, axis=1).sum())
    return best


def adversarial_pairs():
    """(n, edges with the edge {0, 1}, without it): paths, stars, double stars, leaves on hubs, isolated pairs."""
    bare = [(2, set()), (3, {(1, 2)}), (4, {(0, 2), (1, 3)}), (3, {(0, 2), (1, 2)}), (5, {(2, 3)})]
    for left, right in [(0, 1), (0, 4), (0, 30), (1, 1), (1, 30), (2, 2), (5, 5), (30, 30), (3, 40)]:
        bare.append((2 + left + right, double_star(left, right)))
    path = {(i, i + 1) for i in range(2, 8)} | {(1, 2)}
    bare += [(9, path), (9, path | {(0, 8)})]
    shared = {(u, w) for u in (0, 1) for w in range(2, 22)}
    bare.append((22, shared))
    hub_of_pairs = double_star(12, 12) | {(2 + i, 14 + i) for i in range(12)}
    bare.append((26, hub_of_pairs))
    return [(n, edges | {(0, 1)}, edges) for n, edges in bare]


def random_pairs(rng, count):
    for _ in range(count):
        n = int(rng.integers(2, 8))
        possible = list(itertools.combinations(range(n), 2))
        kept = {e for e in possible if e != (0, 1) and rng.random() < rng.random()}
        yield n, kept | {(0, 1)}, kept


@pytest.mark.parametrize("m", [0, 1, 2, 7, INF])
@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_propagate_is_r_m_by_definition(alpha, m):
    rng = np.random.default_rng(0)
    edges = {(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)}
    x = restart.unit_rows(rng.standard_normal((6, 4)))
    z = restart.propagate(restart.transition(graph_of(6, edges)), x, alpha, [m])
    np.testing.assert_allclose(z, matrix(6, edges, alpha, m) @ x, atol=1e-13)


def test_concatenation_is_weighted_by_the_number_of_steps():
    x = restart.unit_rows(np.random.default_rng(1).standard_normal((4, 3)))
    walk = restart.transition(graph_of(4, {(0, 1), (1, 2)}))
    parts = [restart.propagate(walk, x, 0.3, [m]) for m in (0, 2, INF)]
    both = restart.propagate(walk, x, 0.3, [0, 2, INF])
    np.testing.assert_allclose(both, np.hstack(parts) / 3)
    assert np.linalg.norm(both, axis=1).max() <= restart.row_norm_bound([0, 2, INF]) + 1e-15


def test_isolated_nodes_keep_their_row_and_zero_rows_stay_zero():
    x = restart.unit_rows(np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]]))
    z = restart.propagate(restart.transition(graph_of(3, {(1, 2)})), x, 0.5, [INF])
    np.testing.assert_allclose(z[0], x[0])
    assert np.isfinite(z).all()


def test_own_hop_reads_only_the_nodes_own_edges():
    rng = np.random.default_rng(2)
    x = restart.unit_rows(rng.standard_normal((5, 3)))
    one = restart.own_hop(restart.transition(graph_of(5, {(0, 1), (1, 2), (3, 4)})), x, 0.2, [0, 2])
    two = restart.own_hop(restart.transition(graph_of(5, {(0, 1), (1, 2), (2, 4)})), x, 0.2, [0, 2])
    np.testing.assert_array_equal(one[:2], two[:2])
    assert not np.allclose(one[2:], two[2:])


def test_sensitivity_holds_on_adversarial_and_random_graphs(record_property):
    """Σ‖z − z′‖ for the worst unit features against the bound; the largest ratio is the tightness."""
    rng = np.random.default_rng(3)
    pairs = adversarial_pairs() + list(random_pairs(rng, 20))
    tightest = {}
    for alpha, m in itertools.product(ALPHAS, STEPS):
        bound = restart.restart_sensitivity(alpha, [m])
        for n, with_edge, without in pairs:
            change = matrix(n, with_edge, alpha, m) - matrix(n, without, alpha, m)
            ratio = worst_signs(change, rng) / bound
            assert ratio <= 1 + 1e-9, (alpha, m, n, sorted(without))
            tightest[m] = max(tightest.get(m, 0), ratio)
    record_property("tightness", tightest)
    print({m: round(float(r), 3) for m, r in tightest.items()})
    assert tightest[1] > 0.999  # Lemma 2 is attained at one step
    assert tightest[INF] > 0.9


def test_the_tighter_bound_is_below_the_lemma_everywhere():
    for alpha in np.linspace(0.01, 0.99, 99):
        assert restart.reversible_bound(alpha) <= restart.lemma_bound(alpha, INF)


def test_any_subset_of_steps_averages():
    assert restart.restart_sensitivity(0.4, [0, 1]) == pytest.approx(restart.lemma_bound(0.4, 1) / 2)


def test_an_asymmetric_graph_breaks_the_bound_and_is_refused():
    """An in-star: every leaf listens to node 0, which listens to node 1 or not."""
    n, alpha = 60, 0.2
    a = np.eye(n)
    a[2:, 0] = 1
    b = a.copy()
    b[0, 1] = 1
    ma, mb = (alpha * np.linalg.inv(np.eye(n) - (1 - alpha) * w / w.sum(1, keepdims=True)) for w in (a, b))
    assert worst_signs(mb - ma, np.random.default_rng(0)) > 2 * restart.lemma_bound(alpha, INF)
    with pytest.raises(UnsupportedError, match="to_undirected"):
        restart.transition(graph_of(3, {(0, 1)}, directed=True))


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, float("nan"), "half", True])
def test_alpha_outside_its_range_is_refused(alpha):
    with pytest.raises(ParameterError, match="alpha"):
        restart.restart_sensitivity(alpha, [1])


@pytest.mark.parametrize("steps", [[], [-1], [1.5], [float("nan")], ["two"]])
def test_malformed_steps_are_refused(steps):
    with pytest.raises(ParameterError, match="steps"):
        restart.restart_sensitivity(0.5, steps)
