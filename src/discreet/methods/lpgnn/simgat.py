"""``simgat``: ``lpgnn`` whose last denoising step is over similar nodes instead of neighbours (the SimGAT paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from discreet.arrays import Array, Arrays
from discreet.errors import ParameterError
from discreet.graph.parts import PublicPart, Topology
from discreet.limits import PROPAGATIONS
from discreet.mechanisms.curator import Curator
from discreet.methods import lpgnn
from discreet.methods.lpgnn.estimator import LPGNN, Trained
from discreet.methods.lpgnn.noisy_labels import TrainingReports
from discreet.methods.parameters import Examples, Seed, Share, Weight, Width
from discreet.ops.denoising import kprop_operators
from discreet.ops.similar_nodes import Similarity, SimilarityMeasure, similar_nodes
from discreet.ops.sparse import SparseMatrix
from discreet.training.descent import Progress
from discreet.training.networks import module_state, restore_module

CANDIDATES = (5.0, 10.0, 20.0, 40.0)
"""Numbers of similar nodes among which ``threshold="validated"`` chooses."""

# Walk lengths of the paper's appendix,
_LENGTH = {"deepwalk": 40, "node2vec": 35, "grarep": 30}
# and dimensions.
_DIMENSIONS = {"deepwalk": 68, "node2vec": 64}


# and the middle one of its three thresholds.
_THRESHOLD = {"deepwalk": 0.0002, "node2vec": 0.99, "grarep": 0.1}


@dataclass(eq=False, repr=False)
class SimGAT(LPGNN):
    """KProp over edges, then an average over similar nodes, then a graph network; levels as :class:`LPGNN`.

    Parameters
    ----------
    similarity
        ``grarep`` (share of walks that end there), ``deepwalk`` (distance between embeddings of walks) or ``node2vec``
        (cosine between embeddings of biased walks).
    threshold
        What counts as similar, in the paper's units: a share above it (``grarep``), a distance over the norm of all
        distances below it (``deepwalk``), a cosine above it (``node2vec``). ``auto``: what gives ``similar`` nodes on
        average. ``paper``: the middle one of those that SimGAT's paper tries for each similarity. ``validated``: among
        thresholds for 5, 10, 20 and 40 nodes, the one whose network makes the reports of validation nodes likeliest.
        None of them reads a label.
    similar
        How many similar nodes ``auto`` aims at.
    max_similar
        Where more nodes pass a threshold, the nearest so many are kept.
    similarity_seed
        Seed of the walks, apart from ``random_state``: the same graph has the same similar nodes.
    x_steps
        K′: KProp makes K′ − 1 hops, the average over similar nodes is the last.
    walk_length, walks, dimensions, window, p, q
        Of walks and embeddings; ``walk_length`` and ``dimensions`` default to the paper's.

    Guarantee: that of :class:`LPGNN`. Similarity is computed from the public graph alone, and ``validated`` compares
    networks by reports.
    """

    declaration = lpgnn.SIMGAT

    _: KW_ONLY
    similarity: Similarity = "deepwalk"
    threshold: Share | Literal["auto", "validated", "paper"] = "auto"
    similar: Weight = 10.0
    max_similar: Examples = 1000
    similarity_seed: Seed = 0
    walk_length: Annotated[int, Field(ge=2, le=PROPAGATIONS.high)] | None = None
    walks: Examples = 10
    dimensions: Width | None = None
    window: Examples = 5
    p: Weight = 0.5
    q: Weight = 3.0

    # ---------------------------------------------------------------- fit

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        self._check_threshold()
        self.similar_ = self.similar
        super()._learn(parts, curator, progress)

    def _check_threshold(self) -> None:
        if not isinstance(self.threshold, str) and self.similarity != "deepwalk" and self.threshold >= 1:
            raise ParameterError(
                f"{self.method}: threshold of {self.similarity} lies between 0 and 1, not {self.threshold}"
            )

    def _train(self, part: PublicPart, rows: Any, reports: TrainingReports, progress: Progress | None) -> Trained:
        if self.threshold != "validated" or len(reports.val) == 0:
            return super()._train(part, rows, reports, progress)
        best: Trained | None = None
        chosen, state = CANDIDATES[0], Arrays()
        for candidate in CANDIDATES:
            self.similar_ = candidate
            found = super()._train(part, rows, reports, progress)
            if best is None or found.score < best.score:
                best, chosen, state = found, candidate, module_state("network", self.network_)
        assert best is not None
        self.similar_ = chosen
        self.network_ = self._watched["network"] = restore_module("network", self._build(), state)
        return best

    def _operators(self, graph: Topology) -> list[SparseMatrix]:
        device = str(self._device)
        hops = kprop_operators(graph, max(self._feature_hops() - 1, 0), self.aggregation, device=device)
        return [*hops, SparseMatrix(row_means(self._similar_nodes(graph)), device)]

    def _similar_nodes(self, graph: Topology) -> sp.csr_array:
        measure = SimilarityMeasure(
            self.similarity,
            length=self.walk_length or _LENGTH[self.similarity],
            walks=self.walks,
            dimensions=self.dimensions or _DIMENSIONS.get(self.similarity, 0),
            window=self.window,
            p=self.p,
            q=self.q,
            seed=self.similarity_seed,
        )
        found = similar_nodes(graph, measure)
        if self.threshold == "paper":
            return found.beyond(_THRESHOLD[self.similarity], self.max_similar)
        if isinstance(self.threshold, str):
            return found.about(self.similar_, self.max_similar)
        return found.beyond(self.threshold, self.max_similar)

    # ---------------------------------------------------------------- release

    def _config(self) -> dict[str, Any]:
        """With the number of similar nodes that ``validated`` chose in its place: other graphs are read with it."""
        config = super()._config()
        config["params"]["similar"] = self.similar_
        return config

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.similar_ = self.similar
        super()._restore(state)


def row_means(similar: sp.csr_array) -> sp.csr_array:
    """Each row as weights that sum to 1; a node without similar nodes keeps its own row."""
    count = np.diff(similar.indptr)
    alone = sp.diags_array((count == 0).astype(np.float32), format="csr")
    weights = np.repeat(1 / np.maximum(count, 1), count).astype(np.float32)
    return sp.csr_array(sp.csr_array((weights, similar.indices, similar.indptr), shape=similar.shape) + alone)
