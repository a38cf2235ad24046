"""Sums of clipped gradients: what a stage of them states, and that one term moves the sum by no more than it may."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from discreet.errors import UnsupportedError
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.privacy.events.group_sampling import GroupFixedSampledGaussianDpEvent, GroupSampledGaussianDpEvent
from discreet.privacy.levels import NodeLevel
from discreet.privacy.plan import Stage
from discreet.queries.gradients import ROWS_AT_ONCE, OwnRecordSteps, StepRule, count_parameters, planned_parameters
from discreet.training.networks import MLP, widths_of
from tests.mechanisms.steps import GivenSteps, steps_stage


def stage(batch_size: int | None = 3, **more: Any) -> Stage:
    given = {"parameters": 4, "examples": 10, "steps": 3, "clip_norm": 0.5, "touched": 2}
    return steps_stage(batch_size=batch_size, **{**given, **more})


def at_noise(drafted: Stage, multiplier: float) -> Stage:
    """The stage at this noise, in clip norms."""
    query = drafted.query
    assert isinstance(query, GivenSteps)
    return Stage(drafted.name, query, query.bound(), query.sampled_event(multiplier), drafted.runs)


def test_stage_states_noise_in_clip_norms_and_survives_json() -> None:
    sampled, whole = at_noise(stage(), 4.0), at_noise(stage(None), 4.0)
    assert isinstance(sampled.event, GroupSampledGaussianDpEvent)
    assert sampled.noise_std == pytest.approx(4.0 * 0.5)
    assert whole.noise_std == pytest.approx(4.0 * 0.5)
    assert whole.sensitivity == pytest.approx(3 * 0.5), "null: k - 1 terms turn over, the unit's own goes to zero"
    assert stage(None, change="replace").sensitivity == pytest.approx(4 * 0.5)
    assert isinstance(stage(sampling="fixed").event, GroupFixedSampledGaussianDpEvent)
    for one in (sampled, whole, stage(sampling="fixed")):
        stored = Stage.from_json(one.to_json())
        assert stored.to_json() == one.to_json()
        assert (stored.event, stored.noise_std) == (one.event, one.noise_std)


def test_more_touched_than_examples_means_all_of_them_freely() -> None:
    parameters = stage(touched=11).query.parameters()
    assert (parameters["touched"], parameters["change"]) == (10, "replace")


def test_a_term_moves_the_sum_of_many_by_no_more_than_its_clip_norm() -> None:
    """Single-precision sums of many terms that agree would round by more than a term is worth."""
    nodes, clip_norm = 50_000, 0.1
    rows = (1 + 0.01 * np.random.default_rng(0).standard_normal((nodes, 4))).astype(np.float32)
    graph = Graph.from_edges([0], [1], rows, np.zeros(nodes, int), directed=False, num_classes=3)
    graph = graph.with_masks(np.arange(nodes), None, None)
    network = MLP(widths_of(4, 8, 2, 3), "relu", 0.0, torch.Generator().manual_seed(0))
    query = OwnRecordSteps(NodeLevel(1), "a sum", count_parameters(network), nodes, StepRule(clip_norm))

    def total(given: Graph) -> np.ndarray:
        part = PrivatePart(given, micro_batch=1 << 20)
        return query.answer(part, batch=np.arange(nodes), network=network)

    whole = total(graph)
    for node in (0, 1, nodes // 2, nodes - 1):
        labels, features = graph.labels.copy(), rows.copy()
        labels[node], features[node] = -1, 0.0
        moved = np.linalg.norm(whole - total(graph.with_labels(labels).with_features(features)))
        assert 0.9 * clip_norm < moved <= clip_norm


@pytest.mark.parametrize("at_once", [64, 4096])
@pytest.mark.parametrize("sparse", [False, True])
def test_an_example_that_is_null_leaves_no_trace(sparse: bool, at_once: int) -> None:
    """A batch with it and one without give the same bits: what Poisson batches under null need."""
    nodes = 300
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((nodes, 20)).astype(np.float32) * (rng.random((nodes, 20)) < 0.4)
    labels = rng.integers(0, 3, nodes)
    labels[[3, 70, 299]] = -1
    given = sp.csr_array(rows) if sparse else rows
    graph = Graph.from_edges([0], [1], given, labels, directed=False, num_classes=3)
    graph = graph.with_masks(np.arange(nodes), None, None)
    network = MLP(widths_of(20, 8, 2, 3), "relu", 0.0, torch.Generator().manual_seed(0))
    rule = StepRule(0.1, batch_size=100)
    query = OwnRecordSteps(NodeLevel(1), "a sum", count_parameters(network), nodes, rule)
    part = PrivatePart(graph, micro_batch=at_once)
    for _ in range(5):
        batch = np.flatnonzero(rng.random(nodes) < 0.5)
        found = [
            query.answer(part, batch=chosen, network=network)
            for chosen in (np.union1d(batch, [3, 70, 299]), np.setdiff1d(batch, [3, 70, 299]))
        ]
        assert np.array_equal(*found)


def test_sums_that_cannot_be_proved_are_refused_at_plan() -> None:
    """With a million ego-nets of 10,000 slots rounding could exceed what is set aside."""
    network = MLP([500, 64, 3], "relu", 0.0, torch.Generator().manual_seed(0))
    assert planned_parameters(network, 10_000, slots=100) == count_parameters(network)
    with pytest.raises(UnsupportedError, match="fewer training nodes"):
        planned_parameters(network, 1_000_000, slots=10_000)


def test_millions_of_examples_of_two_rows_are_not_refused() -> None:
    """Micro-batches that suit an accelerator would take the room that sums over so many terms need."""
    network = MLP([2, 1], "selu", 0.0, torch.Generator())
    assert planned_parameters(network, 8_000_000, slots=2) == 3
    steps = OwnRecordSteps(NodeLevel(3), "steps", 3, 8_000_000, StepRule(1.0), slots=2)
    steps._clip_rule(network).norms_with_room(3, 2)


def test_millions_of_examples_of_one_row_keep_large_micro_batches() -> None:
    """Where nothing cancels there is room for both, and an accelerator needs it."""
    steps = OwnRecordSteps(NodeLevel(3), "steps", 3, 1_800_000, StepRule(1.0))
    network = MLP([2, 1], "selu", 0.0, torch.Generator())
    assert steps.most_at_once == ROWS_AT_ONCE
    assert steps._clip_rule(network).norms_with_room(3, 1)[0] > 0.999
