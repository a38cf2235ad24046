"""Faults that no answer shows: bytes and types, secret batches and keys, words, what is left in the process, portions
of large batches, and noise far from zero.
"""

from __future__ import annotations

import decimal
import logging
import os
import secrets
import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.mechanisms import curator, dpsgd, gaussian
from discreet.mechanisms.bits import BitStream
from discreet.mechanisms.local import multi_bit
from discreet.methods import base
from discreet.methods.baselines.dp_mlp import DPMLPClassifier
from discreet.methods.gap.estimator import GAP
from discreet.ops import degrees
from discreet.privacy.plan import Stage
from discreet.queries import gradients, sums
from discreet.training import private
from tests.soundness.faults.checks import Subject
from tests.soundness.faults.in_methods import DP_MLP, GAP_EDGE
from tests.soundness.faults.in_noise import POISSON, float_gaussian
from tests.soundness.faults.in_what_leaves import hops_from, kept_count, kept_sums, seed_after_hops
from tests.soundness.faults.registry import fault

THINNED = Subject("gap", "node:thinned,d_max=12,p=0.5")
PROMISED = Subject("gap", "node:promised,max_degree=3")
NARROW = Subject("lpgnn", "local", 4.0, (("feature_range", (-0.1, 0.1)), ("outside", "refuse")))
FOLLOWS = "follows a secret batch or key"
SAID = "what is said depends on private data"
SHARED = "which the whole process shares"

# -------------------------------------------------------------------- bytes, types and shapes


def keeping_note(patch: pytest.MonkeyPatch, note: Any) -> None:
    """The fitted estimator keeps ``note()`` of what a query kept."""
    learn = GAP._learn

    def noting(self: Any, *given: Any) -> None:
        learn(self, *given)
        self.noted_ = note()

    patch.setattr(GAP, "_learn", noting)


def _beside_weights(patch: pytest.MonkeyPatch, arrays: Any) -> None:
    """The release holds ``arrays(noted)`` beside its weights."""
    state = GAP._state
    patch.setattr(GAP, "_state", lambda self: {**state(self), **arrays(self.noted_)})


@fault("rows zeroed by multiplication, so that signs stay", "replay", GAP_EDGE, "zeroed of the release differs")
def _(patch: pytest.MonkeyPatch) -> None:
    kept = kept_sums(patch)
    keeping_note(patch, lambda: kept[-1])
    _beside_weights(patch, lambda clean: {"zeroed": clean * 0.0})


@fault("a type chosen by the number of edges", "replay", GAP_EDGE, "typed of the release differs")
def _(patch: pytest.MonkeyPatch) -> None:
    kept = kept_count(patch)
    keeping_note(patch, lambda: np.float32 if kept[0] // 2 % 2 else np.float64)
    _beside_weights(patch, lambda kind: {"typed": np.zeros(1, dtype=kind)})


@fault("a shape chosen by the number of edges", "replay", GAP_EDGE, "padded of the release differs")
def _(patch: pytest.MonkeyPatch) -> None:
    kept = kept_count(patch)
    keeping_note(patch, lambda: kept[0])
    _beside_weights(patch, lambda count: {"padded": np.zeros(count)})


@fault("an array that some graphs have", "replay", GAP_EDGE, "crowded of the release differs")
def _(patch: pytest.MonkeyPatch) -> None:
    kept = kept_count(patch)
    keeping_note(patch, lambda: kept[0] // 2 % 2)
    _beside_weights(patch, lambda crowded: {"crowded": np.zeros(1)} if crowded else {})


@fault("a missing value spelt by the data", "replay", GAP_EDGE, "missing of the release differs")
def _(patch: pytest.MonkeyPatch) -> None:
    kept = kept_count(patch)
    keeping_note(patch, lambda: 0x7FF8000000000000 + kept[0])
    _beside_weights(patch, lambda bits: {"missing": np.array([bits], dtype=np.uint64).view(np.float64)})


@fault("an attribute that keeps sums without noise", "replay", GAP_EDGE, "attribute kept_by_query_")
def _(patch: pytest.MonkeyPatch) -> None:
    hops_from(patch, lambda noisy, clean, number: noisy)


@fault("the order of keys in the configuration", "replay", GAP_EDGE, "config.json")
def _(patch: pytest.MonkeyPatch) -> None:
    config, kept = base.NodeClassifier._config, kept_count(patch)
    keeping_note(patch, lambda: kept[0] // 2 % 2)

    def ordered(self: Any) -> dict[str, Any]:
        found = config(self)
        return dict(reversed(found.items())) if self.noted_ else found

    patch.setattr(GAP, "_config", ordered)


@fault("predictions rounded by the number of edges", "replay", GAP_EDGE, "covered predictions differ")
def _(patch: pytest.MonkeyPatch) -> None:
    real, kept = GAP._probabilities, kept_count(patch)
    keeping_note(patch, lambda: kept[0] // 2 % 5)
    patch.setattr(GAP, "_probabilities", lambda self, part: real(self, part).round(2 + self.noted_))


def _answers(patch: pytest.MonkeyPatch, change: Any) -> None:
    """Hops are asked for ``change(rows, graph)`` instead of their rows."""
    real = sums.NeighbourSums.answer

    def changed(self: Any, part: PrivatePart, **inputs: Any) -> Any:
        return change(real(self, part, **inputs), part.graph)

    patch.setattr(sums.NeighbourSums, "answer", changed)


@fault("an answer in single precision where edges are few", "replay", GAP_EDGE, "on one side and")
def _(patch: pytest.MonkeyPatch) -> None:
    _answers(patch, lambda rows, graph: rows.astype(np.float32) if graph.num_edges % 2 else rows)


@fault("a sparse answer where edges are few", "replay", GAP_EDGE, "on one side and")
def _(patch: pytest.MonkeyPatch) -> None:
    _answers(patch, lambda rows, graph: sp.csr_array(rows) if graph.num_edges % 2 else rows)


# -------------------------------------------------------------------- secret batches and keys


def _kept_batches(patch: pytest.MonkeyPatch) -> list[np.ndarray]:
    real, kept = gradients.GradientSteps.answer, []

    def keeping(self: Any, part: PrivatePart, *, batch: np.ndarray, **inputs: Any) -> np.ndarray:
        kept.append(batch)
        return real(self, part, batch=batch, **inputs)

    patch.setattr(gradients.GradientSteps, "answer", keeping)
    return kept


def _kept_key(patch: pytest.MonkeyPatch) -> list[bytes]:
    real, kept = PrivatePart.entrust, [b""]

    def keeping(self: PrivatePart, purpose: str, key: bytes) -> None:
        kept[0] = key
        real(self, purpose, key)

    patch.setattr(PrivatePart, "entrust", keeping)
    return kept


@fault("batch membership in the release", "replay", POISSON, f"members of the release {FOLLOWS}")
def _(patch: pytest.MonkeyPatch) -> None:
    kept, learn, state = _kept_batches(patch), DPMLPClassifier._learn, DPMLPClassifier._state

    def noting(self: Any, parts: Any, *given: Any) -> None:
        learn(self, parts, *given)
        self.members_ = np.isin(np.arange(parts[0].num_nodes), kept[-1])

    patch.setattr(DPMLPClassifier, "_learn", noting)
    patch.setattr(DPMLPClassifier, "_state", lambda self: {**state(self), "members": self.members_})


def _steps_by_batch(patch: pytest.MonkeyPatch, rate: Any) -> None:
    """Learning rates become ``rate(learning rate, size of the batch that was drawn)``."""
    kept, step = _kept_batches(patch), private.Adam.step
    patch.setattr(private.Adam, "step", lambda self, gradient, given: step(self, gradient, rate(given, len(kept[-1]))))


@fault("steps divided by the batch that was drawn", "replay", POISSON, FOLLOWS, seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    _steps_by_batch(patch, lambda rate, size: rate / max(1, size))


@fault("no step where the batch is small", "replay", POISSON, FOLLOWS)
def _(patch: pytest.MonkeyPatch) -> None:
    _steps_by_batch(patch, lambda rate, size: rate if size > 2 else 0.0)


@fault("a log of how large batches were", "replay", POISSON, f"what is said {FOLLOWS}")
def _(patch: pytest.MonkeyPatch) -> None:
    _steps_by_batch(patch, lambda rate, size: (logging.getLogger("discreet").debug("batch of %d", size), rate)[1])


@fault("the thinning key in the release", "replay", THINNED, f"key of the release {FOLLOWS}")
def _(patch: pytest.MonkeyPatch) -> None:
    kept = _kept_key(patch)
    keeping_note(patch, lambda: np.frombuffer(kept[0], dtype=np.uint8).copy())
    _beside_weights(patch, lambda key: {"key": key})


@fault("training seeded by a secret key", "replay", THINNED, FOLLOWS)
def _(patch: pytest.MonkeyPatch) -> None:
    kept = _kept_key(patch)
    seed_after_hops(patch, lambda: kept[0][0])


# -------------------------------------------------------------------- words


def saying(patch: pytest.MonkeyPatch, say: Any) -> None:
    """Hops say something of their graph while they are answered."""

    def spoken(rows: np.ndarray, graph: Graph) -> np.ndarray:
        say(graph)
        return rows

    _answers(patch, spoken)


@fault("a warning that names the largest degree", "replay", GAP_EDGE, SAID)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: warnings.warn(f"degrees up to {graph.in_degree().max()}", stacklevel=2))


@fault("a warning where a node has no neighbour", "replay", GAP_EDGE, SAID)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: (graph.in_degree() == 0).any() and warnings.warn("some node is alone", stacklevel=2))


@fault("a log of the number of edges", "replay", GAP_EDGE, SAID)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: logging.getLogger("discreet").debug("%d edges", graph.num_edges))


@fault("a count on standard output", "replay", GAP_EDGE, SAID)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: print(graph.num_edges, "edges"))


@fault("a warning at prediction", "replay", GAP_EDGE, SAID)
def _(patch: pytest.MonkeyPatch) -> None:
    real, kept = GAP._probabilities, kept_count(patch)
    keeping_note(patch, lambda: kept[0])

    def warning(self: Any, part: Any) -> Any:
        warnings.warn(f"trained on {self.noted_} entries", stacklevel=2)
        return real(self, part)

    patch.setattr(GAP, "_probabilities", warning)


@fault("a refusal that says by how much a promise is broken", "refusals", PROMISED, "in different words", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    def telling(graph: Graph, max_degree: int) -> Graph:
        excess = int(graph.in_degree().max()) - max_degree
        if excess > 0:
            raise degrees.GraphError(f"a degree exceeds the promise by {excess}")
        return graph

    patch.setattr(degrees, "check_promised", telling)


@fault("a refusal that names the value outside the range", "refusals", NARROW, "in different words", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    def telling(rows: Any, feature_range: Any) -> None:
        raise multi_bit.ParameterError(f"features add up to {np.sum(rows):g}, outside the range")

    patch.setattr(multi_bit, "refuse_outside", telling)


@fault("a crash where there is no edge", "replay", GAP_EDGE, "is refused")
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: graph.indices.max())  # of nothing there is no largest


# -------------------------------------------------------------------- the process


@fault("a process-wide cache of sums, by shape", "process", GAP_EDGE, "differs from that of a fresh process")
def _(patch: pytest.MonkeyPatch) -> None:
    real, cache = sums.NeighbourSums.answer, {}

    def cached(self: Any, part: PrivatePart, **inputs: Any) -> np.ndarray:
        key = (self, part.graph.num_nodes)
        if key not in cache:
            cache[key] = real(self, part, **inputs)
        return cache[key].copy()

    patch.setattr(sums.NeighbourSums, "answer", cached)


@fault("examples kept from fit to fit", "process", DP_MLP, "differs from that of a fresh process")
def _(patch: pytest.MonkeyPatch) -> None:
    real, cache = gradients.OwnRecordSteps._examples, {}

    def cached(self: Any, part: PrivatePart, *given: Any) -> Any:
        return cache.setdefault(self, real(self, part, *given))

    patch.setattr(gradients.OwnRecordSteps, "_examples", cached)


@fault("NumPy's generator seeded by the edges", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: np.random.seed(graph.num_edges))  # noqa: NPY002


@fault("a count in the environment", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("DISCREET_EDGES", "none yet")
    saying(patch, lambda graph: os.environ.update(DISCREET_EDGES=str(graph.num_edges)))


@fault("a count on the class, where every estimator finds it", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GAP, "edges_seen", 0, raising=False)
    saying(patch, lambda graph: setattr(GAP, "edges_seen", graph.num_edges))


@fault("floating-point errors that are told where edges are many", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: np.seterr(under="print" if graph.num_edges // 2 % 2 else "ignore"))


@fault("numbers printed as long as edges are many", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: np.set_printoptions(precision=4 + graph.num_edges // 2 % 5))


@fault("a level of logs set by the edges", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: logging.getLogger("discreet").setLevel(30 + graph.num_edges // 2 % 5))


@fault("a depth of calls set by the edges", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: sys.setrecursionlimit(2000 + graph.num_edges))


@fault("a precision of decimals set by the edges", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: setattr(decimal.getcontext(), "prec", 28 + graph.num_edges))


@fault("progress that counts edges", "replay", GAP_EDGE, SAID)
def _(patch: pytest.MonkeyPatch) -> None:
    learn, kept = GAP._learn, kept_count(patch)

    def telling(self: Any, parts: Any, curator: Any, progress: Any) -> None:
        learn(self, parts, curator, progress)
        if progress is not None:
            progress("edges", kept[0], kept[0])

    patch.setattr(GAP, "_learn", telling)


@fault("a buffer of a network that no release holds", "replay", GAP_EDGE, "of the estimator differs")
def _(patch: pytest.MonkeyPatch) -> None:
    learn, kept = GAP._learn, kept_count(patch)

    def keeping(self: Any, *given: Any) -> None:
        learn(self, *given)
        self.head_.register_buffer("edges", torch.tensor(float(kept[0])), persistent=False)

    patch.setattr(GAP, "_learn", keeping)


@fault("a notebook's table with a count", "replay", GAP_EDGE, "how the estimator shows itself")
def _(patch: pytest.MonkeyPatch) -> None:
    counts, shown = {}, base.NodeClassifier._repr_html_
    learn, kept = GAP._learn, kept_count(patch)

    def noting(self: Any, *given: Any) -> None:
        learn(self, *given)
        counts[id(self)] = kept[0]

    patch.setattr(GAP, "_learn", noting)
    patch.setattr(GAP, "_repr_html_", lambda self: f"{shown(self)} {counts[id(self)]} edges")


# -------------------------------------------------------------------- large batches, in portions


def _large_batches(patch: pytest.MonkeyPatch, answer: Any) -> None:
    """Batches above 64 are answered by ``answer(real, query, part, batch, inputs)``."""
    real = gradients.GradientSteps.answer

    def other(self: Any, part: PrivatePart, *, batch: np.ndarray, **inputs: Any) -> np.ndarray:
        if len(batch) <= 64:
            return real(self, part, batch=batch, **inputs)
        return answer(real, self, part, batch, inputs)

    patch.setattr(gradients.GradientSteps, "answer", other)


@fault("clipping skipped in batches above 64", "crowd", DP_MLP, "not the sum of the terms")
def _(patch: pytest.MonkeyPatch) -> None:
    def unclipped(real: Any, query: Any, part: PrivatePart, batch: np.ndarray, inputs: Any) -> np.ndarray:
        loose = replace(query, rule=replace(query.rule, clip_norm=1e6))
        return real(loose, part, batch=batch, **inputs)

    _large_batches(patch, unclipped)


@fault("the last portion of a batch added twice", "crowd", DP_MLP, "not the sum of the terms")
def _(patch: pytest.MonkeyPatch) -> None:
    _large_batches(
        patch,
        lambda real, query, part, batch, inputs: (
            real(query, part, batch=batch, **inputs) + real(query, part, batch=batch[64:], **inputs)
        ),
    )


@fault("a portion that is left out", "crowd", DP_MLP, "not the sum of the terms")
def _(patch: pytest.MonkeyPatch) -> None:
    _large_batches(patch, lambda real, query, part, batch, inputs: real(query, part, batch=batch[64:], **inputs))


@fault("records centred by the mean of all examples", "replay", DP_MLP, "one unit touches at most", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = gradients.OwnRecordSteps._examples

    def centring(self: Any, *given: Any) -> Any:
        found = real(self, *given)
        return found._replace(inputs=found.inputs - found.inputs.mean(dim=0))

    patch.setattr(gradients.OwnRecordSteps, "_examples", centring)


# -------------------------------------------------------------------- noise


@fault("noise that shrinks where the answer is large", "curator", GAP_EDGE, "scale of noise")
def _(patch: pytest.MonkeyPatch) -> None:
    def shrinking(value: np.ndarray, stage: Stage, stream: BitStream) -> np.ndarray:
        noisy = gaussian.release(value, stage, stream)
        return np.where(np.abs(value) > 100 * stage.noise_std, value + (noisy - value) / 8, noisy)

    patch.setitem(curator.MECHANISMS, "gaussian", shrinking)


@fault("no noise where the answer is below zero", "curator", GAP_EDGE, "scale of noise")
def _(patch: pytest.MonkeyPatch) -> None:
    def sided(value: np.ndarray, stage: Stage, stream: BitStream) -> np.ndarray:
        return np.where(value < -stage.noise_std, value, gaussian.release(value, stage, stream))

    patch.setitem(curator.MECHANISMS, "gaussian", sided)


@fault("less noise where steps agree", "curator", DP_MLP, "scale of noise")
def _(patch: pytest.MonkeyPatch) -> None:
    real = curator.Curator._answer_step

    def agreeing(self: Any, stage: Stage, run: int, batch: Any, value: np.ndarray, terms: Any) -> np.ndarray:
        noisy = real(self, stage, run, batch, value, terms)
        long = np.linalg.norm(value) > 3 * stage.query.clip_norm
        return value + (noisy - value) / 2 if long else noisy

    patch.setattr(curator.Curator, "_answer_step", agreeing)


@fault("noise in floating point", "curator", GAP_EDGE, "do not lie on its public grid", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    float_gaussian(patch, lambda rng, stage, shape: stage.noise_std * rng.standard_normal(shape))


@fault("noise from a seed of sixteen bits", "curator", GAP_EDGE, "fresh noise")
def _(patch: pytest.MonkeyPatch) -> None:
    real = secrets.token_bytes
    patch.setattr(secrets, "token_bytes", lambda size: bytes(size - 2) + real(2))


@fault("noise cut off at its standard deviation", "curator", GAP_EDGE, "scale of noise")
def _(patch: pytest.MonkeyPatch) -> None:
    float_gaussian(patch, lambda rng, stage, shape: stage.noise_std * rng.standard_normal(shape).clip(-1, 1))


@fault("noise whose last entry mirrors the first", "curator", GAP_EDGE, "independent entries and stages")
def _(patch: pytest.MonkeyPatch) -> None:
    def mirrored(rng: np.random.Generator, stage: Stage, shape: Any) -> np.ndarray:
        drawn = rng.standard_normal(int(np.prod(shape)))
        drawn[-1] = -drawn[0]
        return stage.noise_std * drawn.reshape(shape)

    float_gaussian(patch, mirrored)


@fault("one noise for two steps", "curator", DP_MLP, "fresh noise")
def _(patch: pytest.MonkeyPatch) -> None:
    real = dpsgd.NoiseAhead.take

    def twice(self: Any) -> np.ndarray:
        drawn = real(self)
        self.first = getattr(self, "first", drawn.copy())
        return self.first

    patch.setattr(dpsgd.NoiseAhead, "take", twice)
