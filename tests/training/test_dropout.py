"""Dropout keeps what it says: the rate, a mean of one, and draws of its own generator alone."""

from __future__ import annotations

import math

import pytest
import torch

from discreet.training.networks import Dropout

SHAPE = (997, 1003)  # an odd number of entries: the last word is not used up


def mask_of(rate: float, seed: int = 0, shape: tuple[int, ...] = SHAPE) -> torch.Tensor:
    mask = Dropout(rate, torch.Generator().manual_seed(seed)).train().mask(torch.zeros(shape))
    assert mask is not None
    return mask


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.3, 0.5, 0.9, 0.99])
def test_so_much_is_dropped_and_the_rest_makes_up_for_it(rate: float) -> None:
    mask = mask_of(rate)
    dropped = (mask == 0).double()
    deviation = math.sqrt(rate * (1 - rate) / mask.numel())
    assert abs(float(dropped.mean()) - rate) < 5 * deviation + 2**-16
    assert abs(float(mask.double().mean()) - 1) < 5 * deviation / (1 - rate)
    assert len(mask.unique()) == 2


def test_every_place_in_a_word_is_dropped_at_the_same_rate() -> None:
    flat = (mask_of(0.5).flatten() == 0).double()
    words = flat[: len(flat) // 4 * 4].view(-1, 4)
    deviation = 0.5 / math.sqrt(len(words))
    assert float((words.mean(0) - 0.5).abs().max()) < 5 * deviation
    together = (words.T @ words / len(words)).fill_diagonal_(0.25)  # a quarter for independent ones
    assert float((together - 0.25).abs().max()) < 5 * deviation


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (3, 5)])
def test_shapes_that_fill_no_word(shape: tuple[int, int]) -> None:
    assert mask_of(0.5, shape=shape).shape == shape


def test_masks_are_fresh_and_those_of_the_seed() -> None:
    dropout, before = Dropout(0.5, torch.Generator().manual_seed(0)).train(), torch.get_rng_state()
    one, other = dropout.mask(torch.zeros(SHAPE)), dropout.mask(torch.zeros(SHAPE))
    assert one is not None
    assert other is not None
    assert not torch.equal(one, other)
    assert torch.equal(one, mask_of(0.5))
    assert torch.equal(before, torch.get_rng_state())
