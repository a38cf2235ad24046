"""What several graph tests ask of two graphs or of a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from discreet.graph import Graph


def dense(graph: Graph) -> np.ndarray:
    return graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()


def assert_same(left: Graph, right: Graph, *, splits: bool = False) -> None:
    """Edges, features, labels, masks, ids, classes and direction agree."""
    assert left.directed == right.directed
    np.testing.assert_array_equal(left.indptr, right.indptr)
    np.testing.assert_array_equal(left.indices, right.indices)
    np.testing.assert_array_equal(dense(left), dense(right))
    np.testing.assert_array_equal(left.labels, right.labels)
    assert left.num_classes == right.num_classes
    assert left.class_names == right.class_names
    for name in ("train_mask", "val_mask", "test_mask", "node_ids"):
        a, b = getattr(left, name), getattr(right, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert a.tolist() == b.tolist(), name
    if splits:
        assert [s.name for s in left.named_splits] == [s.name for s in right.named_splits]
        for a, b in zip(left.named_splits, right.named_splits, strict=True):
            np.testing.assert_array_equal(a.part, b.part)


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
