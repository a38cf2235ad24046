"""t-SNE of training nodes' embeddings, by method and budget (the DPAR paper, appendix 7.5).

    python benchmarks/dpar_tsne.py --data cora-ml --epsilon 1 8 --nodes 700 --out docs/results/dpar_tsne.svg

The first row is ``dpar`` with its defaults but for two layers: sound, and no PageRank is read. The others are the
paper's algorithms as published, whose ε is a claim that does not hold. Embeddings are what the last of two layers
reads. Points are training nodes, coloured by class. The picture is made from private data: a research figure, outside
every guarantee.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from sklearn.manifold import TSNE

from discreet import DPAR, Graph, NodeLevel, Privacy, split
from discreet.arrays import IntArray
from discreet.graph.datasets import resolve
from discreet.ops.sparse import feature_tensor

PUBLISHED = {"preset": "paper", "accounting": "as-published"}
ROWS: dict[str, dict[str, Any]] = {
    "no PageRank, sound": {"layers": 2, "learning_rate": 0.01},
    **{f"{name}, as published": {**PUBLISHED, "mechanism": name} for name in ("em0", "em1", "gm")},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora-ml")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 8.0])
    parser.add_argument("--delta", type=float, default=2e-3, help="the paper's, for Cora-ML")
    parser.add_argument("--nodes", type=int, default=700)
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    graph = split(resolve(options.data), "80/20:inductive", options.seed)
    shown = np.random.default_rng(0).permutation(np.flatnonzero(graph.mask("train")))[: options.nodes]
    across = len(options.epsilon)
    figure, axes = plt.subplots(len(ROWS), across, figsize=(3.2 * across, 2.8 * len(ROWS)), squeeze=False)
    for (name, settings), row in zip(ROWS.items(), axes, strict=True):
        for epsilon, axis in zip(options.epsilon, row, strict=True):
            privacy = Privacy(NodeLevel(), epsilon, options.delta)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a claim is not verified stands in the title
                model = DPAR(privacy, random_state=options.seed, **settings).fit(graph)
            accuracy = 100 * model.score(graph, "test", uncovered=True)
            scatter(axis, model, graph, shown)
            axis.set_title(f"{name}, ε = {epsilon:g}: {accuracy:.1f}", fontsize=9)
    figure.tight_layout()
    figure.savefig(options.out, metadata={"Date": None}, dpi=160)


def scatter(axis: Axes, model: DPAR, graph: Graph, shown: IntArray) -> None:
    with torch.no_grad():
        hidden = model.network_.hidden(feature_tensor(graph.features, "cpu")).numpy()[shown]
    points = TSNE(random_state=0, init="pca").fit_transform(hidden)
    axis.scatter(*points.T, c=graph.labels[shown], cmap="tab10", s=4, linewidths=0, rasterized=True)
    axis.set_axis_off()


if __name__ == "__main__":
    main()
