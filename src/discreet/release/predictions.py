"""Predictions as a file: one row a node, with the caller's own ids and class names."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from discreet.arrays import SingleArray
from discreet.files import write_whole
from discreet.graph.graph import Graph


def write_predictions(path: Path, graph: Graph, probabilities: SingleArray) -> None:
    """Write ``node,class,probability``, whole or not at all."""
    ids = np.arange(graph.num_nodes) if graph.node_ids is None else graph.node_ids
    best = probabilities.argmax(axis=1)
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(["node", "class", "probability"])
    for row, label in enumerate(best):
        name = label if graph.class_names is None else graph.class_names[label]
        writer.writerow([ids[row], name, f"{probabilities[row, label]:.6g}"])
    write_whole(path, table.getvalue())
