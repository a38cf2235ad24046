"""How classes link: what noise explains is not believed, what stands out is kept."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.methods.hop_bayes.reading import LinkModel


def test_noise_alone_becomes_independence() -> None:
    counts = np.full((3, 3), 100.0) + np.random.default_rng(0).normal(0, 50, (3, 3))
    links = LinkModel.from_counts(counts, 500.0, 100, directed=False)
    assert np.allclose(links.ratios, 1)
    apart = LinkModel.from_counts(counts, 500.0, 100, directed=False, apart=True)
    assert np.allclose(apart.ratios, 1)


def test_noise_between_classes_is_not_believed_because_of_the_diagonal() -> None:
    """Few links between classes, alike for all pairs, and noise as large as they are."""
    rng = np.random.default_rng(0)
    clean = np.full((6, 6), 20.0) + 600 * np.eye(6)
    truth = LinkModel.from_counts(clean, 1e-9, 1000, directed=False).given
    errors = {True: 0.0, False: 0.0}
    for _ in range(20):
        noisy = clean + rng.normal(0, 20, clean.shape)
        for apart in errors:
            found = LinkModel.from_counts(noisy, 20.0, 1000, directed=False, apart=apart).given
            errors[apart] += float(((found - truth) ** 2).sum())
    assert errors[True] < 0.5 * errors[False]


def test_links_between_classes_that_stand_out_are_kept_apart_too() -> None:
    clean = np.array([[50.0, 900.0, 20.0], [900.0, 40.0, 300.0], [20.0, 300.0, 10.0]])
    found = LinkModel.from_counts(clean + np.random.default_rng(0).normal(0, 5, (3, 3)), 5.0, 1000, False, apart=True)
    assert np.abs(found.given - LinkModel.from_counts(clean, 1e-9, 1000, directed=False).given).max() < 0.03


def test_strong_links_are_kept() -> None:
    links = LinkModel.from_counts(np.diag([900.0, 800.0]) + 20, 5.0, 1000, directed=False)
    assert links.given[0, 0] > 0.9
    assert links.mean_degree == pytest.approx(2 * 1780 / 1000)
