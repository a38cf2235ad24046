"""t-SNE of training nodes' embeddings under two budgets (the DPAR paper, appendix 7.5).

    python benchmarks/dpar_tsne.py --data cora-ml --epsilon 1 8 --nodes 700 --out docs/results/dpar_tsne.svg

Embeddings are what the last of two layers reads. Points are training nodes, coloured by class. The picture is made
from private data: a research figure, outside every guarantee.
"""

from __future__ import annotations

import argparse

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.manifold import TSNE

from discreet import DPAR, NodeLevel, Privacy, split
from discreet.graph.datasets import resolve
from discreet.ops.sparse import feature_tensor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora-ml")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 8.0])
    parser.add_argument("--nodes", type=int, default=700)
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    graph = split(resolve(options.data), "80/20:inductive", options.seed)
    shown = np.random.default_rng(0).permutation(np.flatnonzero(graph.mask("train")))[: options.nodes]
    figure, axes = plt.subplots(1, len(options.epsilon), figsize=(3.6 * len(options.epsilon), 3.4), squeeze=False)
    for axis, epsilon in zip(axes[0], options.epsilon, strict=True):
        model = DPAR(Privacy(NodeLevel(), epsilon), layers=2, learning_rate=0.01, random_state=options.seed)
        model.fit(graph)
        with torch.no_grad():
            hidden = model.network_.hidden(feature_tensor(graph.features, "cpu")).numpy()[shown]
        points = TSNE(random_state=0, init="pca").fit_transform(hidden)
        axis.scatter(*points.T, c=graph.labels[shown], cmap="tab10", s=4, linewidths=0)
        accuracy = 100 * model.score(graph, "test", uncovered=True)
        axis.set_title(f"ε = {epsilon:g}, test accuracy {accuracy:.1f}", fontsize=9)
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(options.out, metadata={"Date": None})


if __name__ == "__main__":
    main()
