"""Scores of predictions."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from discreet.errors import ParameterError
from discreet.methods.metrics import macro_f1, measure, micro_f1


def test_f1_against_scikit_learn():
    rng = np.random.default_rng(0)
    labels, predicted = rng.integers(4, size=200), rng.integers(5, size=200)
    assert micro_f1(labels, predicted) == pytest.approx(f1_score(labels, predicted, average="micro"))
    assert macro_f1(labels, predicted) == pytest.approx(f1_score(labels, predicted, average="macro"))
    with pytest.raises(ParameterError, match="metric"):
        measure("auc", labels, predicted)
