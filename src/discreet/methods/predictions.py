"""Predictions as a file: one row a node, with the caller's own ids and class names."""

from __future__ import annotations

import csv
import os
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.graph.graph import Graph


def write_predictions(path: Path, graph: Graph, probabilities: npt.NDArray[np.float32]) -> None:
    """Write ``node,class,probability``, whole or not at all."""
    ids = np.arange(graph.num_nodes) if graph.node_ids is None else graph.node_ids
    best = probabilities.argmax(axis=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["node", "class", "probability"])
            for row, label in enumerate(best):
                name = label if graph.class_names is None else graph.class_names[label]
                writer.writerow([ids[row], name, f"{probabilities[row, label]:.6g}"])
        os.replace(temporary, path)
    except BaseException:  # a full disk or Ctrl-C must leave nothing behind
        Path(temporary).unlink(missing_ok=True)
        raise
