"""How classes link, from noisy counts: probabilities that are trusted as far as the noise allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
# A link between two classes is never held to be rarer than this share of what chance gives.
_FLOOR = 0.02


@dataclass(frozen=True)
class LinkModel:
    """What the noisy table of links says.

    ``given[a, b]`` is the probability that a neighbour of a node of class a has class b; ``chance[b]`` the
    probability of b among all neighbours; ``mean_degree`` how many neighbours a node has on average.
    """

    given: FloatArray
    chance: FloatArray
    mean_degree: float

    @property
    def log_ratio_factors(self) -> FloatArray:
        """P(b | a) / P(b): how much more often than by chance a links to b."""
        return self.given / self.chance

    @classmethod
    def from_counts(cls, counts: FloatArray, noise_std: float, num_nodes: int, directed: bool) -> LinkModel:
        """Post-process a noisy table (rows: receiver, columns: sender) of known noise.

        The deviation from independence is shrunk by the James–Stein factor 1 − (noise energy)/(its energy),
        cut at zero: a table that noise alone explains becomes independence, and evidence from it vanishes.
        """
        table, variance = _symmetrised(counts, noise_std, directed)
        classes = len(table)
        total = max(float(table.sum()), 1.0)
        least = 0.01 * total / classes
        rows, columns = np.maximum(table.sum(axis=1), least), np.maximum(table.sum(axis=0), least)
        expected = np.outer(rows, columns) / max(float(rows.sum()), total)
        deviation = table - expected
        energy = float((deviation**2).sum())
        trust = max(0.0, 1 - float(variance.sum()) / energy) if energy > 0 else 0.0
        links = np.maximum(expected + trust * deviation, _FLOOR * expected)
        per_node = total / num_nodes
        return cls(
            given=links / links.sum(axis=1, keepdims=True),
            chance=links.sum(axis=0) / links.sum(),
            mean_degree=per_node if directed else 2 * per_node,
        )


def _symmetrised(counts: FloatArray, noise_std: float, directed: bool) -> tuple[FloatArray, FloatArray]:
    """On undirected graphs the table is symmetric, so averaging the two halves removes noise for free."""
    variance = np.full(counts.shape, noise_std**2)
    if directed:
        return counts, variance
    off_diagonal = ~np.eye(len(counts), dtype=bool)
    variance[off_diagonal] /= 2
    return (counts + counts.T) / 2, variance
