"""How noisy answers are read: the table of links, as far as noise allows; and sums of messages, under each class by
that table, and by what labels teach.

Post-processing of released values and public labels alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import gamma

from discreet.arrays import Array, FloatArray, IntArray
from discreet.ops.rows import mapped_by_threads, portions
from discreet.training.networks import MOST_LOG_ODDS

_RAREST = 0.02
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
        links = np.maximum(shrunk(table, expected, variance), _RAREST * expected)
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


_TINY = 1e-12
"""Keeps quotients by zero finite."""


def damped(rows: FloatArray) -> FloatArray:
    """Rows centred, their norm brought to log(1 + norm)."""
    rows = centred(rows)
    norms = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), _TINY)
    return np.asarray(rows * np.log1p(norms) / norms)


def centred(rows: FloatArray) -> FloatArray:
    """Rows less their means."""
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


# -------------------------------------------------------------------- likelihoods

_POINTS = 16
"""Quantiles by which the spread of a strength is integrated."""
_REPEATED = 0.1
"""The part of the variance between neighbours that does not average out, because they repeat each other; public."""


def class_likelihoods(
    sums: FloatArray, noise_std: float, links: LinkModel, strength: float | None = None
) -> FloatArray:
    """Log-likelihood of each row of ``sums`` under each class, centred over classes.

    A row is m·(P(· | a) − 1/c) for a node of class a, where m says how much it is told, plus noise, plus what m
    neighbours of one class differ by. m is not known for a node. Its mean square over all nodes follows from how
    much longer the rows are than noise alone would make them (:func:`estimate_strength`; give it where ``sums`` are a
    part of the rows); around that it is taken to spread as an exponential does, and integrated out. Rows that are no
    longer than noise make m, and the evidence, zero.
    """
    strength = estimate_strength(sums, noise_std, links) if strength is None else strength
    profile, strengths, total = _Profile.of(links), strength * _spread(), np.empty_like(sums)

    def integrate(part: slice) -> None:
        found = profile.likelihoods(centred(sums[part]), noise_std, strengths)
        largest = found.max(axis=0)
        found -= largest
        total[part] = centred(largest + np.log(np.exp(found, out=found).mean(axis=0)))

    with mapped_by_threads(len(sums)) as each:
        list(each(integrate, portions(len(sums))))
    return total


def bounded_likelihoods(sums: FloatArray, noise_std: float, links: LinkModel) -> FloatArray:
    """:func:`class_likelihoods` less the largest of each row, bounded as the node model's view is."""
    found = class_likelihoods(sums, noise_std, links)
    return np.maximum(found - found.max(axis=1, keepdims=True), -MOST_LOG_ODDS)


def estimate_strength(sums: FloatArray, noise_std: float, links: LinkModel) -> float:
    """The root mean square of m of :func:`class_likelihoods`, by the energy of the rows beyond that of the noise."""
    profile, energy = _Profile.of(links), sum(float((centred(sums[part]) ** 2).sum()) for part in portions(len(sums)))
    beyond = energy / len(sums) - noise_std**2 * (sums.shape[1] - 1) if sums.size else 0.0
    of_one = float(profile.chance @ ((profile.expected**2).sum(axis=1) + _REPEATED * profile.within))
    return float(np.sqrt(max(beyond, 0.0) / max(of_one, _TINY)))


@dataclass(frozen=True)
class _Profile:
    """What one message to a node of each class is expected to be, how much it varies, and how frequent classes are."""

    expected: FloatArray
    within: FloatArray
    chance: FloatArray

    @classmethod
    def of(cls, links: LinkModel) -> _Profile:
        return cls(links.given - 1 / len(links.given), 1 - (links.given**2).sum(axis=1), links.chance)

    def likelihoods(self, rows: FloatArray, noise_std: float, strengths: FloatArray) -> FloatArray:
        """(strengths, rows, classes): Gaussian log-likelihoods of rows under each class, for each strength m."""
        dimensions = max(rows.shape[1] - 1, 1)
        along, length = rows @ self.expected.T, (self.expected**2).sum(axis=1)
        squares, found = (rows**2).sum(axis=1)[:, None], np.empty((len(strengths), *along.shape))
        for strength, logs in zip(strengths, found, strict=True):
            variance = noise_std**2 + _REPEATED * strength**2 * self.within / dimensions + _TINY
            np.subtract(squares, (2 * strength) * along, out=logs)  # the squared distance, term by term
            logs += strength**2 * length
            logs *= -0.5 / variance
            logs -= dimensions / 2 * np.log(variance)
        return found


def _spread() -> FloatArray:
    """Quantiles of an exponential, scaled to mean square 1."""
    quantiles = gamma.ppf((np.arange(_POINTS) + 0.5) / _POINTS, 1.0)
    return np.asarray(quantiles / np.sqrt((quantiles**2).mean()))


# -------------------------------------------------------------------- a reading that is learnt

_ROWS = 4000
"""Enough to fit a few numbers per class; more would only take time."""
_PENALTY = 1e-3
"""On squared weights: enough for a unique minimum where classes are separable."""
_STEPS = 100
"""Of L-BFGS; a few numbers per class are at rest long before."""
_FULL_AT = 3.0
"""A direction counts in full from about this many standard deviations of the noise on."""


@dataclass(frozen=True)
class Reader:
    """Scores of every class, linear in a row that was damped and in its direction.

    Learnt where the answer is known: at training nodes, whose labels are public. The table of links counts edges, so
    nodes with many of them speak loudest in it, and it knows one profile per class. Training nodes hear one another at
    no cost (``queries.evidence.arranged_sums``), under the noise that receivers hear under.
    """

    head: FloatArray

    def scores(self, sums: FloatArray, noise_std: float) -> FloatArray:
        """One row for each row of ``sums``."""
        return np.asarray(reader_inputs(sums, noise_std) @ self.head)

    @classmethod
    def none(cls, classes: int) -> Reader:
        """A reader that says nothing."""
        return cls(np.zeros((2 * classes, classes)))

    @classmethod
    def fit(cls, sums: FloatArray, labels: IntArray, classes: int, noise_std: float) -> Reader:
        """Multinomial logistic regression on the labels of these rows; the frequency of classes is left out."""
        if len(labels) == 0:
            return cls.none(classes)
        chosen = some_rows(labels)
        rows = reader_inputs(some_rows(sums), noise_std)
        rows = np.hstack([rows, np.ones((len(rows), 1))])
        picked = np.arange(len(rows)), chosen

        def loss(flat: FloatArray) -> tuple[float, FloatArray]:
            head = flat.reshape(-1, classes)
            logs = log_softmax(rows @ head, axis=1)
            wrong = np.exp(logs)
            wrong[picked] -= 1
            slope = rows.T @ wrong / len(rows) + _PENALTY * head
            return float(-logs[picked].mean() + _PENALTY / 2 * (head**2).sum()), slope.ravel()

        start = np.zeros(rows.shape[1] * classes)
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
        return cls(np.asarray(found.x).reshape(-1, classes)[:-1])


def some_rows(rows: Array) -> Array:
    """As many as a reader learns from, evenly spread over all."""
    return rows[:: max(1, -(-len(rows) // _ROWS))]


def reader_inputs(sums: FloatArray, noise_std: float) -> FloatArray:
    """Rows damped, beside their directions, which are shorter where they do not stand out of the noise."""
    rows = centred(sums)
    lengths = np.hypot(np.linalg.norm(rows, axis=1, keepdims=True), _FULL_AT * noise_std)
    return np.hstack([damped(sums / (1 + noise_std)), rows / np.maximum(lengths, _TINY)])


# -------------------------------------------------------------------- a few weights

START = np.array([1.0, 0.0, 1.0, 0.0, 0.5, 0.0])
"""Own log-probabilities, damped likelihoods, and hubs half: what is used where there is no label to fit."""
MOST_LABELS = 1 << 15
"""Enough to fit six numbers; more would only take time."""
_PULL = 10.0
"""How strongly weights are held where they start: as this many labels would at distance 1."""
_FLOOR = -50.0
"""No class is held to be less likely than the likeliest by more than this logarithm."""


def blocks(
    own: Array,
    sums: FloatArray,
    noise_std: float,
    links: LinkModel,
    *,
    hubs: FloatArray | None = None,
    read: FloatArray | None = None,
    strength: float | None = None,
) -> FloatArray:
    """(rows, 6, classes): own log-probabilities; likelihoods, likelihoods damped, and the sums themselves damped; what
    hubs say damped, and how a reader reads the sums, zero where there is none. ``strength`` is that of
    :func:`class_likelihoods`.

    Neighbours repeat each other, so likelihoods are too sure, the more so the more neighbours there are;
    damping (norm to log(1 + norm)) bounds that, and plain likelihoods are right where it is not so.
    """
    likelihoods = class_likelihoods(sums, noise_std, links, strength)
    bounded = np.maximum(likelihoods - likelihoods.max(axis=1, keepdims=True), _FLOOR)
    of_hubs = np.zeros_like(sums) if hubs is None else damped(hubs / (1 + noise_std))
    reading = np.zeros_like(sums) if read is None else read
    parts = own, bounded, damped(likelihoods), damped(sums / (1 + noise_std)), of_hubs, reading
    return np.stack([centred(part) for part in parts], axis=1)


def weighed(weights: FloatArray, parts: FloatArray) -> FloatArray:
    """Logits from :func:`blocks`."""
    return np.asarray(np.einsum("k,nkc->nc", weights, parts))


def fit_weights(parts: FloatArray, labels: IntArray) -> FloatArray:
    """The weights of least cross-entropy, held near :data:`START`, the less the more labels there are.

    Six numbers, one convex problem. Labels of one class alone would ask for certainty: nothing is learnt from them.
    """
    if len(np.unique(labels)) < 2:
        return START.copy()
    parts = np.ascontiguousarray(parts.transpose(1, 0, 2))
    pull, picked = _PULL / len(labels), (np.arange(len(labels)), labels)

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        logs = log_softmax(np.tensordot(weights, parts, axes=1), axis=1)
        wrong = np.exp(logs)
        wrong[picked] -= 1
        slope = np.tensordot(parts, wrong, axes=2) / len(labels) + pull * (weights - START)
        value = -logs[picked].mean() + pull / 2 * ((weights - START) ** 2).sum()
        return float(value), slope

    return np.asarray(minimize(loss, START, jac=True, method="L-BFGS-B").x)
