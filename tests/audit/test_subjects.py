"""What is audited trains for a few steps, also where a method leaves their number to a rule."""

from __future__ import annotations

import pytest

from discreet.audit.subjects import QUICK, cheap
from discreet.methods.registry import find_method, load_method
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import parse_level


@pytest.mark.parametrize("name", ["hop-bayes", "gap", "dp-mlp", "dpdgc", "progap"])
def test_a_subject_takes_few_steps(name: str) -> None:
    estimator = load_method(find_method(name))(Privacy(parse_level("neighbor:2"), 1.0, 1e-3))
    assert cheap(estimator).get_params()["steps"] == QUICK["steps"]
    assert cheap(estimator, kept=["steps"]).get_params()["steps"] == estimator.get_params()["steps"]
