"""Denoising over public edges: lazily and densely alike."""

from __future__ import annotations

import numpy as np
import torch

from discreet.ops.denoising import Denoised, Remembering, denoise, kprop_operators
from tests.methods.lpgnn.graphs import graph

GRAPH = graph()


def test_lazy_and_dense_denoising_multiply_alike() -> None:
    operators = kprop_operators(GRAPH, 3, "symmetric")
    weight = torch.randn(30, 5, generator=torch.Generator().manual_seed(0))
    dense = denoise(GRAPH.features, operators)
    lazy = denoise(GRAPH.features, operators, lazy=True)
    assert isinstance(dense, torch.Tensor)
    assert isinstance(lazy, Denoised)
    power = np.linalg.matrix_power(operators[0].csr.to_dense().numpy(), 3) @ GRAPH.features.toarray()
    expected = power / np.linalg.norm(power, axis=1, keepdims=True)
    assert np.allclose(dense.numpy(), expected, atol=1e-5)
    exact, estimated = (dense @ weight).numpy(), (lazy @ weight).numpy()
    cosine = (exact * estimated).sum(axis=1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(estimated, axis=1)
    assert np.allclose(cosine, 1, atol=1e-5)
    assert np.allclose(np.linalg.norm(exact, axis=1), np.linalg.norm(estimated, axis=1), rtol=0.5)


def test_directed_graphs_are_averaged_by_rows() -> None:
    directed = GRAPH.as_directed()
    assert np.allclose(kprop_operators(directed, 1, "symmetric")[0].csr.to_dense().sum(dim=1).max(), 1)


def test_remembered_products_are_those_of_the_present_weights() -> None:
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    weight = torch.nn.Parameter(torch.ones(3, 2))
    remembering = Remembering(rows)
    first = remembering @ weight
    assert first.requires_grad
    with torch.no_grad():
        assert torch.equal(remembering @ weight, rows @ weight)
        weight.mul_(2)
        assert torch.equal(remembering @ weight, rows @ weight)
    assert (remembering @ weight).requires_grad


def test_products_side_by_side_are_those_of_each_matrix() -> None:
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    weights = [torch.nn.Parameter(torch.full((3, width), 1.0 + width)) for width in (2, 4)]
    remembering = Remembering(rows, weights)
    for _ in range(3):
        with torch.no_grad():  # what is found without gradients must not be handed to a pass that needs them
            assert all(torch.allclose(remembering @ weight, rows @ weight) for weight in weights)
        made = [remembering @ weight for weight in weights]
        assert all(torch.allclose(product, rows @ weight) for product, weight in zip(made, weights, strict=True))
        found = torch.autograd.grad(sum((product.square().sum() for product in made), torch.zeros(())), weights)
        wanted = [2 * rows.T @ (rows @ weight) for weight in weights]
        assert all(torch.allclose(one, other) for one, other in zip(found, wanted, strict=True))
        with torch.no_grad():
            weights[1].mul_(2)
