"""Every network that noisy steps train gives an example the same rows, bit for bit, in every batch."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn

from discreet.methods.dp_gnn.networks import CONVOLUTIONS, EgoNetwork, EgoShape
from discreet.methods.dpdgc.networks import JointNetwork, RowEmbedding
from discreet.ops.affine_calls import pull_back, record
from discreet.ops.egonets import EgoNets
from discreet.ops.sparse import SparseMatrix
from discreet.training import networks
from discreet.training.encoder_modules import build_encoder, read_encoder
from discreet.training.networks import ACTIVATIONS, MLP, Head, HeadBeside, Weigher
from tests.ops.test_rows_products import subsets

COUNT, CLASSES = 331, 7


def rows_seen(network, logits_of, labels):
    """Inputs, outputs and output gradients of all affine layers, by example."""
    losses, calls = record(network, lambda: nn.functional.cross_entropy(logits_of(), labels, reduction="none"))
    pull_back(losses, calls)
    parts = [part for call in calls for part in (*call.inputs, *call.outputs, *call.gradients)]
    return [part.reshape(len(labels), -1) for part in parts if isinstance(part, torch.Tensor)]


def differ(network, logits_of, generator):
    """Whether any row of any layer depends on which examples stand beside it; ``logits_of(chosen)`` runs them."""
    labels = torch.randint(0, CLASSES, (COUNT,), generator=generator)
    whole = rows_seen(network, lambda: logits_of(torch.arange(COUNT)), labels)
    return any(
        not torch.equal(one, everyone[chosen])
        for chosen in subsets(COUNT, generator)
        if len(chosen)
        for one, everyone in zip(
            rows_seen(network, lambda given=chosen: logits_of(given), labels[chosen]), whole, strict=True
        )
    )


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def features(width, generator, *shape):
    drawn = torch.randn(COUNT, *shape, width, generator=generator)
    return drawn * (torch.rand(drawn.shape, generator=generator) < 0.3)


def sparse(rows):
    return SparseMatrix(sp.csr_array(rows.reshape(-1, rows.shape[-1]).numpy()))


@pytest.mark.parametrize("hidden", [5, 20, 64])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_networks_on_own_records(activation, hidden, generator):
    given, beside = features(33, generator), torch.randn(COUNT, CLASSES, generator=generator)
    mlp = MLP([33, hidden, hidden, CLASSES], activation, 0.0, generator)
    head = HeadBeside(Head([33 + CLASSES, hidden, CLASSES], activation, 0.0, generator))
    joint = JointNetwork(33, CLASSES, (hidden, 16), CLASSES, activation, generator)
    rows = RowEmbedding(33, hidden, CLASSES, activation, generator)
    assert not differ(mlp, lambda chosen: mlp(given[chosen]), generator)
    assert not differ(mlp, lambda chosen: mlp(sparse(given[chosen])), generator)
    assert not differ(head, lambda chosen: head(given[chosen], beside[chosen]), generator)
    assert not differ(joint, lambda chosen: joint(given[chosen], beside[chosen]), generator)
    assert not differ(rows, lambda chosen: rows(sparse(given[chosen])), generator)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_of_few_numbers(activation, generator):
    """Value and slope of a number, and of one that stands alone."""

    def both(numbers):
        leaf = numbers.clone().requires_grad_(True)
        value = ACTIVATIONS[activation](leaf)
        return torch.stack([value.detach(), *torch.autograd.grad(value.sum(), leaf)])

    for _ in range(20):
        numbers = 3 * torch.randn(64, generator=generator)
        whole = both(numbers)
        for first, size in [(place, 1) for place in range(24)] + [(5, size) for size in range(2, 41)]:
            assert torch.equal(both(numbers[first : first + size]), whole[:, first : first + size])


@pytest.mark.parametrize("activation", ["relu", "elu", "selu", "gelu", "silu", "tanh", "sigmoid", "leaky-relu 0.1"])
def test_own_encoders(activation, generator):
    words = ("linear 20", "layer-norm", activation, ("linear 20", activation), "linear 5 no-bias", activation)
    network = build_encoder(read_encoder(words), 33, CLASSES, generator, dropout=False)
    given = features(33, generator)
    assert not differ(network, lambda chosen: network(given[chosen]), generator)
    assert not differ(network, lambda chosen: network(sparse(given[chosen])), generator)


def test_gelu_is_what_torch_calls_gelu():
    numbers = torch.linspace(-12, 12, 10_001)
    torch.testing.assert_close(networks.gelu(numbers), nn.functional.gelu(numbers), rtol=0, atol=2e-6)


def test_two_weights(generator):
    network, own, evidence = Weigher(generator), *(torch.randn(COUNT, CLASSES, generator=generator) for _ in range(2))
    assert not differ(network, lambda chosen: network(own[chosen], evidence[chosen]), generator)


@pytest.mark.parametrize("convolution", CONVOLUTIONS)
@pytest.mark.parametrize(("hops", "fan_in", "hidden"), [(1, 10, 64), (1, 25, 20), (2, 3, 64)])
@pytest.mark.parametrize("kind", [sparse, lambda rows: rows.flatten(0, 1)], ids=["sparse", "dense"])
def test_networks_on_ego_nets(kind, hops, fan_in, hidden, convolution, generator):
    slots = sum(fan_in**hop for hop in range(hops + 1))
    given, mask = features(30, generator, slots), (torch.rand(COUNT, slots, generator=generator) < 0.7).numpy()
    network = EgoNetwork(30, EgoShape(convolution, hidden, hops, "relu"), CLASSES, generator)

    def logits_of(chosen):
        here = mask[chosen.numpy()]
        return network.on_egos(kind(given[chosen]), EgoNets(np.zeros(here.shape, np.int64), here, fan_in, hops))

    assert not differ(network, logits_of, generator)


@pytest.mark.parametrize("planted", ["products", "selu"])
def test_what_would_go_wrong(planted, generator, monkeypatch):
    """The measure sees a plain product, and an activation that takes the last numbers another way."""
    if planted == "products":
        monkeypatch.setattr(networks, "row_product", torch.matmul)
    network = MLP([33, 20, CLASSES], "selu", 0.0, generator)
    if planted == "selu":
        network.activation = torch.selu
    given = features(33, generator)
    assert differ(network, lambda chosen: network(given[chosen]), generator)
