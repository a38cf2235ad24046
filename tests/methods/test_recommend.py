"""``auto``: chooses from public facts, within one coverage, and says why."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from discreet.audit.small_graphs import small_graph
from discreet.cli import main
from discreet.errors import ParameterError, UnsupportedError
from discreet.graph.graph import PublicFacts
from discreet.methods.outlook import Outlook, separation
from discreet.methods.recommend import Auto, recommend
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import parse_level

FACTS = PublicFacts(num_nodes=3000, num_features=50, num_classes=5, num_train=2000, directed=False)


def at(level: str, epsilon: float) -> Privacy:
    return Privacy(parse_level(level), epsilon)


def test_the_graph_is_left_alone_when_it_is_not_worth_its_noise() -> None:
    assert recommend(FACTS, at("edge", 0.05)).chosen.method == "mlp"
    found = recommend(FACTS, at("node:owned,max_degree=100", 0.1))
    assert found.chosen.outlook is not None
    assert found.chosen.outlook.graph == 0
    assert "not worth its noise" in found.reason


def test_edges_are_read_when_they_tell_enough() -> None:
    found = recommend(FACTS, at("edge", 4.0))
    assert found.chosen.outlook is not None
    assert found.chosen.outlook.graph > 1
    assert "standard deviations" in found.reason


def test_a_plan_of_hop_bayes_that_reads_no_edge_has_no_outlook_on_the_graph() -> None:
    found = recommend(FACTS, at("node", 0.1))
    ours = next(candidate for candidate in found.candidates if candidate.method == "hop-bayes")
    assert ours.outlook is not None
    assert ours.outlook.graph == 0
    assert found.chosen.title not in found.reason


def test_more_neighbours_make_the_graph_worth_more() -> None:
    few = recommend(FACTS, at("edge", 0.2), expected_degree=2.0)
    many = recommend(FACTS, at("edge", 0.2), expected_degree=200.0)
    assert few.chosen.method == "mlp"
    assert many.chosen.method != "mlp"


@pytest.mark.parametrize(
    ("covers", "allowed"),
    [
        ("predictions", {"weights+predictions", "weights+others-predictions"}),
        ("own", {"own-prediction", "weights+predictions", "weights+others-predictions"}),
    ],
)
def test_the_choice_has_the_coverage_that_was_asked_for(covers: str, allowed: set[str]) -> None:
    auto = Auto(at("edge", 1.0), covers=covers)  # type: ignore[arg-type]
    assert auto.estimator(auto.recommend(FACTS)).covers in allowed


def test_the_choice_depends_on_public_facts_alone() -> None:
    """Neighbouring graphs get the same recommendation."""
    rng = np.random.default_rng(0)
    for spec in ("edge", "node:owned,max_degree=3"):
        privacy = at(spec, 1.0)
        for _ in range(5):
            graph = privacy.level.view(small_graph(rng))
            neighbor = privacy.level.neighbor(graph, rng)
            assert recommend(graph.public, privacy) == recommend(neighbor.public, privacy)


def test_a_method_that_cannot_run_is_listed_with_its_reason() -> None:
    found = recommend(FACTS, at("neighbor:5", 1.0))
    assert found.chosen.method in ("dp-mlp", "hop-bayes")
    remarks = {candidate.method: candidate.remark for candidate in found.candidates}
    assert "max_degree" in remarks["gap"]


def test_bad_questions_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="name a method"):
        recommend(FACTS, Privacy.none())
    with pytest.raises(ParameterError, match="expected_degree"):
        Auto(at("edge", 1.0), expected_degree=0.0)
    with pytest.raises(ParameterError, match="covers"):
        Auto(at("edge", 1.0), covers="everything")  # type: ignore[arg-type]


def test_scores_rise_with_either_signal() -> None:
    assert Outlook(1.0, 1.0).score < Outlook(2.0, 1.0).score < Outlook(math.inf, 1.0).score < Outlook(math.inf, 2).score
    assert separation(10, 1.0) > separation(10, 2.0)
    assert separation(10, 1.0) > separation(5, 1.0)


def test_the_command_plans_and_trains_what_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--method", "auto", "--epsilon", "0.01", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["method"] == planned["recommendation"]["method"] == "mlp"
    assert main(["plan", "--method", "auto"]) == 0
    assert "use " in capsys.readouterr().out
    assert main(["train", "--method", "auto", "--epsilon", "0.01", "--json"]) == 0
    trained = json.loads(capsys.readouterr().out)
    assert trained["method"] == "mlp"
    assert trained["recommendation"]["reason"]
