"""Moments of propagated rows or labels: joint sensitivity by brute force, and answers by definition."""

import math

import numpy as np
import pytest

from discreet.ops.moments import pack, unpack
from discreet.ops.rows import unit_rows
from discreet.privacy.levels import EdgeLevel, NoPrivacy
from discreet.queries.moments import SmoothedFeatureMoments, SmoothedLabelMoments, centred_norm, packed_sensitivity
from discreet.queries.propagated import restart_sensitivity
from tests.ops.restart_by_hand import INF, graph_of, matrix

EDGES = {(0, 1), (1, 2)}
STEPS = (1, INF)


@pytest.mark.parametrize("weight", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("steps", [[1], [0, 1, 2]])
def test_joint_sensitivity(weight, steps):
    """Random and adversarial rows whose summed change is Ψ; collinear small changes come close to the bound."""
    rng = np.random.default_rng(1)
    limit = 1 / math.sqrt(len(steps))
    tightest = 0.0
    for trial in range(400):
        n, d, c = int(rng.integers(1, 5)), int(rng.integers(1, 4)), 3
        z = limit * unit_rows(rng.standard_normal((n, d))) * (1 if trial % 2 else rng.random((n, 1)))
        moved = z * (1 - 0.02 * rng.random((n, 1))) if trial % 2 else limit * unit_rows(rng.standard_normal((n, d)))
        y = np.eye(c)[rng.integers(c, size=n) if trial % 3 else np.zeros(n, dtype=int)] - 1 / c
        psi = np.linalg.norm(z - moved, axis=1).sum()
        bound = packed_sensitivity(psi, steps, target_norm=math.sqrt(1 - 1 / c), gram_weight=weight)
        ratio = np.linalg.norm(pack(z, y, weight) - pack(moved, y, weight)) / bound
        assert ratio <= 1 + 1e-9
        tightest = max(tightest, ratio)
    print(f"weight {weight}, steps {steps}: {tightest:.3f}")
    assert tightest > 0.97


# -------------------------------------------------------------------- the queries


def private_of(edges=EDGES):
    graph = graph_of(4, edges).with_masks(np.array([0, 2]), None, None)
    return EdgeLevel().split(graph)[1]


def inputs():
    rng = np.random.default_rng(0)
    return {"rows": 0.9 * unit_rows(rng.standard_normal((4, 3))), "labels": 0.9 * (np.eye(2)[[0, 1, 1, 0]] - 0.5)}


def smoothing():
    return [matrix(4, EDGES, 0.4, m) for m in STEPS]


@pytest.mark.parametrize(("everyone", "nodes"), [(True, [0, 1, 2, 3]), (False, [0, 2])])
def test_smoothed_labels_by_definition(everyone, nodes):
    asked, given = SmoothedLabelMoments(EdgeLevel(), 0.4, STEPS, everyone, 3, 2), inputs()
    found = asked.answer(private_of(), **given)
    smoothed = np.mean([r @ given["labels"] for r in smoothing()], axis=0)
    assert found.shape == asked.shape
    np.testing.assert_allclose(found, given["rows"][nodes].T @ smoothed[nodes], atol=1e-13)
    assert asked.bound().sensitivity == pytest.approx(restart_sensitivity(0.4, STEPS) * math.sqrt(0.5))


@pytest.mark.parametrize(("everyone", "nodes"), [(True, [0, 1, 2, 3]), (False, [0, 2])])
def test_smoothed_features_by_definition(everyone, nodes):
    asked, given = SmoothedFeatureMoments(EdgeLevel(), 0.4, STEPS, everyone, 6, 2, 0.7), inputs()
    found = asked.answer(private_of(), **given)
    assert found.shape == asked.shape
    cross, gram = unpack(found, 6, 2, 0.7)
    z = np.hstack([r @ given["rows"] for r in smoothing()])[nodes] / 2
    np.testing.assert_allclose(cross, z.T @ given["labels"][nodes], atol=1e-13)
    np.testing.assert_allclose(gram, z.T @ z, atol=1e-13)
    expected = packed_sensitivity(restart_sensitivity(0.4, STEPS), STEPS, target_norm=math.sqrt(0.5), gram_weight=0.7)
    assert asked.bound().sensitivity == pytest.approx(expected)


QUERIES = [
    SmoothedLabelMoments(EdgeLevel(), 0.4, (1,), True, 3, 2),
    SmoothedFeatureMoments(EdgeLevel(), 0.4, (1,), True, 3, 2, 0.7),
]


@pytest.mark.parametrize("asked", QUERIES, ids=["labels", "features"])
@pytest.mark.parametrize("scale", [1.0, 1e6, 1e30, 1e200, np.inf, np.nan])
def test_the_bound_holds_whatever_is_put_in(asked, scale):
    """Rows and labels of any size, on graphs that differ in one edge."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        rows, labels = scale * rng.standard_normal((4, 3)), scale * rng.standard_normal((4, 2))
        rows[0], labels[1] = rng.standard_normal(3), rng.standard_normal(2)
        one = asked.answer(private_of({(1, 2)}), rows=rows, labels=labels)
        two = asked.answer(private_of(), rows=rows, labels=labels)
        assert np.linalg.norm(one - two) <= asked.bound().sensitivity


def test_without_a_level_there_is_no_bound():
    assert SmoothedLabelMoments(NoPrivacy(), 0.4, (1,), True, 3, 2).bound().sensitivity == INF
    assert centred_norm(4) == pytest.approx(np.linalg.norm(np.eye(4)[0] - 0.25))
