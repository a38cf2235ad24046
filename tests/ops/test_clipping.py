"""Clipped sums: parity with one example at a time and with Opacus, bounds on every term, refusals."""

from __future__ import annotations

import math
import warnings

import pytest
import scipy.sparse as sp
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from discreet.errors import ParameterError, UnsupportedError
from discreet.ops.affine_calls import register_affine
from discreet.ops.clipping import ClipRule, Room, check_rows, clipped_sum, trainable, views_of
from discreet.ops.layer_rows import AffineRows
from discreet.ops.sparse import SparseMatrix

CROSS = nn.CrossEntropyLoss(reduction="none")
SMALL = Room(terms=64, at_once=64, micro_batches=1)
"""So few terms that hardly anything is kept back for rounding."""


class InByOut(nn.Module):
    """An affine layer that holds its weight as inputs × outputs and reads sparse rows too."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / math.sqrt(inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


register_affine(InByOut, weight_is_in_by_out=True)


def mlp(bias=True, kind=nn.Linear):
    options = {} if kind is InByOut else {"bias": bias}
    return nn.Sequential(kind(6, 9, **options), nn.Tanh(), kind(9, 8, **options), nn.ReLU(), kind(8, 4, **options))


class EgoNetwork(nn.Module):
    """Encode every node of an ego-net, average the senders, decode with the centre: one linear map shared by slots."""

    def __init__(self, kind=nn.Linear, twice=False):
        super().__init__()
        self.encode, self.mix, self.decode = kind(6, 7), kind(7, 7), kind(7, 4)
        self.twice = twice

    def forward(self, x, mask):
        hidden = torch.tanh(self.encode(x))
        if not isinstance(x, torch.Tensor):
            hidden = hidden.view(*mask.shape, -1)
        if self.twice:
            hidden = torch.tanh(self.mix(hidden))
        weight = mask / mask.sum(-1, keepdim=True)
        pooled = (hidden * weight.unsqueeze(-1)).sum(-2)
        return self.decode(torch.relu(self.mix(pooled)))


def one_by_one(model, loss_of, count, rule):
    """The reference: differentiate and clip each example alone."""
    parameters = trainable(model)
    owners = [m for m in model.modules() if any(p.requires_grad for p in m.parameters(recurse=False))]
    terms = []
    for i in range(count):
        grads = dict(
            zip(
                parameters,
                torch.autograd.grad(loss_of(i), parameters, allow_unused=True, materialize_grads=True),
                strict=True,
            )
        )
        groups = [[grads[p] for p in m.parameters(recurse=False) if p.requires_grad] for m in owners]
        if not rule.per_layer:
            groups = [list(grads.values())]
        for group, norm in zip(groups, rule.norms, strict=True):
            length = math.sqrt(sum(float(g.double().square().sum()) for g in group))
            for g in group:
                g *= min(1.0, norm / length) if length else 1.0
        terms.append(torch.cat([grads[p].flatten() for p in parameters]).double())
    return torch.stack(terms)


def assert_same(result, terms):
    scale = float(terms.norm(dim=1).max())
    assert torch.allclose(result.flat, terms.sum(0), atol=1e-5 * scale, rtol=1e-5)
    if result.terms is not None:
        assert torch.allclose(result.terms, terms, atol=1e-5 * scale, rtol=1e-5)


def median_norm(model, losses_of):
    return float(clipped_sum(model, losses_of, ClipRule.flat(1.0)).norms.median())


RULES = ["flat", "tight", "loose", "layers"]


def rule_named(name, model, losses_of):
    scale = median_norm(model, losses_of)
    layers = sum(any(p.requires_grad for p in m.parameters(recurse=False)) for m in model.modules())
    return {
        "flat": ClipRule.flat(scale, SMALL),
        "tight": ClipRule.flat(scale / 100, SMALL),
        "loose": ClipRule.flat(scale * 100, SMALL),
        "layers": ClipRule.layers(scale, layers, SMALL),
    }[name]


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(40, 6, generator=generator) * torch.logspace(-1, 1, 40).unsqueeze(1)
    return rows, torch.randint(0, 4, (40,), generator=generator)


@pytest.fixture
def nets():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(25, 5, 6, generator=generator)
    mask = (torch.rand(25, 5, generator=generator) < 0.6).float()
    mask[:, 0] = 1
    return x * mask.unsqueeze(-1), mask, torch.randint(0, 4, (25,), generator=generator)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("kind", [nn.Linear, InByOut])
@pytest.mark.parametrize("bias", [True, False])
def test_mlp_matches_one_example_at_a_time(name, kind, bias, data):
    torch.manual_seed(0)
    x, y = data
    model = mlp(bias, kind)

    def losses_of():
        return CROSS(model(x), y)

    rule = rule_named(name, model, losses_of)
    terms = one_by_one(model, lambda i: CROSS(model(x[i : i + 1]), y[i : i + 1]).sum(), len(x), rule)
    assert_same(clipped_sum(model, losses_of, rule, terms=True), terms)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("flattened", [False, True])
def test_ego_nets_match_one_example_at_a_time(name, twice, flattened, nets):
    torch.manual_seed(0)
    x, mask, y = nets
    model = EgoNetwork(twice=twice)

    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = model

        def forward(self, x, mask):
            hidden = torch.tanh(model.encode(x.flatten(0, 1))).unflatten(0, mask.shape)
            weight = mask / mask.sum(-1, keepdim=True)
            if twice:
                hidden = torch.tanh(model.mix(hidden.flatten(0, 1))).unflatten(0, mask.shape)
            return model.decode(torch.relu(model.mix((hidden * weight.unsqueeze(-1)).sum(-2))))

    used = Flat() if flattened else model

    def losses_of():
        return CROSS(used(x, mask), y)

    rule = rule_named(name, used, losses_of)
    terms = one_by_one(model, lambda i: CROSS(model(x[i : i + 1], mask[i : i + 1]), y[i : i + 1]).sum(), len(x), rule)
    assert_same(clipped_sum(used, losses_of, rule, terms=True), terms)


def test_many_slots_take_the_direct_product(nets):
    """More slots than the Gram matrices are worth: the same figures the other way."""
    torch.manual_seed(0)
    x, y = torch.randn(9, 60, 6), torch.randint(0, 4, (9,))
    mask = torch.ones(9, 60)
    model = EgoNetwork()

    def losses_of():
        return CROSS(model(x, mask), y)

    rule = ClipRule.flat(median_norm(model, losses_of), SMALL)
    terms = one_by_one(model, lambda i: CROSS(model(x[i : i + 1], mask[i : i + 1]), y[i : i + 1]).sum(), 9, rule)
    assert_same(clipped_sum(model, losses_of, rule), terms)


@pytest.mark.parametrize("name", RULES)
def test_sparse_features_match_dense_ones(name, data):
    torch.manual_seed(0)
    x, y = data
    x = x * (torch.rand(x.shape) < 0.4)
    x[3] = 0
    sparse = SparseMatrix(sp.csr_array(x.numpy()))
    model = mlp(kind=InByOut)

    def losses_of():
        return CROSS(model(x), y)

    rule = rule_named(name, model, losses_of)
    dense = clipped_sum(model, losses_of, rule, terms=True)
    found = clipped_sum(model, lambda: CROSS(model(sparse), y), rule, terms=True)
    assert torch.allclose(found.flat, dense.flat, atol=1e-5, rtol=1e-4)
    assert torch.allclose(found.terms, dense.terms, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", RULES)
def test_sparse_ego_nets_match_dense_ones(name, nets):
    torch.manual_seed(0)
    x, mask, y = nets
    x = x * (torch.rand(x.shape) < 0.4)
    sparse = SparseMatrix(sp.csr_array(x.flatten(0, 1).numpy()))
    model = EgoNetwork(InByOut)

    def losses_of():
        return CROSS(model(x, mask), y)

    rule = rule_named(name, model, losses_of)
    dense = clipped_sum(model, losses_of, rule)
    found = clipped_sum(model, lambda: CROSS(model(sparse, mask), y), rule)
    assert torch.allclose(found.flat, dense.flat, atol=1e-5, rtol=1e-4)
    assert torch.allclose(found.norms, dense.norms, rtol=1e-4)


# -------------------------------------------------------------------- Opacus


def opacus_gradients(model, losses_of_wrapped):
    from opacus import GradSampleModule

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapped = GradSampleModule(model, loss_reduction="sum")
        losses_of_wrapped(wrapped).sum().backward()
        rows = torch.cat([p.grad_sample.flatten(1) for p in wrapped.parameters()], dim=1).detach()
        wrapped.to_standard_module()
    return rows


@pytest.mark.parametrize("which", ["mlp", "ego"])
def test_parity_with_opacus(which, data, nets):
    pytest.importorskip("opacus")
    torch.manual_seed(0)
    if which == "mlp":
        model, (x, y) = mlp(), data
        inputs = (x,)
    else:
        model, (x, mask, y) = EgoNetwork(), nets
        inputs = (x, mask)
    rule = ClipRule.flat(median_norm(model, lambda: CROSS(model(*inputs), y)), SMALL)
    found = clipped_sum(model, lambda: CROSS(model(*inputs), y), rule, terms=True)
    rows = opacus_gradients(model, lambda wrapped: CROSS(wrapped(*inputs), y)).double()
    norms = rows.norm(dim=1)
    assert torch.allclose(found.norms, norms, rtol=2e-5)
    assert_same(found, rows * (rule.total / norms).clamp(max=1).unsqueeze(1))


def test_parity_with_opacus_ghost_norms(data):
    pytest.importorskip("opacus")
    from opacus.grad_sample import GradSampleModuleFastGradientClipping

    torch.manual_seed(0)
    x, y = data
    model = mlp()
    found = clipped_sum(model, lambda: CROSS(model(x), y), ClipRule.flat(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapped = GradSampleModuleFastGradientClipping(model, loss_reduction="sum", max_grad_norm=1.0)
        CROSS(wrapped(x), y).sum().backward()
        assert torch.allclose(found.norms, wrapped.get_norm_sample().double(), rtol=2e-5)


# -------------------------------------------------------------------- other models


class Attention(nn.Module):
    """Parameters outside affine layers: an attention vector and GIN's ε."""

    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(6, 7), nn.Linear(7, 4)
        self.attend, self.epsilon = nn.Parameter(torch.randn(7)), nn.Parameter(torch.zeros(()))

    def forward(self, x, mask):
        hidden = torch.tanh(self.encode(x))
        score = (hidden @ self.attend).masked_fill(mask == 0, -1e9).softmax(-1)
        pooled = (hidden * score.unsqueeze(-1)).sum(-2) + (1 + self.epsilon) * hidden[..., 0, :]
        return self.decode(pooled)


def test_parameters_outside_affine_layers_are_refused(nets):
    x, mask, y = nets
    model = Attention()
    with pytest.raises(UnsupportedError, match="outside its affine layers"):
        clipped_sum(model, lambda: CROSS(model(x, mask), y), ClipRule.flat(1.0))


# -------------------------------------------------------------------- the bound


@pytest.mark.parametrize("name", ["flat", "layers"])
def test_no_term_exceeds_the_bound_whatever_the_example(name):
    """Huge, tiny, cancelling and overflowing examples."""
    torch.manual_seed(0)
    slots = 8
    base = torch.randn(30, 1, 6) * torch.logspace(-6, 6, 30).view(-1, 1, 1)
    x = base.repeat(1, slots, 1)
    x[:, 1::2] *= -1 - 1e-6 * torch.rand(30, slots // 2, 1)  # slots that all but cancel
    x[-1] = 1e30
    mask = torch.ones(30, slots)
    y = torch.randint(0, 4, (30,))
    model = EgoNetwork()
    with torch.no_grad():
        model.encode.weight *= 50
    rule = ClipRule.flat(0.5) if name == "flat" else ClipRule.layers(0.5, 3)
    found = clipped_sum(model, lambda: CROSS(model(x, mask), y), rule, terms=True)
    assert torch.isfinite(found.flat).all()
    norms = found.terms.double().norm(dim=1)
    assert float(norms.max()) <= rule.total
    assert float(norms.max()) > 0.999 * rule.total / (1 if name == "flat" else math.sqrt(3))


def test_cancelling_slots_do_not_slip_through():
    """Rows a and −a(1+η) under one gradient: the Gram norm is rounding alone, the product is not."""
    torch.manual_seed(0)
    layer = nn.Linear(50, 40, bias=False)
    x = torch.randn(200, 1, 50).repeat(1, 2, 1)
    x[:, 1] *= -1 - 3e-4 * torch.rand(200, 1)
    gradient = 1e3 * torch.randn(200, 1, 40)
    found = clipped_sum(layer, lambda: (layer(x) * gradient).sum((1, 2)), ClipRule.flat(1e-1), terms=True)
    assert float(found.terms.double().norm(dim=1).max()) <= 1e-1


def test_an_example_that_overflows_counts_as_zero(data):
    torch.manual_seed(0)
    x, y = data
    model = mlp()
    rule = ClipRule.flat(0.5)
    keep = clipped_sum(model, lambda: CROSS(model(x[1:]), y[1:]), rule).flat
    bad = x.clone()
    bad[0] = math.inf
    assert torch.allclose(clipped_sum(model, lambda: CROSS(model(bad), y), rule).flat, keep, atol=1e-6)


def test_one_example_changes_one_term(data):
    torch.manual_seed(0)
    x, y = data
    model = mlp()
    rule = ClipRule.flat(0.3)
    before = clipped_sum(model, lambda: CROSS(model(x), y), rule, terms=True)
    other = x.clone()
    other[5] = -100 * other[5]
    after = clipped_sum(model, lambda: CROSS(model(other), y), rule, terms=True)
    changed = (before.terms - after.terms).norm(dim=1) > 1e-6
    assert changed.nonzero().flatten().tolist() == [5]
    assert float((before.flat - after.flat).norm()) <= 2 * rule.total


def test_shares_scale_clipped_terms(data):
    torch.manual_seed(0)
    x, y = data
    model = mlp()
    rule = ClipRule.flat(0.3)
    shares = torch.linspace(0, 1, len(x), dtype=torch.float64)
    whole = clipped_sum(model, lambda: CROSS(model(x), y), rule, terms=True)
    part = clipped_sum(model, lambda: CROSS(model(x), y), rule, shares=shares, terms=True)
    assert torch.allclose(part.terms, whole.terms * shares[:, None], atol=1e-12)
    assert torch.allclose(part.flat, (whole.terms * shares[:, None]).sum(0), atol=1e-9)
    assert float(part.terms.norm(dim=1).max()) <= rule.total


def test_masked_losses_and_empty_batches(data):
    torch.manual_seed(0)
    x, y = data
    model = mlp()
    rule = ClipRule.flat(0.3)
    weight = (torch.arange(len(x)) % 2 == 0).float()
    masked = clipped_sum(model, lambda: CROSS(model(x), y) * weight, rule)
    half = clipped_sum(model, lambda: CROSS(model(x[::2]), y[::2]), rule)
    assert torch.allclose(masked.flat, half.flat, atol=1e-6)
    empty = clipped_sum(model, lambda: CROSS(model(x[:0]), y[:0]), rule, terms=True)
    assert not empty.flat.any()
    assert empty.terms.shape == (0, len(empty.flat))


def test_micro_batches_accumulate(data):
    torch.manual_seed(0)
    x, y = data
    model = mlp()
    rule = ClipRule.flat(0.3)
    whole = clipped_sum(model, lambda: CROSS(model(x), y), rule).flat
    parts = torch.arange(len(x)).split(7)
    total = sum(clipped_sum(model, lambda part=part: CROSS(model(x[part]), y[part]), rule).flat for part in parts)
    assert torch.allclose(total, whole, atol=1e-5)
    views = views_of(total, trainable(model))
    assert [view.shape for view in views] == [p.shape for p in trainable(model)]


def test_frozen_parameters_are_left_out(data):
    torch.manual_seed(0)
    x, y = data
    model = mlp()
    model[0].weight.requires_grad_(False)
    model[2].requires_grad_(False)
    rule = ClipRule.flat(0.2)
    terms = one_by_one(model, lambda i: CROSS(model(x[i : i + 1]), y[i : i + 1]).sum(), len(x), rule)
    assert_same(clipped_sum(model, lambda: CROSS(model(x), y), rule, terms=True), terms)


def test_the_model_is_left_as_it_was(data):
    x, y = data
    model = mlp()
    clipped_sum(model, lambda: CROSS(model(x), y), ClipRule.flat(1.0))
    assert all(p.grad is None for p in model.parameters())
    assert not any(m._forward_hooks for m in model.modules())


class Largest(TorchDispatchMode):
    """Watches for the largest tensor that anything makes."""

    def __init__(self):
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for part in made if isinstance(made, tuple | list) else (made,):
            if isinstance(part, torch.Tensor):
                self.numel = max(self.numel, part.numel())
        return made


@pytest.mark.parametrize("slots", [1, 8])
def test_memory_does_not_grow_with_batch_times_parameters(slots):
    batch, width = 300, 64
    model = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))
    x = torch.randn(batch, slots, width)
    with Largest() as seen:
        clipped_sum(model, lambda: model(x).square().sum((1, 2)), ClipRule.flat(1.0))
    assert seen.numel <= max(batch * slots * width, 2 * (width + 1) * width)
    with Largest() as seen:
        clipped_sum(model, lambda: model(x).square().sum((1, 2)), ClipRule.flat(1.0), terms=True)
    assert seen.numel >= batch * width * width


# -------------------------------------------------------------------- refusals


def test_batch_normalisation_is_refused_with_a_way_out(data):
    x, y = data
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))
    with pytest.raises(UnsupportedError, match=r"BatchNorm1d.*use LayerNorm or GroupNorm"):
        clipped_sum(model, lambda: CROSS(model(x), y), ClipRule.flat(1.0))


@pytest.mark.parametrize("norm", [0, 0.0, -1.0, math.inf, math.nan, True, "1"])
def test_bad_clip_norms_are_refused(norm):
    with pytest.raises(ParameterError, match="clip norm must be a positive number"):
        ClipRule.flat(norm)


def test_rules():
    assert ClipRule.layers(2.0, 4).norms == (1.0,) * 4
    assert ClipRule.layers(2.0, 4).total == 2.0
    assert ClipRule((3.0, 4.0), per_layer=True).total == 5.0
    with pytest.raises(ParameterError, match="takes one norm"):
        ClipRule((1.0, 2.0))


def test_wrong_number_of_layers_is_refused(data):
    x, y = data
    model = mlp()
    with pytest.raises(ParameterError, match="2 clip norms for 3 layers"):
        clipped_sum(model, lambda: CROSS(model(x), y), ClipRule.layers(1.0, 2))


def test_an_activation_in_place_is_refused(data):
    x, y = data
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 4))
    with pytest.raises(UnsupportedError, match="in place"):
        clipped_sum(model, lambda: CROSS(model(x), y), ClipRule.flat(1.0))


def test_a_single_loss_is_refused(data):
    x, y = data
    model = mlp()
    with pytest.raises(UnsupportedError, match="one loss per example"):
        clipped_sum(model, lambda: CROSS(model(x), y).mean(), ClipRule.flat(1.0))


def test_check_rows_catches_examples_that_meet(data, nets):
    torch.manual_seed(0)
    x, y = data
    model = mlp()
    check_rows(model, lambda: CROSS(model(x), y))

    def centred():
        hidden = model[0](x)
        return CROSS(model[1:](hidden - hidden.mean(0)), y)

    with pytest.raises(UnsupportedError, match="examples must not meet"):
        check_rows(model, centred)


def test_check_rows_catches_rows_in_the_wrong_order(nets):
    torch.manual_seed(0)
    x, mask, y = nets
    model = EgoNetwork()
    check_rows(model, lambda: CROSS(model(x, mask), y))

    def slot_major():
        hidden = torch.tanh(model.encode(x.transpose(0, 1))).transpose(0, 1)
        weight = mask / mask.sum(-1, keepdim=True)
        return CROSS(model.decode((hidden * weight.unsqueeze(-1)).sum(-2)), y)

    with pytest.raises(UnsupportedError, match="grouped by example"):
        check_rows(model, slot_major)


def test_numbers_are_double_precision_whatever_the_batch(data):
    x, y = data
    model = mlp()
    for count in (0, 1, len(x)):
        found = clipped_sum(model, lambda: CROSS(model(x[:count]), y[:count]), ClipRule.flat(1.0), terms=True)  # noqa: B023
        assert (found.flat.dtype, found.terms.dtype) == (torch.float64, torch.float64)
        assert torch.isfinite(found.flat).all()


def test_double_precision_models_are_refused():
    """Squares of doubles vanish: a row of 1e-200 under a gradient of 1e250 would seem to have no norm."""
    layer = nn.Linear(2, 2, bias=False).double()
    x = torch.full((1, 2), 1e-200, dtype=torch.float64)
    with pytest.raises(UnsupportedError, match="in a shorter one"):
        clipped_sum(layer, lambda: (layer(x) * 1e250).sum(1), ClipRule.flat(1.0))


# -------------------------------------------------------------------- room


def test_more_examples_than_planned_are_refused(data):
    x, y = data
    model = mlp()
    with pytest.raises(UnsupportedError, match="more examples at once than the 39"):
        clipped_sum(model, lambda: CROSS(model(x), y), ClipRule.flat(1.0, Room(at_once=39)))


def test_room_decides_what_terms_are_clipped_to():
    room = Room(terms=1000, at_once=100, micro_batches=10)
    error = room.error(500, 57)
    assert 0 < error < 1e-6
    assert ClipRule.flat(2.0, room).norms_with_room(500, 57)[0] == pytest.approx(2 * (1 - 2 * error), rel=1e-14)
    assert ClipRule.flat(2.0, room).norms_with_room(500, 57)[0] < 2 * (1 - 2 * error)
    assert Room(terms=2000, at_once=100, micro_batches=10).error(500, 57) == 2 * error
    assert room.error(500, 1) < error / 1000  # nothing cancels
    with pytest.raises(UnsupportedError, match="cannot be proved to keep to a clip norm within 1%"):
        ClipRule.flat(1.0, Room(terms=10**9)).norms_with_room(500, 57)


@pytest.mark.parametrize("case", ["all layers", "a layer that is not called", "several blocks", "no example"])
def test_nothing_of_the_memory_that_a_sum_is_written_to_is_left(case, data, monkeypatch):
    """What was there before is whatever the process held: none of it may stand in a sum."""
    x, y = data
    model = nn.ModuleDict({"used": mlp()})
    if case == "a layer that is not called":
        model["unused"] = nn.Linear(3, 3)
    if case == "several blocks":
        monkeypatch.setattr(AffineRows, "_rows_at_once", lambda self: 4)
    if case == "no example":
        x, y = x[:0], y[:0]

    def found():
        return clipped_sum(model, lambda: CROSS(model["used"](x), y), ClipRule.flat(0.5)).flat

    plain = found()
    filled = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, **options: filled(*size, **options).fill_(math.nan))
    assert torch.equal(found(), plain)
    assert torch.isfinite(plain).all()


@pytest.mark.parametrize("kind", [nn.Linear, InByOut])
@pytest.mark.parametrize(("inputs", "outputs"), [(3, 9), (9, 3)])
def test_products_that_are_turned_are_the_same(inputs, outputs, kind, monkeypatch):
    """In several blocks, whichever way round the weight lies."""
    torch.manual_seed(0)
    model, x, y = kind(inputs, outputs), torch.randn(40, inputs), torch.randint(0, outputs, (40,))
    monkeypatch.setattr(AffineRows, "_rows_at_once", lambda self: 16)
    turned = []

    def always(self):
        turned.append(self)
        return True

    sums = []
    for is_turned in (lambda self: False, always):
        monkeypatch.setattr(AffineRows, "_is_turned", is_turned)
        sums.append(clipped_sum(model, lambda: CROSS(model(x), y), ClipRule.flat(0.5), terms=True))
    assert torch.allclose(sums[0].flat, sums[1].flat, rtol=0, atol=1e-13)
    assert torch.allclose(sums[1].flat, sums[1].terms.sum(0), rtol=0, atol=1e-13)
    assert turned
