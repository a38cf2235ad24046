"""Noisy steps of every method move weights at the rate that was given, and at no other of its settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from discreet.graph.synthetic import csbm
from discreet.methods.baselines.dp_mlp import DPMLPClassifier
from discreet.methods.dp_gnn.estimator import DPGNN
from discreet.methods.dpar.estimator import DPAR
from discreet.methods.hop_bayes.estimator import WEIGHT_RATE
from discreet.methods.registry import list_methods, load_method
from discreet.methods.trained import PrivatelyTrained
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import NodeLevel
from discreet.training import private
from discreet.training.descent import Adam
from tests.contracts.cases import graph_for, make

GIVEN = {"learning_rate": 0.11, "step_size": 0.13, "head_step_size": 0.17, "embedding_step_size": 0.19}
CONSTANT = {"hop-bayes": {WEIGHT_RATE}}
"""Rates that no setting decides."""
LEVELS = {"neighbor": "neighbor:2,max_degree=3", "node": "node:owned,max_degree=3"}
OTHER_SETTINGS: dict[str, list[dict[str, Any]]] = {
    "dpar": [  # full batches: others take long to calibrate
        {"node_rate": 0.5, "batch_size": None},
        {"structure_share": 0.5, "batch_size": None},
        {"accounting": "as-published", "node_rate": 0.5},
    ],
    "dp-gnn": [{"accounting": "as-published"}],
    "dpdgc": [{"embedding": "trained"}],
}
CASES = [
    (name, spec, settings)
    for name, declared in list_methods().items()
    for kind, spec in LEVELS.items()
    if kind in declared.levels
    for settings in [{}, *OTHER_SETTINGS.get(name, [])]
    if (name, kind, bool(settings)) != ("dp-gnn", "neighbor", True)  # the paper has no k neighbours
]


class Watched(Adam):
    """Adam that writes down how far its first step moved a weight: by its learning rate, whatever the gradient."""

    moves: list[float]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        before = [parameter.clone() for parameter in self._parameters]
        super().step(gradients, learning_rate)
        if self._steps == 1:
            pairs = zip(self._parameters, before, strict=True)
            self.moves.append(max(float((after - first).abs().max()) for after, first in pairs))


@pytest.mark.parametrize(("name", "spec", "settings"), CASES)
def test_weights_move_by_the_rate_that_was_given(
    name: str, spec: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = load_method(list_methods()[name])
    fields = {field.name for field in dataclasses.fields(kind)}
    monkeypatch.setattr(Watched, "moves", [], raising=False)
    monkeypatch.setattr(private, "Adam", Watched)
    given = {key: value for key, value in GIVEN.items() if key in fields}
    make(name, spec, epsilon=8.0, **given, **settings).fit(graph_for(spec))
    if not issubclass(kind, PrivatelyTrained):
        given.pop("learning_rate", None)  # of steps without noise, at other levels
    meant = {*given.values(), *CONSTANT.get(name, ())}
    assert Watched.moves
    for move in Watched.moves:
        assert any(move == pytest.approx(rate, rel=1e-4) for rate in meant)


@pytest.mark.parametrize("kind", [DPAR, DPGNN, DPMLPClassifier])
@pytest.mark.parametrize("others", [{}, {"steps": 7, "clip_norm": 0.5}])
def test_the_learning_rate_is_the_one_that_was_given(kind: type[PrivatelyTrained], others: dict[str, float]) -> None:
    estimator = kind(Privacy(NodeLevel(3), 1.0), learning_rate=0.125, **others)
    estimator.public_ = csbm(60, 4).public  # as in a fit: some choose their network by it
    assert estimator._descent().learning_rate == 0.125


def test_how_often_a_node_takes_part_is_no_learning_rate() -> None:
    assert DPAR(Privacy(NodeLevel(3), 1.0), learning_rate=0.125, node_rate=0.5)._descent().learning_rate == 0.125
