"""A plan and a model show themselves in a notebook, and nothing in them can be markup."""

from __future__ import annotations

import re

import numpy as np

import discreet
from discreet.audit.small_graphs import small_graph
from discreet.privacy.notebook import html_table

NODE = discreet.Privacy(discreet.NodeLevel(max_degree=3), epsilon=2.0)


def fitted():
    return discreet.DPMLPClassifier(NODE, steps=2, insecure_noise_seed=1).fit(small_graph(np.random.default_rng(0)))


def test_a_plan():
    shown = fitted().plan_._repr_html_()
    for words in ("plan for dp-mlp", "node:owned,max_degree=3", "weights+others-predictions", "epsilon 2", "network"):
        assert words in shown


def test_a_model_that_is_fitted_shows_no_accuracy():
    model = fitted()
    shown = model._repr_html_()
    assert "DPMLPClassifier (dp-mlp), fitted" in shown
    assert "not for release" in shown
    assert "accuracy" not in shown
    assert model._repr_mimebundle_()["text/html"] == shown
    assert shown.count("<table>") == shown.count("</table>") == 2


def test_a_model_that_is_not_fitted():
    shown = discreet.GAP(NODE, hops=2)._repr_html_()
    assert "GAP (gap), not fitted" in shown
    assert "hops=2" in shown
    assert "not fitted" in discreet.GAP()._repr_html_()


def test_level_none_is_not_private():
    graph = small_graph(np.random.default_rng(0))
    assert "this model is not private" in discreet.GAP(discreet.Privacy.none()).plan(graph.public)._repr_html_()


def test_every_text_is_escaped():
    evil = '<script>alert(1)</script>&"'
    shown = html_table(evil, {evil: evil}, (evil,), [(evil,)])
    assert "<script" not in shown
    assert set(re.findall(r"</?(\w+)", shown)) == {"div", "p", "b", "table", "tr", "th", "td"}
