"""The certificate as it is made; ``tests/release/test_verify.py`` has what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.audit.small_graphs import small_graph
from discreet.errors import CertificateError, PrivacyError
from discreet.graph.graph import PublicFacts
from discreet.methods.gap.estimator import GAP
from discreet.privacy.budget import Privacy
from discreet.privacy.certificate import make_certificate
from discreet.privacy.levels import EdgeLevel
from discreet.privacy.plan import Plan, Stage, make_plan
from tests.mechanisms.draws import given_stage


def test_no_fingerprint_of_private_data() -> None:
    """What the release holds beside caches and weights does not move with the edges."""
    graph = small_graph(np.random.default_rng(0))
    other = EdgeLevel().neighbor(graph, np.random.default_rng(1))
    one = GAP(Privacy(EdgeLevel(), 2.0), hops=2, epochs=1, hidden=4, insecure_noise_seed=1).fit(graph)
    two = GAP(Privacy(EdgeLevel(), 2.0), hops=2, epochs=1, hidden=4, insecure_noise_seed=1).fit(other)
    assert one.certificate_ == two.certificate_
    assert np.array_equal(one._state()["key.0"], two._state()["key.0"])


FACTS = PublicFacts(num_nodes=100, num_features=2, num_classes=2, num_train=50, directed=False)


def plan_of(*stages: Stage) -> Plan:
    return make_plan("m", Privacy(EdgeLevel(), 1.0), 100, stages, "weights")


def stage(name: str) -> Stage:
    return given_stage(name, (2,))


def test_ledger_must_match_plan() -> None:
    plan = plan_of(stage("a"), stage("b"))
    with pytest.raises(CertificateError, match="ledger"):
        make_certificate(plan, [FACTS], noise="", for_release=True, spent=[plan.stages[0].event], versions={})


def test_plan_refuses_overspending_and_repeated_names() -> None:
    with pytest.raises(PrivacyError, match="unique"):
        plan_of(stage("a"), stage("a"))
    with pytest.raises(PrivacyError, match="spends"):
        Plan("m", Privacy(EdgeLevel(), 1.0), 1e-5, (stage("a"),), "weights")


def test_plan_prints_what_a_reviewer_needs() -> None:
    text = str(plan_of(stage("first look")))
    for part in ("first look", "gaussian", "the test says so", "epsilon 1", "neighbours", "public"):
        assert part in text
