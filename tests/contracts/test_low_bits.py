"""Attacks on the low bits of noisy answers, against every answer that any method gets, at every kind of level.

With noise in floating point, as this file alone adds it, they are certain of the value under the noise. With the noise
that the curator adds they know nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from discreet.mechanisms import dpsgd, gaussian, laplace, topk
from discreet.mechanisms.curator import MECHANISMS, Curator
from discreet.mechanisms.local import stages as local
from discreet.mechanisms.local.additive_reports import AdditiveReports, LaplaceReports
from discreet.mechanisms.objective import perturbation
from discreet.methods.base import NodeClassifier
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import NoPrivacy
from discreet.privacy.plan import Stage
from discreet.queries.confusion import OWN_RECORD
from discreet.queries.edge_cells import FLIPPED, LARGEST
from discreet.queries.propagated import ON_A_GRID
from discreet.queries.reports import LABELS
from discreet.release.certified_figures import certified_figures
from discreet.testing import MethodCase
from tests.contracts.cases import CASES
from tests.mechanisms.float_attack import share_ruled_out

Answer = tuple[Stage, np.ndarray, np.ndarray]
GAUSSIAN = ("gaussian", dpsgd.MECHANISM)
CHOICES = ("mechanism", "noise")
"""Parameters by which methods name the kind of noise: every one that a method knows is attacked."""
LEFT_OUT = {"structure_share": 0.5}
ENOUGH = 300
"""So many numbers of one fit that some rule a wrong value out, and with exact noise the true one too: about one in
thirty does, and which ones hangs on the processor's roundings.
"""
SEED = 11


def _cases() -> Iterator[MethodCase]:
    """One basis for each kind of level, for what adds the noise does not know which; and every kind of noise."""
    first: dict[tuple[str, str], MethodCase] = {}
    for case in CASES:
        if not isinstance(case.level, NoPrivacy):
            first.setdefault((case.make().method, case.level.kind), case)
    for case in first.values():
        yield MethodCase(partial(_made, case))
        estimator = case.make()
        hints = get_type_hints(type(estimator))
        for name in CHOICES:
            for option in _options(hints.get(name)):
                if option != getattr(estimator, name):
                    yield MethodCase(partial(_made, case, **{name: option}))


def _options(hint: Any) -> list[str]:
    """The words of a Literal, alone or beside None."""
    return [option for part in get_args(hint) for option in (get_args(part) or (part,)) if isinstance(option, str)]


def _made(case: MethodCase, **parameters: Any) -> NodeClassifier:
    """With a δ, which some noise cannot do without, and with what methods leave out on graphs as small as these."""
    estimator = case.make(**parameters)
    estimator.privacy = Privacy(case.level, 1.0, 1e-3)
    known = estimator.get_params(deep=False)
    return estimator.set_params(**{name: value for name, value in LEFT_OUT.items() if name in known})


def _name(case: MethodCase) -> str:
    estimator = case.make()
    return " ".join([str(case), *(str(getattr(estimator, name)) for name in CHOICES if hasattr(estimator, name))])


EVERY = list(_cases())


@contextmanager
def _watched(add_noise: Callable[[Stage, np.ndarray, np.ndarray], np.ndarray]) -> Iterator[list[Answer]]:
    """Stages, values and answers as they pass through any curator; ``add_noise`` may change what it hands out."""
    seen: list[Answer] = []
    one, step = Curator._answer, Curator._answer_step

    def noted(stage: Stage, value: Any, answer: Any) -> Any:
        if not stage.is_private:
            return answer
        plain = value if isinstance(value, np.ndarray) else value.toarray()
        given = add_noise(stage, plain, answer)
        seen.append((stage, plain, given if isinstance(given, np.ndarray) else given.toarray()))
        return given

    def answer(self: Curator, stage: Stage, run: int, value: Any) -> Any:
        return noted(stage, value, one(self, stage, run, value))

    def answer_step(self: Curator, stage: Stage, run: int, batch: Any, value: Any, terms: Any) -> Any:
        return noted(stage, value, step(self, stage, run, batch, value, terms))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Curator, "_answer", answer)
        patch.setattr(Curator, "_answer_step", answer_step)
        yield seen


def _as_it_is(stage: Stage, value: np.ndarray, answer: Any) -> Any:
    return answer


def _in_floating_point(stage: Stage, value: np.ndarray, answer: Any) -> Any:
    """How noise must not be added; kept here alone, to show that the attack works."""
    if stage.mechanism not in GAUSSIAN:
        return answer
    return value + stage.noise_std * np.random.default_rng(SEED + value.size).standard_normal(value.shape)


def _answers(case: MethodCase, add_noise: Any = _as_it_is) -> list[Answer]:
    """Everything that one fit is given, and where figures of the model can be asked for, that too."""
    with _watched(add_noise) as seen:
        estimator = case.make(insecure_noise_seed=SEED).fit(case.graph)
        if estimator.covers in OWN_RECORD and case.level.kind in ("node", "neighbor"):
            certified_figures(estimator, case.graph, 1.0, ids="all", insecure_noise_seed=SEED)
    return seen


_HONEST: dict[str, list[Answer]] = {}


def _honest_answers(case: MethodCase) -> list[Answer]:
    """With the noise that the curator adds: one fit for all tests."""
    if _name(case) not in _HONEST:
        _HONEST[_name(case)] = _answers(case)
    return _HONEST[_name(case)]


# -------------------------------------------------------------------- the porous lattice


def _steps(stage: Stage, answer: np.ndarray) -> np.ndarray:
    """The answer in units of the public step of its stage; a mechanism that is not known here fails."""
    name = stage.mechanism
    if name in GAUSSIAN:
        return answer / gaussian.grid_of(stage).step
    if name == "laplace":
        return answer * laplace.GRID
    if name in (FLIPPED, LARGEST, LABELS):
        return answer
    if name == ON_A_GRID:
        return answer / perturbation.output_grid(stage).step
    if name == topk.GAUSSIAN:
        return answer / np.array([1.0, gaussian.grid_of(stage).step])
    if name == topk.GUMBEL:
        query, spread = topk.picks_of(stage), topk.gumbel_scales(stage)[1]
        step = 1 / query.picks if spread is None else 2.0 ** laplace.step_exponent(query.clip, spread)
        return answer / np.array([1.0, step])
    assert name in local.FEATURES, f"a new mechanism, {name}, needs a public lattice here"
    return _report_steps(stage, answer)


def _report_steps(stage: Stage, answer: np.ndarray) -> np.ndarray:
    """Coins as they are; noisy numbers are whole numbers of steps less the middle of the range, in single precision."""
    encoder = local.encoder_of(stage)
    if not isinstance(encoder, AdditiveReports):
        return answer
    low, high = encoder.feature_range
    if isinstance(encoder, LaplaceReports):
        step = 2.0 ** laplace.step_exponent(high - low, encoder.laplace_scale)
    else:
        step = encoder._grid.step  # type: ignore[attr-defined]
    steps = np.rint((answer.astype(np.float64) + encoder.middle) / step)
    again = (steps * step - encoder.middle).astype(np.float32)
    return np.where(again == answer, steps, 0.5)


@pytest.mark.parametrize("case", EVERY, ids=_name)
def test_every_answer_lies_on_a_lattice_that_does_not_know_the_value(case: MethodCase) -> None:
    for stage, _, answer in _honest_answers(case):
        steps = _steps(stage, np.asarray(answer, dtype=answer.dtype))
        assert np.array_equal(steps, np.rint(steps)), stage.name
        assert answer.dtype == np.float64 or stage.mechanism not in GAUSSIAN


def test_every_mechanism_of_the_curator_is_attacked() -> None:
    seen = {mechanism for case in EVERY for mechanism in _mechanisms(case)}
    assert set(MECHANISMS) | {dpsgd.MECHANISM} <= seen


def _mechanisms(case: MethodCase) -> set[str]:
    facts = case.level.split(case.graph)[0].facts
    return {stage.mechanism for stage in case.make()._stages((facts,), case.level)}


# -------------------------------------------------------------------- inverting the sampler


def _verdicts(answers: list[Answer]) -> list[tuple[Stage, float, float, int]]:
    """By stage: the share of numbers that rule the true value out, and that of a value as far off as a neighbour's."""
    found: dict[str, list[Answer]] = {}
    for stage, value, answer in answers:
        if stage.mechanism in GAUSSIAN:
            found.setdefault(stage.name, []).append((stage, value, answer))
    verdicts = []
    for parts in found.values():
        stage = parts[0][0]
        value, answer = (np.concatenate([part[at].ravel() for part in parts]) for at in (1, 2))
        moved = stage.sensitivity / math.sqrt(math.prod(stage.shape))
        true, other = (share_ruled_out(answer, guess, stage.noise_std) for guess in (value, value + moved))
        verdicts.append((stage, true, other, len(value)))
    return verdicts


NOISY = [case for case in EVERY if _mechanisms(case) & {*GAUSSIAN}]


@pytest.mark.parametrize("case", NOISY, ids=_name)
def test_inverting_the_sampler_is_certain_of_floating_point_noise_and_of_no_answer(case: MethodCase) -> None:
    """A value is ruled out where no normal number that NumPy can draw leads from it to the answer."""
    floating, honest = _verdicts(_answers(case, _in_floating_point)), _verdicts(_honest_answers(case))
    for stage, true, _, _ in floating:
        assert true == 0, stage.name  # never the true value
    for stage, true, other, count in honest:
        assert abs(true - other) <= 5 / math.sqrt(count), stage.name
    if sum(count for *_, count in honest) >= ENOUGH:
        assert any(other > 0 for _, _, other, _ in floating)  # any other value by some of the numbers
        assert any(true > 0 for _, true, _, _ in honest)  # and on the grid the true one is "ruled out" too
