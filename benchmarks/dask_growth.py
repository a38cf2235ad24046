"""A fit on a generated graph in partitions: time, memory and growth over its size.

    python benchmarks/dask_growth.py [--shrink 256 64 16] [--method hop-bayes] [--workers 2] [--json]
    python benchmarks/dask_growth.py --shrink 1 --make FOLDER --makers 14
    python benchmarks/dask_growth.py --shrink 1 --fit FOLDER --json

The graph has 25 million nodes and 500 million undirected edges, divided by each number after ``--shrink``. It is
generated block by block, so that it never lies in memory; ``--make`` does that alone, on so many processes, and
``--fit`` takes what it made. Memory is that of this process (with Dask's scheduler in it) and its workers together, a
page that several of them map being counted once (PSS), sampled all the time; ``driver_gib`` is the peak of this
process alone. What is done, and the memory so far, goes to standard error as it happens. ``slope`` is the exponent of
growth between neighbouring sizes.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import discreet
from discreet.engine.cluster import connected
from discreet.engine.dask_blocks import DaskBlocks
from discreet.graph.partition_manifest import Manifest
from discreet.graph.partition_writer import EdgeBuckets, NewBlock, write_partitions
from discreet.graph.partitions import PartitionedGraph
from discreet.methods.registry import find_method, load_method

NODES, EDGES = 25_000_000, 500_000_000
AT_ONCE = 4_000_000
HOMOPHILY, SEPARATION = 0.6, 0.5
PARTS = "parts"
LEAST_PAUSE, LEAST_SAYING = 0.5, 5.0
"""Seconds between samples of memory, and between lines on what is done."""


# -------------------------------------------------------------------- the graph


def draw_edges(rng: np.random.Generator, nodes: int, count: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends with power-law degrees, spread over all ids, often of one class, which is the id modulo their number."""
    stride = next(step for step in range(int(nodes * 0.618), nodes) if math.gcd(step, nodes) == 1)
    ends = (nodes * rng.random((2, count)) ** 2).astype(np.int64) * stride % nodes
    alike = rng.random(count) < HOMOPHILY
    moved = ends[1] - ends[1] % classes + ends[0] % classes
    ends[1] = np.where(alike & (moved < nodes), moved, ends[1])
    return ends[0], ends[1]


def fill_buckets(buckets: EdgeBuckets, starts: range, edges: int, classes: int) -> EdgeBuckets:
    """Edges from each of these on; which edges they are does not depend on who draws them."""
    for start in starts:
        rng = np.random.default_rng([0, start])
        sources, targets = draw_edges(rng, buckets.num_nodes, min(AT_ONCE, edges - start), classes)
        buckets.add(sources, targets)
        buckets.add(targets, sources)
    return buckets


def make_block(filled: list[EdgeBuckets], number: int, features: int, classes: int) -> NewBlock:
    for other in filled[1:]:
        other.hand_over(number, filled[0])
    rows, indptr, indices = filled[0].block(number)
    centres = np.random.default_rng(1).normal(size=(classes, features)).astype(np.float32) * SEPARATION
    labels = np.arange(rows.start, rows.stop) % classes
    noise = np.random.default_rng([2, rows.start]).standard_normal((len(labels), features), dtype=np.float32)
    return NewBlock(indptr, indices, centres[labels] + noise, labels)


def make_blocks(
    pool: ProcessPoolExecutor, filled: list[EdgeBuckets], options: argparse.Namespace
) -> Iterable[NewBlock]:
    """As many at a time as there are processes, so that memory holds no more."""
    waiting: list[Any] = []
    for number in range(options.partitions):
        waiting.append(pool.submit(make_block, filled, number, options.features, options.classes))
        if len(waiting) >= options.makers:
            yield waiting.pop(0).result()
    for block in waiting:
        yield block.result()


def generate(folder: Path, nodes: int, edges: int, options: argparse.Namespace) -> Manifest:
    facts = Manifest(
        f"generated {nodes}", nodes, options.features, options.classes, directed=False, sparse=False, blocks=()
    )
    step = AT_ONCE * options.makers
    with ProcessPoolExecutor(options.makers) as pool:
        empty = [EdgeBuckets(folder / f"buckets-{maker}", nodes, options.partitions) for maker in range(options.makers)]
        shares = [range(maker * AT_ONCE, edges, step) for maker in range(options.makers)]
        started = [
            pool.submit(fill_buckets, buckets, share, edges, options.classes)
            for buckets, share in zip(empty, shares, strict=True)
        ]
        filled = [one.result() for one in started]
        say(f"{edges} edges drawn")
        made = write_partitions(folder / PARTS, facts, make_blocks(pool, filled, options))
    for buckets in filled:
        buckets.close()
    return made


# -------------------------------------------------------------------- what is watched


def say(words: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {words}", file=sys.stderr, flush=True)


class Memory(threading.Thread):
    """Peak memory of this process and of its children, together and of this process alone."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.together = self.alone = 0.0
        self._stop_asked = threading.Event()

    def run(self) -> None:
        here, pause = psutil.Process(), LEAST_PAUSE
        while not self._stop_asked.wait(pause):
            began = time.perf_counter()
            alone, others = here.memory_full_info().pss, 0
            for child in here.children(recursive=True):
                try:
                    others += child.memory_full_info().pss
                except psutil.Error:
                    continue
            self.alone, self.together = max(self.alone, alone / 2**30), max(self.together, (alone + others) / 2**30)
            pause = max(LEAST_PAUSE, 20 * (time.perf_counter() - began))  # to look at every page takes a core's time

    def stop(self) -> None:
        self._stop_asked.set()
        self.join()


class Watch:
    """Says what is done, and notes how long each pass over the edges takes, from its first block to its last."""

    def __init__(self, memory: Memory) -> None:
        self.passes: list[float] = []
        self._memory, self._title, self._started, self._said = memory, "", 0.0, 0.0

    def of_passes(self, title: str, done: int, total: int) -> None:
        if title != self._title:
            self._title, self._started = title, time.perf_counter()
        if done == total:
            self.passes.append((time.perf_counter() - self._started) * total / max(total - 1, 1))
        self.of_steps(title, done, total)

    def of_steps(self, title: str, done: int, total: int) -> None:
        now = time.perf_counter()
        if done == total or now - self._said > LEAST_SAYING:
            self._said = now
            self.stage(f"{title}: {done} of {total}")

    def stage(self, words: str) -> None:
        say(f"{words}; {self._memory.together:.2f} GiB at most, {self._memory.alone:.2f} here")


# -------------------------------------------------------------------- the fit


def fitted(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    model = load_method(find_method(options.method))(discreet.Privacy(discreet.EdgeLevel(), options.epsilon))
    memory = Memory()
    watch = Watch(memory)
    memory.start()
    started = time.perf_counter()
    with PartitionedGraph(folder) as opened, connected(workers=options.workers) as client:
        watch.stage("digests are right")
        graph = discreet.split(opened.graph(DaskBlocks(client, opened, progress=watch.of_passes)), "75/10/15", 0)
        ready = time.perf_counter()
        watch.stage("opened")
        model.fit(graph, progress=watch.of_steps)
        done = time.perf_counter()
        watch.stage(f"fitted in {done - ready:.0f} s")
        accuracy = model.score(graph)
    memory.stop()
    watch.stage(f"scored in {time.perf_counter() - done:.0f} s")
    known = opened.manifest
    return {
        "method": options.method,
        "nodes": known.num_nodes,
        "edges": sum(block.entries for block in known.blocks) // 2,
        "features": known.num_features,
        "classes": known.num_classes,
        "partitions": len(known.blocks),
        "workers": options.workers,
        "open_s": ready - started,
        "fit_s": done - ready,
        "passes": len(watch.passes),
        "pass_s": float(np.mean(watch.passes)),
        "peak_gib": memory.together,
        "driver_gib": memory.alone,
        "disk_gib": sum(path.stat().st_size for path in folder.iterdir()) / 2**30,
        "accuracy": accuracy,
        "epsilon_spent": model.epsilon_spent_,
    }


def measure(shrink: int, options: argparse.Namespace) -> dict[str, Any]:
    """Make, fit, or both in a folder that is removed."""
    if options.fit is not None:
        return {"shrink": shrink, **fitted(options.fit / PARTS, options)}
    with folder_for(options) as folder:
        started = time.perf_counter()
        generate(folder, NODES // shrink, EDGES // shrink, options)
        generated = {"shrink": shrink, "generate_s": time.perf_counter() - started}
        say(f"generated in {generated['generate_s']:.0f} s")
        return generated if options.make is not None else {**generated, **fitted(folder / PARTS, options)}


@contextmanager
def folder_for(options: argparse.Namespace) -> Iterator[Path]:
    if options.make is not None:
        options.make.mkdir()
        yield options.make
        return
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        yield Path(scratch)


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
    parser.add_argument("--makers", type=int, default=1, help="processes that generate the graph")
    parser.add_argument("--scratch", help="a folder for the partitions, which are removed")
    parser.add_argument("--make", type=Path, metavar="FOLDER", help="generate into a new folder, and stop")
    parser.add_argument("--fit", type=Path, metavar="FOLDER", help="take what --make put there")
    parser.add_argument("--json", action="store_true", help="one object on standard output")
    options = parser.parse_args()
    if (options.make or options.fit) and len(options.shrink) > 1:
        parser.error("--make and --fit take one size")
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
