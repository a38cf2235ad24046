"""A residual encoder of your own in a private model: fit, save, load, predict. Run: python own_encoder.py [FOLDER]."""

from __future__ import annotations

import sys
from pathlib import Path

from torch import nn

import discreet


def main(folder: Path) -> None:
    """Protect one person's record and edges; print what was built and how well it does."""
    graph = discreet.split(discreet.csbm(num_nodes=400, seed=0), "75/10/15", seed=0)
    encoder = nn.Sequential(
        nn.Linear(graph.num_features, 32),
        nn.LayerNorm(32),
        nn.GELU(),
        discreet.Residual(nn.Linear(32, 32), nn.GELU()),
    )
    privacy = discreet.Privacy(discreet.NodeLevel(max_degree=5), epsilon=8.0)
    model = discreet.GAP(privacy, encoder=encoder, steps=50).fit(graph)
    model.save(folder)
    loaded = discreet.load_release(folder)
    print("layers:", loaded.encoder)
    print(f"accuracy on test nodes: {loaded.score(graph, 'test', uncovered=True):.2f} (a research figure)")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "release"))
