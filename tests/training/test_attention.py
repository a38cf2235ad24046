"""Graph attention: weights sum to one, and rows travel along edges."""

from __future__ import annotations

import scipy.sparse as sp
import torch

from discreet.training.attention import Attention, Edges
from tests.methods.lpgnn.graphs import graph


def test_attention_weights_sum_to_one_and_follow_edges() -> None:
    generator = torch.Generator().manual_seed(0)
    small = graph(n=30)
    edges = Edges.of(small, "cpu")
    network = Attention([30, 8, 2], "selu", 0.0, 4, generator)
    layer = network.layers[0]
    x = torch.tensor(small.features.toarray())
    weights = layer._weights(layer.linear(x).view(layer._shape), edges)
    total = torch.zeros(30, 4).index_add(0, edges.receiver, weights)
    assert torch.allclose(total, torch.ones(30, 4), atol=1e-5)
    # A change at one node reaches no further than two hops.
    with torch.no_grad():
        before = network(x, edges)
        x[0] += 1
        moved = ((network(x, edges) - before).abs() > 1e-7).any(dim=1).numpy()
    reach = small.adjacency + sp.eye_array(30)
    assert not moved[((reach @ reach)[:, [0]].toarray() == 0).ravel()].any()
