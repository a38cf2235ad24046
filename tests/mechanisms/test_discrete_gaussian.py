"""The discrete Gaussian: its layout in exact numbers, doubles against exact decisions, draws against the law."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from discreet.arrays import IntArray
from discreet.errors import ParameterError
from discreet.mechanisms import discrete_gaussian
from discreet.mechanisms.discrete_gaussian import CELL_BITS, CELLS, DiscreteGaussian, Layout, layout_of
from discreet.ops.compiled import _compiled, compiled
from tests.mechanisms.test_bits import FALSE_ALARM, Scripted, p_value, stream

SIGMAS = [0.25, 0.26, 0.7, 1.0, 3.0, 31.9, 100.0, 1.3 * 2**20, 2.0**30, 1.99 * 2**40, 2.0**44]


def of_layout(layout: Layout) -> DiscreteGaussian:
    """A sampler of any layout, right or wrong."""
    sampler = DiscreteGaussian(1.0)
    sampler.layout = layout
    return sampler


# -------------------------------------------------------------------- the layout


def rho(x: int, sigma: Fraction) -> Any:
    """exp(−x²/2σ²) to 80 digits, by other code than the library's."""
    exponent = Fraction(x * x) / (2 * sigma**2)
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)


def faults(layout: Layout) -> Iterator[str]:
    """What of the module's proof does not hold for this layout."""

    def number(value: Fraction) -> Any:
        return mpmath.mpf(value.numerator) / value.denominator

    with mpmath.workdps(80):
        kappa, width = number(layout.kappa), 1 << layout.shift
        column, level = layout.column[: layout.crossed].tolist(), layout.level[: layout.crossed].tolist()
        stacks: dict[int, list[tuple[int, bool]]] = {}
        for cell in range(layout.crossed):
            stacks.setdefault(column[cell], []).append((level[cell], cell < layout.inner))
        half = layout.tail_start // width
        if sorted(stacks) != list(range(-half, half)):
            yield "columns"
        for at, stack in stacks.items():
            ends = [rho(x, layout.sigma) for x in (at * width, at * width + width - 1)]
            if sorted(each for each, _ in stack) != list(range(len(stack))):
                yield "levels"
            if len(stack) * kappa < max(ends):
                yield "tops"
            if any(inner and (each + 1) * kappa > min(ends) for each, inner in stack):
                yield "inner cells"
        for stair in range(64):
            if number(layout.tail_height) / 2**stair < rho(
                layout.tail_start + (stair << layout.tail_shift), layout.sigma
            ):
                yield "stairs"
    tail = (layout.used - layout.crossed) * layout.kappa * width
    if tail != 4 * layout.tail_height * (1 << layout.tail_shift):
        yield "areas"
    if layout.used > CELLS or layout.shift + CELL_BITS + 1 > 64:
        yield "bits"


@pytest.mark.parametrize("sigma", SIGMAS)
def test_layout_is_what_the_proof_needs(sigma: float) -> None:
    layout = layout_of(Fraction(sigma))
    assert not list(faults(layout))
    assert layout.inner > 0.95 * CELLS  # and what makes it fast


def _next_level(layout: Layout) -> Layout:
    level = layout.level.copy()
    level[layout.inner : layout.crossed] += 1
    return replace(layout, level=level)


PLANTED = {
    "inner cells": lambda layout: replace(layout, inner=layout.inner + 1),
    "tops": lambda layout: replace(layout, height=layout.height - layout.height // 1000),
    "levels": _next_level,
    "stairs": lambda layout: replace(layout, used=layout.used - 1),
    "columns": lambda layout: replace(layout, column=np.abs(layout.column)),
}


@pytest.mark.parametrize("what", PLANTED)
def test_planted_layouts_are_seen(what: str) -> None:
    assert what in set(faults(PLANTED[what](layout_of(Fraction(100)))))


def test_layouts_are_kept() -> None:
    assert DiscreteGaussian(7.5).layout is DiscreteGaussian(Fraction(15, 2)).layout
    assert DiscreteGaussian(np.float32(7.5)).sigma == Fraction(15, 2)


@pytest.mark.parametrize("sigma", [0.2, 0.0, -1.0, 2.0**44 * (1 + 2**-52), float("inf"), float("nan")])
def test_sigma_has_limits(sigma: float) -> None:
    with pytest.raises(ParameterError, match="sigma"):
        DiscreteGaussian(sigma)


# -------------------------------------------------------------------- doubles against exact decisions


def close_calls(sampler: DiscreteGaussian, count: int) -> IntArray:
    """Words whose every proposal takes a second look, a fair part of them in the tail."""
    words = stream(5).words((count, 4))
    layout = sampler.layout
    cells = stream(6).integers(layout.crossed - layout.inner, count) + layout.inner
    cells[::5] = layout.crossed
    words[:, 0] = (words[:, 0] >> np.uint64(CELL_BITS) << np.uint64(CELL_BITS)) | cells.astype(np.uint64)
    return words


def decided(sampler: DiscreteGaussian, words: Any) -> list[int | None]:
    """What the kernel makes of each proposal, or −2⁶² where it leaves the decision to the exact routine."""
    found: list[int | None] = []
    for four in words:
        out = np.zeros(1, dtype=np.int64)
        filled, at, open_ = compiled(discrete_gaussian._sample)(
            four.copy(), 0, out, 0, discrete_gaussian.SLACK, *sampler.layout.for_kernel
        )
        assert at == 4
        found.append(-(2**62) if open_ else int(out[0]) if filled else None)
    return found


@pytest.mark.parametrize("sigma", [0.7, 3.0, 100.0, 1.3 * 2**20, 2.0**44])
def test_the_fast_path_decides_as_the_exact_one(sigma: float) -> None:
    sampler = DiscreteGaussian(sigma)
    words = close_calls(sampler, 400)
    fast = decided(sampler, words)
    exact = [sampler.layout.decide(four, stream()) for four in words]
    assert [a for a in fast if a != -(2**62)] == [b for a, b in zip(fast, exact, strict=True) if a != -(2**62)]
    assert fast.count(-(2**62)) <= 2
    assert None in exact
    assert any(x is not None and abs(x) >= sampler.layout.tail_start for x in exact)


@pytest.mark.parametrize("sigma", [0.25, 3.0, 50.0, 2.0**30])
def test_all_decisions_exact_gives_the_same_draws(sigma: float, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = DiscreteGaussian(sigma)
    fast = sampler.draw(stream(2), 3000)
    monkeypatch.setattr(discrete_gaussian, "SLACK", 1e300)
    assert np.array_equal(fast, sampler.draw(stream(2), 3000))


def test_a_kernel_that_is_off_is_seen() -> None:
    sampler = DiscreteGaussian(100.0)
    right = sampler.draw(stream(2), 20_000)
    *others, per_cell, per_stair = sampler.layout.for_kernel
    off = replace(sampler.layout)
    off.__dict__["for_kernel"] = (*others, per_cell * 1.001, per_stair)
    assert not np.array_equal(right, of_layout(off).draw(stream(2), 20_000))


def test_a_decision_on_the_edge_is_made_exactly() -> None:
    """A uniform word that agrees with p in 64 places is left open by doubles and settled by further words."""
    sampler = DiscreteGaussian(3.0)
    layout = sampler.layout
    cell = int(np.flatnonzero(layout.column[layout.inner : layout.crossed] == 2)[0]) + layout.inner
    with mpmath.workdps(80):
        chance = rho(2, layout.sigma) * layout.kappa.denominator / layout.kappa.numerator - int(layout.level[cell])
        edge = int(mpmath.floor(chance * 2**64))
        rest = float(chance * 2**64 - edge)
    four = np.array([cell, edge, 0, 0], dtype=np.uint64)
    assert decided(sampler, [four]) == [-(2**62)]
    heads = [layout.decide(four, stream(n)) is not None for n in range(300)]
    assert stats.binomtest(sum(heads), 300, rest).pvalue > FALSE_ALARM
    assert layout.decide(np.array([cell, edge - 1, 0, 0], dtype=np.uint64), stream()) == 2
    assert layout.decide(np.array([cell, edge + 1, 0, 0], dtype=np.uint64), stream()) is None


def test_a_word_of_zeros_climbs_on() -> None:
    """64 zeros are no stair yet: the exact routine reads on, and so high up nothing is accepted but by U near 0."""
    layout = DiscreteGaussian(1.0).layout
    words = np.array([layout.crossed, 1 << 63, 0, 0], dtype=np.uint64)
    assert decided(of_layout(layout), [words]) == [-(2**62)]
    assert layout.decide(words, Scripted([0, 8])) is None
    assert discrete_gaussian._zeros_before_one(0, Scripted([0, 8])) == 131


# -------------------------------------------------------------------- draws against the law


def law(sigma: float) -> dict[int, float]:
    reach = math.ceil(14 * sigma)
    weights = {x: math.exp(-0.5 * (x / sigma) ** 2) for x in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


@pytest.mark.parametrize("sigma", [0.25, 0.26, 0.7, 1.0, 3.0, 31.9, 100.0])
def test_draws_have_their_law(sigma: float) -> None:
    assert p_value(DiscreteGaussian(sigma).draw(stream(), 400_000), law(sigma)) > FALSE_ALARM


def test_planted_draws_are_seen() -> None:
    """Cells one level too high, and a zero that is counted from both sides."""
    shifted = of_layout(_next_level(layout_of(Fraction(100))))
    assert p_value(shifted.draw(stream(), 400_000), law(100.0)) < FALSE_ALARM
    drawn = DiscreteGaussian(3.0).draw(stream(), 400_000)
    assert p_value(np.where(drawn < 0, drawn + 1, drawn), law(3.0)) < FALSE_ALARM
    sampler = DiscreteGaussian(3.0)
    assert p_value(sampler.draw(stream(), 400_000), law(3.0 * 1.01)) < FALSE_ALARM


def test_draws_by_exact_decisions_have_their_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discrete_gaussian, "SLACK", 1e300)
    assert p_value(DiscreteGaussian(40.0).draw(stream(), 20_000), law(40.0)) > FALSE_ALARM


@pytest.mark.parametrize("sigma", [2.0**8, 1.3 * 2**20, 2.0**30, 1.7 * 2**40, 2.0**44])
def test_wide_draws(sigma: float) -> None:
    count = 400_000
    sampler = DiscreteGaussian(sigma)
    drawn = sampler.draw(stream(), count)
    scaled = drawn / sigma
    scores = [scaled.mean(), (scaled**2).mean() - 1, (scaled**3).mean(), (scaled**4).mean() - 3]
    for score, variance in zip(scores, (1, 2, 15, 96), strict=True):
        assert abs(score) * math.sqrt(count / variance) < 5
    assert abs((scaled[1:] * scaled[:-1]).mean()) * math.sqrt(count) < 5
    places = np.floor(stats.norm.cdf((drawn + 0.5) / sigma) * 500).astype(np.int64)
    if sigma > 1e5:  # else whole numbers straddle the 500 parts
        assert p_value(places, dict.fromkeys(range(500), 1 / 500)) > FALSE_ALARM
    assert p_value(drawn & 31, dict.fromkeys(range(32), 1 / 32)) > FALSE_ALARM


@pytest.mark.parametrize("sigma", [3.0, 100.0, 2.0**30])
def test_tails(sigma: float) -> None:
    """Beyond the last column on either side, and further out; the tail alone has its law as well."""
    count = 2_000_000
    sampler = DiscreteGaussian(sigma)
    drawn = sampler.draw(stream(9), count)
    total = sigma * math.sqrt(2 * math.pi)  # of ρ over all integers, to 1e-70 from σ = 3 on
    for start in (round(2 * sigma), sampler.layout.tail_start, round(4.4 * sigma)):
        chance = _beyond(start, sigma) / total
        for seen in ((drawn >= start).sum(), (drawn <= -start).sum()):
            assert stats.binomtest(int(seen), count, chance).pvalue > FALSE_ALARM
    assert np.abs(drawn).max() < 7 * sigma


def _beyond(start: int, sigma: float) -> float:
    """Σ ρ(x) over x ≥ start; the sum itself, or Euler and Maclaurin's first terms where it is long."""
    if sigma < 1000:
        return math.fsum(math.exp(-0.5 * (x / sigma) ** 2) for x in range(start, start + math.ceil(12 * sigma)))
    return float(stats.norm.sf(start / sigma)) * sigma * math.sqrt(2 * math.pi)


def test_draws_follow_from_the_key() -> None:
    sampler = DiscreteGaussian(1000.0)
    assert np.array_equal(sampler.draw(stream(1), (50, 400)).ravel(), sampler.draw(stream(1), 20_000))
    assert not np.array_equal(sampler.draw(stream(1), 100), sampler.draw(stream(2), 100))
    source = stream(1)
    assert not np.array_equal(sampler.draw(source, 100), sampler.draw(source, 100))
    assert sampler.draw(source, (0, 3)).shape == (0, 3)


def test_works_without_a_place_for_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    made = numba.njit

    def refuses_caches(*args: Any, cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("no locator available")
        return made(*args, **options)

    expected = DiscreteGaussian(5.0).draw(stream(), 10)
    monkeypatch.setattr(numba, "njit", refuses_caches)
    _compiled.cache_clear()
    assert np.array_equal(DiscreteGaussian(5.0).draw(stream(), 10), expected)
    _compiled.cache_clear()
