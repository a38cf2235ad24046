"""A graph in partitions on disk: two workers sum over its edges, and this process draws all noise.

python examples/dask/run.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import discreet
from discreet.engine.graphs import graph_on_workers
from discreet.graph.partition_writer import write_graph


def model() -> discreet.HopBayes:
    # The seed of the noise is fixed here, and here alone, so that two fits can be compared: such a model is no release.
    return discreet.HopBayes(discreet.Privacy(discreet.EdgeLevel(), epsilon=2.0), epochs=5, insecure_noise_seed=1)


def main() -> None:
    """Write partitions, fit on workers, fit here, compare."""
    graph = discreet.split(discreet.csbm(num_nodes=2000, seed=1), "75/10/15", seed=0)
    with tempfile.TemporaryDirectory() as folder:
        parts = Path(folder) / "parts"
        write_graph(graph, parts, partitions=8)
        print(f"{len(list(parts.glob('edges-*')))} partitions of edges, {len(list(parts.glob('nodes-*')))} of nodes")
        with graph_on_workers(parts, workers=2) as in_blocks:
            there = model().fit(in_blocks)
            print(f"test accuracy on workers: {there.score(in_blocks):.3f}")
    here = model().fit(graph)
    assert here.certificate_ == there.certificate_
    assert all((here._state()[name] == array).all() for name, array in there._state().items())
    print("the same release, to the bit, as one process makes of the whole graph")


if __name__ == "__main__":  # workers are processes that import this file
    main()
