"""Noisy steps: batches as the event says, noise of the stated scale, and what the audit allows of terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.arrays import Array, IntArray
from discreet.errors import PlanViolationError
from discreet.graph.parts import PrivatePart
from discreet.mechanisms import dpsgd
from discreet.mechanisms.bits import NoiseSource
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.dpsgd import draw_batch
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import NodeLevel, parse_level
from discreet.privacy.plan import Stage, make_plan
from discreet.queries.gradients import StepRule
from tests.mechanisms.draws import given_stage, private_part
from tests.mechanisms.steps import GivenSteps, steps_stage

PRIVACY = Privacy(parse_level("node:owned,max_degree=3,change=null"), 1.0, 1e-3)


def stage(batch_size: int | None = 3, **more: Any) -> Stage:
    given = {"parameters": 4, "examples": 10, "steps": 3, "clip_norm": 0.5, "touched": 2}
    return steps_stage(batch_size=batch_size, **{**given, **more})


def test_batches_follow_the_event() -> None:
    rng = np.random.default_rng(0)
    sizes = [len(draw_batch(stage(), rng)) for _ in range(4000)]
    assert np.mean(sizes) == pytest.approx(3, abs=0.1)
    assert np.var(sizes) == pytest.approx(10 * 0.3 * 0.7, rel=0.1)
    assert min(sizes) == 0, "an empty batch must be possible"
    fixed = [draw_batch(stage(sampling="fixed"), rng) for _ in range(200)]
    assert {len(set(batch.tolist())) for batch in fixed} == {3}
    assert np.array_equal(draw_batch(stage(None), rng), np.arange(10))
    with pytest.raises(PlanViolationError, match="does not take steps"):
        draw_batch(given_stage("s", (4,)), rng)


class Watched(GivenSteps):
    """Notes the batches that it is asked for."""

    seen: list[list[int]] = []  # noqa: RUF012  (emptied by the test that uses it)

    def answer(self, private: PrivatePart, *, batch: IntArray, **inputs: Any) -> Array:
        self.seen.append(batch.tolist())
        return super().answer(private, batch=batch, **inputs)


def test_curator_draws_fresh_batches_and_noise_and_keeps_to_its_plan() -> None:
    Watched.seen.clear()
    query = Watched(NodeLevel(1), "a sum", 4, 10, StepRule(0.5, 3), touched_examples=2)
    plan = make_plan("m", PRIVACY, 10, [Stage.of("steps", query, runs=3)], "weights")
    curator = Curator(plan, NoiseSource(insecure_seed=0), [private_part()])
    answers = [curator.ask("steps") for _ in range(3)]
    curator.finish()
    assert len({tuple(batch) for batch in Watched.seen}) > 1
    assert not np.array_equal(answers[0], answers[1])
    with pytest.raises(PlanViolationError, match="run out"):
        curator.ask("steps")


def test_noise_of_a_step_has_the_stated_scale() -> None:
    plan = make_plan("m", PRIVACY, 10, [stage(None, parameters=200_000, steps=1)], "weights")
    noisy = Curator(plan, NoiseSource(insecure_seed=0), [private_part()]).ask("steps")
    assert np.std(noisy) == pytest.approx(plan.stages[0].noise_std, rel=0.01)


@pytest.mark.parametrize(
    ("change", "one", "two", "words"),
    [
        ("null", [0.5, 0.5], [0.5, 0.0], None),
        ("null", [0.5, 0.5], [-0.5, 0.0], None),
        ("null", [0.5, 0.5], [-0.5, -0.5], "own term"),
        ("replace", [0.5, 0.5], [-0.5, -0.5], None),
        ("replace", [0.6, 0.0], [0.6, 0.0], "clip norm"),
        ("replace", [0.5, 0.5, 0.5], [0.0, 0.0, 0.0], "changed 3 terms"),
    ],
)
def test_what_terms_may_do(change: str, one: list[float], two: list[float], words: str | None) -> None:
    rows = [np.zeros((10, 4)), np.zeros((10, 4))]
    for row, values in zip(rows, (one, two), strict=True):
        row[: len(values), 0] = values
    _, fault = dpsgd.term_distance(stage(change=change), *rows, 1e-5)
    assert fault is None if words is None else words in (fault or "")
