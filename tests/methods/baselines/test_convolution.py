"""Networks without privacy: what sage drops while training, where it is not told."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.graph.synthetic import csbm
from discreet.methods.baselines import convolution
from discreet.methods.baselines.convolution import SAGE
from discreet.privacy.budget import Privacy


@pytest.mark.parametrize(("given", "many", "rate"), [(None, 31, 0.7), (None, 30, 0.5), (0.2, 31, 0.2)])
def test_sage_drops_more_on_few_training_nodes(
    given: float | None, many: int, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution, "MANY_LABELS", many)
    graph = csbm(num_nodes=40, num_features=4, seed=0).with_masks(np.arange(30), None, None)
    model = SAGE(Privacy.none(), epochs=1, hidden=4, dropout=given).fit(graph)
    assert model.network_.dropout.rate == rate  # type: ignore[union-attr]
