"""The tilt: its law, and its distance from the numbers that it is made of, against arithmetic of 60 digits."""

import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from discreet.mechanisms.bits import BitStream
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.objective import tilt

KEY = bytes(range(32))


@pytest.mark.parametrize("width", [1, 2, 7])
def test_a_length_times_normals_has_the_density_of_the_theorem(width):
    """∫ N(x; 0, v·I) over v of a χ² law with d + 1 degrees of freedom is proportional to exp(−‖x‖)."""
    chi = stats.chi2(width + 1)

    def density(radius):
        return integrate.quad(
            lambda v: (2 * math.pi * v) ** (-width / 2) * math.exp(-(radius**2) / (2 * v)) * chi.pdf(v), 0, 400,
            epsabs=0, epsrel=1e-9, limit=500, points=[1.0, 10.0, 50.0],
        )[0]  # fmt: skip

    for radius in (0.3, 1.0, 4.0):
        assert math.log(density(radius) / density(2.0)) == pytest.approx(2.0 - radius, abs=1e-6)


@pytest.mark.parametrize("width", [1, 5])
def test_the_tilt_is_uniform_in_direction_and_erlang_in_radius(width):
    drawn = tilt.noise_matrix(width, 4000, 2.5, BitStream(KEY))
    radius = np.linalg.norm(drawn, axis=0)
    assert stats.kstest(radius, stats.gamma(width, scale=1 / 2.5).cdf).pvalue > 1e-3
    assert stats.kstest((drawn * 2.5)[0], (-drawn * 2.5)[0]).pvalue > 1e-3


def test_doubles_are_as_near_as_is_proved_to_what_the_whole_numbers_say():
    width, classes, rate = 4, 300, 0.37
    found = tilt.noise_matrix(width, classes, rate, BitStream(KEY))
    whole = DiscreteGaussian(tilt.STEPS).draw(BitStream(KEY), (2 * width + 1, classes))
    with mpmath.workdps(60):
        for column in range(classes):
            numbers = [mpmath.mpf(int(number)) / mpmath.mpf(2) ** 44 for number in whole[:, column]]
            length = mpmath.sqrt(sum(number**2 for number in numbers[width:]))
            exact = [length * number / mpmath.mpf(rate) for number in numbers[:width]]
            off = mpmath.sqrt(sum((mpmath.mpf(a) - b) ** 2 for a, b in zip(found[:, column], exact, strict=True)))
            norm = mpmath.sqrt(sum(number**2 for number in exact))
            assert off <= (width + 12) * tilt.UNIT * norm


@pytest.mark.parametrize("reach", [7.0, 12.0])
@pytest.mark.parametrize("place", [0.0, 0.3, 0.5])
def test_rounding_at_random_goes_no_further_than_the_coupling_says(reach, place):
    steps = np.arange(-400, 401)
    weights = np.exp(-((steps - place) ** 2) / 8)
    far = np.abs(steps - place) > 2 * reach
    assert weights.sum() >= 5
    assert weights[far].sum() / weights.sum() <= math.exp(-(reach**2) / 2)


def test_the_distance_holds_for_normals_that_are_rounded_at_random():
    """As in the proof: normals, each moved by at most 2T steps in the worst direction."""
    width, rate, reach = 3, 0.5, 8.0
    rng = np.random.default_rng(0)
    steps, sides = float(tilt.STEPS), rng.choice([-1.0, 1.0], size=(200, 2 * width + 1))
    exact = rng.standard_normal((200, 2 * width + 1)).astype(np.longdouble) * steps
    moved = exact + 2 * reach * sides
    for y, z in zip(exact, moved, strict=True):
        one, two = (np.sqrt((v[width:] ** 2).sum()) * v[:width] / rate / steps**2 for v in (y, z))
        assert np.sqrt(((one - two) ** 2).sum()) <= tilt.tilt_error(width, rate, reach)
        assert np.sqrt((one**2).sum()) <= tilt.tilt_norm(width, rate, reach)
