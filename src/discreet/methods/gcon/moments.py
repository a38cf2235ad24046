"""``gcon-ssp``: the convex graph convolution from noisy sufficient statistics, one Gaussian and no minimiser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

import numpy as np

from discreet.arrays import FloatArray
from discreet.graph.graph import PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.gaussian import check_rows
from discreet.methods import gcon
from discreet.methods.gcon.restart_classifier import (
    LearntMap,
    Measured,
    PublicView,
    RestartClassifier,
    row_shares,
    shrunk,
)
from discreet.methods.own_hop import with_labels
from discreet.methods.parameters import Restart, Weight
from discreet.methods.public_encoder import HEAD_RIDGE, EncoderName, ridge_head
from discreet.ops.moments import unpack
from discreet.privacy.events.gaussian import gaussian_mu
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.plan import Stage
from discreet.queries.moments import SmoothedFeatureMoments, SmoothedLabelMoments

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
        w, the weight of ZᵀZ beside ZᵀY where both share one noise; only with ``smooth="features"``.

    Guarantee: one Gaussian stage whose value moves by at most Ψ·√(1 − 1/c), or Ψ·√(1 − 1/c + 4w²/s), in ℓ2.
    """

    declaration = gcon.GCON_SSP
    trusted_from_to: ClassVar[tuple[float, float]] = (0.4, 0.5)  # its agreement is the smaller one (docs/gcon.md)

    _: KW_ONLY
    alpha: Restart = 0.65
    encoder: EncoderName = "spectral"
    smooth: Literal["labels", "features"] = "labels"
    gram_weight: Weight = 0.5

    # ---------------------------------------------------------------- plan

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        stage = Stage.of(STAGE, self._query(public[0], level))
        length = 1.0 if self.smooth == "labels" else max(1.0, self.gram_weight)
        check_rows(stage, public[0].num_nodes, length)
        return [stage]

    def _query(self, facts: PublicFacts, level: Level) -> SmoothedLabelMoments | SmoothedFeatureMoments:
        self._check_supported(facts, level)
        steps, width, classes = self._checked_steps(), self._map_width(facts), facts.num_classes
        if self.smooth == "labels":
            return SmoothedLabelMoments(level, self.alpha, steps, self.pseudo_labels, width, classes, ends=self.ends)
        return SmoothedFeatureMoments(
            level, self.alpha, steps, self.pseudo_labels, width, classes, self.gram_weight, ends=self.ends
        )

    def _map_width(self, facts: PublicFacts) -> int:
        """Smoothed labels need one block of the map, smoothed features one for each number of steps."""
        return self._width(facts) * (1 if self.smooth == "labels" else len(self._checked_steps()))

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        if isinstance(level, NoPrivacy):
            return ()
        privacy = self.checked_privacy()
        sensitivity = self._query(public, level).bound().sensitivity
        std = sensitivity / gaussian_mu(privacy.epsilon, privacy.resolve_delta(public.num_nodes))
        members = self._rows(public) / public.num_classes
        spread = std * math.sqrt(self._map_width(public))
        ratio = members / spread
        verdict = "hopeless: the public map will be used almost as it is" if ratio < 1 else "workable"
        return (
            f"signal to noise: the {members:.0f} rows of a class sum to norm {members:.3g} at most, the noise on that "
            f"sum has norm {spread:.3g}: ratio {ratio:.2g} ({verdict})",
        )

    # ---------------------------------------------------------------- fit

    def _learn_map(self, view: PublicView, curator: Curator) -> LearntMap:
        part, embedded, opinion, weights = view
        sharpened = opinion**SHARPNESS / np.sum(opinion**SHARPNESS, axis=1, keepdims=True)
        labels = with_labels(sharpened, part) - 1 / part.num_classes
        shares, nodes = row_shares(weights, labels), self._training_nodes(part)
        if self.smooth == "labels":  # rows that are not propagated are weighed here
            answer = curator.ask(STAGE, rows=embedded * shares[:, None], labels=labels)
        else:
            answer = curator.ask(STAGE, rows=embedded, labels=labels, shares=shares[nodes])
        solve = self._from_smoothed_labels if self.smooth == "labels" else self._from_smoothed_features
        noise = curator.plan.stage(STAGE).noise_std
        found, ratio = solve(embedded[nodes], labels[nodes], shares[nodes], answer, noise)
        return LearntMap(found, ratio.beyond(self._self_weight()))

    def _from_smoothed_labels(
        self, embedded: FloatArray, labels: FloatArray, shares: FloatArray, answer: FloatArray, noise: float
    ) -> tuple[FloatArray, Measured]:
        """Regress smoothed labels on embeddings, each eigendirection of XᵀUX drawn to the public map by its noise."""
        weighed = embedded * shares[:, None]
        values, vectors = np.linalg.eigh(weighed.T @ embedded)
        values = np.maximum(values, 0.0)[:, None]
        ridge = HEAD_RIDGE * shares.sum()
        plain = vectors.T @ (weighed.T @ labels)
        public = plain / (values + ridge)
        ratio = agreement_ratio(weighed, labels, shares, vectors @ public, answer, noise)
        scale = max(ratio.value, self.alpha / 2)
        private = vectors.T @ answer / scale / (values + ridge)
        variance = (noise / scale / (values + ridge)) ** 2 if self.shrink else 0.0
        return np.vstack([vectors @ shrunk(public, private, variance)] * len(self._checked_steps())), ratio

    def _from_smoothed_features(
        self, embedded: FloatArray, labels: FloatArray, shares: FloatArray, answer: FloatArray, noise: float
    ) -> tuple[FloatArray, Measured]:
        """Solve the noisy normal equations, negative eigenvalues clipped, with a ridge of the noise's own size."""
        steps = len(self._checked_steps())
        width = embedded.shape[1] * steps
        cross, gram = unpack(answer, width, labels.shape[1], self.gram_weight)
        values, vectors = np.linalg.eigh(gram)
        ridge = HEAD_RIDGE * shares.sum() + noise / self.gram_weight * math.sqrt(width)
        weights = vectors @ ((vectors.T @ cross) / (np.maximum(values, 0.0) + ridge)[:, None])
        blocks = cross.reshape(steps, -1, labels.shape[1]).sum(axis=0)
        roots = np.sqrt(shares)[:, None]
        head = ridge_head(embedded * roots, labels * roots)
        spread = noise * math.sqrt(steps)
        return weights, agreement_ratio(embedded * shares[:, None], labels, shares, head, blocks, spread)


def agreement_ratio(
    weighed: FloatArray, labels: FloatArray, shares: FloatArray, head: FloatArray, cross: FloatArray, noise: float
) -> Measured:
    """⟨S, R_m Y⟩/⟨S, Y⟩ with the public map's scores S, rows weighed, both less the part that the mean label explains.

    1 if propagation changes nothing; its excess over the restart's own share says how far neighbours agree. ``noise``
    is the standard deviation of an entry of ``cross``.
    """
    common = np.outer(weighed.sum(axis=0), shares @ labels / shares.sum())
    plain = float(np.sum(head * (weighed.T @ labels - common)))
    if plain <= 0:
        return Measured(0.0, 0.0)
    return Measured(float(np.sum(head * (cross - common))) / plain, noise * float(np.linalg.norm(head)) / plain)
