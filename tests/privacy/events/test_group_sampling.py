"""The group-subsampled Gaussian: its dominating pair, its privacy loss distribution, its Rényi bound."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import binom, hypergeom, norm

from discreet.errors import PrivacyError
from discreet.privacy import accountants, events
from discreet.privacy.calibration import calibrate, steps_for
from discreet.privacy.events.group_sampling import (
    GroupFixedSampledGaussianDpEvent,
    GroupSampledGaussianDpEvent,
    dominating_pair,
)
from tests.effort import HIGH

PAPER_N, PAPER_K, PAPER_BATCH = 90_941, 8, 10_000
PAPER_DELTA = 1 / (10 * PAPER_N)
GROUPS = (1, 2, 3, 8) if HIGH else (1, 3, 8)
GRID = list(itertools.product(GROUPS, [0.02, 0.3, 1.0], [0.7, 2.0, 12.0], ["null", "replace"]))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_CACHE", str(tmp_path))


def poisson(noise, q, k, change="null"):
    return GroupSampledGaussianDpEvent(noise, q, k, change)


def one_step(event, interval=1e-3):
    from discreet.privacy.events import group_sampling

    return group_sampling._one_poisson_step(event, interval)


# -------------------------------------------------------------------- δ by brute force


def mixture_density(t, weights, means, deviation):
    return norm.pdf(t[:, None], np.asarray(means, dtype=float)[None, :], deviation) @ weights


def hockey_stick(p, q, epsilon, cell):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * cell)


def true_deltas(event, epsilons):
    """δ(ε) of the stated pair in both orders, by integrating its densities on a fine grid."""
    k, q, noise = event.group_size, event.sampling_probability, event.noise_multiplier
    t, cell = np.linspace(-k - 12 * noise, k + 12 * noise, 60_001, retstep=True)
    other = k - 1 if event.change == "null" else k
    up = mixture_density(t, binom.pmf(np.arange(k + 1), k, q), np.arange(k + 1), noise)
    down = mixture_density(t, binom.pmf(np.arange(other + 1), other, q), -np.arange(other + 1), noise)
    return [(hockey_stick(up, down, e, cell), hockey_stick(down, up, e, cell)) for e in epsilons]


@pytest.mark.effort
@pytest.mark.parametrize(("k", "q", "noise", "change"), GRID)
def test_loss_distribution_meets_direct_integration(k, q, noise, change):
    event = poisson(noise, q, k, change)
    made = one_step(event)
    forth, back, _ = dominating_pair(event)
    epsilons = (0.0, 0.1, 1.0, 4.0)
    for epsilon, truth in zip(epsilons, true_deltas(event, epsilons), strict=True):
        assert max(truth) - 1e-7 <= made.get_delta_for_epsilon(epsilon) <= max(truth) + 2e-4
        assert (forth.delta(epsilon), back.delta(epsilon)) == pytest.approx(truth, abs=1e-7)


def plane_deltas(xs, ys, q, noise, gammas):
    """H_γ of Σ B_i x_i + σZ against Σ B_i y_i + σZ in the plane, over every outcome of the coins, on a grid."""
    k = len(xs)
    side, cell = np.linspace(-k - 6 * noise, k + 6 * noise, 321, retstep=True)
    plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)

    def density(terms):
        total = np.zeros(len(plane))
        for coins in itertools.product([0, 1], repeat=k):
            weight = math.prod(q if coin else 1 - q for coin in coins)
            mean = np.asarray(coins) @ terms
            total += weight * np.exp(-((plane - mean) ** 2).sum(1) / (2 * noise**2)) / (2 * math.pi * noise**2)
        return total

    p, other = density(np.asarray(xs)), density(np.asarray(ys))
    return [float(np.maximum(p - g * other, 0).sum() * cell**2) for g in gammas]


def clipped(rng, k):
    """Terms in the unit ball: mostly on its boundary, often collinear with the first axis."""
    angle = rng.choice([0.0, math.pi, rng.uniform(0, 2 * math.pi)], size=k)
    radius = rng.choice([1.0, 1.0, rng.uniform()], size=k)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


@pytest.mark.parametrize("change", ["null", "replace"])
def test_no_step_on_neighbours_exceeds_the_pair(change):
    """The theorem of the module, tried on random terms in the plane, and attained by collinear ones."""
    rng = np.random.default_rng(5)
    gammas = [0.3, 1.0, math.e**0.5, math.e**2]
    tightest = 0.0  # sums over cells of width 0.04 are exact to about 1e-5 at the kink
    for trial in range(24):
        k = int(rng.integers(1, 4))
        q, noise = rng.choice([0.1, 0.4, 0.8]), rng.choice([0.6, 1.0, 2.0])
        xs, ys = clipped(rng, k), clipped(rng, k)
        if trial % 6 == 0:  # the worst case
            xs, ys = np.tile([1.0, 0.0], (k, 1)), np.tile([-1.0, 0.0], (k, 1))
        if change == "null":
            ys[0] = 0.0
        forth, back, _ = dominating_pair(poisson(noise, q, k, change))
        for pair, (p, other) in ((forth, (xs, ys)), (back, (ys, xs))):
            for gamma, found in zip(gammas, plane_deltas(p, other, q, noise, gammas), strict=True):
                bound = pair.delta(math.log(gamma))
                assert found <= bound + 5e-5, (k, q, noise, gamma, found, bound)
                tightest = max(tightest, found / bound if bound > 1e-3 else 0.0)
    assert tightest > 0.999


def test_one_sided_mixture_is_no_bound():
    """The trap: shifts 2iC against N(0, σ²) lies below what two collinear groups attain."""
    k, q = 8, 0.3
    t, cell = np.linspace(-25, 35, 200_001, retstep=True)
    weights = binom.pmf(np.arange(k + 1), k, q)
    one_sided = hockey_stick(mixture_density(t, weights, 2 * np.arange(k + 1), 1.0), norm.pdf(t), 0.0, cell)
    attained = true_deltas(poisson(1.0, q, k, "replace"), [0.0])[0][0]
    assert one_sided == pytest.approx(0.8217, abs=1e-4)
    assert attained == pytest.approx(0.8655, abs=1e-4)
    assert one_step(poisson(1.0, q, k, "replace")).get_delta_for_epsilon(0.0) >= attained


def test_noise_for_root_k_or_one_record_is_no_bound():
    """Accounting a group as one record, with noise scaled by √k, stays below what a group attains."""
    k, q, noise, epsilon = 4, 0.2, 3.0, 0.5
    attained = true_deltas(poisson(noise, q, k, "replace"), [epsilon])[0][0]
    as_one = one_step(poisson(noise / math.sqrt(k), q, 1, "replace")).get_delta_for_epsilon(epsilon)
    assert as_one < 0.9 * attained


# -------------------------------------------------------------------- check values and a second way


@pytest.mark.parametrize(("steps", "by_rdp", "by_pair"), [(711, 29.97, 17.553), (108, 10.00, 5.660)])
def test_check_values(steps, by_rdp, by_pair):
    noise = 2.0 * PAPER_K
    fixed = events.repeat(GroupFixedSampledGaussianDpEvent(noise, PAPER_N, PAPER_BATCH, PAPER_K, "replace"), steps)
    assert accountants.rdp_epsilon(fixed, PAPER_DELTA) == pytest.approx(by_rdp, abs=0.006)
    drawn = events.repeat(poisson(noise, PAPER_BATCH / PAPER_N, PAPER_K, "replace"), steps)
    assert accountants.pld_epsilon(drawn, PAPER_DELTA) == pytest.approx(by_pair, abs=2e-3)


def test_grid_is_fine_enough():
    """A ten times coarser grid changes ε by less than a thousandth, from above."""
    event = poisson(16.0, PAPER_BATCH / PAPER_N, PAPER_K, "replace")
    fine = one_step(event, 1e-4).self_compose(711).get_epsilon_for_delta(PAPER_DELTA)
    coarse = one_step(event, 1e-3).self_compose(711).get_epsilon_for_delta(PAPER_DELTA)
    assert fine <= coarse <= fine + 1e-3


@pytest.mark.parametrize(
    ("q", "noise", "steps"), [(0.05, 1.03, 500), (0.001, 0.8, 2000), (0.3, 3.0, 50), (1.0, 2.0, 3)]
)
def test_one_example_under_null_is_ordinary_dp_sgd(q, noise, steps):
    ours = events.repeat(poisson(noise, q, 1, "null"), steps)
    theirs = events.repeat(events.PoissonSampledDpEvent(q, events.GaussianDpEvent(noise)), steps)
    for account in (accountants.pld_epsilon, accountants.rdp_epsilon):
        assert account(ours, 1e-6) == pytest.approx(account(theirs, 1e-6), rel=1e-5)


@pytest.mark.parametrize("k", [1, 5])
def test_full_batch_is_one_gaussian(k):
    """At q = 1 a replacement moves the sum by 2kC."""
    ours = accountants.pld_epsilon(events.repeat(poisson(10.0, 1.0, k, "replace"), 4), 1e-5)
    exact = accountants.exact_epsilon(events.repeat(events.GaussianDpEvent(10.0 / (2 * k)), 4), 1e-5)
    assert exact <= ours <= exact + 1e-3


@pytest.mark.parametrize("change", ["null", "replace"])
def test_fixed_batches_meet_enumeration(change):
    """All batches of a tiny data set with collinear terms: never above the bound, by either accountant."""
    size, batch, k, noise = 6, 3, 2, 1.2
    event = GroupFixedSampledGaussianDpEvent(noise, size, batch, k, change)
    t, cell = np.linspace(-15, 15, 60_001, retstep=True)
    sums = {side: np.zeros_like(t) for side in (1, -1)}
    batches = list(itertools.combinations(range(size), batch))
    for chosen in batches:
        own, other = 0 in chosen, 1 in chosen
        sums[1] += norm.pdf(t, own + other, noise) / len(batches)
        sums[-1] += norm.pdf(t, -(own and change == "replace") - other, noise) / len(batches)
    made = events.kind_of(event).pld(event, 1)
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        bound = made.get_delta_for_epsilon(epsilon)
        assert hockey_stick(sums[1], sums[-1], epsilon, cell) <= bound
        assert hockey_stick(sums[-1], sums[1], epsilon, cell) <= bound
    curve = accountants.rdp_curve(event)
    for order, bound in zip(accountants.RDP_ORDERS[:60], curve[:60], strict=True):
        moment = float((sums[1] ** order * sums[-1] ** (1 - order)).sum() * cell)
        assert math.log(moment) / (order - 1) <= bound


def test_fixed_rdp_is_theorem_one():
    size, batch, k, noise = 1000, 100, 4, 9.0
    curve = accountants.rdp_curve(GroupFixedSampledGaussianDpEvent(noise, size, batch, k, "replace"))
    hits = np.arange(k + 1)
    weights = hypergeom.pmf(hits, size, k, batch)
    for order, found in list(zip(accountants.RDP_ORDERS, curve, strict=True))[:80:7]:
        moments = np.exp(order * (order - 1) * (2 * hits) ** 2 / (2 * noise**2))
        assert found == pytest.approx(math.log(weights @ moments) / (order - 1), rel=1e-9)


# -------------------------------------------------------------------- how the two accountants and the dials behave


@pytest.mark.effort
@pytest.mark.parametrize(("k", "q", "noise", "change"), [case for case in GRID if case[2] >= 1.5 * case[0]])
def test_loss_distributions_never_exceed_renyi(k, q, noise, change):
    size = 500
    for event in (
        poisson(noise, q, k, change),
        GroupFixedSampledGaussianDpEvent(noise, size, max(1, int(q * size)), k, change),
    ):
        found = accountants.spend(events.repeat(event, 20), 1e-5)
        assert found["pld"] <= found["rdp"] * (1 + 1e-6)


def epsilon(event, steps=50):
    return accountants.pld_epsilon(events.repeat(event, steps), 1e-5)


def test_epsilon_moves_the_right_way():
    base = epsilon(poisson(6.0, 0.1, 4))
    assert epsilon(poisson(6.0, 0.1, 5)) > base > epsilon(poisson(6.0, 0.1, 3))
    assert epsilon(poisson(6.0, 0.12, 4)) > base > epsilon(poisson(6.5, 0.1, 4))
    assert epsilon(poisson(6.0, 0.1, 4, "replace")) > base > epsilon(poisson(6.0, 0.1, 3, "replace"))


def test_count_equals_a_loop():
    for event in (poisson(3.0, 0.2, 3), GroupFixedSampledGaussianDpEvent(5.0, 50, 10, 3, "replace")):
        counted = accountants.spend(events.repeat(event, 7), 1e-5)
        looped = accountants.spend(events.compose([event] * 7), 1e-5)
        assert counted == pytest.approx(looped, rel=1e-6)


def test_mixed_with_other_events():
    event = events.compose([events.repeat(poisson(8.0, 0.1, 3), 20), events.GaussianDpEvent(2.0)])
    alone = accountants.pld_epsilon(events.GaussianDpEvent(2.0), 1e-5)
    assert alone < accountants.pld_epsilon(event, 1e-5) < accountants.rdp_epsilon(event, 1e-5)


def test_calibration_keeps_within_the_target_and_is_remembered(tmp_path):
    unit = events.repeat(poisson(1.0, 0.05, 8), 100)
    factor = calibrate(unit, 4.0, 1e-5)
    spent = accountants.epsilon_of(events.scale_noise(unit, factor), 1e-5)
    assert 0.995 * 4.0 < spent <= 4.0
    assert len(list(tmp_path.rglob("*.json"))) == 1
    assert calibrate(unit, 4.0, 1e-5) == factor


def test_steps_for_is_the_largest_number_within_the_budget(tmp_path):
    event = poisson(16.0, PAPER_BATCH / PAPER_N, PAPER_K, "replace")
    steps = steps_for(event, 5.66, PAPER_DELTA)
    assert steps == 108
    assert accountants.epsilon_of(events.repeat(event, steps + 1), PAPER_DELTA) > 5.66
    assert steps_for(event, 5.66, PAPER_DELTA) == steps
    assert steps_for(event, 1e-3, PAPER_DELTA) == 0
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_steps_for_gaussians_is_exact():
    event = events.GaussianDpEvent(20.0)
    steps = steps_for(event, 3.0, 1e-6)
    within = [accountants.exact_epsilon(events.repeat(event, steps + extra), 1e-6) <= 3.0 for extra in (0, 1)]
    assert within == [True, False]


def test_hopeless_noise_costs_neither_time_nor_memory():
    found = accountants.spend(events.repeat(poisson(0.05, 0.5, 20), 1000), 1e-5)
    assert math.isinf(found["pld"])
    assert found["rdp"] > 1000
    assert accountants.epsilon_of(poisson(0.0, 0.5, 2), 1e-5) == math.inf


@pytest.mark.parametrize("event", [poisson(2.0, 0.1, 3, "replace"), GroupFixedSampledGaussianDpEvent(2.0, 9, 3, 4)])
def test_json_round_trip_and_scaling(event):
    assert events.event_from_json(events.event_to_json(event)) == event
    assert events.scale_noise(event, 3.0).noise_multiplier == 6.0


def test_known_to_whoever_imports_events_alone():
    code = (
        "from discreet.privacy import events; print(events.event_from_json({'kind': 'GroupSampledGaussian', "
        "'noise_multiplier': 1.0, 'sampling_probability': 0.5, 'group_size': 2, 'change': 'null'}).group_size)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ((-1.0, 0.1, 2, "null"), "noise_multiplier"),
        ((math.nan, 0.1, 2, "null"), "noise_multiplier"),
        ((1.0, 0.0, 2, "null"), "sampling_probability"),
        ((1.0, 1.5, 2, "null"), "sampling_probability"),
        ((1.0, 0.1, 0, "null"), "group_size"),
        ((1.0, 0.1, 2.5, "null"), "group_size"),
        ((1.0, 0.1, 2, "remove"), "change"),
    ],
)
def test_bad_fields_are_named(fields, says):
    with pytest.raises(PrivacyError, match=says):
        GroupSampledGaussianDpEvent(*fields)


def test_a_batch_larger_than_the_data_is_refused():
    with pytest.raises(PrivacyError, match="batch_size 11 is larger"):
        GroupFixedSampledGaussianDpEvent(1.0, 10, 11, 2)
