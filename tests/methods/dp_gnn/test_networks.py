"""Networks on ego-nets: single gradients, and agreement with whole graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from discreet.audit.small_graphs import small_graph
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.methods.dp_gnn.networks import EgoNetwork, EgoShape
from discreet.ops.clipping import ClipRule, check_rows, clipped_sum, trainable
from discreet.ops.degrees import bound_degrees
from discreet.ops.egonets import sender_table, with_nobody
from discreet.ops.slot_rows import RowTable, SlotRows
from discreet.privacy.levels import NodeLevel
from discreet.queries.ego_net_steps import EgoNetSteps
from discreet.queries.ego_nets import BoundedEgoNets
from discreet.queries.gradients import StepRule, count_parameters
from discreet.queries.kept_edges import KEY
from discreet.training.networks import Activation

CONVOLUTIONS = pytest.mark.parametrize("convolution", ["gcn", "sage", "gin", "gat", "gat-heads"])
HOPS = pytest.mark.parametrize("hops", [1, 2])
UNBOUNDED = NodeLevel(12)  # no small graph has a larger degree


def network_of(convolution: Any, hops: int, activation: Activation = "relu") -> EgoNetwork:
    """``gat-heads`` is attention with three heads, between two linear maps each in encoder and decoder."""
    shape = EgoShape(convolution, 5, hops, activation)
    if convolution == "gat-heads":
        shape = EgoShape("gat", 6, hops, activation, encoder_layers=2, decoder_layers=2, heads=3)
    return EgoNetwork(4, shape, 3, torch.Generator().manual_seed(0))


def steps_of(graph: Graph, network: EgoNetwork, hops: int, fan_in: int) -> tuple[EgoNetSteps, PrivatePart]:
    nets = BoundedEgoNets(UNBOUNDED, graph.num_nodes, hops, fan_in)
    rule, size = StepRule(0.1), count_parameters(network)
    _, private = UNBOUNDED.split(graph)
    private.entrust(KEY, bytes(16))
    return EgoNetSteps(UNBOUNDED, "q", size, graph.public.num_train, rule, nets), private


@CONVOLUTIONS
@HOPS
def test_networks_clip_as_one_example_at_a_time(convolution: str, hops: int) -> None:
    graph = small_graph(np.random.default_rng(3)).as_directed()
    network = network_of(convolution, hops, "tanh")
    query, private = steps_of(graph, network, hops, fan_in=3)
    everyone = np.arange(query.num_examples)
    check_rows(network, lambda: query.losses(private, everyone, network=network))
    rule = ClipRule.flat(0.05)
    ours = clipped_sum(network, lambda: query.losses(private, everyone, network=network), rule, terms=True)
    assert ours.terms is not None
    for i in everyone:
        loss = query.losses(private, np.array([i]), network=network).sum()
        parts = torch.autograd.grad(loss, trainable(network))
        flat = torch.cat([part.reshape(-1) for part in parts])
        expected = flat * min(1.0, 0.05 / float(flat.norm()))
        assert torch.allclose(ours.terms[i], expected.double(), atol=1e-5)
    assert torch.allclose(ours.terms.sum(0), ours.flat, atol=1e-5)


@CONVOLUTIONS
@HOPS
def test_ego_nets_and_whole_graph_agree_where_nothing_is_cut(convolution: str, hops: int) -> None:
    graph = small_graph(np.random.default_rng(5))
    network, features = network_of(convolution, hops), torch.tensor(graph.features)
    nets = sender_table(graph, 12, bytes(16)).ego_nets(np.arange(graph.num_nodes), hops)
    rows = SlotRows(RowTable(torch.tensor(with_nobody(graph.features))), nets.index)
    on_egos = network.on_egos(rows, nets)
    assert torch.allclose(on_egos, network.on_graph(features, graph), atol=1e-5)


def test_micro_batches_change_nothing() -> None:
    graph, network = small_graph(np.random.default_rng(2)), network_of("gcn", 1)
    query, private = steps_of(graph, network, 1, fan_in=4)
    everyone, sums = np.arange(query.num_examples), []
    for size in (100, 2):
        private.micro_batch = size
        sums.append(query.answer(private, batch=everyone, network=network))
    assert np.allclose(*sums, atol=1e-6)
    assert np.linalg.norm(sums[0]) > 0
    assert not query.answer(private, batch=everyone[:0], network=network).any()


@CONVOLUTIONS
@HOPS
@pytest.mark.parametrize("shares", [None, (1.0, 0.25, 0.0)])
def test_sums_that_a_gpu_records_are_the_same(convolution: str, hops: int, shares: tuple[float, ...] | None) -> None:
    """Positions on the device, in portions that are filled up with an example that adds nothing."""
    graph, network = small_graph(np.random.default_rng(2)), network_of(convolution, hops)
    query, private = steps_of(graph, network, hops, fan_in=3)
    inputs = {} if shares is None else {"class_shares": np.array(shares)}
    recorded, everyone = query.recorded_sum(private, network, inputs), np.arange(query.num_examples)
    assert recorded.sum_over(everyone[:0]) is None
    for batch in (everyone, everyone[1:4], np.repeat(everyone, 20)):  # the last takes several portions
        expected, found = query.answer(private, batch=batch, network=network, **inputs), recorded.sum_over(batch)
        assert found is not None
        assert np.abs(expected).max() > 1e-3
        assert np.allclose(found.numpy(), expected, rtol=1e-12, atol=1e-14)


@CONVOLUTIONS
@HOPS
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("node", [0, 3])
def test_a_record_that_overflows_reaches_the_ego_nets_that_hold_it_alone(
    convolution: str, hops: int, sparse: bool, node: int
) -> None:
    """Slots that are empty used to read node 0: where its encoding overflows, 0·NaN wiped out everybody's term."""
    graph = small_graph(np.random.default_rng(3)).as_directed()
    network = network_of(convolution, hops)
    with torch.no_grad():
        network.encoder.weight *= 1e30
    features = np.array(graph.features.toarray() if sp.issparse(graph.features) else graph.features) * 1e-30
    huge = features.copy()
    huge[node] = 1e11
    one, two = (graph.with_features(sp.csr_array(part) if sparse else part) for part in (features, huge))
    before, after = (query.terms(private, network=network) for query, private in _with_steps([one, two], network, hops))
    table = sender_table(bound_degrees(one, UNBOUNDED, bytes(16)), 3, bytes(16))
    nets = table.ego_nets(np.flatnonzero(one.mask("train")), hops)
    holds = (nets.index == node).any(1)
    assert np.isfinite(after).all()
    assert not (before != after)[~holds].any()
    assert (np.linalg.norm(before[~holds], axis=1) > 0).any()
    assert not after[holds].any()


def _with_steps(graphs: list[Graph], network: EgoNetwork, hops: int) -> list[tuple[EgoNetSteps, PrivatePart]]:
    return [steps_of(graph, network, hops, fan_in=3) for graph in graphs]
