"""How much slower is a private step? Plain, ours, Opacus hooks and Opacus ghost clipping, in one run.

    python benchmarks/dpsgd.py [--json] [--quick] [--threads N] [--cpu]

A step is: forward, backward, (clip, noise,) SGD update, on one batch. ``dp`` adds exact noise on a grid as the curator
does, drawn one step ahead on a second thread, and waits for it within the step; ``dp_inline`` draws doubles of NumPy's
within the step, on the same core; ``clip`` adds none. Noise alone is shown as ``noise``.
All variants run in turns, and the least time of each is kept, so that a busy machine disturbs the ratios little. With
``--cpu`` time is the processor's in the stepping thread alone, for a machine that others use too; what noise costs that
is drawn on another thread is then left out of ``dp``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from discreet.mechanisms.bits import NoiseSource
from discreet.mechanisms.dpsgd import NoiseAhead
from discreet.mechanisms.gaussian import Grid
from discreet.ops.clipping import ClipRule, clipped_sum, trainable, views_of

RATE, CLIP, SIGMA = 0.1, 1.0, 1.0
BURST = 4
CROSS = nn.CrossEntropyLoss(reduction="none")
Step = Callable[[], object]
AddNoise = Callable[[np.ndarray], np.ndarray]
Clock = Callable[[], float]


class EgoGcn(nn.Module):
    """Encoder on every node of the ego-net, inverse-degree aggregation, decoder: DP-GNN's one-layer GCN."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.encode, self.mix, self.decode = (
            nn.Linear(features, hidden),
            nn.Linear(hidden, hidden),
            nn.Linear(hidden, classes),
        )

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        hidden = torch.tanh(self.encode(x))
        pooled = torch.bmm(weight.unsqueeze(1), hidden).squeeze(1)
        logits: Tensor = self.decode(torch.relu(self.mix(pooled)))
        return logits


def mlp(features: int, hidden: int, classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes)
    )


# -------------------------------------------------------------------- the four steps


def plain_step(model: nn.Module, inputs: tuple[Tensor, ...], labels: Tensor) -> Step:
    parameters = trainable(model)

    def step() -> None:
        loss = nn.functional.cross_entropy(model(*inputs), labels)
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.add_(gradient, alpha=-RATE)

    return step


def inline_noise(size: int) -> AddNoise:
    """Doubles from NumPy, which prove nothing: what exact noise is compared with."""
    rng = np.random.Generator(np.random.Philox(0))
    return lambda values: values + SIGMA * CLIP * rng.standard_normal(size)


def noise_ahead(size: int) -> AddNoise:
    """Exact noise on a grid, as the curator adds it."""
    grid = Grid.for_release(CLIP, SIGMA, size)
    ahead = NoiseAhead(NoiseSource(insecure_seed=0), "step", 10**9, grid)
    return lambda values: grid.add(values, ahead.take())


def private_step(
    model: nn.Module,
    inputs: tuple[Tensor, ...],
    labels: Tensor,
    noise: Callable[[int], AddNoise] | None,
) -> Step:
    parameters, rule = trainable(model), ClipRule.flat(CLIP)
    add_noise = noise(sum(p.numel() for p in parameters)) if noise else None

    def step() -> None:
        flat = clipped_sum(model, lambda: CROSS(model(*inputs), labels), rule).flat
        if add_noise is not None:
            flat = torch.from_numpy(add_noise(flat.numpy())).float()
        with torch.no_grad():
            for parameter, gradient in zip(parameters, views_of(flat, parameters), strict=True):
                parameter.add_(gradient, alpha=-RATE / len(labels))

    return step


def opacus_step(model: nn.Module, inputs: tuple[Tensor, ...], labels: Tensor, *, ghost: bool) -> Step:
    from opacus import GradSampleModule
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizer
    from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    inner = torch.optim.SGD(model.parameters(), lr=RATE)
    options: dict[str, Any] = {
        "noise_multiplier": SIGMA,
        "max_grad_norm": CLIP,
        "expected_batch_size": len(labels),
        "loss_reduction": "mean",
    }
    if not ghost:
        wrapped = GradSampleModule(model, loss_reduction="mean")
        optimizer = DPOptimizer(inner, **options)

        def hooks() -> None:
            optimizer.zero_grad()
            nn.functional.cross_entropy(wrapped(*inputs), labels).backward()
            optimizer.step()

        return hooks
    shadow = GradSampleModuleFastGradientClipping(
        model, loss_reduction="mean", max_grad_norm=CLIP, use_ghost_clipping=True
    )
    ghost_optimizer = DPOptimizerFastGradientClipping(inner, **options)
    criterion = DPLossFastGradientClipping(shadow, ghost_optimizer, nn.CrossEntropyLoss(), loss_reduction="mean")

    def ghosts() -> None:
        ghost_optimizer.zero_grad()
        criterion(shadow(*inputs), labels).backward()
        ghost_optimizer.step()

    return ghosts


# -------------------------------------------------------------------- cases


def cases(quick: bool) -> list[dict[str, Any]]:
    mlps = [{"model": "mlp", "batch": batch} for batch in ((256, 2000) if quick else (256, 1000, 4000, 10_000))]
    nets = [{"model": "ego-gcn", "batch": batch} for batch in ((2000,) if quick else (2000, 5000, 10_000))]
    return [*mlps, *nets]


def make(case: dict[str, Any]) -> tuple[Callable[[], nn.Module], tuple[Tensor, ...], Tensor]:
    """Shapes of a citation graph (500 features, 7 classes) and of DP-GNN's data (128 features, 40 classes)."""
    torch.manual_seed(0)
    batch = case["batch"]
    if case["model"] == "mlp":
        case.update(features=500, hidden=256, classes=7)
        inputs: tuple[Tensor, ...] = (torch.randn(batch, 500),)
        return lambda: mlp(500, 256, 7), inputs, torch.randint(0, 7, (batch,))
    case.update(features=128, hidden=256, classes=40, senders=7)
    mask = (torch.rand(batch, 8) < 0.8).float()
    mask[:, 0] = 1
    weight = mask / mask.sum(1, keepdim=True)
    inputs = (torch.randn(batch, 8, 128) * mask.unsqueeze(-1), weight)
    return lambda: EgoGcn(128, 256, 40), inputs, torch.randint(0, 40, (batch,))


def steps_of(case: dict[str, Any]) -> tuple[dict[str, Step], int]:
    build, inputs, labels = make(case)
    made = {
        "plain": plain_step(build(), inputs, labels),
        "dp": private_step(build(), inputs, labels, noise_ahead),
        "dp_inline": private_step(build(), inputs, labels, inline_noise),
        "clip": private_step(build(), inputs, labels, None),
    }
    parameters = sum(p.numel() for p in build().parameters())
    try:
        import opacus  # noqa: F401

        if case["batch"] * parameters <= 1_200_000_000:  # hooks hold batch × parameters floats
            made["opacus"] = opacus_step(build(), inputs, labels, ghost=False)
        made["ghost"] = opacus_step(build(), inputs, labels, ghost=True)
    except ImportError:
        print("opacus is not installed: its columns are left out", file=sys.stderr)
    return made, parameters


def noise_milliseconds(parameters: int, repeats: int) -> float:
    add = inline_noise(parameters)
    values = np.zeros(parameters)
    return min(timed(lambda: add(values)) for _ in range(repeats))


def timed(step: Step, burst: int = 1, clock: Clock = time.perf_counter) -> float:
    """Milliseconds a step, over a few in a row: what one step leaves running is paid by the next."""
    start = clock()
    for _ in range(burst):
        step()
    return 1e3 * (clock() - start) / burst


def measure(case: dict[str, Any], seconds: float, clock: Clock) -> dict[str, Any]:
    steps, parameters = steps_of(case)
    for step in steps.values():
        step()
    best = dict.fromkeys(steps, float("inf"))
    end, turn = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or turn < 5:
        for name, step in steps.items():
            if name != "opacus":
                best[name] = min(best[name], timed(step, BURST, clock))
            elif turn < 4:  # tens of times the others: fewer turns
                best[name] = min(best[name], timed(step, clock=clock))
        turn += 1
    found = {**case, "parameters": parameters, "turns": turn, "noise_ms": noise_milliseconds(parameters, 20)}
    found |= {f"{name}_ms": value for name, value in best.items()}
    found |= {f"{name}_over_plain": best[name] / best["plain"] for name in ("dp", "dp_inline", "clip")}
    found |= {f"{name}_over_dp": best[name] / best["dp"] for name in ("opacus", "ghost") if name in best}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="a list of cases on standard output")
    parser.add_argument("--quick", action="store_true", help="fewer cases, less time")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu", action="store_true", help="processor time of the stepping thread, not wall time")
    options = parser.parse_args()
    clock = time.thread_time if options.cpu else time.perf_counter
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    results = []
    for case in cases(options.quick):
        found = measure(case, 5.0 if options.quick else 20.0, clock)
        results.append(found)
        line = "  ".join(f"{key} {value:.2f}" for key, value in found.items() if isinstance(value, float))
        print(f"{found['model']} batch {found['batch']}: {line}", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
