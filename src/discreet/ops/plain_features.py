"""Features that nobody has to give: what a model can read where it reads nothing of any record."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from discreet.graph.graph import PublicFacts
from discreet.graph.parts import Topology

PlainName = Literal["random", "degree", "ones", "topology"]
PLAIN: tuple[PlainName, ...] = ("random", "degree", "ones", "topology")
DEGREE_COLUMNS = 100
"""Degrees from here on share the last column."""


def plain_width(name: PlainName, public: PublicFacts) -> int:
    """How many columns there are."""
    widths = {"random": public.num_features, "degree": DEGREE_COLUMNS, "ones": 1, "topology": public.num_nodes}
    return widths[name]


def plain_features(name: PlainName, graph: Topology, public: PublicFacts, rng: np.random.Generator) -> Any:
    """CSR rows made of the public graph alone; ``rng`` has a public seed, for no record is read that it could hide.

    *random*: what the multi-bit mechanism reports of a record that says nothing, a sign at a random place. *degree*:
    the degree as a one-hot row. *ones*: the same for all. *topology*: every node its own column, so that a network
    learns a row for each node and denoising is all that ties them together.
    """
    n = graph.num_nodes
    values = np.ones(n, dtype=np.float32)
    if name == "random":
        columns = rng.integers(public.num_features, size=n)
        values = rng.choice(np.array([-1, 1], dtype=np.float32), size=n)
    elif name == "degree":
        columns = np.minimum(graph.in_degree(), DEGREE_COLUMNS - 1)
    else:
        columns = np.zeros(n, dtype=np.int64) if name == "ones" else np.arange(n)
    return sp.csr_array((values, columns, np.arange(n + 1)), shape=(n, plain_width(name, public)))
