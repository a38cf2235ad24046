"""Plain training: how batches and passes follow from the number of rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
import scipy.sparse as sp
import torch

from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.privacy.levels import EdgeLevel
from discreet.training import descent
from discreet.training.descent import ENOUGH_STEPS, LARGEST_BATCH, Adam, TrainOptions, train, train_beside
from discreet.training.networks import MLP, Linear, OwnView, widths_of

OPTIONS = TrainOptions(epochs=30, learning_rate=0.01, weight_decay=0.0, batch_size=256)


@pytest.mark.parametrize("rows", [1, 256, 2000, 15_000, 17_000])
def test_small_graphs_are_trained_as_asked_for(rows: int) -> None:
    assert OPTIONS.course(rows) == (min(256, rows), 30)


@pytest.mark.parametrize("rows", [40_000, 225_000, 1_800_000, 19_000_000])
def test_large_ones_take_about_as_many_steps(rows: int) -> None:
    size, passes = OPTIONS.course(rows)
    steps = passes * -(-rows // size)
    assert 256 <= size <= LARGEST_BATCH
    assert passes == 1 or ENOUGH_STEPS / 2 <= steps <= ENOUGH_STEPS + passes


def test_what_is_asked_for_is_a_floor() -> None:
    assert TrainOptions(1, 0.01, 0.0, 10_000).course(1_000_000) == (10_000, 1)
    assert TrainOptions(30, 0.01, 0.0, None).course(1_000_000) == (1_000_000, 30)


@pytest.mark.parametrize(("rows", "passes"), [(140, 240), (600, 60), (2048, 30), (100_000, 30)])
def test_a_head_takes_more_passes_over_few_rows(rows: int, passes: int) -> None:
    assert OPTIONS.for_head(rows).epochs == passes
    whole = TrainOptions(30, 0.01, 0.0, None)
    assert whole.for_head(rows) == whole
    assert not OPTIONS.has_few(0)  # a graph without training nodes ends in a sentence of its own, later


def test_every_pass_sees_every_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "ENOUGH_STEPS", 20)
    network = Linear(2, 3, torch.Generator().manual_seed(0))
    rows, seen = torch.arange(1000), []
    options = TrainOptions(10, 0.01, 0.0, 16)
    assert options.course(len(rows)) == (500, 10)

    def forward(batch: torch.Tensor) -> torch.Tensor:
        seen.append(batch)
        return network(torch.ones(len(batch), 2))

    train(network, forward, torch.zeros(1000, dtype=torch.long), rows, options, torch.Generator().manual_seed(0))
    assert len(seen) == 20
    assert all(torch.cat(seen[i : i + 2]).sort().values.equal(rows) for i in range(0, 20, 2))


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_moves_as_its_authors_say(decay: float) -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = [(5, 3), (3,), (1, 40)]
    moved = [torch.randn(shape, generator=generator) for shape in shapes]
    wanted = [start.double().clone() for start in moved]
    first, second = [torch.zeros_like(p) for p in wanted], [torch.zeros_like(p) for p in wanted]
    optimizer = Adam([torch.nn.Parameter(p) for p in moved], weight_decay=decay)
    parameters = optimizer._parameters
    for step, rate in enumerate([0.1, 0.05, 0.2, 0.01], start=1):
        gradients = [torch.randn(shape[::-1], generator=generator).T for shape in shapes]  # not laid out as parameters
        optimizer.step(gradients, rate)
        for number, gradient in enumerate(gradients):
            total = gradient.double() + decay * wanted[number]
            first[number] = 0.9 * first[number] + 0.1 * total
            second[number] = 0.999 * second[number] + 0.001 * total**2
            spread = (second[number] / (1 - 0.999**step)).sqrt() + 1e-8
            wanted[number] -= rate * first[number] / (1 - 0.9**step) / spread
    assert all(torch.allclose(p.double(), w, rtol=1e-5, atol=1e-6) for p, w in zip(parameters, wanted, strict=True))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_head_learns_the_same_bits_where_its_view_begins_halfway(
    layers: int, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an encoder makes of rows before its first dropout is worked out once, or in every pass."""
    graph = csbm(90, 5)
    if sparse:
        graph = replace(graph, features=sp.csr_array(graph.features))
    part, _ = EdgeLevel().split(split(graph, "75/10/15", 0))

    def learnt() -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        encoder = MLP(widths_of(5, 8, layers, 2), "relu", 0.5, generator)
        head = MLP([2 + 4, 2], "relu", 0.5, generator)
        beside = torch.rand(part.num_nodes, 4, generator=generator)
        view = OwnView(encoder, torch.nn.Identity(), logarithms=False)
        options = TrainOptions(epochs=3, learning_rate=0.1, weight_decay=0.0, batch_size=16)
        train_beside(
            head, encoder, view, beside, part, options, generator, own_dropout=0.5, title="head", progress=None
        )
        return [parameter.detach().clone() for parameter in head.parameters()]

    found = learnt()
    asked = []

    def begin_nothing(network: MLP, features: object) -> None:
        asked.append(features)

    monkeypatch.setattr(MLP, "begin", begin_nothing)
    assert all(torch.equal(one, two) for one, two in zip(found, learnt(), strict=True))
    assert len(asked) == 1
