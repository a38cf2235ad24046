"""The formulas of the DPAR paper, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from discreet.methods.dpar.published import PublishedSetting, pick_epsilon, published_noise
from tests.queries.test_picks import picks_of

approx = pytest.approx

SETTING = PublishedSetting(
    epsilon=8, delta=2e-3, node_rate=0.09, share=0.5, nodes=216, rows=70, picks=2, batch=60, steps=200, column_norm=1.0
)


def test_formulas_by_hand():
    """Cora-ML in the paper's setting: ε/q′ = 88.9, of which a row gets 44.4/(2√(70·ln(e + 44.4/0.0111))) = 0.92."""
    inner, delta = 8 / 0.09, 2e-3 / 0.09
    row = inner / 2 / (2 * math.sqrt(70 * math.log(math.e + inner / 2 / (delta / 2))))
    assert row == approx(0.9221, abs=1e-3)
    row_delta = delta / 2 / 140
    noise = published_noise(SETTING, "em0")
    each = 1 / noise.index
    assert 2 * min(2 * each, 2 * each * math.tanh(each) + each * math.sqrt(4 * math.log(1 / row_delta))) == approx(row)
    assert published_noise(SETTING, "gm").row == approx(math.sqrt(2 * math.log(1.25 / row_delta)) / row)
    assert published_noise(SETTING, "em1").value == approx(2 / (row / 2))
    assert noise.step == approx(2 * (60 / 216) * math.sqrt(200 * math.log(2 / delta)) / (inner / 2))
    assert pick_epsilon(0.4, 1e-4, 1) == approx(0.2)  # few picks: the pure bound 2Kε is the smaller


def test_its_noise_grows_with_a_smaller_budget_and_with_its_share():
    small = published_noise(replace(SETTING, epsilon=1), "em0")
    assert small.index > published_noise(SETTING, "em0").index
    assert small.step == approx(8 * published_noise(SETTING, "em0").step)
    assert published_noise(replace(SETTING, share=0.0), "em0").index is None


@pytest.mark.parametrize("selection", ["em0", "em1", "gm"])
def test_its_noise_is_in_clip_bounds_whatever_the_true_sensitivity(selection):
    noise, query = published_noise(SETTING, selection), picks_of(selection, rows=70, clip=0.1)
    drawn = query.noise_std(noise.picking_event(query), query.bound().sensitivity)
    assert drawn == approx(0.1 * (noise.row if selection == "gm" else noise.index))
