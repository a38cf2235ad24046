"""``gap`` without privacy on Cora-ML, with and without the edges that an inductive split takes away.

    python benchmarks/gap_inductive.py

A fifth of the nodes is set aside as test nodes, whose labels are never looked at. Of the others four fifths teach and
one fifth is scored, over five draws. Edges between the parts are removed (as ``80/20:inductive`` does, and as the DPAR
paper says of its own figures), or kept. Prints the mean accuracy and half of its 95 % interval.
"""

from __future__ import annotations

import numpy as np
import torch

from discreet import GAP, Graph, Privacy, load
from discreet.privacy.levels import parse_level

DRAWS = 5
STUDENT = 2.776  # of 95 %, for five draws
TAUGHT, SCORED = 0.64, 0.16


def parts_of(nodes: int, seed: int) -> np.ndarray:
    """0 for nodes that teach, 1 for those that are scored, 2 for test nodes."""
    part, order = np.full(nodes, 2), np.random.default_rng(seed).permutation(nodes)
    first, second = int(nodes * TAUGHT), int(nodes * (TAUGHT + SCORED))
    part[order[:first]], part[order[first:second]] = 0, 1
    return part


def scored(graph: Graph, seed: int, edges: str) -> float:
    """Accuracy on the scored nodes of one fit."""
    part = parts_of(graph.num_nodes, seed)
    source, target = graph.edges()
    kept = part[source] == part[target] if edges == "removed" else np.ones(len(source), dtype=bool)
    seen = graph.with_edges(source[kept], target[kept]).with_masks(part == 0, None, part == 1)
    return 100 * GAP(Privacy(parse_level("none")), random_state=seed).fit(seen).score(seen, "test")


def main() -> None:
    torch.set_num_threads(1)
    graph = load("cora_ml")
    for edges in ("removed", "kept"):
        found = np.array([scored(graph, seed, edges) for seed in range(DRAWS)])
        half = STUDENT * found.std(ddof=1) / DRAWS**0.5
        print(f"edges between parts {edges}: {found.mean():.1f} ± {half:.1f}", flush=True)


if __name__ == "__main__":
    main()
