"""Other settings of ``gcn`` and ``sage``, and other ways to choose the epoch, scored on validation nodes alone.

    python benchmarks/gcn_settings.py --data cora citeseer cora_ml chameleon --splits 0 1 2 3 4 5 6 7
    python benchmarks/gcn_settings.py --data cora citeseer cora_ml --split 20/500/1000 --splits 0 1 2 3 4

The epoch is chosen on a part of the training nodes (where labels are few, on half of the validation nodes), and the
score is the accuracy on the split's validation nodes (the other half of them): test nodes are never looked at. Each fit
is judged in four ways: by its best epoch (``accuracy``, the default), by the epoch of the least ``loss``, by its
``last`` epoch, and by the best epoch of the ``average`` of weights over epochs. Prints the mean difference to the
defaults of ``gcn`` and its standard error over splits.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from discreet import load
from discreet.graph.graph import Graph
from discreet.graph.splits import split
from discreet.methods.baselines import convolution
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import parse_level
from discreet.training.best_epoch import BestEpoch


@dataclass(eq=False, repr=False)
class WithOwnRow(convolution.GCN):
    """``gcn`` with a second map for a node's own row."""

    keeps_own_row: ClassVar[bool] = True


SETTINGS: dict[str, tuple[type[convolution.ConvolutionClassifier], dict[str, Any]]] = {
    "defaults": (convolution.GCN, {}),
    "dropout 0.7": (convolution.GCN, {"dropout": 0.7}),
    "dropout 0.8, weight decay 0.001": (convolution.GCN, {"dropout": 0.8, "weight_decay": 1e-3}),
    "256 units, dropout 0.7": (convolution.GCN, {"hidden": 256, "dropout": 0.7}),
    "own row": (WithOwnRow, {}),
    "own row, 256 units, dropout 0.7": (WithOwnRow, {"hidden": 256, "dropout": 0.7}),
    "sage, dropout 0.5": (convolution.SAGE, {"dropout": 0.5}),
    "sage, dropout 0.7": (convolution.SAGE, {"dropout": 0.7}),
}
FEW = "20/500/1000"
CHOOSING = 2 / 15
"""The part of the training nodes that chooses the epoch: as many as a tenth of all nodes."""
MEMORY = 0.9
"""How much of the average of weights stays from one epoch to the next."""


class Trace(BestEpoch):
    """At every look: how many choosing nodes are right, their loss, and the accuracy on scored nodes, of the weights as
    they are and of their average.
    """

    scored: Tensor
    looks: list[list[tuple[int, float, float]]]

    def look(self) -> None:
        """Before each epoch: put the weights into their average."""
        if self._epoch:
            now = self._weights()
            mean = getattr(self, "_mean", now)
            self._mean = {name: MEMORY * mean[name] + (1 - MEMORY) * value for name, value in now.items()}
        super().look()

    @torch.no_grad()
    def _judge(self) -> None:
        self._network.eval()
        now, found = self._weights(), []
        for weights in (now, self._mean):
            self._network.load_state_dict(weights)
            logits, wanted = self._forward(torch.arange(len(self._labels))), self._labels
            right = logits.argmax(dim=1) == wanted
            loss = float(nn.functional.cross_entropy(logits[self._rows], wanted[self._rows]))
            found.append((int(right[self._rows].sum()), -loss, 100 * float(right[self.scored].float().mean())))
        self._network.load_state_dict(now)
        self._state = now
        type(self).looks.append(found)
        self._network.train()

    def _weights(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self._network.state_dict().items()}


def held_out(graph: Graph, spec: str, seed: int) -> Graph:
    """The split with other masks: of training nodes, of those that choose the epoch, of those that are scored."""
    masked = split(graph, spec, seed)
    train, val = np.array(masked.train_mask), np.array(masked.val_mask)
    nodes = np.flatnonzero(val if spec == FEW else train)
    np.random.default_rng(1000 + seed).shuffle(nodes)
    choosing = np.zeros_like(train)
    choosing[nodes[: int(len(nodes) * (0.5 if spec == FEW else CHOOSING))]] = True
    return masked.with_masks(train & ~choosing, choosing, val & ~choosing)


def scores(
    graph: Graph, spec: str, seed: int, kind: type[convolution.ConvolutionClassifier], settings: dict[str, Any]
) -> dict[str, float]:
    """Accuracy on scored nodes of one fit, by how its epoch is chosen."""
    masked = held_out(graph, spec, seed)
    Trace.scored, Trace.looks = torch.tensor(np.flatnonzero(masked.mask("test") & (masked.labels >= 0))), []
    kind(Privacy(parse_level("none")), random_state=seed, **settings).fit(masked)
    plain, average = zip(*Trace.looks, strict=True)
    return {
        "accuracy": max(plain)[2],
        "loss": max(plain, key=lambda look: look[1])[2],
        "last": plain[-1][2],
        "average": max(average)[2],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora"])
    parser.add_argument("--split", default="75/10/15")
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1])
    given = parser.parse_args()
    torch.set_num_threads(1)
    convolution.BestEpoch = Trace  # type: ignore[misc]
    for name in given.data:
        graph, found = load(name), defaultdict(list)
        for number in given.splits:
            for label, (kind, settings) in SETTINGS.items():
                for rule, value in scores(graph, given.split, number, kind, settings).items():
                    found[label, rule].append(value)
        usual = np.array(found["defaults", "accuracy"])
        print(f"{name}: {usual.mean():.1f} with the defaults, {len(usual)} splits", flush=True)
        for (label, rule), values in found.items():
            gains = np.array(values) - usual
            error = gains.std() / max(1, len(gains) - 1) ** 0.5
            print(f"  {label}, by {rule}: {gains.mean():+.2f} ± {error:.2f}", flush=True)


if __name__ == "__main__":
    main()
