"""What noise leaves of the graph: how many of the true top-K entries of PageRank are picked.

    python benchmarks/dpar_structure.py --data cora-ml cs --epsilon 1 8 --seeds 3

For each budget and mechanism, with all of the budget for structure but a thousandth: the share of the K largest true
entries of a row that are picked, beside what picking at random gives. Rows that reach fewer nodes count those.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from discreet import NodeLevel, Privacy, split
from discreet.graph.datasets import resolve
from discreet.methods.dpar import DPAR
from discreet.ops.ppr import appr_rows


def true_top(graph, ids: np.ndarray, sources: np.ndarray, top_k: int) -> list[set[int]]:
    """The K largest entries of each row, its own left out, as node ids."""
    part = graph.adjacency[ids][:, ids]
    rows = appr_rows(part.maximum(part.T), np.searchsorted(ids, sources))
    tops = []
    for row, source in enumerate(sources):
        at = slice(rows.indptr[row], rows.indptr[row + 1])
        nodes, values = ids[rows.indices[at]], rows.data[at]
        keep = nodes != source
        tops.append(set(nodes[keep][np.argsort(-values[keep])[:top_k]].tolist()))
    return tops


def picked_share(graph, model: DPAR) -> tuple[float, float]:
    """The share of true entries that were picked, and what chance gives."""
    ids = np.flatnonzero(graph.mask("train"))
    tops = true_top(graph, ids, model.row_ids_, model.top_k)
    hits = sum(len(top & set(picks.tolist())) for top, picks in zip(tops, model.picks_, strict=True))
    wanted = sum(map(len, tops))
    return hits / max(1, wanted), model.top_k / (len(ids) - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora-ml"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 8.0])
    parser.add_argument("--sources", nargs="+", type=int, default=[1, 70])
    parser.add_argument("--top-k", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for name in options.data:
        for epsilon in options.epsilon:
            for mechanism in ("em0", "gm"):
                for sources in options.sources:
                    found = []
                    for seed in range(10, 10 + options.seeds):
                        graph = split(resolve(name), "80/20:inductive", seed)
                        # with few rows, many draws of them
                        for state in range(max(1, 70 // sources)):
                            model = DPAR(
                                Privacy(NodeLevel(), epsilon),
                                mechanism=mechanism,
                                structure_share=0.999,
                                top_k=options.top_k,
                                sources=sources,
                                steps=1,
                                hidden=1,
                                random_state=state,
                            )
                            found.append(picked_share(graph, model.fit(graph)))
                    share, chance = np.mean(found, axis=0)
                    print(
                        json.dumps(
                            {
                                "data": name,
                                "epsilon": epsilon,
                                "mechanism": mechanism,
                                "rows": sources,
                                "picked, per cent": round(100 * share, 2),
                                "at random": round(100 * chance, 2),
                            }
                        ),
                        flush=True,
                    )


if __name__ == "__main__":
    main()
