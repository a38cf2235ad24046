"""Fits on an accelerator: seconds and device memory of hop-bayes, gap and dp-gnn, and whether its sums are right.

    python benchmarks/accelerator.py [--json] [--device cuda] [--shrink 1] [--only NAME]…

Graphs are generated: 2.4 million nodes and 62 million edges with 100 features (hop-bayes at edge and node level, gap),
and 34,000 nodes with 8,415 sparse features (dp-gnn); ``--shrink 8`` takes an eighth of them. dp-gnn also runs on Photo
and CS (``--only "dp-gnn cs all"``), which must be in the data folder. ``--device cpu`` runs the same on the processor;
``step_ms`` is the median noisy step. The check computes clipped sums of the same rows on both, whose difference must be
within twice the error that is set aside for rounding (``ops.clipping``), and counts losses and rows of products whose
bits depend on their batch.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

import discreet
from discreet.arrays import IntArray
from discreet.graph.graph import Graph
from discreet.graph.synthetic import scale_free
from discreet.methods.registry import find_method, load_method
from discreet.ops.clipping import ClipRule, Room, clipped_sum
from discreet.ops.rows import row_product
from discreet.ops.slot_rows import RowTable, SlotRows, SlotsOnDevice, slot_grams
from discreet.ops.sparse import SparseMatrix
from discreet.training.networks import Linear

COUNT, SLOTS, WIDTH, CLASSES = 3000, 8, 300, 7
FITS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "hop-bayes edge": ("hop-bayes", "edge", {}),
    "gap edge": ("gap", "edge", {}),
    "hop-bayes node": ("hop-bayes", "node:owned,max_degree=100", {}),
    "dp-gnn all": ("dp-gnn", "node:owned,max_degree=7", {}),
    "dp-gnn batches": ("dp-gnn", "node:owned,max_degree=7", {"batch_size": 2000}),
}
DATA = ("photo", "cs")
FITS |= {f"dp-gnn {data} {kind}": FITS[f"dp-gnn {kind}"] for data in DATA for kind in ("batches", "all")}


def sparse_graph(shrink: int) -> Graph:
    """Features as of a bag of words: 60 of 8,415 words per node, most of them from its class's part."""
    rng = np.random.default_rng(0)
    nodes, words, each, classes = 34_000 // shrink, 8415, 60, 15
    labels = rng.integers(0, classes, nodes)
    column = (labels[:, None] * 500 + rng.integers(0, 1200, (nodes, each))) % words
    starts = np.arange(0, nodes * each + 1, each)
    features = sp.csr_array((np.ones(nodes * each, np.float32), column.ravel(), starts), shape=(nodes, words))
    features.sum_duplicates()
    features.data[:] = 1
    sender, receiver = rng.integers(0, nodes, (2, 250_000 // shrink))
    return Graph.from_edges(sender, receiver, features, labels, directed=False, num_classes=classes)


def graph_for(name: str, shrink: int) -> Graph:
    return discreet.split(made_for(name, shrink), "75/10/15", 0)


def made_for(name: str, shrink: int) -> Graph:
    if not name.startswith("dp-gnn"):
        return scale_free(2_400_000 // shrink, 62_000_000 // shrink)
    data = next((data for data in DATA if data in name.split()), None)
    return sparse_graph(shrink) if data is None else discreet.load(data)


def synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def measure(name: str, graph: Graph, device: str) -> dict[str, Any]:
    method, level, parameters = FITS[name]
    privacy = discreet.Privacy(discreet.parse_level(level), 1.0 if level == "edge" else 4.0)
    model = load_method(find_method(method))(privacy, compute=discreet.Compute(device=device), random_state=0)
    model.set_params(**parameters)
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
    steps: list[float] = []
    started = time.perf_counter()
    model.fit(graph, progress=lambda title, done, total: steps.append(time.perf_counter()))
    synchronize(device)
    seconds = time.perf_counter() - started
    memory = torch.cuda.max_memory_allocated(device) / 2**30 if device.startswith("cuda") else None
    found = {"fit": name, "device": device, "nodes": graph.num_nodes, "edges": graph.num_edges, "fit_s": seconds}
    if method == "dp-gnn":
        found |= {"step_ms": 1e3 * float(np.median(np.diff(steps))), "before_steps_s": steps[0] - started}
    return {**found, "device_gib": memory, "accuracy": model.score(graph, uncovered=True)}


# -------------------------------------------------------------------- agreement


class OnSlots(nn.Module):
    """A layer shared over slots, their mean, and a second layer."""

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first, self.second = Linear(width, 64, generator), Linear(64, CLASSES, generator)

    def forward(self, rows: SlotRows) -> Tensor:
        logits: Tensor = self.second(torch.tanh(self.first(rows)).unflatten(0, (-1, SLOTS)).mean(1))
        return logits


class Examples:
    """The same records, slots, labels and gradients on any device."""

    def __init__(self, kind: str, device: str) -> None:
        self.recorded = kind == "recorded"
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randn(2000, WIDTH, generator=generator)
        rows = drawn * (torch.rand(drawn.shape, generator=generator) < 0.2)
        self.labels = torch.randint(0, CLASSES, (COUNT,), generator=generator).to(device)
        self.index = torch.randint(0, len(rows), (COUNT, SLOTS), generator=generator).numpy()
        self.gradients = torch.randn(COUNT, SLOTS, CLASSES, generator=generator).to(device)
        self.table = RowTable(SparseMatrix(sp.csr_array(rows.numpy()), device) if "sparse" in kind else rows.to(device))
        self.layer = Linear(WIDTH, CLASSES, generator).to(device)
        self.network = OnSlots(WIDTH, generator).to(device)

    def slots(self, chosen: IntArray) -> SlotRows:
        index = self.index[chosen]
        if not self.recorded:
            return SlotRows(self.table, index)
        return SlotsOnDevice(self.table, torch.from_numpy(index).to(self.labels.device), slot_grams(self.table, index))

    def given_losses(self) -> Tensor:
        """Losses of one layer whose rows and gradients are the same bits everywhere."""
        out = self.layer(self.slots(np.arange(COUNT))).view(self.gradients.shape)
        return (out * self.gradients).sum((1, 2))

    def network_losses(self, chosen: Tensor) -> Tensor:
        logits = self.network(self.slots(chosen.numpy()))
        return nn.functional.cross_entropy(logits, self.labels[chosen.to(logits.device)], reduction="none")


def agreement(kind: str, device: str) -> dict[str, Any]:
    room = Room(COUNT, 4096, 1)
    rule, sums = ClipRule.flat(1.0, room), []
    for where in ("cpu", device):
        examples = Examples(kind, where)
        sums.append(clipped_sum(examples.layer, examples.given_losses, rule).flat.cpu())
    dependent = 0
    with torch.no_grad():
        whole = examples.network_losses(torch.arange(COUNT)).cpu()
        for rate in (0.9, 0.5, 0.1, 0.01):
            chosen = torch.nonzero(torch.rand(COUNT, generator=torch.Generator().manual_seed(1)) < rate).squeeze(1)
            dependent += int((examples.network_losses(chosen).cpu() != whole[chosen]).sum())
    difference, allowed = float((sums[0] - sums[1]).norm()), 2 * room.error(WIDTH + CLASSES, SLOTS)
    return {
        "check": kind,
        "device": device,
        "difference_in_clip_norms": difference,
        "allowed": allowed,
        "losses_that_depend_on_their_batch": dependent,
        "right": difference <= allowed and dependent == 0,
    }


def row_bits(device: str) -> dict[str, Any]:
    """How many rows of products change their bits with their company: none may (``ops.rows``)."""
    generator, seen, differ = torch.Generator().manual_seed(0), 0, 0
    for inputs, outputs in ((5, 3), (64, 10), (100, 64), (767, 64), (1433, 128)):
        rows = torch.randn(6000, inputs, generator=generator)
        weight = torch.randn(inputs, outputs, generator=generator).to(device)
        whole = row_product(rows.to(device), weight).cpu()
        for count in (1, 2, 17, 255, 1000, 4095, 4096, 4097, 5999):
            chosen = torch.randperm(len(rows), generator=generator)[:count]
            found = row_product(rows[chosen].to(device), weight).cpu()
            seen, differ = seen + count, differ + int((found != whole[chosen]).any(dim=1).sum())
    return {
        "check": "rows of products",
        "device": device,
        "rows": seen,
        "rows_that_differ": differ,
        "right": not differ,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shrink", type=int, default=1)
    parser.add_argument("--only", action="append", choices=[*FITS, "check"])
    parser.add_argument("--json", action="store_true", help="a list of results on standard output")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    graphs: dict[str, Graph] = {}
    if not options.only or "check" in options.only:
        results = [agreement(kind, options.device) for kind in ("dense", "sparse", "recorded")] + [
            row_bits(options.device)
        ]
        print(*results, sep="\n", file=sys.stderr, flush=True)
    for name in [name for name in FITS if not options.only or name in options.only]:
        kind = name.rsplit(maxsplit=1)[0] if name.startswith("dp-gnn") else "large"
        if kind not in graphs:
            graphs = {kind: graph_for(name, options.shrink)}
        results.append(measure(name, graphs[kind], options.device))
        print(results[-1], file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
