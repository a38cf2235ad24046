"""Steps that a GPU plays back are the steps that Python would take."""

from __future__ import annotations

from itertools import count

import pytest
import torch

from discreet.training.descent import Adam, TrainOptions, train
from discreet.training.networks import MLP
from discreet.training.recorded import RecordedPasses, adam_rates


class _Played:
    """Stands for a recording: does what was recorded."""

    def __init__(self, passes: RecordedPasses) -> None:
        self._passes = passes

    def replay(self) -> None:
        self._passes._run_one()


@pytest.mark.parametrize(("rows", "size"), [(10, 3), (12, 4), (5, 5)])
def test_every_pass_takes_every_row_once_in_the_order_given(
    rows: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[int]] = []
    rates: list[float] = []

    def take(batch: torch.Tensor, rate: torch.Tensor) -> None:
        seen.append(batch.tolist())
        rates.append(float(rate[0]))

    steps = -(-rows // size)
    given = torch.arange(3 * steps, dtype=torch.float32)[:, None].expand(-1, 2)
    passes = RecordedPasses(take, torch.arange(rows) + 100, size, given, [])

    def record() -> None:
        passes._recording = _Played(passes)  # type: ignore[assignment]
        passes._taken -= 1

    monkeypatch.setattr(passes, "_record", record)
    orders = [torch.randperm(rows, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    for order in orders:
        passes.run(order)
    expected = [part.tolist() for order in orders for part in torch.split(order + 100, size)]
    assert seen == expected
    assert rates == list(range(3 * steps))


def test_adam_on_the_device_is_adam() -> None:
    plain, other = (torch.nn.Parameter(torch.ones(4)) for _ in range(2))
    one, two = Adam([plain], weight_decay=0.1), Adam([other], weight_decay=0.1)
    rates = [0.1, 0.05, 0.01]
    on_device = adam_rates(rates, two.betas, torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    for step, rate in zip(count(), rates, strict=False):
        gradient = torch.randn(4, generator=generator)
        one.step([gradient], rate)
        two.step_at([gradient], on_device[step])
    assert torch.allclose(plain, other, rtol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
def test_recorded_steps_teach_what_steps_teach() -> None:
    rows = torch.randn(6400, 20, generator=torch.Generator().manual_seed(0))
    labels = (rows[:, 0] > 0).long().cuda()
    rows = rows.cuda()
    found = []
    for steady in (False, True):
        generator = torch.Generator("cuda").manual_seed(0)
        network = MLP([20, 16, 2], "relu", 0.2, generator)
        options = TrainOptions(epochs=20, learning_rate=0.01, weight_decay=0.0, batch_size=256)

        def forward(batch: torch.Tensor, network: MLP = network) -> torch.Tensor:
            return network(rows[batch])

        train(network, forward, labels, torch.arange(6400).cuda(), options, generator, steady=steady)
        found.append(float((network(rows).argmax(1) == labels).float().mean()))
    assert min(found) > 0.97
