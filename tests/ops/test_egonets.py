"""Ego-nets: what is in them. How many change between neighbours: ``tests/queries/test_ego_nets.py``."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.errors import ParameterError
from discreet.ops.egonets import sender_table, with_nobody
from discreet.ops.keyed_hash import hash_pairs
from discreet.ops.slot_rows import RowTable, SlotRows
from discreet.ops.sparse import feature_tensor
from tests.plain_graphs import KEY, make_graph, random_graph


def test_slots_hold_the_senders_of_senders():
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 20, 70)
    fan_in = int(graph.in_degree().max())
    nets = sender_table(graph, fan_in, KEY).ego_nets(np.arange(20), 2)
    assert nets.slots == 1 + fan_in + fan_in**2
    senders = [graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist() for v in range(20)]
    for row in range(20):
        index, mask = nets.index[row], nets.mask[row]
        assert index[0] == row
        assert index[1 : 1 + fan_in][mask[1 : 1 + fan_in]].tolist() == senders[row]
        for j in range(1, 1 + fan_in):
            block = slice(1 + j * fan_in, 1 + (j + 1) * fan_in)
            assert index[block][mask[block]].tolist() == (senders[index[j]] if mask[j] else [])
    assert (nets.index[~nets.mask] == graph.num_nodes).all()


def test_a_crowded_receiver_keeps_the_smallest_hashes():
    star = make_graph([(i, 0) for i in range(1, 10)], 10)
    table = sender_table(star, 4, KEY)
    hashes = hash_pairs(KEY, np.arange(1, 10), np.zeros(9, dtype=np.int64))
    assert table.index[0].tolist() == np.sort(1 + np.argsort(hashes)[:4]).tolist()
    assert table.mask.sum() == 4


def test_bad_input():
    star = make_graph([(1, 0)], 3)
    with pytest.raises(ParameterError, match="fan_in must be"):
        sender_table(star, 0, KEY)
    with pytest.raises(ParameterError, match="hops"):
        sender_table(star, 2, KEY).ego_nets([0], 3)


def test_a_graph_without_edges():
    nets = sender_table(make_graph([], 3), 2, KEY).ego_nets([0, 2], 2)
    assert nets.mask.sum() == 2
    assert (nets.index[:, 1:] == 3).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_empty_slots_read_nobodys_record(sparse):
    graph = make_graph([(1, 0), (2, 1)], 3)
    nets = sender_table(graph, 2, KEY).ego_nets(np.arange(3), 2)
    records = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    given = with_nobody(sp.csr_array(records) if sparse else records)
    assert given.shape == (4, 2)
    assert given.dtype == np.float32
    rows = SlotRows(RowTable(feature_tensor(given, "cpu")), nets.index)
    found = rows.dense().numpy().reshape(3, nets.slots, 2)
    assert not found[~nets.mask].any()
    assert (found[nets.mask] == records[nets.index[nets.mask]]).all()
