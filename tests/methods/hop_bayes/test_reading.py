"""How noisy sums are read: likelihoods that know their noise, a reader, and a few weights."""

from __future__ import annotations

import numpy as np

from discreet.methods.hop_bayes.reading import START, LinkModel, Reader, class_likelihoods, fit_weights, weighed


def test_fitted_weights_fit_better_than_where_they_start() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 500)
    parts = rng.normal(size=(500, len(START), 3))
    parts[np.arange(500), 1, labels] += 1.0
    found = fit_weights(parts, labels)
    assert found[1] > 0.3
    assert abs(found[0]) < 0.4
    assert (weighed(found, parts).argmax(axis=1) == labels).mean() > (weighed(START, parts).argmax(1) == labels).mean()


def test_a_reader_learns_what_rows_say() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 9000)
    rows = 3 * np.eye(3)[(labels + 1) % 3] + rng.normal(0, 1, (9000, 3))
    reader = Reader.fit(rows[:6000], labels[:6000], 3, 1.0)
    assert (reader.scores(rows[6000:], 1.0).argmax(axis=1) == labels[6000:]).mean() > 0.9
    assert not Reader.fit(rows[:0], labels[:0], 3, 1.0).head.any()


def test_likelihoods_know_their_noise() -> None:
    rng = np.random.default_rng(0)
    links = LinkModel(np.array([[0.8, 0.2], [0.2, 0.8]]), np.array([0.5, 0.5]), 10.0)
    noise = rng.normal(0, 5, (4000, 2))
    assert np.abs(class_likelihoods(noise, 5.0, links)).max() < 1
    signal = 10 * (links.given[[0] * 2000 + [1] * 2000] - 0.5)
    found = class_likelihoods(signal + rng.normal(0, 1, (4000, 2)), 1.0, links)
    assert (found[:2000, 0] > 0).mean() > 0.95
    assert (found[2000:, 1] > 0).mean() > 0.95
    independent = LinkModel(np.full((2, 2), 0.5), np.array([0.5, 0.5]), 10.0)
    assert np.allclose(class_likelihoods(signal, 1.0, independent), 0)


def test_labels_of_one_class_move_no_weight() -> None:
    parts = np.random.default_rng(0).normal(size=(50, len(START), 2))
    np.testing.assert_array_equal(fit_weights(parts, np.zeros(50, dtype=np.int64)), START)
