"""A search within its budget: what it costs, what it releases, what it keeps to itself, and what it stamps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.rdp import rdp_privacy_accountant as rdp

from discreet.cli import main
from discreet.errors import InvalidInputError, PrivacyError, UnsupportedError
from discreet.graph import csbm, split
from discreet.graph.graph import Graph
from discreet.privacy import events
from discreet.privacy.accountants import RDP_ORDERS, epsilon_of
from discreet.release.load import load_release
from discreet.release.verify import verify
from discreet.tuning import tuner
from discreet.tuning.tuner import make_search, tune
from tests.contracts.cases import make
from tests.release.forging import reseal

HIDDEN = [{"hidden": 4}, {"hidden": 6}]
GRAPH: Graph = split(csbm(120, 6, 6.0, seed=1), "60/20/20", 0)


def test_the_whole_search_keeps_within_epsilon_and_nearly_spends_it() -> None:
    estimator = make("gap", "edge", epsilon=4.0)
    search = make_search(estimator, HIDDEN, GRAPH, 8.0)
    budgeted = search.within_budget()
    assert 3.8 < budgeted.plan.epsilon <= 4.0
    assert budgeted.trial_epsilon < 3.0
    # A second way: the trial's own plan is all Gaussian, so dp_accounting can do the whole by itself.
    trial = make("gap", "edge", epsilon=budgeted.trial_epsilon).plan(GRAPH.public)
    event = RepeatAndSelectDpEvent(trial.event(), 8.0, 0.0)
    reference = rdp.RdpAccountant(RDP_ORDERS).compose(event).get_epsilon(budgeted.plan.delta)
    assert budgeted.plan.epsilon == pytest.approx(reference, rel=1e-6)
    # A test that can fail: trials that got two per cent more would break the promise.
    more = make("gap", "edge", epsilon=budgeted.trial_epsilon * 1.02).plan(GRAPH.public)
    assert epsilon_of(RepeatAndSelectDpEvent(more.event(), 8.0, 0.0), budgeted.plan.delta) > 4.0


def as_schema_1(certificate: dict[str, Any]) -> dict[str, Any]:
    def without(stages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{key: value for key, value in stage.items() if key not in ("noise", "proof")} for stage in stages]

    stages = {name: without(certificate[name]) for name in ("stages", "trial_stages")}
    return {**certificate, **stages, "schema": 1, "versions": {**certificate["versions"], "discreet": "0.1.0.dev0"}}


def test_the_winner_is_released_with_the_cost_of_the_search(tmp_path: Path) -> None:
    found = tune(make("gap", "edge", epsilon=4.0, insecure_noise_seed=None), HIDDEN, GRAPH, trials=3.0)
    assert found.accounting == "charged"
    assert found.tried == []
    assert found.settings in HIDDEN
    folder = found.estimator.save(tmp_path / "release")
    assert all(check.passed for check in verify(folder)), verify(folder)
    certificate = json.loads((folder / "certificate.json").read_text())
    assert certificate["epsilon"] == found.epsilon <= 4.0
    assert certificate["tuning"].startswith("charged")
    assert [stage["mechanism"] for stage in certificate["stages"]] == ["repeat-and-select"]
    assert {stage["name"] for stage in certificate["trial_stages"]}
    loaded = load_release(folder)
    assert loaded.epsilon_spent_ == found.epsilon
    assert loaded.predict(GRAPH).tolist() == found.estimator.predict(GRAPH).tolist()
    # What an older version wrote of a search, with less of it said, is compared and passes too.
    reseal(folder, as_schema_1(certificate))
    assert all(check.passed for check in verify(folder)), verify(folder)
    # Fewer trials than were run would be cheaper: the certificate cannot be talked down.
    event = certificate["stages"][0]["event"]
    assert (event["kind"], event["mean"]) == ("RepeatAndSelect", 3.0)
    event["mean"] = 2.0
    reseal(folder, certificate)
    assert {check.name for check in verify(folder) if not check.passed} == {"epsilon"}
    # Nor can the winner have had more of the budget than the trials that are paid for.
    event["mean"] = 3.0
    first = certificate["trial_stages"][0]
    for changed in (first["event"], first["noise"]):
        changed.update({key: value * 0.999 for key, value in changed.items() if isinstance(value, float)})
    reseal(folder, certificate)
    assert [check.name for check in verify(folder) if not check.passed] == ["plan"]


def test_the_number_of_trials_is_drawn_from_entropy_and_kept(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fits: list[dict[str, Any]] = []
    kind = type(make("gap", "edge"))
    real = kind.fit

    def counted(self: Any, graph: Graph, **options: Any) -> Any:
        fits.append({"hidden": self.hidden, "epsilon": self.privacy.epsilon, "seed": self.insecure_noise_seed})
        return real(self, graph, **options)

    monkeypatch.setattr(kind, "fit", counted)
    unscaled = GRAPH.with_features(1000 * GRAPH.features)
    for repeats in (1, 4):
        fits.clear()
        caplog.clear()
        monkeypatch.setattr(tuner, "draw_repeats", lambda mean, shape, rng, repeats=repeats: repeats)
        found = tune(make("gap", "edge", epsilon=4.0), HIDDEN, unscaled, trials=5.0)
        assert len(fits) == repeats
        assert len(caplog.records) == 1  # each fit warns of large numbers, and so would tell how many there were
        assert len({fit["epsilon"] for fit in fits}) == 1
        assert len({fit["seed"] for fit in fits}) == repeats  # no two trials share their noise
        certificate = json.dumps(found.estimator.certificate_)
        assert '"expected_trials": 5.0' in certificate
        assert "repeats" not in certificate
    assert not found.estimator.certificate_["noise"]["for_release"]


def test_at_node_level_the_score_is_charged_too() -> None:
    estimator = make("dp-mlp", "node:owned,max_degree=3", epsilon=8.0, batch_size=None)
    search = make_search(estimator, HIDDEN, GRAPH, 4.0, "geometric", score_noise=3.0)
    budgeted = search.within_budget()
    event = budgeted.plan.stages[0].event
    gaussian = events.GaussianDpEvent(3.0)
    parts = event.event.events if hasattr(event.event, "events") else [event.event]
    assert any(gaussian == leaf for part in parts for leaf, _ in events.leaves(part))
    assert any("two units" in note for note in budgeted.plan.notes)
    noisier = make_search(estimator, HIDDEN, GRAPH, 4.0, "geometric", score_noise=300.0).within_budget()
    assert noisier.trial_epsilon > budgeted.trial_epsilon
    found = search.run(budgeted)
    assert "validation score" in {stage["name"] for stage in found.estimator.certificate_["trial_stages"]}


def test_not_accounted_is_stamped_and_does_not_verify(tmp_path: Path) -> None:
    found = tune(make("gap", "edge", insecure_noise_seed=None), HIDDEN, GRAPH, accounted=False)
    assert found.accounting == "not accounted"
    assert len(found.tried) == 2
    assert found.score == max(score for _, score in found.tried)
    folder = found.estimator.save(tmp_path / "release")
    assert [check.name for check in verify(folder) if not check.passed] == ["tuning"]
    assert "Tuning not accounted." in (folder / "card.md").read_text()
    assert load_release(folder).certificate_["tuning"].startswith("tuning not accounted")


def test_a_search_that_reads_nothing_protected_is_free(tmp_path: Path) -> None:
    found = tune(make("mlp", "edge", insecure_noise_seed=None), HIDDEN, GRAPH)
    assert (found.accounting, found.epsilon) == ("free", 0.0)
    assert all(check.passed for check in verify(found.estimator.save(tmp_path / "release")))
    plain = tune(make("gcn", "none"), HIDDEN, GRAPH)
    assert plain.accounting == "free"


def test_what_cannot_be_charged_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="delta of its own"):
        tune(make("gcon", "edge"), [{"alpha": 0.5}, {"alpha": 0.8}], GRAPH)
    with pytest.raises(UnsupportedError, match="no bound"):
        tune(make("dp-gnn", "node:owned,max_degree=3"), HIDDEN, GRAPH)
    with pytest.raises(UnsupportedError, match="different things"):
        tune(make("hop-bayes", "edge"), [{"predictions": "own"}, {"predictions": "all"}], GRAPH)
    with pytest.raises(PrivacyError, match="above 1"):
        tune(make("gap", "edge"), HIDDEN, GRAPH, trials=1.0)
    with pytest.raises(PrivacyError, match="does not pay"):
        tune(make("dp-mlp", "node:owned,max_degree=3", batch_size=None), HIDDEN, GRAPH, score_noise=0.01)
    with pytest.raises(InvalidInputError, match="hidden"):
        tune(make("gap", "edge"), [{"hiden": 3}], GRAPH)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--set", "epochs=1", "--search", "hidden=4,6", "--trials", "2", "--json"]
    assert main(["tune", "--method", "gap", *quick, "--out", "won"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["epsilon_spent"] <= 4
    assert shown["tuning"] == "charged"
    assert set(shown["settings"]) == {"hidden"}
    assert not {"seconds", "tried", "repeats"} & shown.keys()
    assert main(["verify", "won"]) == 0
    capsys.readouterr()
    assert main(["tune", "--method", "gap", *quick, "--not-accounted", "--out", "free"]) == 0
    captured = capsys.readouterr()
    assert "tuning not accounted" in captured.err
    assert len(json.loads(captured.out)["tried"]) == 2
    assert main(["verify", "free"]) == 1
    assert main(["tune", "--method", "gap"]) == 2
    assert main(["tune", "--method", "gap", *quick, "--out", "won"]) == 2
    capsys.readouterr()
