"""A fit on a generated graph in partitions: time, memory and growth over its size.

    python benchmarks/dask_growth.py [--shrink 256 64 16] [--method hop-bayes] [--workers 2] [--json]

The graph has 25 million nodes and 500 million undirected edges, divided by each number after ``--shrink``. It is
generated block by block, so that it never lies in memory. Memory is that of this process and its workers together, a
page that several of them map being counted once (PSS), sampled every half second; ``driver_gib`` is the peak of this
process alone. ``slope`` is the exponent of growth between neighbouring sizes.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import discreet
from discreet.engine.cluster import connected
from discreet.engine.dask_blocks import DaskBlocks
from discreet.graph.partition_writer import EdgeBuckets, NewBlock, write_partitions
from discreet.graph.partitions import Manifest, PartitionedGraph
from discreet.methods.registry import find_method, load_method

NODES, EDGES = 25_000_000, 500_000_000
AT_ONCE = 4_000_000
HOMOPHILY, SEPARATION = 0.6, 0.5


class Memory(threading.Thread):
    """Peak memory of this process and of its children, together and of this process alone."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.together = self.alone = 0.0
        self._stop_asked = threading.Event()

    def run(self) -> None:
        here = psutil.Process()
        while not self._stop_asked.wait(0.5):
            alone, others = here.memory_full_info().pss, 0
            for child in here.children(recursive=True):
                try:
                    others += child.memory_full_info().pss
                except psutil.Error:
                    continue
            self.alone, self.together = max(self.alone, alone / 2**30), max(self.together, (alone + others) / 2**30)

    def stop(self) -> None:
        self._stop_asked.set()
        self.join()


def draw_edges(rng: np.random.Generator, nodes: int, count: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends with power-law degrees, spread over all ids, often of one class, which is the id modulo their number."""
    stride = next(step for step in range(int(nodes * 0.618), nodes) if math.gcd(step, nodes) == 1)
    ends = (nodes * rng.random((2, count)) ** 2).astype(np.int64) * stride % nodes
    alike = rng.random(count) < HOMOPHILY
    moved = ends[1] - ends[1] % classes + ends[0] % classes
    ends[1] = np.where(alike & (moved < nodes), moved, ends[1])
    return ends[0], ends[1]


def blocks_of(buckets: EdgeBuckets, features: int, classes: int) -> Iterator[NewBlock]:
    centres = np.random.default_rng(1).normal(size=(classes, features)).astype(np.float32) * SEPARATION
    for rows, indptr, indices in buckets.blocks():
        rng = np.random.default_rng([2, rows.start])
        labels = np.arange(rows.start, rows.stop) % classes
        noise = rng.standard_normal((len(labels), features), dtype=np.float32)
        yield NewBlock(indptr, indices, centres[labels] + noise, labels)


def generate(folder: Path, nodes: int, edges: int, options: argparse.Namespace) -> Manifest:
    buckets, rng = EdgeBuckets(folder / "buckets", nodes, options.partitions), np.random.default_rng(0)
    for start in range(0, edges, AT_ONCE):
        sources, targets = draw_edges(rng, nodes, min(AT_ONCE, edges - start), options.classes)
        buckets.add(sources, targets)
        buckets.add(targets, sources)
    facts = Manifest(
        f"generated {nodes}", nodes, options.features, options.classes, directed=False, sparse=False, blocks=()
    )
    made = write_partitions(folder / "parts", facts, blocks_of(buckets, options.features, options.classes))
    buckets.close()
    return made


def measure(shrink: int, options: argparse.Namespace) -> dict[str, Any]:
    nodes, edges = NODES // shrink, EDGES // shrink
    model = load_method(find_method(options.method))(discreet.Privacy(discreet.EdgeLevel(), options.epsilon))
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        started = time.perf_counter()
        manifest = generate(Path(scratch), nodes, edges, options)
        generated = time.perf_counter()
        on_disk = sum(path.stat().st_size for path in (Path(scratch) / "parts").iterdir())
        memory, passes = Memory(), Passes()
        memory.start()
        with PartitionedGraph(Path(scratch) / "parts") as opened, connected(workers=options.workers) as client:
            graph = discreet.split(opened.graph(DaskBlocks(client, opened, progress=passes)), "75/10/15", 0)
            ready = time.perf_counter()
            model.fit(graph)
            fitted = time.perf_counter()
            accuracy = model.score(graph)
        memory.stop()
    return {
        "shrink": shrink,
        "method": options.method,
        "nodes": nodes,
        "edges": sum(block.entries for block in manifest.blocks) // 2,
        "features": options.features,
        "classes": options.classes,
        "partitions": options.partitions,
        "workers": options.workers,
        "generate_s": generated - started,
        "open_s": ready - generated,
        "fit_s": fitted - ready,
        "passes": len(passes.seconds),
        "pass_s": float(np.mean(passes.seconds)),
        "peak_gib": memory.together,
        "driver_gib": memory.alone,
        "disk_gib": on_disk / 2**30,
        "accuracy": accuracy,
        "epsilon_spent": model.epsilon_spent_,
    }


class Passes:
    """How long each pass over the edges takes, from its first block to its last."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._title, self._started = "", 0.0

    def __call__(self, title: str, done: int, total: int) -> None:
        if title != self._title:
            self._title, self._started = title, time.perf_counter()
        if done == total:
            self.seconds.append((time.perf_counter() - self._started) * total / max(total - 1, 1))


def with_slopes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for before, row in pairwise(rows):
        grown = math.log(row["edges"] / before["edges"])
        row["slope"] = {name: math.log(row[name] / before[name]) / grown for name in ("fit_s", "pass_s", "peak_gib")}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shrink", type=int, nargs="+", default=[256, 64, 16])
    parser.add_argument("--method", default="hop-bayes")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--classes", type=int, default=8)
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scratch", help="a folder for the partitions, which are removed")
    parser.add_argument("--json", action="store_true", help="one object on standard output")
    options = parser.parse_args()
    rows = []
    for shrink in sorted(options.shrink, reverse=True):
        rows.append(measure(shrink, options))
        for name, value in rows[-1].items():
            print(f"{name:14} {value:.3g}" if isinstance(value, float) else f"{name:14} {value}", file=sys.stderr)
        print(file=sys.stderr, flush=True)
    found = {"rows": with_slopes(rows)}
    for row in rows[1:]:
        print(f"growth to 1/{row['shrink']}: {row['slope']}", file=sys.stderr)
    if options.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
