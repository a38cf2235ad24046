"""Every noisy sum that a method gets, at every kind of level, is a whole number of steps on a public grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.mechanisms import dpsgd, gaussian
from discreet.mechanisms.curator import Curator
from discreet.privacy.levels import NoPrivacy
from discreet.privacy.plan import Stage
from discreet.testing import MethodCase
from tests.contracts.cases import CASES

PRIVATE = {
    (case.make().method, case.level.kind): case for case in CASES if not isinstance(case.level, NoPrivacy)
}  # one basis for each kind of level: what adds the noise does not know which


@pytest.mark.parametrize("case", PRIVATE.values(), ids=str)
def test_answers_lie_on_the_grid(case: MethodCase, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Stage, Any]] = []

    def watched(name: str) -> None:
        original = getattr(Curator, name)

        def answer(self: Curator, stage: Stage, *arguments: Any) -> Any:
            found = original(self, stage, *arguments)
            seen.append((stage, found))
            return found

        monkeypatch.setattr(Curator, name, answer)

    watched("_answer")
    watched("_answer_step")
    case.seeded().fit(case.graph)
    for stage, answer in seen:
        if stage.is_private and stage.mechanism in ("gaussian", dpsgd.MECHANISM):
            steps = np.asarray(answer, dtype=np.float64) / gaussian.grid_of(stage).step
            assert np.array_equal(steps, np.rint(steps)), stage.name
            assert answer.dtype == np.float64
