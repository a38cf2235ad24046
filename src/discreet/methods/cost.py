"""What a fit will take in time and memory, from public facts alone: a simple model, checked against measured fits.

How many edges there are is private, so nothing here reads it: what grows with them is given per edge. *Time* is
seconds of one core of a common processor. *Memory* is the peak of the process, Python and its libraries included:

    libraries + 4 bytes per node and feature + 80 bytes per edge + 8 doubles per node and class

Sparse features take what they take, and are not counted. Guarantee: within a factor of two of the measured peak
(``tests/methods/test_cost.py``). Times are rougher: from half of what was measured to a little more
(``benchmarks/estimates.py``). How many numbers sparse features hold counts where a level makes features public; where
they are private they count as dense.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.graph.graph import PublicFacts
from discreet.methods.parameters import working_bytes
from discreet.ops.memory import GIB
from discreet.ops.sparse import AT_ONCE
from discreet.privacy.plan import Plan, Stage
from discreet.queries.evidence import ReceivedLabels, ReceivedMessages
from discreet.queries.gradients import GradientSteps
from discreet.queries.links import LabelLinks, LinkTable
from discreet.queries.sums import NeighbourSums
from discreet.training.descent import TrainOptions

HEADS = {"mlp": 0, "dp-mlp": 0, "gap": 1, "hop-bayes": 0, "dp-gnn": 0}
"""The methods that were measured, and how many heads each trains beside its network where records are public."""
SUMS_OVER_EDGES = (NeighbourSums, ReceivedMessages, ReceivedLabels, LinkTable, LabelLinks)

LIBRARIES = 0.45 * GIB
"""What a process that has imported PyTorch and the rest holds before it reads a graph."""
READING = 80
"""Bytes per edge while a graph is built: both directions as 64-bit keys, sorted. (A fit holds 16.)"""
FLOPS = 5.4e10
"""Multiplications and additions per second, in layers of common widths."""
PER_STEP = 1e-3
"""Seconds of a training step beside its arithmetic."""
BEFORE_STEPS, BEFORE_NOISE = 0.5, 0.3
"""Seconds before the first noisy step: code is loaded, and noise is calibrated. Without steps the former alone."""
PER_ENTRY = 2.5e-10
"""Seconds per stored number of a sparse row and hidden unit, forwards and backwards."""
PER_WEIGHT = 2e-9
"""Seconds to move one weight, which a step does however few numbers a row holds."""
PER_NUMBER = 0.7e-6
"""Seconds to draw the noise of one number that is released for a node, and to read it."""
PER_PARAMETER = 2e-8
"""Seconds to draw the noise of one parameter in a step, and to move it."""
PER_TERM = 3.5e-9
"""Seconds to add one number of one entry of the adjacency matrix."""


@dataclass(frozen=True)
class Cost:
    """Seconds and bytes for the nodes, and for each edge; ``device_bytes`` on an accelerator, where one is used."""

    seconds: float
    seconds_per_edge: float
    bytes: float
    bytes_per_edge: float
    device_bytes: float | None = None

    def __str__(self) -> str:
        """In words; memory in GiB."""
        device = "" if self.device_bytes is None else f"; {self.device_bytes / GIB:.1f} GiB on the device"
        return (
            f"about {self.seconds:.3g} s of one core and {self.seconds_per_edge * 1e6:.2g} s per million edges; "
            f"about {self.bytes / GIB:.2g} GiB and {self.bytes_per_edge * 1e6 / GIB:.2g} GiB per million edges{device}"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self)}


def estimate_cost(
    method: str,
    parameters: Mapping[str, Any],
    plan: Plan,
    facts: PublicFacts,
    *,
    dense: bool,
    stored: int | None = None,
    device: str = "cpu",
) -> Cost | None:
    """What a fit of this plan will take; None for a method that was not measured.

    ``stored`` is how many numbers sparse features hold, where that is public.
    """
    if method not in HEADS:
        return None
    stages = [stage for stage in plan.stages if stage.shape]
    steps = [stage for stage in stages if isinstance(stage.query, GradientSteps)]
    numbers = sum(math.prod(stage.shape) * stage.runs for stage in stages if stage not in steps)
    seconds = sum(map(_noisy_steps, steps)) + numbers * PER_NUMBER
    if steps:
        seconds += BEFORE_STEPS
    else:
        seconds += BEFORE_NOISE + HEADS[method] * _head_training(parameters, facts)
        seconds += _public_training(parameters, facts, stored)
    columns = sum(stage.shape[-1] for stage in stages if isinstance(stage.query, SUMS_OVER_EDGES))
    features = facts.num_nodes * facts.num_features * 4 if dense else 0
    return Cost(
        seconds=seconds,
        seconds_per_edge=2 * columns * PER_TERM,
        bytes=LIBRARIES + features + working_bytes(facts),
        bytes_per_edge=READING,
        device_bytes=None if device == "cpu" else features + _device_bytes(parameters, facts),
    )


def _public_training(parameters: Mapping[str, Any], facts: PublicFacts, stored: int | None) -> float:
    """Of a network on features."""
    size, steps = _course(parameters, facts)
    weights = _weights(parameters, facts, facts.num_features)
    if stored is None:
        per_row, per_step = 6 * weights / FLOPS, PER_STEP
    else:
        per_row = stored / max(facts.num_nodes, 1) * parameters["hidden"] * PER_ENTRY
        per_step = PER_STEP + weights * PER_WEIGHT
    return steps * (per_step + size * per_row) + facts.num_nodes * per_row


def _head_training(parameters: Mapping[str, Any], facts: PublicFacts) -> float:
    """Of a head that reads a few numbers per class."""
    size, steps = _course(parameters, facts)
    return steps * (PER_STEP + size * 6 * _weights(parameters, facts, 2 * facts.num_classes) / FLOPS)


def _course(parameters: Mapping[str, Any], facts: PublicFacts) -> tuple[int, int]:
    """The rows of a batch and the number of steps."""
    options = TrainOptions(parameters["epochs"], 0.0, 0.0, parameters["batch_size"])
    size, passes = options.course(facts.num_train)
    return size, passes * -(-facts.num_train // max(size, 1))


def _noisy_steps(stage: Stage) -> float:
    query = stage.query
    assert isinstance(query, GradientSteps)
    per_row = 6 * query.num_parameters / FLOPS
    return stage.runs * (PER_STEP + query.num_parameters * PER_PARAMETER + query.batch_size * per_row)


def _weights(parameters: Mapping[str, Any], facts: PublicFacts, inputs: int) -> int:
    hidden, layers = parameters["hidden"], parameters["layers"]
    widths = [inputs, *[hidden] * (layers - 1), facts.num_classes]
    return sum(one * two for one, two in itertools.pairwise(widths))


def _device_bytes(parameters: Mapping[str, Any], facts: PublicFacts) -> float:
    """A portion of hidden rows, and a few single-precision rows per node."""
    portion = min(AT_ONCE, facts.num_nodes) * parameters["hidden"] * 4 * 4
    return portion + 4 * 4 * facts.num_nodes * facts.num_classes
