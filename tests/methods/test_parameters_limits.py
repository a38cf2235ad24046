"""Every number that a person may set has a floor and a ceiling that double precision can live with."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pydantic import BaseModel, ValidationError

from discreet.errors import ParameterError
from discreet.limits import NORM, Limit
from discreet.methods.parameters import schema
from discreet.methods.registry import list_methods, load_method
from discreet.training.descent import LARGEST_PARAMETER, keep_finite


def accepts(model: type[BaseModel], field: str, value: float) -> bool:
    try:
        model(**{field: value})
    except ValidationError:
        return False
    return True


def numbers(model: type[BaseModel]) -> list[str]:
    """The fields that take a number which is not whole; budgets aside, which are checked where they are shared out."""
    return [name for name in model.model_fields if accepts(model, name, 0.5) and not name.startswith("epsilon")]


@pytest.mark.parametrize("name", list_methods())
def test_no_parameter_takes_what_arithmetic_cannot_hold(name: str) -> None:
    """Values near the ends of double precision are refused; tiny ones may pass only where zero has a meaning."""
    model = schema(load_method(list_methods()[name]))
    for field in numbers(model):
        for bad in (math.nan, math.inf, -math.inf, 1e300):
            assert not accepts(model, field, bad), f"{field} takes {bad}"
        for tiny in (1e-300, 5e-324):
            assert accepts(model, field, 0.0) or not accepts(model, field, tiny), f"{field} takes {tiny} but not 0"


@pytest.mark.parametrize("name", list_methods())
def test_no_count_is_without_end(name: str) -> None:
    """Whole numbers too, alone and in tuples: a number of steps is a number of stages to account for."""
    model = schema(load_method(list_methods()[name]))
    for field, info in model.model_fields.items():
        assert field.startswith("epsilon") or not accepts(model, field, 10**30), field
        if isinstance(info.default, tuple):
            assert not any(accepts(model, field, (bad,) * len(info.default)) for bad in (math.inf, 10**30)), field


@pytest.mark.parametrize("bad", [0.0, -1.0, 1e-7, 2e6, math.nan, math.inf, True, "1"])
def test_a_limit_refuses_with_one_sentence(bad: object) -> None:
    with pytest.raises(ParameterError, match="clip_norm must lie between 1e-06 and 1e\\+06"):
        NORM.check("clip_norm", bad)  # type: ignore[arg-type]


def test_both_ends_are_allowed() -> None:
    assert [Limit(1e-6, 2.0).check("x", end) for end in (1e-6, 2.0)] == [1e-6, 2.0]


def test_parameters_stay_finite_whatever_the_noise_does() -> None:
    """A step that ran away leaves numbers that a network can still be run with."""
    parameter = torch.nn.Parameter(torch.tensor([math.nan, math.inf, -math.inf, 0.5]))
    with torch.no_grad():
        keep_finite([parameter])
    assert np.array_equal(parameter.detach(), [0.0, LARGEST_PARAMETER, -LARGEST_PARAMETER, 0.5])
