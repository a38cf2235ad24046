"""How classes link, from a noisy table: probabilities that are trusted as far as the noise allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import FloatArray

_FLOOR = 0.02
"""A link between two classes is never held to be rarer than this share of what chance gives."""
_LEAST = 0.01
"""No class is held to have fewer links than this share of an even part of all, so that noise makes none negative."""


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
    def ratios(self) -> FloatArray:
        """P(b | a) / P(b): how much more often than by chance a links to b."""
        return self.given / self.chance

    @property
    def sharpness(self) -> float:
        """How much a neighbour of known class says: the mean norm of its log-likelihoods, centred over classes."""
        logs = np.log(self.ratios)
        return float(self.chance @ np.linalg.norm(logs - logs.mean(axis=0), axis=0))

    @classmethod
    def unknown(cls, classes: int) -> LinkModel:
        """Where nothing was measured: all links equally likely."""
        return cls(np.full((classes, classes), 1 / classes), np.full(classes, 1 / classes), 0.0)

    @classmethod
    def from_counts(
        cls, counts: FloatArray, noise_std: float, num_nodes: int, directed: bool, *, apart: bool = False
    ) -> LinkModel:
        """Post-process a noisy table (rows: receiver, columns: sender) of known noise.

        The deviation from independence is shrunk by the James–Stein factor 1 − (noise energy)/(its energy),
        cut at zero: a table that noise alone explains becomes independence, and evidence from it vanishes. With
        ``apart`` links within classes and links between are shrunk each by itself, see :func:`_shrunk_apart`.
        """
        table, variance = _symmetrised(counts, noise_std, directed)
        classes = len(table)
        total = max(float(table.sum()), 1.0)
        least = _LEAST * total / classes
        rows, columns = np.maximum(table.sum(axis=1), least), np.maximum(table.sum(axis=0), least)
        expected = np.outer(rows, columns) / max(float(rows.sum()), total)
        shrunk = _shrunk_apart if apart else _shrunk
        links = np.maximum(shrunk(table, expected, variance), _FLOOR * expected)
        per_node = total / num_nodes
        return cls(
            given=links / links.sum(axis=1, keepdims=True),
            chance=links.sum(axis=0) / links.sum(),
            mean_degree=per_node if directed else 2 * per_node,
        )


def _shrunk(table: FloatArray, expected: FloatArray, variance: FloatArray) -> FloatArray:
    """Expected, and of the deviation as much as stands out of its noise."""
    deviation = table - expected
    energy = float((deviation**2).sum())
    trust = max(0.0, 1 - float(variance.sum()) / energy) if energy > 0 else 0.0
    return np.asarray(expected + trust * deviation)


def _shrunk_apart(table: FloatArray, expected: FloatArray, variance: FloatArray) -> FloatArray:
    """The diagonal by itself; then how many links there are between classes; then which classes those are between.

    Where like links with like the diagonal stands far out of the noise, and the few links between classes do not. One
    trust for all would take their noise for knowledge.
    """
    links, between = expected.copy(), ~np.eye(len(table), dtype=bool)
    within = ~between
    links[within] = _shrunk(table[within], expected[within], variance[within])
    if len(table) > 1:
        total = [part[between].sum(keepdims=True) for part in (table, expected, variance)]
        level = np.maximum(_shrunk(*total) / total[1], 0.0)
        links[between] = _shrunk(table[between], level * expected[between], variance[between])
    return links


def _symmetrised(counts: FloatArray, noise_std: float, directed: bool) -> tuple[FloatArray, FloatArray]:
    """On undirected graphs the table is symmetric, so averaging the two halves removes noise for free."""
    variance = np.full(counts.shape, noise_std**2)
    if directed:
        return counts, variance
    off_diagonal = ~np.eye(len(counts), dtype=bool)
    variance[off_diagonal] /= 2
    return (counts + counts.T) / 2, variance
