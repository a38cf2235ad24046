"""What noise leaves of the graph: how many of the true top-K entries of PageRank are picked.

    python benchmarks/dpar_structure.py --data cora-ml cs --epsilon 1 8 --rows 1 70

For each budget and mechanism, with all of the budget for structure but a thousandth: the share of the K largest true
entries of a row (its own left out) that are picked, beside what picking at random gives. Rows that reach no other node
do not count. ``as-published`` takes the paper's noise and its sample of the nodes.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import numpy as np

from discreet import DPAR, NodeLevel, Privacy, split
from discreet.graph.datasets import resolve
from discreet.mechanisms.curator import MECHANISMS
from discreet.mechanisms.topk import picks_of
from discreet.methods.dpar.estimator import STRUCTURE
from discreet.queries.sampled_nodes import SAMPLE


def top_of(row: np.ndarray, top_k: int) -> set[int]:
    best = np.argsort(-row, kind="stable")[:top_k]
    return set(best[row[best] > 0].tolist())


def share_picked(model: DPAR, graph, trials: int, seed: int) -> tuple[float, float]:
    """The share of the true entries that are picked in ``trials`` rows, and what chance gives."""
    stage = model.plan(graph.public).stage(STRUCTURE)
    query = picks_of(stage)
    rows, size = stage.shape
    positions = size if query.own_entry else size + 1
    unclipped = replace(query, clip=1.0)
    hits = wanted = 0
    for trial in range(-(-trials // rows)):
        rng = np.random.default_rng([seed, trial])
        _, private = model.privacy.level.split(graph)
        private.entrust(SAMPLE, rng.bytes(16))
        sources = np.sort(rng.permutation(positions)[:rows])
        true = unclipped.answer(private, sources=sources).toarray()
        if query.own_entry:
            true[np.arange(rows), sources] = 0  # finding oneself is no structure
        answer = MECHANISMS[stage.mechanism](query.answer(private, sources=sources), stage, rng)
        for row, picks in zip(true, answer[..., 0].astype(int), strict=True):
            top = top_of(row, model.top_k)
            hits += len(top & set(picks.tolist()))
            wanted += len(top)
    return hits / max(1, wanted), model.top_k / size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora-ml"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 8.0])
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 70])
    parser.add_argument("--trials", type=int, default=1400)
    options = parser.parse_args()
    seed = 0
    for name in options.data:
        graph = NodeLevel().view(split(resolve(name), "80/20:inductive", 10))
        for epsilon in options.epsilon:
            for mechanism in ("em0", "em1", "gm"):
                for rows in [*options.rows, "as-published"]:
                    published = rows == "as-published"
                    model = DPAR(
                        Privacy(NodeLevel(), epsilon, 2e-3 if graph.num_nodes < 10_000 else 8e-4),
                        mechanism=mechanism,
                        structure_share=0.5 if published else 0.999,
                        sources=None if published else rows,
                        accounting="as-published" if published else "rigorous",
                        steps=1,
                        hidden=1,
                    )
                    share, chance = share_picked(model, graph, options.trials, seed)
                    seed += 1
                    line = {"data": name, "epsilon": epsilon, "mechanism": mechanism, "rows": rows}
                    line |= {"picked, per cent": round(100 * share, 2), "at random": round(100 * chance, 2)}
                    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
