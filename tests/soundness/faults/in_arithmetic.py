"""Faults of the machine's arithmetic, which small graphs do not show: tests of the suite must, on rows and numbers made
to show them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from discreet import limits
from discreet.graph import edge_weights
from discreet.mechanisms.objective import perturbation, rounding, tilt
from discreet.ops import egonets, layer_rows
from discreet.privacy import accountants
from discreet.queries import sums
from tests.ops import test_rows
from tests.soundness.faults.checks import SuiteTest
from tests.soundness.faults.registry import fault

CANCELLING = SuiteTest("test_clipping_exact.py", "tests.ops.test_clipping_exact:test_rows_that_cancel",
                       arguments=(3703, 2, False, False, lambda *_: None))  # fmt: skip
EMPTY_SLOTS = SuiteTest(
    "test_egonets.py", "tests.ops.test_egonets:test_empty_slots_read_nobodys_record", arguments=(False,)
)
LIMITS = SuiteTest(
    "test_parameters_limits.py",
    "tests.methods.test_parameters_limits:test_a_limit_refuses_with_one_sentence",
    arguments=(1e-7,),
)
COMPOSED = SuiteTest(
    "test_accountants.py",
    "tests.privacy.test_accountants:test_compositions_of_distributions_are_pessimistic_at_any_delta",
    arguments=(8.0, 1000),
)

PICKED = SuiteTest(
    "test_accountants.py",
    "tests.privacy.test_accountants:test_one_selection_of_many_picks_is_pessimistic_at_any_delta",
)
CLIPPED = SuiteTest("test_rows.py", "tests.ops.test_rows:test_clipped_rows_of_any_size", arguments=(1e-3,))

STRADDLING = SuiteTest(
    "test_edge_weights.py",
    "tests.graph.test_edge_weights:test_one_edge_moves_a_weighted_sum_by_no_more_than_its_row_at_any_degree",
)
NARROW = SuiteTest(
    "test_clipping_exact.py",
    "tests.ops.test_clipping_exact:test_squares_of_many_narrow_layers_are_not_underestimated",
)

WIDE = SuiteTest(
    "test_sums.py", "tests.queries.test_sums:test_sums_lie_on_the_lattice_at_every_width", arguments=(100,)
)

HIDDEN = SuiteTest(
    "test_rounding.py",
    "tests.mechanisms.objective.test_rounding:test_the_noise_on_the_minimiser_has_the_scale_of_the_plan",
)
CHARGED = SuiteTest(
    "test_rounding.py",
    "tests.mechanisms.objective.test_rounding:test_the_gradient_norm_of_the_plan_covers_rounding_whatever_the_size",
)
NEAR = SuiteTest(
    "test_tilt.py",
    "tests.mechanisms.objective.test_tilt:test_doubles_are_as_near_as_is_proved_to_what_the_whole_numbers_say",
)


@fault("norms of shared rows in single precision", "suite", CANCELLING, "fails", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    def single(rows: torch.Tensor, slots: int) -> torch.Tensor:
        blocks = rows.float().reshape(len(rows) // slots, slots, -1).numpy()
        products = blocks[:, :, None] * blocks[:, None]
        # One after another, so that every processor makes the same roundings.
        return torch.from_numpy(np.add.accumulate(products, axis=-1)[..., -1]).double()

    patch.setattr(layer_rows, "row_grams", single)
    patch.setattr(layer_rows.AffineRows, "_spare", lambda self: 0.0)
    patch.setattr(layer_rows.Sizes, "factor", lambda self, bound: bound / self.square.sqrt().clamp_min(bound))


@fault("empty places of an ego-net with node 0's record", "suite", EMPTY_SLOTS, "fails", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = egonets._padded

    def with_node_0(*given: Any) -> egonets.SenderTable:
        found = real(*given)
        return egonets.SenderTable(np.where(found.mask, found.index, 0), found.mask)

    patch.setattr(egonets, "_padded", with_node_0)


@fault("no floor under what a proof divides by", "suite", LIMITS, "fails")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(limits.Limit, "check", lambda self, name, value: float(value))


@fault("compositions without room for their rounding", "suite", COMPOSED, "fails", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(accountants, "PLD_ROUNDING", 0.0)
    patch.setattr(accountants, "CONVOLUTION_ROUNDING", 0.0)


@fault("a selection of many picks that is rounded as one", "suite", PICKED, "fails")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(accountants, "CONVOLUTION_ROUNDING", 0.0)


@fault("rows clipped by a factor in single precision", "suite", CLIPPED, "fails")
def _(patch: pytest.MonkeyPatch) -> None:
    def single(rows: torch.Tensor, max_norm: float) -> torch.Tensor:
        norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64)
        return rows * (max_norm * (1 - 1e-6) / norms).clamp_max(1.0).float()

    patch.setattr(test_rows, "clip_rows", single)


@fault("a lattice too fine for sums over weights to be exact", "suite", STRADDLING, "fails")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(edge_weights, "SUM_PLACES", 60)


@fault("squares summed over layers without room for rounding", "suite", NARROW, "fails")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(layer_rows, "gamma", lambda roundings: 0.0)


@fault("no lattice under wide rows", "suite", WIDE, "fails")
def _(patch: pytest.MonkeyPatch) -> None:
    real = sums.on_lattice
    patch.setattr(sums, "on_lattice", lambda rows: rows if rows.shape[1] > 64 else real(rows))


# -------------------------------------------------------------------- the perturbed minimiser


@fault("rounding of rows and gradient that nobody charges", "suite", CHARGED, "fails", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rounding.Rounding, "gradient_norm", lambda self, wanted: wanted)


@fault("a solver that stops early", "suite", HIDDEN, "fails", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = perturbation.minimise
    patch.setattr(perturbation, "minimise", lambda problem, tolerance: real(problem, 1.0))


@fault("output noise for half the distance to the minimiser", "suite", HIDDEN, "fails")
def _(patch: pytest.MonkeyPatch) -> None:
    real = perturbation.output_sensitivity
    patch.setattr(perturbation, "output_sensitivity", lambda ridge, norm: real(ridge, norm / 2))


@fault("a tilt in single precision", "suite", NEAR, "fails")
def _(patch: pytest.MonkeyPatch) -> None:
    real = tilt.noise_matrix
    patch.setattr(tilt, "noise_matrix", lambda *given: real(*given).astype("float32").astype("float64"))
