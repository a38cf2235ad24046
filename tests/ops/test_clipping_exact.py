"""Clipped sums against exact arithmetic, on rows made to cancel: no term longer than C′, no sum further off than E."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn

from discreet.ops import layer_rows
from discreet.ops.affine_calls import pull_back, record, register_affine, register_scaling
from discreet.ops.clipping import ClipRule, Room, clipped_sum
from discreet.ops.sparse import SparseMatrix
from tests.ops import exact_rows

OUTPUTS = 4


class Map(nn.Module):
    """An affine layer that reads sparse rows too."""

    def __init__(self, inputs, outputs, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inputs, outputs))
        self.register_parameter("bias", nn.Parameter(torch.zeros(outputs)) if bias else None)

    def forward(self, x):
        return x @ self.weight if self.bias is None else x @ self.weight + self.bias


register_affine(Map, weight_is_in_by_out=True)


class Given(nn.Module):
    """Layers whose rows and output gradients are given: (examples, slots, width) each; loss = Σ outputs · gradients."""

    def __init__(self, pairs, *, sparse=False, bias=False):
        super().__init__()
        self.pairs = [tuple(torch.as_tensor(np.asarray(part, dtype=np.float32)) for part in pair) for pair in pairs]
        self.sparse, self.bias = sparse, bias
        self.maps = nn.ModuleList(Map(a.shape[2], g.shape[2], bias) for a, g in self.pairs)

    def losses(self):
        total = 0.0
        for layer, (rows, gradients) in zip(self.maps, self.pairs, strict=True):
            flat = rows.flatten(0, 1)
            output = layer(SparseMatrix(sp.csr_array(flat.numpy())) if self.sparse else flat)
            total = total + (output.view(gradients.shape) * gradients).sum((1, 2))
        return total

    def exact_rows(self, example):
        """Rows with the bias's column of ones, and gradients, of one example: for each layer."""
        for rows, gradients in self.pairs:
            given, above = rows[example].numpy(), gradients[example].numpy()
            yield np.concatenate([given, np.ones_like(given[:, :1])], 1) if self.bias else given, above


def factors_of(model, rule):
    """The factors of all layers as they are computed, and C′."""
    losses, calls = record(model, model.losses)
    pull_back(losses, calls)
    layers = [layer_rows.rows_of(call, len(losses)) for call in calls]
    width, slots = max(layer.width for layer in layers), max(layer.slots for layer in layers)
    bounds = rule.norms_with_room(width, slots, len(layers))
    return rule.factors([layer.sizes() for layer in layers], width, slots), bounds


def longest_terms(model, rule):
    """(longest clipped gradient that the sum shows, longest exact term over C′): batches of one example each."""
    seen = largest = 0.0
    factors, bounds = factors_of(model, rule)
    for i in range(len(model.pairs[0][0])):
        alone = Given([(a[i : i + 1], g[i : i + 1]) for a, g in model.pairs], sparse=model.sparse, bias=model.bias)
        seen = max(seen, exact_rows.length(clipped_sum(alone, alone.losses, rule).flat.numpy()))
        squares = [
            exact_rows.exact_square(*rows) * Fraction(float(factor[i])) ** 2
            for rows, factor in zip(model.exact_rows(i), factors, strict=True)
        ]
        if rule.per_layer:
            assert all(square <= Fraction(bound) ** 2 for square, bound in zip(squares, bounds, strict=True))
        within = sum(Fraction(bound) ** 2 for bound in bounds)
        assert sum(squares) <= within
        largest = max(largest, exact_rows.root(sum(squares) / within))
    return seen, largest


def cancelling(rng, width, slots, big, examples=2, outputs=OUTPUTS):
    """Rows big + p and −big + p in turn under one gradient, with a big and a p of their own for every feature."""
    common = big * rng.standard_normal((examples, 1, width))
    left = rng.standard_normal((examples, slots, width))
    sign = (-1.0) ** np.arange(slots)[None, :, None]
    if slots % 2:
        sign[:, -1] = 0
    gradients = np.repeat(rng.standard_normal((examples, 1, outputs)), slots, axis=1)
    return sign * common + left, gradients


def test_the_ruler():
    exact_rows.check_of_the_ruler()


# -------------------------------------------------------------------- terms

OPPOSITE = {
    (50, 2): (950.0, 64, 900.0, 29),
    (50, 8): (55.0, 64, 1410.0, 26),
    (50, 57): (52.0, 64, 1670.0, 26),
    (500, 2): (1050.0, 16, 680.0, 59),
    (500, 8): (1120.0, 16, 1690.0, 25),
    (500, 57): (1080.0, 64, 1810.0, 71),
    (1433, 2): (1910.0, 16, 710.0, 26),
    (1433, 8): (1350.0, 64, 730.0, 65),
    (1433, 57): (1830.0, 64, 1570.0, 20),
    (3703, 2): (1190.0, 16, 1430.0, 31),
    (3703, 8): (597.0, 64, 1550.0, 74),
    (3703, 57): (1200.0, 64, 1220.0, 34),
    (8710, 2): (549.0, 64, 760.0, 81),
    (8710, 8): (405.0, 16, 1950.0, 69),
    (8710, 57): (1140.0, 64, 730.0, 25),
}
"""(width, slots): (big, outputs, gradient, seed), found by a search for what single precision underestimates most: it
let pass terms of 1.02 C at 500 features, 1.58 C at 1433, 3.5 C at 3703 and 5.1 C at 8710."""


def opposite(width, slots):
    """Own row big + p, sender −big + p, and so on, all under one gradient: 2p is left, however big the rest."""
    big, outputs, gradient, seed = OPPOSITE[width, slots]
    left = np.random.default_rng(seed).standard_normal((1, 1, width))
    sign = (-1.0) ** np.arange(slots)[None, :, None]
    if slots % 2:
        sign[:, -1] = 0
    return sign * big + left, np.full((1, slots, outputs), gradient)


@pytest.mark.parametrize("per_layer", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("width", "slots"), OPPOSITE)
def test_rows_that_cancel(width, slots, sparse, per_layer, record_property):
    pair = opposite(width, slots)
    model = Given([pair] * (1 + per_layer), sparse=sparse, bias=sparse)
    seen, largest = longest_terms(model, ClipRule.layers(1.0, 2) if per_layer else ClipRule.flat(1.0))
    record_property("longest", largest)
    assert seen <= 1


@pytest.mark.parametrize(("width", "slots"), OPPOSITE)
def test_gradients_that_cancel(width, slots):
    """The same the other way round: rows agree, gradients are all but opposite."""
    seen, _ = longest_terms(Given([opposite(width, slots)[::-1]]), ClipRule.flat(1.0))
    assert seen <= 1


SCALES = {
    "denormal rows": (1e-42, 1e38),
    "denormal gradients": (1e38, 1e-42),
    "both denormal": (1e-42, 1e-42),
    "both huge": (1e38, 1e38),
    "plain": (1.0, 1.0),
}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", SCALES)
def test_ends_of_single_precision(name, sparse, bias):
    """Squares of single precision's smallest and largest numbers are ordinary doubles; singles they are not."""
    rng = np.random.default_rng(1)
    scale_in, scale_out = SCALES[name]
    rows = np.clip(rng.standard_normal((6, 3, 20)), -3, 3) * scale_in
    gradients = np.clip(rng.standard_normal((6, 3, 5)), -3, 3) * scale_out
    rows[1::2, 1] = -rows[1::2, 0] * (1 - 1e-6)
    seen, _ = longest_terms(Given([(rows, gradients)], sparse=sparse, bias=bias), ClipRule.flat(1e-3))
    assert 0 < seen <= 1e-3 or (name == "both denormal" and not bias)


def test_mixed_magnitudes():
    """Entries from 1e-40 to 1e30 in one example, on either side."""
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((20, 6, 30)) * 10.0 ** rng.uniform(-40, 30, (20, 6, 30))
    gradients = rng.standard_normal((20, 6, 8)) * 10.0 ** rng.uniform(-40, 30, (20, 6, 8))
    seen, _ = longest_terms(Given([(rows, gradients), (rows[:, :1], gradients[:, :1])]), ClipRule.flat(0.1))
    assert 0.05 < seen <= 0.1


@pytest.mark.parametrize("sparse", [False, True])
def test_one_slot_of_half_a_million_features(sparse, record_property):
    """Squares added in single precision were off by 1.8e-3 here."""
    rng = np.random.default_rng(3)
    rows = np.full((1, 1, 500_000), 0.37) + 1e-4 * rng.standard_normal((1, 1, 500_000))
    model = Given([(rows, np.full((1, 1, 1), 1.7))], sparse=sparse)
    seen, largest = longest_terms(model, ClipRule.flat(1.0))
    record_property("longest", largest)
    assert 0.999 < seen <= 1
    norms = clipped_sum(model, model.losses, ClipRule.flat(1.0)).norms
    exact = exact_rows.root(exact_rows.exact_square(*next(model.exact_rows(0))))
    assert exact <= float(norms[0]) <= exact * (1 + 1e-9)


def test_many_slots_and_a_narrow_output():
    """The direct product: its squares are added over one axis after the other, or they would be too many."""
    rng = np.random.default_rng(4)
    seen, _ = longest_terms(Given([cancelling(rng, 900, 57, 1000.0, 1, outputs=28)]), ClipRule.flat(1.0))
    assert seen <= 1
    assert 57 * (900 + 28) > 2 * 900 * 28


def random_model(rng):
    """Slots, widths, scales and degrees of cancellation at random; every fourth with features that agree."""
    slots, width, outputs = int(rng.choice([1, 2, 3, 8, 20])), int(rng.integers(1, 80)), int(rng.integers(1, 30))
    rows, gradients = cancelling(rng, width, slots, 10.0 ** rng.uniform(-2, 8), 3, outputs)
    gradients *= 1 + 10.0 ** rng.uniform(-8, 0) * rng.random(gradients.shape)
    sparse = bool(rng.integers(2))
    if rng.integers(4) == 0:
        width, slots = list(OPPOSITE)[rng.integers(len(OPPOSITE))]
        rows, gradients = opposite(width, slots)
        rows, sparse = rows + rng.choice([0.1, 1.0, 10.0]) * rng.standard_normal((1, 1, width)), False
    scale = 10.0 ** rng.uniform(-6, 6, 2)
    return Given([(rows * scale[0], gradients * scale[1])], sparse=sparse, bias=bool(rng.integers(2)))


def test_searching_for_long_terms(record_property):
    """The longest exact term over C′ that a search finds: C′ is reached, and never passed."""
    rng = np.random.default_rng(5)
    largest = 0.0
    for _ in range(100):
        norm = 10.0 ** rng.uniform(-4, 4)
        seen, found = longest_terms(random_model(rng), ClipRule.flat(norm))
        assert seen <= norm
        largest = max(largest, found)
    record_property("longest", largest)
    assert 1 - 1e-6 < largest <= 1


def test_an_example_that_cancels_beyond_measure_is_cut_short():
    """Cancellation by more than K costs length, never privacy: what is left of it is rounding."""
    rng = np.random.default_rng(6)
    model = Given([cancelling(rng, 500, 2, 1e6, 1)])
    (factor,), (bound,) = factors_of(model, ClipRule.flat(1.0))
    rows, gradients = next(model.exact_rows(0))
    whole = float(exact_rows.parts(rows, gradients))
    assert float(factor[0]) * whole == pytest.approx(layer_rows.CANCELLATION * bound, rel=1e-9)


# -------------------------------------------------------------------- layers that scale columns


class Scaled(nn.Module):
    """x ⊙ weight + bias, whose rows and output gradients are given as in :class:`Given`."""

    def __init__(self, rows, gradients):
        super().__init__()
        self.rows, self.gradients = (torch.as_tensor(np.asarray(p, dtype=np.float32)) for p in (rows, gradients))
        self.weight, self.bias = (nn.Parameter(torch.zeros(self.rows.shape[2])) for _ in range(2))

    def forward(self, x):
        return x * self.weight + self.bias

    def losses(self):
        return (self(self.rows.flatten(0, 1)).view(self.gradients.shape) * self.gradients).sum((1, 2))

    def exact(self, example):
        """The gradient of weight and bias in fractions."""
        rows, gradients = (np.vectorize(Fraction, otypes=[object])(p[example].double().numpy())
                           for p in (self.rows, self.gradients))  # fmt: skip
        return np.concatenate([(rows * gradients).sum(0), gradients.sum(0)])


register_scaling(Scaled)


@pytest.mark.parametrize("slots", [1, 2, 8, 57])
@pytest.mark.parametrize("big", [1.0, 1e3, 1e7])
def test_columns_that_are_scaled(slots, big):
    """No exact term is longer than C′, and the sum is within E of the exact terms' sum."""
    rng = np.random.default_rng(slots)
    model = Scaled(*cancelling(rng, 30, slots, big, 12, outputs=30))
    rule = ClipRule.flat(0.5, Room(terms=12, at_once=12, micro_batches=1))
    (factor,), (bound,) = factors_of(model, rule)
    terms = [model.exact(i) * Fraction(float(factor[i])) for i in range(12)]
    squares = [sum(number**2 for number in term) for term in terms]
    assert max(squares) <= Fraction(bound) ** 2
    if slots == 1:
        assert max(squares) >= (Fraction(bound) * (1 - Fraction(1, 10**9))) ** 2
    found = clipped_sum(model, model.losses, rule, terms=True)
    error = exact_rows.length(found.flat.numpy() - sum(terms))
    assert error <= rule.room.error(30, slots) * bound
    assert torch.allclose(found.terms.sum(0), found.flat, atol=1e-12)


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_scaled_row_that_is_not_finite_counts_as_zero(value):
    rng = np.random.default_rng(0)
    rows, gradients = rng.standard_normal((5, 2, 6)), rng.standard_normal((5, 2, 6))
    keep = Scaled(rows[1:], gradients[1:])
    rows[0, 1, 3] = value
    model = Scaled(rows, gradients)
    found = clipped_sum(model, model.losses, ClipRule.flat(1.0)).flat
    assert torch.allclose(found, clipped_sum(keep, keep.losses, ClipRule.flat(1.0)).flat, atol=1e-12)


# -------------------------------------------------------------------- sums


def moved(pair, other, rule):
    """How far the sum moves from one batch of one-slot examples to another."""
    sums = [clipped_sum(model, model.losses, rule).flat.double().numpy() for model in (Given([pair]), Given([other]))]
    return exact_rows.length(sums[0] - sums[1])


def test_sums_that_agree(record_property):
    """4088 terms in one direction: single precision moved by 1.000036 C when one of them went."""
    count, norm = 4088, 0.698
    room = Room(terms=count, at_once=4096, micro_batches=1)
    rule = ClipRule.flat(norm, room)
    rows, gradients = np.full((count, 1, 6), 5.0, np.float32), np.ones((count, 1, 5), np.float32)
    for gone in (1, 2, 7):
        left = moved((rows, gradients), (rows[gone:], gradients[gone:]), rule)
        turned = moved((rows, gradients), (np.concatenate([-rows[:gone], rows[gone:]]), gradients), rule)
        assert 0.999 * gone * norm < left <= gone * norm
        assert 1.999 * gone * norm < turned <= 2 * gone * norm
    model = Given([(rows, gradients)])
    whole = clipped_sum(model, model.losses, rule).flat.numpy()
    (factor,), (bound,) = factors_of(model, rule)
    exact = exact_rows.exact_sum(rows, gradients, factor.tolist())
    error = exact_rows.length(whole.reshape(exact.shape) - exact)
    record_property("error_over_E", error / (room.error(11, 1) * bound))
    assert error <= room.error(11, 1) * bound


@pytest.mark.parametrize("slots", [2, 8])
@pytest.mark.parametrize("sparse", [False, True])
def test_how_tight_the_error_of_a_step_is(slots, sparse, record_property):
    """Computed sums against sums of terms whose factors are exact too; rows that cancel up to K and beyond."""
    rng = np.random.default_rng(slots)
    count, width = 64, 10
    rows, gradients = cancelling(rng, width, slots, 1.0, count)
    rows = rows + (10.0 ** rng.uniform(0, 3, (count, 1, 1))) * (-1.0) ** np.arange(slots)[None, :, None]
    room = Room(terms=count, at_once=32, micro_batches=2)
    rule, model = ClipRule.flat(0.5, room), Given([(rows, gradients)], sparse=sparse)
    (bound,) = rule.norms_with_room(width + OUTPUTS, slots)
    spare = 4 * layer_rows.gamma(layer_rows.norm_roundings(width + OUTPUTS, slots))
    few, most = layer_rows.gamma(layer_rows.FEW), layer_rows.CANCELLATION
    singles, above = (part.numpy() for part in model.pairs[0])
    exact_factors = [
        exact_rows.exact_factor(a, g, bound, spare, few, most) for a, g in zip(singles, above, strict=True)
    ]
    halves = [Given([(singles[i::2], above[i::2])], sparse=sparse) for i in range(2)]
    computed = sum(clipped_sum(half, half.losses, rule).flat for half in halves).numpy()
    exact = exact_rows.exact_sum(singles, above, exact_factors)
    error, allowed = (
        exact_rows.length(computed.reshape(exact.shape) - exact),
        room.error(width + OUTPUTS, slots) * bound,
    )
    record_property("error_over_E", error / allowed)
    assert 0 < error <= allowed


# -------------------------------------------------------------------- examples beside each other


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("side", [0, 1])
def test_what_is_not_finite_stays_alone(sparse, slots, value, side):
    """The example counts as zero, in the layer's sum and beside others; sparse rows that hold it too."""
    rng = np.random.default_rng(8)
    pair = [rng.standard_normal((9, slots, 7)), rng.standard_normal((9, slots, 4))]
    rest = Given([[part[1:] for part in pair]], sparse=sparse)
    keep = clipped_sum(rest, rest.losses, ClipRule.flat(1.0)).flat
    pair[side][0, -1, 2] = value
    model = Given([pair], sparse=sparse)
    found = clipped_sum(model, model.losses, ClipRule.flat(1.0), terms=True)
    assert torch.allclose(found.flat, keep, atol=1e-12)
    assert not found.terms[0].any()


def rows_seen(network, given, labels):
    """All inputs and output gradients of the affine layers, by example."""
    losses, calls = record(network, lambda: nn.functional.cross_entropy(network(given), labels, reduction="none"))
    pull_back(losses, calls)
    return [part for call in calls for part in (*call.inputs, *call.gradients) if isinstance(part, torch.Tensor)]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("count", [2, 13, 300])
@pytest.mark.parametrize("value", [0.0, 1e11, 1e38, math.inf, math.nan, 1e-42])
def test_rows_are_the_same_bits_whatever_another_example_holds(sparse, count, value):
    """What the error of a step rests on: nothing of one example enters another's rows, not even by rounding."""
    torch.manual_seed(count)
    network = nn.Sequential(Map(60, 33, True), nn.Tanh(), Map(33, 5, True))
    nn.init.normal_(network[0].weight)
    nn.init.normal_(network[2].weight)
    given = torch.randn(count, 60) * (torch.rand(count, 60) < 0.3)
    labels, other = torch.randint(0, 5, (count,)), given.clone()
    other[count // 2] = value
    keep = torch.arange(count) != count // 2
    both = [SparseMatrix(sp.csr_array(part.numpy())) if sparse else part for part in (given, other)]
    for one, two in zip(*(rows_seen(network, part, labels) for part in both), strict=True):
        assert torch.equal(one[keep], two[keep])


@pytest.mark.parametrize("slots", [1, 3])
def test_entries_that_stand_twice_count_as_their_sum(slots):
    """The norm of a row with entries 2 and 2 at one place is 4, not √8."""
    data = np.full(2 * slots, 2.0, dtype=np.float32)
    twice = sp.csr_array((data, np.zeros(2 * slots, dtype=np.int32), np.arange(0, 2 * slots + 1, 2)), shape=(slots, 3))
    layer = Map(3, 2, bias=False)
    gradients = torch.ones(1, slots, 2)

    def losses():
        return (layer(SparseMatrix(twice)).view(1, slots, 2) * gradients).sum((1, 2))

    found = clipped_sum(layer, losses, ClipRule.flat(1.0))
    assert 0.999 < exact_rows.length(found.flat.numpy()) <= 1


@pytest.mark.parametrize("sparse", [False, True])
def test_portions_change_nothing_but_roundings(sparse, monkeypatch):
    """Few rows at a time, down to one, give the same factors and sums."""
    rng = np.random.default_rng(9)
    model = Given([cancelling(rng, 20, 4, 50.0, 13)], sparse=sparse, bias=True)
    rule = ClipRule.flat(0.3)
    whole = clipped_sum(model, model.losses, rule).flat
    for block in (1, 97, 4 * 24 * 5, 10**4):
        monkeypatch.setattr(layer_rows, "_BLOCK", block)
        assert torch.allclose(clipped_sum(model, model.losses, rule).flat, whole, rtol=0, atol=1e-12)


def test_layers_without_inputs():
    """No features at all: the bias alone learns."""
    model = Given([(np.zeros((5, 2, 0)), np.ones((5, 2, 3)))], bias=True)
    found = clipped_sum(model, model.losses, ClipRule.flat(1.0))
    assert exact_rows.length(found.flat.numpy()) == pytest.approx(5, rel=1e-4)


def test_squares_of_many_narrow_layers_are_not_underestimated():
    """One long layer and 287 short ones, each of which is lost in the sum: an encoder may have so many."""
    lost = torch.tensor([2.0**-53 * (1 - 2.0**-20)], dtype=torch.float64)
    sizes = [layer_rows.Sizes(square, square) for square in (torch.ones(1, dtype=torch.float64), *[lost] * 287)]
    exact = sum(Fraction(float(size.square)) for size in sizes)
    for found in layer_rows.Sizes.of_layers(sizes):
        assert exact <= Fraction(float(found)) <= exact * (1 + Fraction(1, 1 << 43))
    assert ClipRule.flat(1.0).norms_with_room(2, 1, 288)[0] < ClipRule.flat(1.0).norms_with_room(2, 1)[0]
