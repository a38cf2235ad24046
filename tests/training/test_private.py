"""The loop of noisy steps: what it asks, when it projects, and which weights it leaves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from discreet.audit.small_graphs import small_graph
from discreet.mechanisms.bits import NoiseSource
from discreet.mechanisms.curator import Curator
from discreet.ops.clipping import trainable
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import NodeLevel
from discreet.privacy.plan import Stage, make_plan
from discreet.queries.gradients import OwnRecordSteps, StepRule, count_parameters
from discreet.training.networks import MLP
from discreet.training.private import Descent, train_privately

STEPS = 6


def weights(network: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1).clone() for p in trainable(network)])


def trained(descent: Descent) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The weights that are left, and those after each step."""
    graph, level = small_graph(np.random.default_rng(0)), NodeLevel(3)
    network = MLP([4, 3], "relu", 0.0, torch.Generator().manual_seed(0))
    query = OwnRecordSteps(level, "q", count_parameters(network), graph.public.num_train, StepRule(0.1))
    plan = make_plan("m", Privacy(level, 4.0, 1e-3), 10, [Stage.of("network", query, runs=STEPS)], "weights")
    curator = Curator(plan, NoiseSource(insecure_seed=0), [level.split(graph)[1]])
    seen: list[torch.Tensor] = []
    train_privately(network, curator, "network", descent, after_step=lambda: seen.append(weights(network)))
    curator.finish()
    assert not network.training
    return weights(network), seen


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_the_last_weights_are_averaged_after_they_were_projected(optimizer: str) -> None:
    left, seen = trained(Descent(0.1, optimizer, averaged=0.5))  # type: ignore[arg-type]
    assert len(seen) == STEPS
    assert torch.allclose(left, torch.stack(seen[STEPS // 2 :]).mean(dim=0))
    last, same = trained(Descent(0.1, optimizer, averaged=0.0))  # type: ignore[arg-type]
    assert torch.equal(last, same[-1])
    assert torch.equal(same[-1], seen[-1])


def test_schedules_differ_after_the_first_step() -> None:
    _, cosine = trained(Descent(0.1, schedule="cosine"))
    _, constant = trained(Descent(0.1, schedule="constant"))
    assert torch.equal(cosine[0], constant[0])
    assert not torch.equal(cosine[-1], constant[-1])
