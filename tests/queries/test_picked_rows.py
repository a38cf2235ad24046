"""Rows of picked nodes: who may stand in which row, whatever came back, and what an example is made of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from discreet.errors import PlanViolationError
from discreet.graph.graph import Graph
from discreet.privacy.levels import NodeLevel
from discreet.queries.gradients import StepRule
from discreet.queries.picked_rows import PickedRowSteps, PublishedRowSteps, cap_users, read_candidates
from discreet.queries.sampled_nodes import NodeSample
from discreet.training.networks import MLP

approx = pytest.approx


def steps_of(rows, users=1, own_weight=0.5, parameters=1):
    return PickedRowSteps(NodeLevel(), "steps", parameters, rows, StepRule(1.0), NodeSample(), users, own_weight)


def published_of(rows, column_norm):
    return PublishedRowSteps(NodeLevel(), "steps", 1, rows, StepRule(1.0), NodeSample(), column_norm)


def test_no_column_has_more_than_kappa_users_and_the_largest_stay():
    rng = np.random.default_rng(0)
    for users in (0, 1, 2, 5):
        columns, weight = rng.integers(0, 7, (30, 3)), rng.random((30, 3)).round(1)
        kept = cap_users(columns, weight, users)
        for column in range(7):
            mine = np.sort(weight[columns == column])[::-1]
            chosen = np.sort(weight[kept & (columns == column)])[::-1]
            assert chosen.tolist() == [w for w in mine[:users] if w > 0]


def test_slots_name_a_node_in_its_own_row_and_kappa_others():
    rng = np.random.default_rng(1)
    own = np.arange(0, 20, 2)
    for users in (0, 1, 3):
        query = steps_of(10, users, 0.3)
        for _ in range(50):
            answer = np.stack([rng.integers(-3, 30, (10, 4)).astype(float), rng.normal(size=(10, 4))], axis=-1)
            answer[rng.random((10, 4)) < 0.1] = np.nan
            slots = query.slots(own, answer, 20)
            assert (slots.positions[:, 0] == own).all()
            assert (slots.weight >= 0).all()
            assert slots.weight.sum(axis=1) == approx(1)
            for node in range(20):
                rows = {row for row in range(10) if node in slots.positions[row]}
                assert len(rows - {int(r) for r in np.flatnonzero(own == node)}) <= users
            assert (slots.weight[:, 1:][slots.positions[:, 1:] == own[:, None]] == 0).all()
        assert query.touch().examples == users + 1


def test_candidates_are_brought_into_range():
    answer = np.array([[[np.nan, 1], [np.inf, 1], [-np.inf, 1], [-3, 1], [2, 1], [9, 1]]])
    assert read_candidates(answer, 5).tolist() == [[0, 4, 0, 0, 2, 4]]


def test_published_columns_are_scaled_to_tau():
    answer = np.stack([np.zeros((6, 1)), np.full((6, 1), 0.5)], axis=-1)
    assert published_of(6, 1.0).slots(np.arange(6), answer, 6).weight.sum() == approx(1.0)
    assert published_of(6, 9.0).slots(np.arange(6), answer, 6).weight.sum() == approx(3.0)
    signed = published_of(6, 1.0).slots(np.arange(6), answer * [1, -1], 6)
    assert signed.weight.sum() == approx(-1.0)  # the paper's values keep their sign
    assert published_of(6, 1.0).touch().examples == 6


@pytest.fixture
def private():
    rng = np.random.default_rng(0)
    graph = Graph.from_edges([], [], rng.standard_normal((6, 3)), [0, 1, 0, -1, 1, 0], num_classes=2)
    return NodeLevel().split(graph.with_masks([1, 2, 3, 5], None, None))[1]


def network():
    return MLP([3, 2], "relu", 0.0, torch.Generator().manual_seed(0))


def test_a_loss_is_that_of_the_averaged_outputs_of_a_rows_nodes(private):
    model, sources = network(), np.array([0, 2, 3])  # nodes 1, 3 and 5, of which 3 has no label
    picks = np.array([[[1, 1.0]], [[0, 1.0]], [[0, 0.2]]])  # nodes 3, 1 and again 1, whose only user is the second row
    found = steps_of(3, parameters=8).losses(private, np.arange(3), network=model, sources=sources, picks=picks)
    outputs = model(torch.tensor(private.graph.features))
    rows = torch.stack([(outputs[1] + outputs[3]) / 2, (outputs[3] + outputs[1]) / 2, outputs[5]])
    losses = torch.nn.functional.cross_entropy(rows, torch.tensor([1, -1, 0]), ignore_index=-1, reduction="none")
    assert found.detach().numpy() == approx(losses.detach().numpy())
    assert found[1] == 0
    alone = steps_of(3, parameters=8).losses(private, np.array([2]), network=model, sources=sources)
    assert alone.item() == approx(losses[2].item())


def test_another_shape_is_refused(private):
    with pytest.raises(PlanViolationError, match="picks must be"):
        steps_of(2).losses(
            private, np.arange(2), network=network(), sources=np.array([0, 1]), picks=np.zeros((1, 1, 2))
        )
