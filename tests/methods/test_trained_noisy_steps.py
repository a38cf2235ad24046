"""Noisy steps of every method move at the learning rate that was given."""

from __future__ import annotations

import pytest

from discreet.methods.baselines.dp_mlp import DPMLPClassifier
from discreet.methods.dp_gnn.estimator import DPGNN
from discreet.methods.dpar.estimator import DPAR
from discreet.methods.trained import PrivatelyTrained
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import NodeLevel


@pytest.mark.parametrize("kind", [DPAR, DPGNN, DPMLPClassifier])
@pytest.mark.parametrize("others", [{}, {"steps": 7, "clip_norm": 0.5}])
def test_the_learning_rate_is_the_one_that_was_given(kind: type[PrivatelyTrained], others: dict[str, float]) -> None:
    estimator = kind(Privacy(NodeLevel(3), 1.0), learning_rate=0.125, **others)
    assert estimator._descent().learning_rate == 0.125


def test_how_often_a_node_takes_part_is_no_learning_rate() -> None:
    assert DPAR(Privacy(NodeLevel(3), 1.0), learning_rate=0.125, node_rate=0.5)._descent().learning_rate == 0.125
