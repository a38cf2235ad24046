"""A release that was loaded predicts on another graph what the estimator that was saved does."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from discreet.methods.registry import list_methods
from discreet.release.load import load_release
from tests.contracts.cases import graph_for, make

WITHOUT_PRIVACY = [name for name, declared in list_methods().items() if "none" in declared.levels]


@pytest.mark.parametrize("name", WITHOUT_PRIVACY)
def test_a_loaded_release_predicts_on_another_graph(name: str, tmp_path: Path) -> None:
    fitted = make(name, "none").fit(graph_for("none", seed=2))
    fitted.save(tmp_path / "release")
    other = graph_for("none", seed=3)
    try:
        expected = fitted.predict_proba(other)
    except ValueError as refusal:  # weights that belong to nodes: both say so
        with pytest.raises(type(refusal), match=re.escape(str(refusal))):
            load_release(tmp_path / "release").predict_proba(other)
        return
    np.testing.assert_array_equal(load_release(tmp_path / "release").predict_proba(other), expected)
