"""What ``gcon`` and ``gcon-ssp`` share: parameters, public encoder, inference, and how far neighbours are trusted.

Both release one linear map from embeddings to classes, learnt with propagation by restart. A node's prediction
mixes the public network's own opinion with the map's scores over the node's own neighbourhood.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy.special import softmax

from discreet.arrays import Array, Arrays, FloatArray, IntArray, SingleArray
from discreet.errors import ParameterError, UnsupportedError
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods.outlook import OPINION, REACH, Outlook, outlook_of, separation
from discreet.methods.own_hop import with_labels
from discreet.methods.parameters import Propagations, Restart, Width
from discreet.methods.public_encoder import EncoderName, EncoderSettings, PublicEncoder, encoder_width
from discreet.methods.stored_arrays import stored_if, stored_rows
from discreet.methods.trained import TrainedClassifier, WeighsClasses, with_weights
from discreet.ops.restart import INFINITE, check_restart, check_steps, own_hop, propagate, transition
from discreet.privacy.levels import EdgeLevel, Level, NoPrivacy
from discreet.privacy.plan import Plan
from discreet.queries.propagated import Ends
from discreet.training.descent import Progress

Step = Propagations | Literal["inf"]

TRUST_LOW, TRUST_HIGH = 0.45, 0.65
"""Agreement below which neighbours are not believed, and above which they are believed fully; see docs/gcon.md."""
CORRECTION_VARIANCE = 0.3
"""Prior variance of what edges change in the map, as a share of the mean square of the public map's entries."""


class PublicView(NamedTuple):
    """What is public before anything is asked: the public part, each node's embedding, what the encoder makes of it by
    class, and weights of classes where they are wanted.
    """

    part: PublicPart
    embedded: FloatArray
    opinion: FloatArray
    weights: FloatArray | None


class Measured(NamedTuple):
    """A number that was read off a noisy answer, and the standard deviation that noise gives it."""

    value: float
    spread: float

    def beyond(self, own: float) -> Measured:
        """What of a ratio is beyond the share ``own``, in parts of the rest."""
        return Measured((self.value - own) / (1 - own), self.spread / (1 - own))


class LearntMap(NamedTuple):
    """What a method makes of its one answer: the map (s·d₁ × c), and how far neighbours were found to agree."""

    weights: FloatArray
    agreement: Measured


@dataclass(eq=False, repr=False)
class RestartClassifier(WeighsClasses, TrainedClassifier):
    """A linear map on embeddings, learnt through propagation with restart, at level ``none`` or ``edge``.

    Parameters
    ----------
    alpha
        Restart probability, strictly between 0 and 1. Ψ, and with it the noise, falls as it rises.
    steps
        How many steps to propagate: a whole number, ``"inf"``, or a tuple of these (concatenated, 1/s each).
    encoder, width
        ``scores``, ``spectral`` or ``mlp`` (see ``public_encoder``) and d₁, the embedding's width.
    pseudo_labels
        Learn from every node, with the public network's predictions where there is no label (n₁ = n), or
        from the training nodes alone.
    inference
        ``private``: each node reads its own one-hop neighbourhood; a prediction is covered for that node alone.
        ``public``: full propagation, for graphs whose edges are public; the training graph is not covered.
    inference_alpha
        α_I: the weight of a node's own row in its one-hop neighbourhood.
    trust
        How far the neighbourhood replaces the network's own opinion: a number from 0 to 1, or ``measured``,
        which reads it from the released map at no cost.
    shrink
        Draw the released map towards the public one as far as its noise makes it less believable, at no cost;
        without it the map is used as released.

    centre
        With ``mlp``: take the mean row from the embedding before rows are scaled to norm 1.
    scoring
        ``mixed``: as above. ``plain``: equation 16 of the GCON paper and nothing else: the released map on the
        neighbourhood's embeddings; neither labels, opinions nor the public map play a part, nor do trust and shrink.
    ends
        How the sensitivity is proved where ``steps`` is ``inf``: for both ends of an edge ``together``, or ``apart``,
        with more noise, as releases before 0.2 were made.

    Guarantee: encoder, pseudo-labels and the public map read no edge. Edges enter through the curator once, with
    the sensitivity of ``queries.propagated``; everything else is computed from its answer and public data.
    """

    trusted_from_to: ClassVar[tuple[float, float]] = (TRUST_LOW, TRUST_HIGH)

    _: KW_ONLY
    alpha: Restart = 0.5
    steps: Step | tuple[Step, ...] = "inf"
    encoder: EncoderName = "scores"
    width: Width | None = None
    pseudo_labels: bool = True
    inference: Literal["private", "public"] = "private"
    inference_alpha: Annotated[float, Field(ge=0, le=1)] = 0.1
    trust: Annotated[float, Field(ge=0, le=1)] | Literal["measured"] = "measured"
    shrink: bool = True
    centre: bool = True
    scoring: Literal["mixed", "plain"] = "mixed"
    ends: Ends = "together"

    @property
    def covers(self) -> str:
        """The node's own prediction, or the weights alone."""
        return "own-prediction" if self.inference == "private" else "weights"

    # ---------------------------------------------------------------- plan

    def _checked_steps(self) -> tuple[float, ...]:
        listed = self.steps if isinstance(self.steps, tuple) else (self.steps,)
        steps = check_steps([INFINITE if m == "inf" else m for m in listed])
        if not any(steps):
            raise ParameterError(f"{self.method}: steps must hold a number above 0, or no edge is read: use mlp")
        return steps

    def _check_supported(self, public: PublicFacts, level: Level) -> None:
        """Refuse what the proof of Ψ does not cover."""
        if public.directed or (isinstance(level, EdgeLevel) and level.directed):
            raise UnsupportedError(
                f"{self.method} needs an undirected graph (its sensitivity does not hold otherwise): "
                "use graph.to_undirected() and level edge"
            )
        check_restart(self.alpha)

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """A node reads opinions, no labels, but from beyond its neighbours too."""
        return outlook_of(plan, OPINION * REACH * separation(degree, 0.0))

    def _width(self, public: PublicFacts) -> int:
        return encoder_width(self.encoder, self.width, public)

    def _rows(self, public: PublicFacts) -> int:
        return public.num_nodes if self.pseudo_labels else public.num_train

    # ---------------------------------------------------------------- fit

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        part = parts[0]
        self._build()
        self._watched = {"network": self.encoder_.network}
        self.class_weights_ = weights = self._class_weights(part, curator)
        self.encoder_.fit(part, with_weights(self._options(), weights), progress)
        embedded, opinion = self.encoder_.embed(part), self.encoder_.probabilities(part)
        learnt = self._learn_map(PublicView(part, embedded, opinion, weights), curator)
        self.map_, self.agreement_ = learnt.weights, learnt.agreement.value
        self.trust_ = (
            float(self.trust) if self.trust != "measured" else trusted(learnt.agreement, *self.trusted_from_to)
        )
        self.scale_ = confidence_scale(embedded @ self._summed(self.map_), opinion)

    def _learn_map(self, view: PublicView, curator: Curator) -> LearntMap:
        """Ask the curator once, with public embeddings, and make a map of its answer."""
        raise NotImplementedError

    def _build(self) -> None:
        settings = EncoderSettings(
            self.encoder,
            self._width(self.public_),
            hidden=self.hidden,
            layers=self.layers,
            activation=self.activation,
            dropout=self.dropout,
            centre=self.centre,
        )
        self.encoder_ = PublicEncoder(settings, self.public_, self._generator)

    def _training_nodes(self, part: PublicPart) -> IntArray:
        """The nodes whose rows enter the query; as many as the plan says."""
        if self.pseudo_labels:
            return np.arange(part.num_nodes, dtype=np.int64)
        return np.flatnonzero(part.mask("train"))

    def _self_weight(self) -> float:
        """What R_m keeps of a node's own row by restart alone, on average over the steps."""
        return float(np.mean([1.0 if m == 0 else self.alpha for m in self._checked_steps()]))

    def _summed(self, blocks: FloatArray) -> FloatArray:
        """The map of all steps together, as it acts on a row that is not propagated."""
        steps = self._checked_steps()
        return np.asarray(blocks.reshape(len(steps), -1, blocks.shape[1]).mean(axis=0))

    # ---------------------------------------------------------------- predict

    def _uncovered(self, part: PublicPart) -> str | None:
        if self.inference == "private" or isinstance(self.checked_privacy().level, NoPrivacy):
            return None
        return (
            "public inference reads edges beyond a node's own: it is for graphs whose edges are public, "
            "which public=True states"
        )

    def _probabilities(self, part: PublicPart) -> SingleArray:
        if self.scoring == "plain":
            return softmax(self._plain_scores(part), axis=1).astype(np.float32)
        opinion = self.encoder_.probabilities(part)
        if self.trust_ == 0:
            return opinion.astype(np.float32)
        scores = self._neighbourhood_scores(part, self.encoder_.embed(part))
        mixed = (1 - self.trust_) * opinion + self.trust_ * to_simplex(scores)
        return mixed.astype(np.float32)

    def _plain_scores(self, part: PublicPart) -> FloatArray:
        """Ŷ of equation 16, or by full propagation."""
        steps, walk, embedded = self._checked_steps(), transition(part), self.encoder_.embed(part)
        if self.inference == "public":
            return np.asarray(propagate(walk, embedded, self.alpha, steps) @ self.map_)
        return np.asarray(own_hop(walk, embedded, self.inference_alpha, steps) @ self.map_)

    def _neighbourhood_scores(self, part: PublicPart, embedded: FloatArray) -> FloatArray:
        """Scores in excess of 1/c: eq. (16) of GCON, or full propagation, with public training labels put in."""
        steps, walk = self._checked_steps(), transition(part)
        classes = self.map_.shape[1]
        total = np.zeros((part.num_nodes, classes))
        for m, block in zip(steps, np.split(self.map_, len(steps)), strict=True):
            table = self.scale_ * centred(embedded @ block) / len(steps)
            if m == 0:
                total += table
                continue
            filled = (self._with_weighed_labels(len(steps) * table + 1 / classes, part) - 1 / classes) / len(steps)
            if self.inference == "public":
                total += propagate(walk, filled, self.alpha, [m])
            else:
                total += own_hop(walk, filled, 0.0, [m]) * (1 - self.inference_alpha) + self.inference_alpha * table
        return total

    def _with_weighed_labels(self, rows: FloatArray, part: PublicPart) -> FloatArray:
        """Rows with public training labels put in, each as loud as its class; rows that were learnt are so already."""
        filled = with_labels(rows, part)
        if self.class_weights_ is not None and part.train_mask is not None:
            known = np.flatnonzero(part.train_mask & (part.labels >= 0))
            filled[known] *= self.class_weights_[part.labels[known]][:, None]
        return filled

    # ---------------------------------------------------------------- release

    def _state(self) -> Arrays:
        numbers = np.array([self.trust_, self.scale_])
        weights = {} if self.class_weights_ is None else {"class_weights": self.class_weights_}
        return {**self.encoder_.state(), "map": self.map_, "trust and scale": numbers, **weights}

    def _restore(self, state: Mapping[str, Array]) -> None:
        self._build()
        self.encoder_.restore(state)
        classes = self.public_.num_classes
        self.map_ = stored_rows(state, "map", len(self._checked_steps()) * self._width(self.public_), classes)
        self.class_weights_ = stored_if(state, "class_weights", self.class_weight is not None, classes)
        self.trust_, self.scale_ = (float(number) for number in stored_rows(state, "trust and scale", 2))


def row_shares(weights: FloatArray | None, targets: FloatArray) -> FloatArray:
    """How much each row counts, at most 1: by the weight of the class that its public target names."""
    if weights is None:
        return np.ones(len(targets))
    return np.asarray(weights / weights.max())[targets.argmax(axis=1)]


def trusted(agreement: Measured, low: float = TRUST_LOW, high: float = TRUST_HIGH) -> float:
    """From no trust at ``low`` to full trust at ``high``, in a straight line; noise counts against trust.

    An agreement that its noise drowns says nothing of neighbours, and a node then rests on its own features.
    """
    believed = agreement.value - agreement.spread
    if not math.isfinite(believed):
        return 0.0
    return float(np.clip((believed - low) / (high - low), 0.0, 1.0))


def shrunk(public_map: FloatArray, private_map: FloatArray, noise_variance: npt.ArrayLike) -> FloatArray:
    """The private map, drawn towards the public one as far as its noise makes it less believable.

    Post-processing: with endless noise it is the public map, with none the private one.
    """
    prior = CORRECTION_VARIANCE * float(np.mean(public_map**2))
    variance = np.asarray(noise_variance, dtype=np.float64)
    weight = prior / (prior + variance) if prior > 0 else np.where(variance == 0, 1.0, 0.0)
    return np.asarray(public_map + weight * (private_map - public_map))


def confidence_scale(scores: FloatArray, opinion: FloatArray) -> float:
    """What brings linear scores to the confidence of the network's probabilities, from public rows."""
    excess = float(centred(scores).max(axis=1).mean())
    wanted = float(opinion.max(axis=1).mean()) - 1 / opinion.shape[1]
    return wanted / excess if excess > 0 and math.isfinite(excess) else 0.0


def centred(scores: FloatArray) -> FloatArray:
    """Scores less their mean over classes, which decides nothing."""
    return np.asarray(scores - scores.mean(axis=1, keepdims=True))


def to_simplex(excess: FloatArray) -> FloatArray:
    """Scores in excess of 1/c as probabilities: clipped at zero and normalised."""
    floor = 1e-6  # no class is ruled out
    raised = np.clip(excess + 1 / excess.shape[1], 0.0, None) + floor
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
