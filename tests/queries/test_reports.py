"""Reports as queries: whose labels are asked, and what stands for the rest."""

import numpy as np
import pytest

from discreet.graph.graph import Graph
from discreet.mechanisms.local.stages import feature_stage, label_stage
from discreet.privacy.levels import LocalLevel

LABELS = np.array([0, 1, -1, 2, 1, 0])


def private_of(val=(3,)):
    graph = Graph.from_edges([], [], np.arange(12.0).reshape(6, 2), LABELS, directed=False, num_classes=3)
    return LocalLevel().split(graph.with_masks(np.array([0, 2]), None if val is None else np.array(val), None))[1]


@pytest.mark.parametrize(("missing", "expected"), [(-1, [0, -1, -1, 2, -1, -1]), (0, [0, 0, -1, 2, 0, 0])])
def test_labels_are_asked_of_training_and_validation_ids_alone(missing, expected):
    query = label_stage("labels", 6, 3, 1.0, missing).query
    assert query.answer(private_of()).tolist() == expected
    assert query.answer(private_of(val=None)).tolist() == [*expected[:3], missing, *expected[4:]]


def test_features_are_asked_of_everyone_and_a_stage_says_what_it_costs():
    stage = feature_stage("features", "gaussian", (6, 2), epsilon=1.0, feature_range=(0, 9), outside="clip", delta=1e-4)
    assert np.array_equal(stage.query.answer(private_of()), np.arange(12.0).reshape(6, 2))
    assert (stage.event.epsilon, stage.event.delta) == (1.0, 1e-4)
    assert (stage.bound.sensitivity, stage.bound.metric) == (1.0, "rows")
    assert set(stage.query.parameters()) == {"epsilon", "delta", "low", "high", "outside", "noise_std"}
