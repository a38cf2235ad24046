"""Networks without privacy: what sage drops and whether gat maps own rows apart, where they are not told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from discreet.graph.synthetic import csbm
from discreet.methods.baselines import convolution
from discreet.methods.baselines.convolution import GAT, SAGE
from discreet.privacy.budget import Privacy
from discreet.release.load import load_release


@pytest.mark.parametrize(("given", "many", "rate"), [(None, 31, 0.7), (None, 30, 0.5), (0.2, 31, 0.2)])
def test_sage_drops_more_on_few_training_nodes(
    given: float | None, many: int, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution, "MANY_LABELS", many)
    graph = csbm(num_nodes=40, num_features=4, seed=0).with_masks(np.arange(30), None, None)
    model = SAGE(Privacy.none(), epochs=1, hidden=4, dropout=given).fit(graph)
    assert model.network_.dropout.rate == rate  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("given", "enough", "mapped"), [(None, 31, False), (None, 30, True), (False, 30, False), (True, 31, True)]
)
def test_gat_maps_own_rows_apart_on_enough_training_nodes(
    given: bool | None, enough: int, mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a release is read as it was trained, also where its weights are from before there was a second map."""
    monkeypatch.setattr(convolution, "ENOUGH_FOR_RESIDUAL", enough)
    graph = csbm(num_nodes=40, num_features=4, seed=0).with_masks(np.arange(30), None, None)
    model = GAT(Privacy.none(), epochs=1, hidden=8, residual=given).fit(graph)
    assert (model.network_.own is not None) is mapped  # type: ignore[union-attr]
    folder = model.save(tmp_path / "release")
    monkeypatch.setattr(convolution, "ENOUGH_FOR_RESIDUAL", 61 - enough)  # the other rule
    restored = load_release(folder)
    np.testing.assert_array_equal(restored.predict_proba(graph), model.predict_proba(graph))
