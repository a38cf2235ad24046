"""Measurements that are no fit: ratios of two timings taken in one run, by name."""

from __future__ import annotations

import difflib
import inspect
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from discreet.errors import ParameterError


def best_of(*works: Callable[[], object], repeats: int) -> list[float]:
    """Seconds of each, interleaved so that a busy moment hits all alike; the smallest counts."""
    best = [float("inf")] * len(works)
    for _ in range(repeats):
        for place, work in enumerate(works):
            started = time.perf_counter()
            work()
            best[place] = min(best[place], time.perf_counter() - started)
    return best


def hop_over_scipy(nodes: int, degree: int, width: int, seed: int) -> dict[str, float]:
    """One hop of propagation against one scipy CSR product of the same matrices."""
    import numpy as np
    import torch

    from discreet.graph.synthetic import csbm
    from discreet.ops.sparse import hop_matrix

    graph = csbm(num_nodes=nodes, num_features=2, average_degree=degree, phi=0.3, seed=seed)
    rows = np.random.default_rng(seed).standard_normal((nodes, width)).astype(np.float32)
    matrix, tensor, reference = hop_matrix(graph, "sum"), torch.from_numpy(rows), graph.adjacency
    ours, theirs = best_of(lambda: matrix @ tensor, lambda: reference @ rows, repeats=7)
    return {"ratio": ours / theirs, "ours_ms": 1000 * ours, "theirs_ms": 1000 * theirs}


def step_over_plain(batch: int, hidden: int, seed: int) -> dict[str, float]:
    """A private step (per-example clipping and noise) against a plain one: the same network, batch and optimiser."""
    import torch
    from torch import nn

    from discreet.mechanisms.bits import NoiseSource
    from discreet.mechanisms.dpsgd import NoiseAhead
    from discreet.mechanisms.gaussian import Grid
    from discreet.ops.clipping import ClipRule, clipped_sum, trainable, views_of

    torch.manual_seed(seed)
    features, classes = 500, 7
    rows, labels = torch.randn(batch, features), torch.randint(0, classes, (batch,))

    def network() -> nn.Module:
        middle = [nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()]
        return nn.Sequential(*middle, nn.Linear(hidden, classes))

    plain, private = network(), network()
    loss = nn.CrossEntropyLoss(reduction="none")
    grid = Grid.for_release(1.0, 1.0, sum(p.numel() for p in private.parameters()))
    noise = NoiseAhead(NoiseSource(insecure_seed=seed), "step", 10**9, grid)

    def plain_step() -> None:
        gradients = torch.autograd.grad(loss(plain(rows), labels).mean(), trainable(plain))
        with torch.no_grad():
            for parameter, gradient in zip(trainable(plain), gradients, strict=True):
                parameter.add_(gradient, alpha=-0.1)

    def private_step() -> None:
        total = clipped_sum(private, lambda: loss(private(rows), labels), ClipRule.flat(1.0)).flat
        flat = torch.from_numpy(grid.add(total.numpy(), noise.take())).float()
        with torch.no_grad():
            for parameter, gradient in zip(trainable(private), views_of(flat, trainable(private)), strict=True):
                parameter.add_(gradient, alpha=-0.1 / batch)

    for step in (plain_step, private_step):
        step()
    ours, theirs = best_of(lambda: _run_four(private_step), lambda: _run_four(plain_step), repeats=12)
    return {"ratio": ours / theirs, "ours_ms": 250 * ours, "theirs_ms": 250 * theirs}


def _run_four(step: Callable[[], None]) -> None:
    """A few in a row: what one step leaves running is paid by the next."""
    for _ in range(4):
        step()


def gap_over_mlp(nodes: int, seed: int) -> dict[str, float]:
    """A whole edge-level fit of gap against one of mlp, on a generated graph."""
    from discreet.graph import csbm, split
    from discreet.methods.registry import find_method, load_method
    from discreet.privacy.budget import Privacy
    from discreet.privacy.levels import EdgeLevel

    graph = split(csbm(nodes, seed=seed), "75/10/15", seed)

    def fit(method: str) -> Callable[[], object]:
        return lambda: load_method(find_method(method))(Privacy(EdgeLevel(), 4.0), random_state=seed).fit(graph)

    ours, theirs = best_of(fit("gap"), fit("mlp"), repeats=3)
    return {"ratio": ours / theirs, "ours_ms": 1000 * ours, "theirs_ms": 1000 * theirs}


AT_ONCE_SECONDS = 0.5
"""What a person takes for an answer at once, which help is measured by."""


def help_seconds(seed: int) -> dict[str, float]:
    """``discreet --help`` from a cold start."""
    del seed
    command = [sys.executable, "-m", "discreet.cli", "--help"]
    (taken,) = best_of(lambda: subprocess.run(command, capture_output=True, check=True), repeats=3)
    return {"ratio": taken / AT_ONCE_SECONDS, "ours_ms": 1000 * taken, "theirs_ms": 1000 * AT_ONCE_SECONDS}


MEASURES: dict[str, Callable[..., dict[str, float]]] = {
    "hop-over-scipy": hop_over_scipy,
    "step-over-plain": step_over_plain,
    "gap-over-mlp": gap_over_mlp,
    "help-over-half-a-second": help_seconds,
}


def check_measure(name: str, settings: Mapping[str, Any]) -> None:
    """Refuse an unknown measurement, or options that it does not take."""
    if name not in MEASURES:
        near = difflib.get_close_matches(name, MEASURES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(MEASURES)}"
        raise ParameterError(f"there is no measurement {name!r}: {hint}")
    wanted = set(inspect.signature(MEASURES[name]).parameters) - {"seed"}
    if set(settings) != wanted:
        raise ParameterError(f"measurement {name} takes {sorted(wanted) or 'no settings'}, not {sorted(settings)}")


def run_measure(name: str, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
    """The numbers of a measurement."""
    return MEASURES[name](**settings, seed=seed)
