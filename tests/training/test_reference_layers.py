"""Layers of gcn, sage and gat give what PyTorch Geometric's give with the same weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from discreet.graph.graph import Graph
from discreet.ops.sparse import hop_matrix
from discreet.training.attention import Attention, Edges
from discreet.training.convolutions import Convolutions

NODES, INPUTS, OUTPUTS, HEADS = 40, 7, 6, 3


def example(directed: bool) -> tuple[Graph, torch.Tensor, torch.Tensor]:
    """A ring with chords (so that every node has a neighbour), its features, and its edges as PyG takes them."""
    draw = np.random.default_rng(5)
    source = np.concatenate([np.arange(NODES), draw.integers(0, NODES, 60)])
    target = np.concatenate([(np.arange(NODES) + 1) % NODES, draw.integers(0, NODES, 60)])
    kept = source != target
    features = draw.normal(size=(NODES, INPUTS)).astype(np.float32)
    graph = Graph.from_edges(
        source[kept], target[kept], features, np.arange(NODES) % 2, directed=directed, num_classes=2
    )
    return graph, torch.from_numpy(features), torch.from_numpy(np.stack(graph.edges()).astype(np.int64))


def assert_same(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


def convolution(own_row: bool) -> Convolutions:
    made = Convolutions([INPUTS, OUTPUTS], "relu", 0.0, own_row, torch.Generator().manual_seed(1))
    return made.eval()


@torch.no_grad()
def test_a_gcn_layer_is_that_of_pyg() -> None:
    graph, x, edges = example(directed=False)
    ours, theirs = convolution(own_row=False), GCNConv(INPUTS, OUTPUTS)
    theirs.lin.weight.copy_(ours.neighbors[0].weight.T)  # both biases start at 0; ours travels with the rows
    matrix = hop_matrix(graph, "symmetric", self_loops=True)
    assert_same(ours(x, matrix), theirs(x, edges))


@torch.no_grad()
@pytest.mark.parametrize("directed", [False, True])
def test_a_sage_layer_is_that_of_pyg(directed: bool) -> None:
    graph, x, edges = example(directed)
    ours, theirs = convolution(own_row=True), SAGEConv(INPUTS, OUTPUTS)
    assert ours.own is not None
    ours.neighbors[0].bias.normal_(generator=torch.Generator().manual_seed(2))
    theirs.lin_l.weight.copy_(ours.neighbors[0].weight.T)
    theirs.lin_l.bias.copy_(ours.neighbors[0].bias)
    theirs.lin_r.weight.copy_(ours.own[0].weight.T)
    assert_same(ours(x, hop_matrix(graph, "mean")), theirs(x, edges))


@torch.no_grad()
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_gat_layers_are_those_of_pyg(directed: bool, residual: bool) -> None:
    graph, x, edges = example(directed)
    drawn = torch.Generator().manual_seed(3)
    ours = Attention([INPUTS, OUTPUTS, 2], "relu", 0.0, HEADS, drawn, residual=residual).eval()
    theirs = [
        GATConv(INPUTS, OUTPUTS // HEADS, heads=HEADS, residual=residual),
        GATConv(OUTPUTS, 2, residual=residual),
    ]
    for own, other in zip(ours.own or [], theirs if residual else [], strict=True):
        other.res.weight.copy_(own.weight.T)
    for layer, other in zip(ours.layers, theirs, strict=True):  # biases start at 0; attention sees ours
        other.lin.weight.copy_(layer.linear.weight.T)
        other.att_src.copy_(layer.sent[None])
        other.att_dst.copy_(layer.received[None])
    expected = theirs[1](torch.relu(theirs[0](x, edges)), edges)
    assert_same(ours(x, Edges.of(graph, "cpu")), expected)
