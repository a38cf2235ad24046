"""``gcon-ssp``: the convex graph convolution from noisy sufficient statistics, one Gaussian and no minimiser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.methods.own_hop import with_labels
from discreet.methods.public_encoder import HEAD_RIDGE, EncoderName, ridge_head
from discreet.methods.restart_classifier import RestartClassifier, shrunk
from discreet.ops.moments import pack, packed_length, packed_sensitivity, unpack
from discreet.ops.restart import propagate, transition
from discreet.privacy import events
from discreet.privacy.gaussian import gaussian_mu
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.plan import Stage

FloatArray = npt.NDArray[np.float64]
STAGE = "moments"
SHARPNESS = 2
"""Pseudo-labels are the network's probabilities to this power, normalised: clearer, and the noise stays the same."""


@dataclass(eq=False, repr=False)
class GCONSSP(RestartClassifier):
    """Ridge regression on released moments of embeddings, labels and propagation.

    Parameters
    ----------
    smooth
        ``labels``: release Xᵀ·R_m·Y. The public Gram matrix XᵀX completes the regression, and no budget goes to it.
        ``features``: release ZᵀY and w·ZᵀZ for Z = R_m X, together.
    gram_weight
        w, what the noise is told to treat ZᵀZ as worth beside ZᵀY; only with ``smooth="features"``.

    Guarantee: one Gaussian stage whose value moves by at most Ψ·√(1 − 1/c), or Ψ·√(1 − 1/c + 4w²/s), in ℓ2.
    """

    method: ClassVar[str] = "gcon-ssp"

    _: KW_ONLY
    alpha: float = 0.65
    encoder: EncoderName = "spectral"
    smooth: Literal["labels", "features"] = "labels"
    gram_weight: Annotated[float, Field(gt=0)] = 0.5

    # ---------------------------------------------------------------- plan

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        facts = public[0]
        width, classes = self._map_width(facts), facts.num_classes
        shape = (width, classes) if self.smooth == "labels" else (packed_length(width, classes),)
        return [
            Stage(
                name=STAGE,
                query="moments of embeddings and centred labels, one of the two propagated",
                mechanism="gaussian",
                sensitivity=self._sensitivity(facts, level),
                metric="l2",
                why=self._why(),
                event=events.GaussianDpEvent(1.0),
                shape=shape,
            )
        ]

    def _map_width(self, facts: PublicFacts) -> int:
        """Smoothed labels need one block of the map, smoothed features one for each number of steps."""
        return self._width(facts) * (1 if self.smooth == "labels" else len(self._checked_steps()))

    def _sensitivity(self, facts: PublicFacts, level: Level) -> float:
        psi = self._psi(facts, level)
        if self.smooth == "labels":
            return psi * centred_norm(facts.num_classes)
        return packed_sensitivity(
            psi, self._checked_steps(), target_norm=centred_norm(facts.num_classes), gram_weight=self.gram_weight
        )

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        if isinstance(level, NoPrivacy):
            return ()
        privacy = self._checked_privacy()
        std = self._sensitivity(public, level) / gaussian_mu(privacy.epsilon, privacy.resolve_delta(public.num_nodes))
        members = self._rows(public) / public.num_classes
        spread = std * math.sqrt(self._map_width(public))
        ratio = members / spread
        verdict = "hopeless: the public map will be used almost as it is" if ratio < 1 else "workable"
        return (
            f"signal to noise: the {members:.0f} rows of a class sum to norm {members:.3g} at most, the noise on that "
            f"sum has norm {spread:.3g}: ratio {ratio:.2g} ({verdict})",
        )

    # ---------------------------------------------------------------- fit

    def _release_map(self, graph: Graph, embedded: FloatArray, opinion: FloatArray, curator: Curator) -> float:
        nodes = self._training_nodes(graph)
        sharpened = opinion**SHARPNESS / np.sum(opinion**SHARPNESS, axis=1, keepdims=True)
        labels = with_labels(sharpened, graph) - 1 / graph.num_classes
        noise = curator.plan.stages[0].noise_std
        if self.smooth == "labels":
            smoothed = self._smoothed(graph, labels)[nodes]
            cross = curator.measure(STAGE, embedded[nodes].T @ smoothed)
            return self._from_smoothed_labels(embedded[nodes], labels[nodes], cross, noise)
        rows = propagate(transition(graph), embedded, self.alpha, self._checked_steps())[nodes]
        packed = curator.measure(STAGE, pack(rows, labels[nodes], self.gram_weight))
        return self._from_smoothed_features(embedded[nodes], labels[nodes], packed, noise)

    def _smoothed(self, graph: Graph, labels: FloatArray) -> FloatArray:
        """The mean over the steps of R_m Y."""
        steps = self._checked_steps()
        blocks = propagate(transition(graph), labels, self.alpha, steps)
        return np.asarray(blocks.reshape(len(labels), len(steps), -1).sum(axis=1))

    def _from_smoothed_labels(self, embedded: FloatArray, labels: FloatArray, cross: FloatArray, noise: float) -> float:
        """Regress smoothed labels on embeddings, each eigendirection of XᵀX drawn to the public map by its noise."""
        values, vectors = np.linalg.eigh(embedded.T @ embedded)
        values = np.maximum(values, 0.0)[:, None]
        ridge = HEAD_RIDGE * len(embedded)
        plain = vectors.T @ (embedded.T @ labels)
        public = plain / (values + ridge)
        ratio = agreement_ratio(embedded, labels, vectors @ public, cross)
        scale = max(ratio, self.alpha / 2)
        private = vectors.T @ cross / scale / (values + ridge)
        variance = (noise / scale / (values + ridge)) ** 2 if self.shrink else 0.0
        self.map_ = vectors @ shrunk(public, private, variance)
        if len(self._checked_steps()) > 1:
            self.map_ = np.vstack([self.map_] * len(self._checked_steps()))
        own = self._self_weight()
        return (ratio - own) / (1 - own)

    def _from_smoothed_features(
        self, embedded: FloatArray, labels: FloatArray, packed: FloatArray, noise: float
    ) -> float:
        """Solve the noisy normal equations, negative eigenvalues clipped, with a ridge of the noise's own size."""
        width = embedded.shape[1] * len(self._checked_steps())
        cross, gram = unpack(packed, width, labels.shape[1], self.gram_weight)
        values, vectors = np.linalg.eigh(gram)
        ridge = HEAD_RIDGE * len(embedded) + noise / self.gram_weight * math.sqrt(width)
        self.map_ = vectors @ ((vectors.T @ cross) / (np.maximum(values, 0.0) + ridge)[:, None])
        plain = ridge_head(embedded, labels)
        blocks = cross.reshape(len(self._checked_steps()), -1, labels.shape[1]).sum(axis=0)
        own = self._self_weight()
        return (agreement_ratio(embedded, labels, plain, blocks) - own) / (1 - own)


def centred_norm(classes: int) -> float:
    """‖y − 1/c‖ ≤ √(1 − 1/c) for y in the probability simplex, attained by one-hot labels."""
    return math.sqrt(1 - 1 / classes)


def agreement_ratio(embedded: FloatArray, labels: FloatArray, head: FloatArray, cross: FloatArray) -> float:
    """⟨S, R_m Y⟩/⟨S, Y⟩ with the public map's scores S, both less the part that the mean label explains.

    1 if propagation changes nothing; its excess over the restart's own share says how far neighbours agree.
    """
    common = np.outer(embedded.sum(axis=0), labels.mean(axis=0))
    plain = float(np.sum(head * (embedded.T @ labels - common)))
    return float(np.sum(head * (cross - common))) / plain if plain > 0 else 0.0
