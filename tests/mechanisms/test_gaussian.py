"""Noise on a public grid: the lemma in numbers, what rounding costs, and attacks that floats do not survive."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from discreet.arrays import FloatArray
from discreet.errors import ParameterError, PlanViolationError, UnsupportedError
from discreet.graph.graph import PublicFacts
from discreet.mechanisms import gaussian as grid_module
from discreet.mechanisms.bits import BitStream
from discreet.mechanisms.gaussian import MARGIN, MOST_STEPS, ROUNDING_WIDTH, Grid
from discreet.methods.registry import find_method, load_method
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel, NodeLevel
from tests.mechanisms.test_bits import FALSE_ALARM, stream

# -------------------------------------------------------------------- the lemma


def eta(r: float) -> Any:
    """ln((1 + e)/(1 − e)), e = 2·Σ exp(−2π²r²k²)."""
    e = 2 * mpmath.nsum(lambda k: mpmath.exp(-2 * (mpmath.pi * r * k) ** 2), [1, mpmath.inf])
    return mpmath.log((1 + e) / (1 - e))


def test_eta_is_what_the_docstring_says() -> None:
    with mpmath.workdps(60):
        per_coordinate = eta(ROUNDING_WIDTH)
        assert 2.0e-34 < per_coordinate <= 2.1e-34
        assert 2 * per_coordinate * mpmath.mpf(10) ** 15 < 1e-18
        assert mpmath.expm1(per_coordinate * mpmath.mpf(10) ** 15) < 1e-18


def furthest(r: float, s: float, sigma: float) -> float:
    """The largest |ln P − ln D| of the lemma, by integration: N(0, s²) rounded at random, against its discrete twin."""
    y, spacing = np.linspace(-14 * s, 14 * s, 20_001, retstep=True)
    z = np.arange(-math.ceil(14 * s + 9 * r), math.ceil(14 * s + 9 * r) + 1)
    rounding = np.exp(-((z[:, None] - y) ** 2) / (2 * r**2))
    rounding /= rounding.sum(axis=0)
    rounded = rounding @ stats.norm.pdf(y, scale=s) * spacing
    twin = np.exp(-(z**2) / (2 * sigma**2))
    twin /= twin.sum()
    near = np.abs(z) <= 4 * sigma
    return float(np.abs(np.log(rounded[near] / twin[near])).max())


@pytest.mark.parametrize("r", [0.5, 0.7, 0.9])
def test_the_lemma_holds(r: float) -> None:
    seen = [furthest(r, s, math.hypot(r, s)) for s in (0.1, 0.2, 0.4, 1.0, 2.0)]
    assert max(seen) <= float(eta(r)) + 1e-12
    assert max(seen) > float(eta(r)) / 20  # the bound is not idle: a tenth of it is reached here
    assert furthest(r, 2.0, 2.0) > float(eta(r))  # without r the two differ


def continuous_delta(epsilon: Any, mu: Any) -> Any:
    """δ(ε) of N(0, 1) against N(μ, 1)."""
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def discrete_delta(epsilon: float, sigma: float, shift: tuple[int, int]) -> float:
    """δ(ε) of the discrete Gaussian in the plane against itself, shifted; by enumeration."""
    z = np.arange(-math.ceil(12 * sigma) - 6, math.ceil(12 * sigma) + 7)
    total = math.fsum(np.exp(-(z**2) / (2 * sigma**2)))

    def law(a: int, b: int) -> FloatArray:
        squares = ((z - a) ** 2)[:, None] + ((z - b) ** 2)[None, :]
        return np.asarray(np.exp(-squares / (2 * sigma**2)) / total**2)

    return float(np.maximum(law(0, 0) - math.exp(epsilon) * law(*shift), 0).sum())


CURVES = list(itertools.product((0.0, 0.3, 1.0, 3.0), (0.5, 1.0, 3.0), ((1, 0), (3, 4))))


def excess(extra: float) -> float:
    """By how much the discrete δ exceeds the continuous one at worst, with σ² = s² + ``extra``."""
    worst = 0.0
    for epsilon, s, shift in CURVES:
        allowed = float(continuous_delta(mpmath.mpf(epsilon), mpmath.mpf(math.hypot(*shift)) / s))
        worst = max(worst, discrete_delta(epsilon, math.sqrt(s**2 + extra), shift) - allowed)
    return worst


def test_the_curve_carries_over_with_r_and_not_without() -> None:
    assert excess(ROUNDING_WIDTH**2) < 1e-12
    assert excess(0.0) > 1e-3


def test_the_margin_pays_for_eta() -> None:
    """At multiplier (1 + 2⁻⁵⁰)z, ε + 2Tdη and e^{Tdη}·δ of the lemma are within what z has, T·d = 1e15."""
    with mpmath.workdps(60):
        total = eta(ROUNDING_WIDTH) * mpmath.mpf(10) ** 15
        raised = 1 + mpmath.mpf(MARGIN.numerator) / MARGIN.denominator
        for epsilon in (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0):
            for exponent in (-1, -3, -6, -10, -20):
                mu = _mu(epsilon, mpmath.mpf(10) ** exponent)
                paid = mpmath.exp(total) * continuous_delta(epsilon - 2 * total, mu / raised)
                assert paid <= continuous_delta(mpmath.mpf(epsilon), mu)


def _mu(epsilon: float, delta: Any) -> Any:
    low, high = mpmath.mpf(10) ** -12, mpmath.mpf(1000)
    for _ in range(120):
        middle = mpmath.sqrt(low * high)
        low, high = (low, middle) if continuous_delta(mpmath.mpf(epsilon), middle) > delta else (middle, high)
    return low


# -------------------------------------------------------------------- the grid


RELEASES = [(1.0, 1.0, 1), (1.0, 4.2, 100), (3e-7, 0.3, 12_345), (2.0**0.5, 2.0, 10**9), (1e6, 50.0, 7), (1.0, 1e-3, 4)]


@pytest.mark.parametrize(("sensitivity", "multiplier", "size"), [*RELEASES, (2.0**-300, 1.0, 3), (2.0**300, 1.0, 3)])
def test_step_and_sigma(sensitivity: float, multiplier: float, size: int) -> None:
    grid = Grid.for_release(sensitivity, multiplier, size)
    step = Fraction(grid.step)
    assert step == Fraction(2) ** grid.exponent
    share = (step * 2**20) ** 2 * size / Fraction(sensitivity) ** 2
    assert Fraction(1, 4) < share <= 1  # g√d is the largest such share of Δ below 2⁻²⁰
    with mpmath.workdps(60):
        moved = mpmath.mpf(sensitivity) / mpmath.mpf(grid.step) + mpmath.sqrt(size)
        needed = mpmath.sqrt((mpmath.mpf(multiplier) * moved) ** 2 + 4)
        assert needed <= grid.sigma_steps <= needed * (1 + mpmath.mpf(2) ** -49)
    assert 1 <= grid.noise_std / (sensitivity * multiplier) < 1 + 1e-5


@pytest.mark.parametrize(("multiplier", "size"), [(2.0**34, 1), (2.0**30, 256), (2.0**20, 2**28), (2.0**24, 0)])
def test_much_noise_has_a_coarser_grid(multiplier: float, size: int) -> None:
    grid = Grid.for_release(1.0, multiplier, size)
    assert 2.0**42 < grid.sigma_steps <= 2.0**44
    assert 1 <= grid.noise_std / multiplier < 1 + 2.0**-8


REFUSED = [(0.0, 1.0, 3), (-1.0, 1.0, 3), (1e-200, 1.0, 3), (math.inf, 1.0, 3), (math.nan, 1.0, 3), (1.0, 0.0, 3)]
REFUSED += [(1.0, math.nan, 3), (1.0, 2.0**35, 1), (1.0, 2.0**33, 16), (1.0, 1.0, -1)]


@pytest.mark.parametrize(("sensitivity", "multiplier", "size"), REFUSED)
def test_refuses_what_it_cannot_prove(sensitivity: float, multiplier: float, size: int) -> None:
    with pytest.raises(ParameterError, match=r"must lie between|whole number"):
        Grid.for_release(sensitivity, multiplier, size)


def test_snap_is_exact_and_total() -> None:
    grid = Grid(8, -10, 5.0)
    g = grid.step
    values = np.array([0.5 * g, 1.5 * g, -0.5 * g, 3.49 * g, 1e300, -math.inf, math.nan, 5e-324])
    assert grid.snap(values).tolist() == [0, 2, 0, 3, MOST_STEPS, -MOST_STEPS, 0, 0]
    assert grid.snap(np.array([2.0**60, -(2.0**60)])).tolist() == [MOST_STEPS, -MOST_STEPS]
    assert Grid(1, -300, 5.0).snap(np.array([1e300])).tolist() == [MOST_STEPS]  # the scaled value overflows
    assert grid.snap(np.float32([0.25])).tolist() == [256]
    assert MOST_STEPS + 2**62 - 1 < 2**63


@pytest.mark.filterwarnings("error")
def test_snap_keeps_silent() -> None:
    """A warning would speak of private values."""
    Grid(1, -300, 5.0).snap(np.array([1e300, math.nan, math.inf, -math.inf, 5e-324]))


class Coarse(Grid):
    """Planted fault: rounds to every second point."""

    def snap(self, values: Any) -> Any:
        return 2 * np.rint(values / self.step / 2).astype(np.int64)


def furthest_move(kind: type[Grid]) -> Fraction:
    """(‖snap a − snap b‖·g − ‖a − b‖)/(g√d) at worst over pairs, in rationals for d = 4."""
    grid = kind(4, -3, 5.0)
    rng = np.random.default_rng(0)
    worst = Fraction(-9)
    pairs = [(a, a + rng.uniform(-0.2, 0.2, 4)) for a in rng.uniform(-2, 2, (300, 4))]
    middles = np.arange(-1, 1, grid.step / 2)  # just above and just below them may round apart
    pairs += [(np.full(4, middle + 2.0**-40), np.full(4, middle - 2.0**-40)) for middle in middles]
    for a, b in pairs:
        moved = math.dist(grid.snap(a).tolist(), grid.snap(b).tolist()) * grid.step - math.dist(a.tolist(), b.tolist())
        worst = max(worst, Fraction(moved) / Fraction(grid.step * 2))
    return worst


def test_rounding_costs_what_is_paid_and_no_more() -> None:
    assert Fraction(99, 100) < furthest_move(Grid) <= 1
    assert furthest_move(Coarse) > 1


def test_results_lie_on_the_grid_and_have_the_noise() -> None:
    values = np.random.default_rng(1).standard_normal((300, 400)) * 100
    grid = Grid.for_release(1.0, 3.0, values.size)
    noisy = grid.release(values, stream())
    steps = noisy / grid.step
    assert noisy.shape == values.shape
    assert noisy.dtype == np.float64
    assert np.array_equal(steps, np.rint(steps))
    noise = ((noisy - values) / grid.noise_std).ravel()
    assert stats.kstest(noise, "norm").pvalue > FALSE_ALARM
    assert abs((noise**2).mean() - 1) < 5 * math.sqrt(2 / noise.size)  # 2 %: other multipliers would be seen
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 5 / math.sqrt(noise.size)
    assert np.array_equal(noisy, grid.release(values, stream()))
    assert not np.array_equal(noisy, grid.release(values, stream(1)))


def test_noise_drawn_ahead_is_the_same() -> None:
    values = np.linspace(0, 1, 1000, dtype=np.float32)
    grid = Grid.for_release(1.0, 3.0, 1000)
    assert np.array_equal(grid.add(values, grid.sampler.draw(stream(), 1000)), grid.release(values, stream()))


@pytest.mark.parametrize("sensitivity", [1.0, 2.0**-300, 2.0**300])
def test_noise_is_added_to_what_snapping_gives(sensitivity: float) -> None:
    """Ties, what is cut off, and what is no number included."""
    odd = [0.0, -0.0, 0.5, 1.5, -2.5, 1e300, -1e300, math.inf, -math.inf, math.nan, 5e-324, 2.0**62, -(2.0**63), 3.7]
    grid = Grid.for_release(sensitivity, 3.0, 2 * len(odd))
    with np.errstate(over="ignore"):
        values = np.array([*odd, *(grid.step * np.array(odd))])
    noise = np.random.default_rng(0).integers(-(2**40), 2**40, values.size)
    assert np.array_equal(grid.add(values, noise), (grid.snap(values) + noise) * grid.step)
    assert np.array_equal(grid.add(values.reshape(2, -1), noise), grid.add(values, noise).reshape(2, -1))


def test_portions_of_a_large_release_have_streams_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid_module, "PORTION", 1000)
    grid = Grid.for_release(1.0, 2.0, 4500)
    released = []
    for threads in (1, 3):
        monkeypatch.setattr(grid_module, "thread_count", lambda threads=threads: threads)
        released.append(grid.release(np.zeros((1500, 3)), stream(5)))
    assert np.array_equal(*released)
    noise = released[0].reshape(-1)
    assert len(np.unique(noise)) > 4400  # no portion repeats another's noise
    assert stats.kstest(noise / grid.noise_std, "norm").pvalue > FALSE_ALARM
    keys = stream(5)
    for start in range(0, 4500, 1000):
        own = Grid.for_release(1.0, 2.0, 4500).sampler.draw(BitStream(keys.bytes(32)), min(1000, 4500 - start))
        assert np.array_equal(noise[start : start + 1000], own * grid.step)


def test_a_grid_is_for_its_own_size() -> None:
    grid = Grid.for_release(1.0, 3.0, 10)
    with pytest.raises(PlanViolationError, match="10 numbers"):
        grid.release(np.zeros(11), stream())
    assert Grid.for_release(1.0, 3.0, 0).release(np.zeros((0, 4)), stream()).shape == (0, 4)


# -------------------------------------------------------------------- attacks


def neighbours(values: FloatArray, reach: int) -> FloatArray:
    """Each double with those on either side of it, along a new last axis."""
    return np.asarray((values.view(np.int64)[..., None] + np.arange(-reach, reach + 1)).view(np.float64))


def possible(released: FloatArray, value: FloatArray, sigma: float) -> Any:
    """Whether some double x has fl(value + fl(σ·x)) = released; where there are many ways, yes.

    All that a normal variable can be is a double. So a value that needs a noise which no σ·x rounds to was not it.
    """
    noise = neighbours(released - value, 4)
    fits = value[..., None] + noise == released[..., None]
    made = (sigma * neighbours(noise / sigma, 2) == noise[..., None]).any(axis=-1)
    return fits[..., 0] | fits[..., -1] | (fits & made).any(axis=-1)


def right_guesses(release: Callable[[FloatArray], FloatArray], sigma: float, trials: int, size: int = 100) -> int:
    """How often one who knows two candidates at distance 1 names the one that was released, by what is possible."""
    rng = np.random.default_rng(7)
    right = 0
    for _ in range(trials):
        first = rng.uniform(-1, 1, size)
        candidates = (first, first + 1 / math.sqrt(size))
        secret = int(rng.integers(2))
        released = release(candidates[secret])
        doubts = [int((~possible(released, candidate, sigma)).sum()) for candidate in candidates]
        guess = int(rng.integers(2)) if doubts[0] == doubts[1] else int(doubts[1] < doubts[0])
        right += guess == secret
    return right


MULTIPLIER = 4.2248  # ε = 1 at δ = 1e-6
BEST_GUESS = float(stats.norm.cdf(0.5 / MULTIPLIER)) + 1e-6  # the share that this much noise lets anyone name rightly


def test_float_noise_gives_itself_away() -> None:
    """The path that this module takes the place of, kept here alone: its privacy is not what the formula says."""
    philox = np.random.Generator(np.random.Philox(5))
    right = right_guesses(lambda value: value + MULTIPLIER * philox.standard_normal(value.size), MULTIPLIER, 150)
    assert right >= 140
    assert stats.binomtest(right, 150, BEST_GUESS, alternative="greater").pvalue < FALSE_ALARM


def test_noise_on_the_grid_does_not() -> None:
    grid, source = Grid.for_release(1.0, MULTIPLIER, 100), stream(11)
    right = right_guesses(lambda value: grid.release(value, source), grid.noise_std, 400)
    assert stats.binomtest(right, 400, BEST_GUESS, alternative="greater").pvalue > FALSE_ALARM


def test_low_bits_tell_zero_from_one_in_floats_alone() -> None:
    """Mironov (2012): 1 + noise near zero has no bits below 2⁻⁵³, and 0 + noise has."""
    philox = np.random.Generator(np.random.Philox(6))
    zeros, ones = np.zeros(4000), np.ones(4000)

    def share_impossible_for_one(released: FloatArray) -> float:
        near = np.abs(released) < 0.25
        return float((~possible(released[near], ones[near], 1.0)).mean())

    assert share_impossible_for_one(zeros + philox.standard_normal(4000)) > 0.5
    assert share_impossible_for_one(ones + philox.standard_normal(4000)) == 0
    grid = Grid.for_release(1.0, 1.0, 4000)
    from_zero, from_one = (share_impossible_for_one(grid.release(v, stream(3))) for v in (zeros, ones))
    assert from_zero == from_one == 0


# -------------------------------------------------------------------- sums over very many rows


@pytest.mark.parametrize("method", ["gcon-ssp", "hop-bayes"])
def test_sums_over_more_rows_than_rounding_is_paid_for_are_refused(method: str) -> None:
    """The number of rows is public, and each adds 2⁻⁴³ to what two neighbours may be apart by rounding alone."""
    level, split = (EdgeLevel(), {}) if method == "gcon-ssp" else (NodeLevel(), {"split": (1.0, 1.0), "linear": True})
    estimator = load_method(find_method(method))(Privacy(level, 1.0, 1e-12), **split)
    few = PublicFacts(1000, 8, 3, 500, directed=False)
    name = "moments" if method == "gcon-ssp" else "links between classes"
    most = int(grid_module.ROUNDING_ROOM * 2**43 * estimator.plan(few).stage(name).sensitivity)
    assert most < 1 << 24
    if method == "gcon-ssp":
        fits, exceeds = (PublicFacts(n, 8, 3, 500, directed=False) for n in (most, most + 1))
    else:
        fits, exceeds = (PublicFacts(1 << 25, 8, 3, n, directed=False) for n in (most, most + 1))
    assert estimator.plan(fits).has(name)
    with pytest.raises(UnsupportedError, match=f"adds up a row for each of {most + 1} nodes"):
        estimator.plan(exceeds)
