"""The noise source: the right distribution, never twice, never shared, never from random_state."""

from __future__ import annotations

import copy
import multiprocessing
import pickle

import numpy as np
import pytest
from scipy import stats

from discreet.errors import PlanViolationError
from discreet.mechanisms import gaussian
from discreet.mechanisms.bits import NoiseSource
from discreet.privacy.plan import Stage
from tests.mechanisms.draws import given_stage


def draw(source: NoiseSource, purpose: str, run: int = 0, size: int = 4) -> np.ndarray:
    return source.stream(purpose, run).uniform(size)


def stage(multiplier: float, sensitivity: float, shape: tuple[int, ...]) -> Stage:
    return given_stage("s", shape, sensitivity=sensitivity, multiplier=multiplier)


@pytest.mark.parametrize(("multiplier", "sensitivity"), [(1.0, 1.0), (3.0, 2**0.5), (0.2, 10.0)])
def test_gaussian_has_the_declared_scale(multiplier: float, sensitivity: float) -> None:
    value = np.full((300, 700), 5.0, dtype=np.float32)
    noisy = gaussian.release(value, stage(multiplier, sensitivity, value.shape), NoiseSource().stream("x"))
    noise = (noisy.astype(np.float64) - 5.0) / (multiplier * sensitivity)
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-8
    assert noise.std() == pytest.approx(1, abs=0.01)
    assert abs(np.corrcoef(noise[:, :-1].ravel(), noise[:, 1:].ravel())[0, 1]) < 0.015  # 7 standard deviations
    assert (value == 5.0).all()  # the input is left alone


def test_chunks_do_not_repeat() -> None:
    value = np.zeros(3 * gaussian._CHUNK // 2, dtype=np.float32)
    noisy = gaussian.release(value, stage(1.0, 1.0, value.shape), NoiseSource().stream("x"))
    half = gaussian._CHUNK // 2
    assert not np.array_equal(noisy[:half], noisy[-half:])


def test_streams_are_independent_and_used_once() -> None:
    source = NoiseSource()
    names = [("hop 1", 0), ("hop 1", 1), ("hop 2", 0), ("hop 10", 0)]
    drawn = [draw(source, *name, size=1000) for name in names]
    for i, one in enumerate(drawn):
        for two in drawn[i + 1 :]:
            assert abs(np.corrcoef(one, two)[0, 1]) < 0.2  # its standard deviation is 0.032
    with pytest.raises(PlanViolationError, match="already"):
        source.stream("hop 1", 1)


@pytest.mark.fresh
def test_entropy_by_default_and_seed_by_name() -> None:
    assert not np.array_equal(draw(NoiseSource(), "x"), draw(NoiseSource(), "x"))
    assert np.array_equal(draw(NoiseSource(insecure_seed=3), "x"), draw(NoiseSource(insecure_seed=3), "x"))
    assert not np.array_equal(draw(NoiseSource(insecure_seed=3), "x"), draw(NoiseSource(insecure_seed=4), "x"))
    assert NoiseSource().secure
    assert "NOT FOR RELEASE" in NoiseSource(insecure_seed=3).describe()


@pytest.mark.parametrize("carry", [pickle.dumps, copy.copy, copy.deepcopy])
def test_cannot_be_copied(carry: object) -> None:
    with pytest.raises(PlanViolationError, match="copied"):
        carry(NoiseSource())  # type: ignore[operator]


def _in_child(source: NoiseSource, out: object) -> None:
    try:
        source.stream("x")
    except PlanViolationError as error:
        out.put(str(error))  # type: ignore[attr-defined]
    else:
        out.put("drawn")  # type: ignore[attr-defined]


def test_cannot_cross_a_fork() -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(NoiseSource(), queue))
    child.start()
    assert "process" in queue.get(timeout=300)
    child.join()
