"""The curator runs its plan and nothing else."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.errors import PlanViolationError
from discreet.graph.parts import PrivatePart
from discreet.mechanisms.bits import NoiseSource
from discreet.mechanisms.curator import Curator
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel, NodeLevel, NoPrivacy, parse_level
from discreet.privacy.plan import Stage, make_plan
from discreet.queries.kept_edges import KEY, kept_edges_stage
from tests.mechanisms.draws import Given, given_stage, private_part

ZEROS = np.zeros((2, 3))


def stage(name: str, runs: int = 1) -> Stage:
    return given_stage(name, (2, 3), runs=runs)


@pytest.fixture
def curator() -> Curator:
    plan = make_plan("m", Privacy(EdgeLevel(), 1.0), 100, [stage("a", runs=2), stage("b")], "weights")
    return Curator(plan, NoiseSource(), [private_part()])


def test_runs_the_plan_and_writes_the_ledger(curator: Curator) -> None:
    answers = [curator.ask(name, value=ZEROS) for name in ("a", "a", "b")]
    curator.finish()
    assert [(entry.stage, entry.run) for entry in curator.ledger] == [("a", 0), ("a", 1), ("b", 0)]
    assert len({answer.tobytes() for answer in answers}) == 3
    assert curator.spent == [s.event for s in curator.plan.stages for _ in range(s.runs)]


def test_refuses_what_is_not_next(curator: Curator) -> None:
    with pytest.raises(PlanViolationError, match="next"):
        curator.ask("b", value=ZEROS)
    with pytest.raises(PlanViolationError, match="next"):
        curator.ask("c", value=ZEROS)


def test_refuses_more_than_planned(curator: Curator) -> None:
    for name in ("a", "a", "b"):
        curator.ask(name, value=ZEROS)
    with pytest.raises(PlanViolationError, match="run out"):
        curator.ask("b", value=ZEROS)


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((3, 2)),
        np.zeros(6),
        np.full((2, 3), np.nan),
        np.full((2, 3), np.inf),
        np.zeros((2, 3), dtype=int),
        sp.csr_array((3, 2)),
        sp.csr_array(np.full((2, 3), np.nan)),
    ],
)
def test_refuses_another_shape_or_kind(curator: Curator, value: Any) -> None:
    with pytest.raises(PlanViolationError):
        curator.ask("a", value=value)
    assert curator.ledger == []


def test_an_unfinished_plan_is_a_bug(curator: Curator) -> None:
    curator.ask("a", value=ZEROS)
    with pytest.raises(PlanViolationError, match="never ran"):
        curator.finish()


def test_private_stages_cannot_be_exposed_or_received(curator: Curator) -> None:
    with pytest.raises(PlanViolationError, match="private"):
        curator.expose("a")
    with pytest.raises(PlanViolationError, match="not by reports"):
        curator.receive("a")
    assert curator.ledger == []


def test_without_privacy_the_value_comes_back() -> None:
    plan = make_plan("m", Privacy(NoPrivacy()), 100, [stage("a")], "weights")
    value = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(Curator(plan, NoiseSource(), [private_part()]).ask("a", value=value), value)


# -------------------------------------------------------------------- what it holds


class NodesOf(Given):
    """How many nodes the asked graph has."""

    def answer(self, private: PrivatePart, **inputs: Any) -> Any:
        return np.full(self.size, float(private.graph.num_nodes))


def test_a_stage_asks_the_graph_that_it_was_planned_for() -> None:
    from discreet.graph.graph import Graph

    query = NodesOf((1,))
    drafts = [Stage.of("first", query), Stage.of("further", query, graph=1)]
    plan = make_plan("m", Privacy(NoPrivacy()), 100, drafts, "weights")
    parts = [PrivatePart(Graph.from_edges([0], [1], np.zeros((n, 1)))) for n in (2, 5)]
    curator = Curator(plan, NoiseSource(), parts)
    assert [curator.ask(name).item() for name in ("first", "further")] == [2.0, 5.0]


def test_private_parts_and_keys_are_not_handed_out() -> None:
    part = private_part()
    curator = Curator(make_plan("m", Privacy(NodeLevel(3), 1.0), 100, [], "weights"), NoiseSource(), [part])
    curator.draw_key("any purpose")
    assert len(part.key("any purpose")) == 16
    reachable = [value for name, value in vars(curator).items() if not name.startswith("_Curator__")]
    assert not any(value is part or (isinstance(value, list | tuple) and part in value) for value in reachable)


def test_a_key_is_a_stage_where_a_guarantee_is_over_it() -> None:
    level = parse_level("node:thinned,d_max=12,p=0.5,change=null")
    drafts = [*kept_edges_stage(1e-4), stage("a")]
    curator = Curator(
        make_plan("m", Privacy(level, 1.0, 1e-3), 100, drafts, "weights"), NoiseSource(), [private_part()]
    )
    with pytest.raises(PlanViolationError, match="next"):
        curator.ask("a", value=ZEROS)
    with pytest.raises(PlanViolationError, match="hands nothing out"):
        curator.ask(KEY)
    curator.draw_key(KEY)
    curator.ask("a", value=ZEROS)
    curator.finish()
    assert [entry.stage for entry in curator.ledger] == [KEY, "a"]


class Unheard(Given):
    mechanism: ClassVar[str] = "magic"


def test_an_unknown_mechanism_hands_nothing_out() -> None:
    plan = make_plan("m", Privacy(EdgeLevel(), 1.0), 100, [Stage.of("a", Unheard((2, 3)))], "weights")
    curator = Curator(plan, NoiseSource(), [private_part()])
    with pytest.raises(PlanViolationError, match="magic"):
        curator.ask("a", value=ZEROS)
    assert curator.ledger == []


@pytest.mark.parametrize(("odd", "refused"), [(np.nan, True), (np.inf, True), (-np.inf, True), (1e308, False)])
def test_answers_are_finite_numbers(curator: Curator, odd: float, refused: bool) -> None:
    """Those whose sum is beyond what a double holds included."""
    value = np.array([[odd, 1.0, 2.0], [abs(odd), 1e308, 0.0]])
    if not refused:
        assert np.isfinite(curator.ask("a", value=value)).all()
        return
    with pytest.raises(PlanViolationError, match="not finite"):
        curator.ask("a", value=value)
