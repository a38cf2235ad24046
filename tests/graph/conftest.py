from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.graph import Graph, NamedSplit


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test sees or touches the cache and the data root of whoever runs it."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.delenv("DISCREET_DATA", raising=False)


@pytest.fixture(params=["dense", "sparse"])
def small(request: pytest.FixtureRequest) -> Graph:
    """Six nodes with everything a graph can hold; directed."""
    features = np.array([[1, 0], [0, 2], [0, 0], [3, 0], [0, 0.5], [1, 1]], dtype=np.float32)
    return Graph.from_edges(
        [0, 1, 2, 3, 3],
        [1, 2, 0, 4, 0],
        sp.csr_array(features) if request.param == "sparse" else features,
        [0, 1, 1, -1, 0, 2],
        directed=True,
        train_mask=[0, 1],
        val_mask=[2],
        test_mask=[4, 5],
        node_ids=np.array(["a", "b", "c", "007", "7", "f"]),
        class_names=("cat", "dog", "emu"),
        named_splits=(NamedSplit("public", np.array([1, 1, 2, 0, 3, 3], dtype=np.int8)),),
        name="small",
    )
