"""The certificate: accepted as it is, refused after any change, recomputed by a stranger."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.audit.small_graphs import small_graph
from discreet.errors import CertificateError, PrivacyError
from discreet.graph.graph import PublicFacts
from discreet.methods.gap.estimator import GAP
from discreet.privacy.budget import Privacy
from discreet.privacy.certificate import digest, make_certificate, verify
from discreet.privacy.levels import EdgeLevel
from discreet.privacy.plan import Plan, Stage, make_plan
from tests.mechanisms.draws import given_stage


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One release for all tests, which must not touch it."""
    graph = small_graph(np.random.default_rng(0))
    model = GAP(Privacy(EdgeLevel(), 2.0), hops=2, epochs=1, hidden=4).fit(graph)
    return model.save(str(tmp_path_factory.mktemp("made") / "release"))


@pytest.fixture
def release(released: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return shutil.copytree(released, tmp_path / "release")


def failed(folder: Path) -> set[str]:
    return {check.name for check in verify(folder) if not check.passed}


def edit(folder: Path, change: Any, *, reseal: bool) -> None:
    path = folder / "certificate.json"
    certificate = json.loads(path.read_text())
    change(certificate)
    if reseal:
        certificate["digest"] = digest(certificate)
    path.write_text(json.dumps(certificate))


def test_accepted_as_it_is(release: Path) -> None:
    assert failed(release) == set()


@pytest.mark.parametrize("name", ["weights.safetensors", "config.json", "card.md"])
def test_one_byte_is_noticed(release: Path, name: str) -> None:
    content = bytearray((release / name).read_bytes())
    content[len(content) // 2] ^= 1
    (release / name).write_bytes(content)
    assert failed(release) == {name}


def test_missing_file_is_noticed(release: Path) -> None:
    (release / "card.md").unlink()
    assert failed(release) == {"card.md"}


def drop_event(certificate: dict[str, Any]) -> None:
    certificate["stages"].pop()


def more_noise(certificate: dict[str, Any]) -> None:
    certificate["stages"][0]["event"]["noise_multiplier"] *= 1.01


def more_runs(certificate: dict[str, Any]) -> None:
    certificate["stages"][0]["runs"] = 2


def smaller_epsilon(certificate: dict[str, Any]) -> None:
    certificate["epsilon"] *= 0.999


def larger_delta(certificate: dict[str, Any]) -> None:
    certificate["delta"] *= 1.5


@pytest.mark.parametrize("change", [drop_event, more_noise, more_runs, smaller_epsilon, larger_delta])
def test_changed_events_or_epsilon_are_noticed(release: Path, change: Any) -> None:
    edit(release, change, reseal=False)
    assert {"digest", "epsilon"} <= failed(release)


@pytest.mark.parametrize("change", [drop_event, more_noise, more_runs, smaller_epsilon, larger_delta])
def test_a_new_digest_does_not_help(release: Path, change: Any) -> None:
    edit(release, change, reseal=True)
    assert "epsilon" in failed(release)
    assert "digest" not in failed(release)


def test_words_are_sealed_too(release: Path) -> None:
    edit(release, lambda c: c["level"].update(relation="everything"), reseal=False)
    assert failed(release) == {"digest"}


def test_unverified_claims_and_test_noise_fail(release: Path) -> None:
    edit(release, lambda c: c.update(accounting="as-published"), reseal=True)
    edit(release, lambda c: c["noise"].update(for_release=False), reseal=True)
    assert failed(release) == {"accounting", "noise"}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": 99}', "not json"])
def test_garbage_is_refused_in_one_sentence(release: Path, content: str) -> None:
    (release / "certificate.json").write_text(content)
    (check,) = verify(release)
    assert not check.passed


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["stages"][0]["event"].update(kind="Unknown"),
        lambda c: c["stages"][0].pop("event"),
        lambda c: c.update(delta="x"),
        lambda c: c["level"].update(spec="planet"),
        lambda c: c.update(stages=3),
    ],
)
def test_malformed_parts_are_refused(release: Path, change: Any) -> None:
    edit(release, change, reseal=True)
    assert "epsilon" in failed(release)


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
        make_certificate(plan, [FACTS], noise="", for_release=True, spent=plan.stages[0].event, versions={})


def test_plan_refuses_overspending_and_repeated_names() -> None:
    with pytest.raises(PrivacyError, match="unique"):
        plan_of(stage("a"), stage("a"))
    with pytest.raises(PrivacyError, match="spends"):
        Plan("m", Privacy(EdgeLevel(), 1.0), 1e-5, (stage("a"),), "weights")


def test_plan_prints_what_a_reviewer_needs() -> None:
    text = str(plan_of(stage("first look")))
    for part in ("first look", "gaussian", "the test says so", "epsilon 1", "neighbours", "public"):
        assert part in text
