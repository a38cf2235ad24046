"""Synthetic graphs, sampled in time and memory that grow with nodes × features + edges, never n × n."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from discreet.arrays import FloatArray, IntArray, SingleArray
from discreet.errors import ParameterError
from discreet.graph.clean import sorted_unique
from discreet.graph.given import as_generator
from discreet.graph.graph import Graph
from discreet.limits import NODES, shown

_ROWS_AT_ONCE = 65_536
"""Rows that are drawn at once, so that memory beyond the features themselves stays small."""


def csbm(
    num_nodes: int = 2000,
    num_features: int = 100,
    average_degree: float = 10.0,
    phi: float = 0.5,
    epsilon: float = 3.25,
    seed: int = 0,
) -> Graph:
    """The contextual stochastic block model of Deshpande et al. (2018), as Chien et al. (2021) parametrise it.

    Two classes of equal size, v_i ∈ {−1, +1}. Features are b_i = √(μ/n) v_i u + Z_i/√f with u ~ N(0, I/f) and
    Z_i ~ N(0, I). Two nodes are joined independently with probability (d + λ√d)/n within a class and
    (d − λ√d)/n across. The signal lies on the arc λ² + μ²/ξ = 1 + ε with ξ = n/f:

        λ = √(1+ε) sin(φπ/2)        μ = √(ξ(1+ε)) cos(φπ/2)

    ``phi`` in [−1, 1] moves it: at 0 only features tell the classes apart, at ±1 only edges; a negative
    ``phi`` gives a heterophilic graph. The defaults are small, with a share of the signal on either side; ε = 3.25 is
    that of Chien et al.

    Class 1 holds v = +1; with an odd number of nodes, class 0 has one more. The same arguments give the
    same graph. ``epsilon`` is a distance from the detection threshold and has nothing to do with privacy.
    """
    spread = _check_csbm(num_nodes, num_features, average_degree, phi, epsilon)
    rng = as_generator(seed)
    labels = rng.permutation(np.arange(num_nodes, dtype=np.int64) % 2)
    source, target = _block_edges(rng, labels, average_degree, spread)
    mu = math.sqrt(num_nodes / num_features * (1 + epsilon)) * max(0.0, math.cos(phi * math.pi / 2))
    direction = rng.standard_normal(num_features) / math.sqrt(num_features)
    means = math.sqrt(mu / num_nodes) * np.stack([-direction, direction])
    features = _gaussian_features(rng, labels, means, 1 / math.sqrt(num_features))
    return Graph.from_edges(source, target, features, labels, directed=False, num_classes=2, name="csbm")


def scale_free(
    num_nodes: int,
    num_edges: int,
    num_features: int = 100,
    num_classes: int = 10,
    exponent: float = 3.0,
    homophily: float = 0.5,
    separation: float = 0.2,
    seed: int = 0,
) -> Graph:
    """A large graph with power-law degrees and exactly ``num_edges`` undirected edges, for measuring scale.

    Endpoints are drawn with expected degrees that fall as rank^(−1/(exponent − 1)); with probability
    ``homophily`` the second endpoint is moved to the first one's class. Features are Gaussian around a random
    mean a class, ``separation`` apart in each coordinate. Node 0 has the largest degrees. The exponent is that of
    preferential attachment (Barabási and Albert 1999).
    """
    _check_scale_free(num_nodes, num_edges, num_features, num_classes, exponent, homophily)
    rng = as_generator(seed)
    labels = np.arange(num_nodes, dtype=np.int64) % num_classes
    skew = (exponent - 1) / (exponent - 2)  # inverse of the cumulative weight of the first nodes

    def draw(count: int) -> IntArray:
        first = (num_nodes * rng.random(count) ** skew).astype(np.int64)
        second = (num_nodes * rng.random(count) ** skew).astype(np.int64)
        moved = rng.random(count) < homophily
        same_class = second - second % num_classes + first % num_classes
        second = np.where(moved & (same_class < num_nodes), same_class, second)
        keys = np.minimum(first, second) * num_nodes + np.maximum(first, second)
        return keys[first != second]

    keys = _distinct(num_edges, draw)
    source, target = keys // num_nodes, keys % num_nodes
    means = separation * rng.standard_normal((num_classes, num_features))
    features = _gaussian_features(rng, labels, means, 1.0)
    return Graph.from_edges(
        source, target, features, labels, directed=False, num_classes=num_classes, name="scale-free"
    )


# -------------------------------------------------------------------- checks


def _check_csbm(num_nodes: int, num_features: int, degree: float, phi: float, epsilon: float) -> float:
    """The difference λ√d between the two edge rates; an error where a rate is no probability."""
    _check_whole(num_nodes=num_nodes, num_features=num_features)
    if num_nodes < 2:
        raise ParameterError(f"num_nodes must be at least 2, one per class, not {num_nodes}")
    _check_numbers(average_degree=degree, phi=phi, epsilon=epsilon)
    if not -1 <= phi <= 1:
        raise ParameterError(f"phi must lie between -1 and 1, not {phi}")
    if not epsilon > -1:
        raise ParameterError(f"epsilon must be above -1, not {epsilon}")
    if not degree > 0:
        raise ParameterError(f"average_degree must be above 0, not {degree}")
    strength = math.sqrt(1 + epsilon) * math.sin(phi * math.pi / 2)
    spread = strength * math.sqrt(degree)
    if abs(spread) > degree:
        raise ParameterError(
            f"average_degree {degree} is too small for this phi and epsilon: |λ| = {abs(strength):.3f} must not "
            f"exceed √d = {math.sqrt(degree):.3f}, so the degree must be at least {strength**2:.3f}"
        )
    if degree + abs(spread) > num_nodes:
        raise ParameterError(f"average_degree {degree} is too large for {num_nodes} nodes: an edge rate would pass 1")
    return spread


def _check_scale_free(
    num_nodes: int, num_edges: int, num_features: int, num_classes: int, exponent: float, homophily: float
) -> None:
    _check_whole(num_nodes=num_nodes, num_features=num_features, num_classes=num_classes)
    if num_edges < 0 or num_edges > num_nodes * (num_nodes - 1) // 8:
        raise ParameterError(f"num_edges must lie between 0 and a quarter of all pairs, not {num_edges}")
    if not exponent > 2:
        raise ParameterError(f"exponent must be above 2, not {exponent}")
    if not 0 <= homophily <= 1:
        raise ParameterError(f"homophily must lie between 0 and 1, not {homophily}")


def _check_numbers(**values: float) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not abs(value) < 1e300:
            raise ParameterError(f"{name} must be a finite number, not {shown(value)}")


def _check_whole(**values: int) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError(f"{name} must be a whole number above 0, not {shown(value)}")
        NODES.check(name, int(value))


# -------------------------------------------------------------------- sampling


def _block_edges(rng: np.random.Generator, labels: IntArray, degree: float, spread: float) -> tuple[IntArray, IntArray]:
    """Independent edges at rate (d + spread)/n within a class and (d − spread)/n across."""
    n = len(labels)
    groups = [np.flatnonzero(labels == label) for label in (0, 1)]
    pairs = [
        _pairs_within(rng, groups[0], (degree + spread) / n),
        _pairs_within(rng, groups[1], (degree + spread) / n),
        _pairs_across(rng, groups[0], groups[1], (degree - spread) / n),
    ]
    source, target = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    return source, target


def _pairs_within(rng: np.random.Generator, nodes: IntArray, rate: float) -> tuple[IntArray, IntArray]:
    size = len(nodes)
    total = size * (size - 1) // 2

    def draw(count: int) -> IntArray:
        first = rng.integers(size, size=count)
        second = rng.integers(size - 1, size=count)
        second += second >= first
        return np.minimum(first, second) * size + np.maximum(first, second)

    def every() -> IntArray:
        first, second = np.triu_indices(size, k=1)
        return first * size + second

    keys = _subset(rng, int(rng.binomial(total, min(1.0, rate))), total, draw, every)
    return nodes[keys // size], nodes[keys % size]


def _pairs_across(rng: np.random.Generator, left: IntArray, right: IntArray, rate: float) -> tuple[IntArray, IntArray]:
    total = len(left) * len(right)
    count = int(rng.binomial(total, min(1.0, max(0.0, rate))))
    keys = _subset(
        rng, count, total, lambda size: rng.integers(total, size=size), lambda: np.arange(total, dtype=np.int64)
    )
    return left[keys // len(right)], right[keys % len(right)]


def _subset(
    rng: np.random.Generator,
    count: int,
    total: int,
    draw: Callable[[int], IntArray],
    every: Callable[[], IntArray],
) -> IntArray:
    """A uniformly random set of ``count`` keys out of ``total``."""
    if total <= 4 * count:  # so dense that listing all pairs costs no more than the edges themselves
        return rng.choice(every(), size=count, replace=False, shuffle=False)
    return _distinct(count, draw)


def _distinct(count: int, draw: Callable[[int], IntArray]) -> IntArray:
    """The first ``count`` distinct keys of a stream of independent draws, sorted.

    Each round draws only what is missing, so no key is ever thrown away by its value: for uniform draws
    the set is uniform among all sets of that size.
    """
    keys = sorted_unique(draw(count))
    while len(keys) < count:
        fresh = sorted_unique(draw(count - len(keys)))
        places = np.minimum(np.searchsorted(keys, fresh), max(0, len(keys) - 1))
        if len(keys):
            fresh = fresh[keys[places] != fresh]
        keys = np.concatenate([keys, fresh])
        keys.sort(kind="stable")  # merges the two sorted runs in one pass
    return keys


def _gaussian_features(rng: np.random.Generator, labels: IntArray, means: FloatArray, scale: float) -> SingleArray:
    """Gaussian rows around their class's mean; frozen, so that the graph takes them without a copy."""
    features = rng.standard_normal((len(labels), means.shape[1]), dtype=np.float32)
    centres = means.astype(np.float32)
    for start in range(0, len(labels), _ROWS_AT_ONCE):
        block = features[start : start + _ROWS_AT_ONCE]
        block *= np.float32(scale)
        block += centres[labels[start : start + _ROWS_AT_ONCE]]
    features.flags.writeable = False
    return features
