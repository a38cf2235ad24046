"""Methods with an encoder that the user brings keep the contract of methods, and none of the user's code runs."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

import discreet
from discreet import Residual
from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import small_graph
from discreet.errors import ParameterError, UnsupportedError
from discreet.ops.layer_rows import ScaledRows, Sizes
from discreet.testing import MethodCase
from discreet.testing.methods import check_constructor_only_stores, check_release, check_same_fit_twice
from tests.contracts.cases import make

FEATURES = 4
NODE = "node:owned,max_degree=3,change=null"
SUBJECTS = [
    ("gap", "edge"), ("gap", NODE), ("dpdgc", "none"), ("dpdgc", "edge"), ("dpdgc", NODE), ("dp-mlp", NODE),
    ("dp-gnn", NODE), ("hop-bayes", "edge"), ("hop-bayes", NODE),
]  # fmt: skip


def module():
    return nn.Sequential(
        nn.Linear(FEATURES, 5),
        nn.LayerNorm(5),
        nn.ReLU(),
        nn.Dropout(0.5),
        Residual(nn.Linear(5, 5), nn.Tanh()),
    )


MODULE = module()
WORDS = ("linear 5", "layer-norm", "relu", "dropout 0.5", ("linear 5", "tanh"))


def estimator(name, spec, **parameters):
    return make(name, spec, **{"encoder": MODULE, "random_state": 0, **parameters})


@pytest.mark.parametrize(("name", "spec"), SUBJECTS)
@pytest.mark.parametrize("check", [check_same_fit_twice, check_release])
def test_contract(name, spec, check):
    check(MethodCase(partial(estimator, name, spec)))


@pytest.mark.parametrize("name", ["gap", "dp-mlp"])
def test_words_are_stored_as_they_are(name):
    check_constructor_only_stores(MethodCase(partial(estimator, name, NODE, encoder=WORDS)))


@pytest.mark.parametrize(("name", "spec"), [subject for subject in SUBJECTS if subject[1] != "none"])
def test_replay_on_neighbours(name, spec):
    report = replay_audit(estimator(name, spec), small_graph, pairs=5)
    assert report.passed, report.violations[:3]


@pytest.mark.parametrize("spec", [NODE])
def test_replay_sees_columns_that_are_not_clipped(spec, monkeypatch):
    """Planted: the norm leaves out what layer normalisation learns."""
    real = ScaledRows.sizes
    monkeypatch.setattr(ScaledRows, "sizes", lambda self: Sizes(*(0 * part for part in real(self))))
    report = replay_audit(estimator("dp-mlp", spec, clip_norm=0.001), small_graph, pairs=5)
    assert any("clip norm" in found for found in report.violations)


def test_none_of_the_users_code_runs(monkeypatch):
    """Neither the module's forward nor that of its layers."""
    graph = small_graph(np.random.default_rng(0))
    model = estimator("hop-bayes", NODE)

    def refuse(*_):
        raise AssertionError("foreign code ran")

    monkeypatch.setattr(nn.Sequential, "forward", refuse)
    monkeypatch.setattr(nn.Linear, "forward", refuse)
    model.fit(graph).predict_proba(graph, audience="owner", uncovered=True)


def test_the_module_is_left_as_it_was():
    encoder = module()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    model = estimator("gap", "edge", encoder=encoder).fit(small_graph(np.random.default_rng(0)))
    assert model.encoder is encoder
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())
    assert clone(model).get_params()["encoder"] is not encoder


def test_a_release_holds_the_layers_in_words(tmp_path):
    graph = small_graph(np.random.default_rng(0))
    estimator("dp-mlp", NODE, insecure_noise_seed=None).fit(graph).save(tmp_path / "release")
    config = json.loads((tmp_path / "release" / "config.json").read_text())
    assert config["params"]["encoder"] == ["linear 5", "layer-norm", "relu", "dropout 0.5", ["linear 5", "tanh"]]
    discreet.verify(tmp_path / "release")
    assert discreet.load_release(tmp_path / "release").encoder[0] == "linear 5"


@pytest.mark.parametrize("name", ["gap", "dpdgc", "hop-bayes", "dp-gnn"])
def test_a_plan_refuses_another_width(name):
    spec = NODE if name == "dp-gnn" else "edge"
    with pytest.raises(ParameterError, match="reads 9 columns, and the graph has 4 features"):
        make(name, spec, encoder=nn.Linear(9, 3)).plan(small_graph(np.random.default_rng(0)).public)


def test_batch_statistics_are_refused_by_name():
    with pytest.raises(UnsupportedError, match=r"gap: layer BatchNorm1d of the encoder mixes the nodes of a batch"):
        estimator("gap", "edge", encoder=nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))).fit(
            small_graph(np.random.default_rng(0))
        )


def test_a_linear_node_model_has_no_encoder():
    with pytest.raises(ParameterError, match="leave encoder out"):
        estimator("hop-bayes", NODE, linear=True).plan(small_graph(np.random.default_rng(0)).public)
