"""Rows propagated with restart: Ψ against brute force, and inputs that are projected."""

import itertools

import numpy as np
import pytest

from discreet.errors import ParameterError, UnsupportedError
from discreet.ops.rows import unit_rows
from discreet.privacy.levels import EdgeLevel, NodeLevel, NoPrivacy
from discreet.queries.propagated import (
    PropagatedRows,
    joint_bound,
    lemma_bound,
    restart_sensitivity,
    reversible_bound,
    row_norm_bound,
)
from tests.effort import effort
from tests.ops.restart_by_hand import INF, graph_of, matrix

ALPHAS = (0.05, 0.1, 0.2, 1 / 3, 0.4, 0.5, 0.6, 0.8, 0.95)
STEPS = (1, 2, 3, 5, 10, INF)


def star(leaves, centre=0, first=1):
    return {(centre, first + i) for i in range(leaves)}


def double_star(left, right):
    return star(left, 0, 2) | star(right, 1, 2 + left)


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
            x = unit_rows(rng.standard_normal((n, width)))
            for _ in range(30):
                x = unit_rows(change.T @ unit_rows(change @ x))
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


@pytest.mark.effort
def test_sensitivity_holds_on_adversarial_and_random_graphs(record_property):
    """Σ‖z − z′‖ for the worst unit features against the bound; the largest ratio is the tightness."""
    rng = np.random.default_rng(3)
    pairs = adversarial_pairs() + list(random_pairs(rng, effort(8, 40)))
    tightest = {}
    for alpha, m in itertools.product(ALPHAS, STEPS):
        bound = restart_sensitivity(alpha, [m])
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
        assert joint_bound(alpha) <= reversible_bound(alpha) <= lemma_bound(alpha, INF)
        assert joint_bound(alpha) >= 2 * (1 - alpha) * (1 - 1e-12)  # which two nodes attain


@pytest.mark.parametrize("alpha", [0.05, 0.3, 0.5, 0.65, 0.8, 0.95])
def test_the_parts_of_the_joint_proof_hold_on_random_graphs(alpha):
    """Column sums, rows and their product at each end, and both ends together, with rows set at their worst."""
    rng = np.random.default_rng(0)
    f = lambda k: (2 * alpha + k * (1 - alpha)) / (k + 1 + alpha)  # noqa: E731
    for _ in range(150):
        n = int(rng.integers(2, 9))
        without = np.triu(rng.random((n, n)) < rng.random(), 1)
        without = without | without.T
        without[0, 1] = without[1, 0] = False
        with_edge = without.copy()
        with_edge[0, 1] = with_edge[1, 0] = True
        walk = [(a + np.eye(n)) / (a.sum(1, keepdims=True) + 1) for a in (without, with_edge)]
        after, before = (alpha * np.linalg.inv(np.eye(n) - (1 - alpha) * w) for w in walk)
        moved = ((walk[0] - walk[1]) @ before)[:2]  # rows 1 and 2, by x: worst signs give their norms
        parts = after[:, :2].sum(0) * np.abs(moved).sum(1)
        degrees = without.sum(1)[:2]
        assert all(part <= f(k) + 1e-12 for part, k in zip(parts, degrees, strict=True))
        assert (1 - alpha) / alpha * worst_together(moved, after[:, :2].sum(0), rng) <= joint_bound(alpha) + 1e-12


def worst_together(moved: np.ndarray, sums: np.ndarray, rng: np.random.Generator) -> float:
    """The largest Σ s·|row·x| over signs x: every sign of small graphs."""
    n = moved.shape[1]
    signs = 1 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
    return float((np.abs(signs @ moved.T) * sums).sum(1).max())


def test_any_subset_of_steps_averages():
    assert restart_sensitivity(0.4, [0, 1]) == pytest.approx(lemma_bound(0.4, 1) / 2)


def test_an_asymmetric_graph_breaks_the_bound_and_its_level_is_refused():
    """An in-star: every leaf listens to node 0, which listens to node 1 or not."""
    n, alpha = 60, 0.2
    a = np.eye(n)
    a[2:, 0] = 1
    b = a.copy()
    b[0, 1] = 1
    ma, mb = (alpha * np.linalg.inv(np.eye(n) - (1 - alpha) * w / w.sum(1, keepdims=True)) for w in (a, b))
    assert worst_signs(mb - ma, np.random.default_rng(0)) > 2 * lemma_bound(alpha, INF)
    directed = PropagatedRows(
        EdgeLevel(directed=True), alpha, (INF,), True, 3, 2, 2, "soft-margin", 1.0, 1.0, num_nodes=3
    )
    with pytest.raises(UnsupportedError, match="directed"):
        directed.bound()


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, float("nan"), "half", True])
def test_alpha_outside_its_range_is_refused(alpha):
    with pytest.raises(ParameterError, match="alpha"):
        restart_sensitivity(alpha, [1])


@pytest.mark.parametrize("steps", [[], [-1], [1.5], [float("nan")], ["two"]])
def test_malformed_steps_are_refused(steps):
    with pytest.raises(ParameterError, match="steps"):
        restart_sensitivity(0.5, steps)


# -------------------------------------------------------------------- the query


def query(level=None, everyone=True, count=4, steps=(0, 2)):
    return PropagatedRows(level or EdgeLevel(), 0.4, steps, everyone, count, 6, 2, "soft-margin", 1.0, 1.0, num_nodes=4)


def answer_of(asked, rows, targets, usable, train=(0, 2)):
    graph = graph_of(4, {(0, 1), (1, 2)}).with_masks(np.array(train), None, None)
    _, private = asked.level.split(graph)
    return asked.answer(private, rows=rows, targets=targets, usable=usable)


def test_the_answer_is_r_m_x_beside_the_targets():
    rng = np.random.default_rng(0)
    x, y = 0.9 * unit_rows(rng.standard_normal((4, 3))), np.eye(2)[[0, 1, 1, 0]]
    found = answer_of(query(), x, y, np.ones((4, 1)))
    expected = np.hstack([x, matrix(4, {(0, 1), (1, 2)}, 0.4, 2) @ x]) / 2
    np.testing.assert_allclose(found, np.hstack([expected, y]), atol=1e-13)
    chosen = answer_of(query(everyone=False, count=2), x, y[[0, 2]], np.array([[1.0], [0.0]]))
    np.testing.assert_allclose(chosen[0], found[0], atol=1e-13)
    assert not chosen[1].any()  # a row that does not count


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30, 1e200])
def test_rows_and_targets_are_projected(bad):
    x, y = np.full((4, 3), 0.1), np.zeros((4, 2))
    x[1], y[1] = bad, bad
    found = answer_of(query(), x, y, np.full((4, 1), 7.0))
    assert np.isfinite(found).all()
    assert np.linalg.norm(found[:, :6], axis=1).max() <= row_norm_bound((0, 2))
    assert ((found[:, 6:] >= 0) & (found[:, 6:] <= 1)).all()


def test_levels_without_a_proof_are_refused_and_none_has_no_bound():
    with pytest.raises(UnsupportedError, match="node"):
        query(NodeLevel(max_degree=3)).bound()
    assert query(NoPrivacy()).bound().sensitivity == INF
