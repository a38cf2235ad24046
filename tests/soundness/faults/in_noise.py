"""Faults of noise, batches and accounting, which no sensitivity shows: the curator's trials or whole fits must."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import numpy as np
import pytest

from discreet.mechanisms import bits, curator, dpsgd, gaussian, laplace, noisy_graph
from discreet.mechanisms.bits import BitStream
from discreet.mechanisms.local import multi_bit
from discreet.mechanisms.local import stages as local_stages
from discreet.mechanisms.objective import perturbation
from discreet.privacy import accountants, calibration, events
from discreet.privacy.plan import Stage
from discreet.queries.reports import FeatureReports
from tests.soundness.faults.checks import SampledNodes, Subject
from tests.soundness.faults.in_methods import DP_MLP, DPGCN, GAP_EDGE, GCON, LPGNET, LPGNN, RANGE
from tests.soundness.faults.registry import fault

POISSON = Subject("dp-mlp", DP_MLP.level, 4.0, (("batch_size", 3),))
ONE_STEP = Subject("gap", "node:owned,max_degree=3", 1.0, (("hops", 1), ("steps", 1), ("head_steps", 1)))
THINNED = Subject("gap", "node:thinned,d_max=12,p=0.5", 4.0, (("hops", 1), ("steps", 1), ("head_steps", 1)))
STEPS = Subject("dp-mlp", DP_MLP.level, 1.0, (("steps", 40),), runs=400)

# -------------------------------------------------------------------- scale and law


def _generator(stream: BitStream) -> np.random.Generator:
    """Floating-point noise, as a fault would draw it."""
    return np.random.default_rng(list(stream.bytes(16)))


def float_gaussian(patch: pytest.MonkeyPatch, draw: Any) -> None:
    """Gaussian stages with noise of another kind: ``draw(rng, stage, shape)``."""

    def other(value: np.ndarray, stage: Stage, stream: BitStream) -> np.ndarray:
        return value + draw(_generator(stream), stage, value.shape)

    patch.setitem(curator.MECHANISMS, "gaussian", other)


@fault("a fifth of the noise", "curator", GAP_EDGE, "curator: epsilon is at least")
def _(patch: pytest.MonkeyPatch) -> None:
    float_gaussian(patch, lambda rng, stage, shape: stage.noise_std / 5 * rng.standard_normal(shape))


@fault("noise without its sensitivity", "curator", GAP_EDGE, "scale of noise")
def _(patch: pytest.MonkeyPatch) -> None:
    float_gaussian(patch, lambda rng, stage, shape: stage.noise_std / stage.sensitivity * rng.standard_normal(shape))


@fault("a standard deviation taken for a variance", "curator", GAP_EDGE, "scale of noise")
def _(patch: pytest.MonkeyPatch) -> None:
    float_gaussian(patch, lambda rng, stage, shape: np.sqrt(stage.noise_std) * rng.standard_normal(shape))


@fault("a tenth of the noise missing", "curator", GAP_EDGE, "scale of noise")
def _(patch: pytest.MonkeyPatch) -> None:
    float_gaussian(patch, lambda rng, stage, shape: 0.9 * stage.noise_std * rng.standard_normal(shape))


@fault("uniform noise of the right spread", "curator", GAP_EDGE, "law of noise")
def _(patch: pytest.MonkeyPatch) -> None:
    float_gaussian(patch, lambda rng, stage, shape: stage.noise_std * np.sqrt(3) * rng.uniform(-1, 1, shape))


@fault("no noise at all", "curator", GAP_EDGE, "curator: epsilon is at least")
def _(patch: pytest.MonkeyPatch) -> None:
    float_gaussian(patch, lambda rng, stage, shape: 0.0)


@fault("steps with noise for the root of the group", "curator",
       Subject("dp-gnn", "node:owned,max_degree=3"), "scale of noise", seen=True)  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    real = curator.Curator._answer_step

    def rooted(self: Any, stage: Stage, run: int, batch: Any, value: np.ndarray, terms: Any) -> np.ndarray:
        noisy = real(self, stage, run, batch, value, terms)
        return value + (noisy - value) / np.sqrt(dpsgd.steps_of(stage).touched.examples)

    patch.setattr(curator.Curator, "_answer_step", rooted)


@fault("flips at the rate of a replaced bit", "curator", DPGCN, "scale of noise")
def _(patch: pytest.MonkeyPatch) -> None:
    """As if a cell were replaced by a fair coin with probability 1/(1 + e^ε): half of the flips."""
    real = noisy_graph.flip_scale
    patch.setattr(noisy_graph, "flip_scale", lambda epsilon: 2 * real(epsilon))


@fault("noise on counts repeated, and so averaged away", "curator", LPGNET, "scale of noise", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    """As a network that adds fresh noise to the same counts at every forward pass learns them."""

    def averaged(value: np.ndarray, stage: Stage, stream: BitStream) -> np.ndarray:
        return np.mean([laplace.release(value, stage, stream) for _ in range(10)], axis=0)

    patch.setitem(curator.MECHANISMS, "laplace", averaged)


@fault("a tilt at twice its rate", "curator", GCON, "law of noise")
def _(patch: pytest.MonkeyPatch) -> None:
    real = perturbation.noise_matrix
    patch.setattr(perturbation, "noise_matrix", lambda d, c, rate, rng: real(d, c, 2 * rate, rng))


@fault("a Gaussian tilt instead of an Erlang one", "curator", GCON, "law of noise")
def _(patch: pytest.MonkeyPatch) -> None:
    def tilt(width: int, classes: int, rate: float, stream: BitStream) -> np.ndarray:
        return _generator(stream).standard_normal((width, classes)) * np.sqrt(width) / rate

    patch.setattr(perturbation, "noise_matrix", tilt)


# -------------------------------------------------------------------- reuse and dependence


@fault("one key for all workers", "curator", GAP_EDGE, "fresh noise", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    """A generator that was pickled and handed to several workers: all draw the same."""
    patch.setattr(secrets, "token_bytes", lambda size: bytes(size))


@fault("noise from random_state", "fits", GAP_EDGE, "noise is not drawn afresh")
def _(patch: pytest.MonkeyPatch) -> None:
    real = bits.NoiseSource

    def seeded(*, insecure_seed: int | None = None) -> bits.NoiseSource:
        found = real(insecure_seed=0 if insecure_seed is None else insecure_seed)
        found.secure = True
        return found

    patch.setattr(curator, "NoiseSource", seeded)


@fault("the same noise in two stages", "curator", GAP_EDGE, "independent entries and stages")
def _(patch: pytest.MonkeyPatch) -> None:
    def one_stream(self: Any, purpose: str, run: int = 0) -> BitStream:
        return BitStream(hashlib.blake2b(b"any stage", key=self._key, digest_size=32).digest())

    patch.setattr(bits.NoiseSource, "stream", one_stream)


@fault("one row of noise for all rows", "curator", GAP_EDGE, "independent entries and stages")
def _(patch: pytest.MonkeyPatch) -> None:
    float_gaussian(patch, lambda rng, stage, shape: stage.noise_std * rng.standard_normal(shape[1:])[None, :])


@fault("a little of the last noise in the next", "curator", GAP_EDGE, "independent trials")
def _(patch: pytest.MonkeyPatch) -> None:
    last = [0.0]

    def mixed(rng: np.random.Generator, stage: Stage, shape: Any) -> np.ndarray:
        drawn = 0.9 * rng.standard_normal(shape) + np.sqrt(1 - 0.81) * last[0]
        if stage.name == "hop 2":
            last[0] = drawn
        return stage.noise_std * drawn

    float_gaussian(patch, mixed)


@fault("the same secret key in every fit", "fits", ONE_STEP, "fresh noise")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(curator.Curator, "_draw_key", lambda self, name, run: bytes(16))


@fault("a constant key where a guarantee rests on it", "replay", THINNED, "no random bits of its own")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(curator.Curator, "_draw_key", lambda self, name, run: bytes(16))


@fault("a key that is read and thrown away for a constant", "curator", THINNED, "fresh noise")
def _(patch: pytest.MonkeyPatch) -> None:
    real = curator.Curator._draw_key
    patch.setattr(curator.Curator, "_draw_key", lambda self, name, run: bytes(len(real(self, name, run))))


@fault("a key of eight bits from its own stream", "replay", THINNED, "too few random bits")
def _(patch: pytest.MonkeyPatch) -> None:
    def short(self: Any, name: str, run: int) -> bytes:
        return self._noise.stream(f"{name}, key", run).bytes(1) * 16

    patch.setattr(curator.Curator, "_draw_key", short)


@fault("a key of which eight bits are kept", "curator", THINNED, "fresh noise")
def _(patch: pytest.MonkeyPatch) -> None:
    real = curator.Curator._draw_key
    patch.setattr(curator.Curator, "_draw_key", lambda self, name, run: real(self, name, run)[:1] * 16)


@fault("noise of NumPy's, seeded from its own stream", "replay", GAP_EDGE, "too few random bits")
def _(patch: pytest.MonkeyPatch) -> None:
    """On the grid and with the right law, so that no test of noise can tell: but Philox or PCG hide no seed."""

    def seeded(value: np.ndarray, stage: Stage, stream: BitStream) -> np.ndarray:
        grid = gaussian.grid_of(stage)
        drawn = np.rint(grid.sigma_steps * _generator(stream).standard_normal(value.shape))
        return grid.add(value, drawn.astype(np.int64))

    patch.setitem(curator.MECHANISMS, "gaussian", seeded)


@fault("noise only on the first part of an answer", "curator", GAP_EDGE, "law of noise")
def _(patch: pytest.MonkeyPatch) -> None:
    real = gaussian.release

    def first_part(value: np.ndarray, stage: Stage, stream: BitStream) -> np.ndarray:
        noisy = real(value, stage, stream)
        noisy[-2:] = value[-2:]
        return noisy

    patch.setitem(curator.MECHANISMS, "gaussian", first_part)


# -------------------------------------------------------------------- batches


@fault("batches drawn with replacement", "curator", POISSON, "holds an example twice", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    def again(stage: Stage, stream: BitStream) -> np.ndarray:
        query = dpsgd.steps_of(stage)
        return stream.integers(query.num_examples, query.batch_size)

    patch.setattr(dpsgd, "draw_batch", again)


@fault("batches kept after the first", "curator", POISSON, "fresh batches", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = curator.Curator._batch

    def kept(self: Any, stage: Stage, run: int) -> np.ndarray:
        if not hasattr(self, "first_batch"):
            self.first_batch = real(self, stage, run)
        return self.first_batch

    patch.setattr(curator.Curator, "_batch", kept)


@fault("every example in every batch, amplification claimed", "curator", POISSON, "rate of batches")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dpsgd, "draw_batch", lambda stage, stream: np.arange(dpsgd.steps_of(stage).num_examples))


@fault("consecutive examples instead of coins", "curator", POISSON, "independent coins")
def _(patch: pytest.MonkeyPatch) -> None:
    def block(stage: Stage, stream: BitStream) -> np.ndarray:
        query = dpsgd.steps_of(stage)
        examples, size = query.num_examples, query.batch_size
        return np.sort((stream.integers(examples, 1) + np.arange(size)) % examples)

    patch.setattr(dpsgd, "draw_batch", block)


@fault("no noise where a batch is empty", "curator", POISSON, "fresh noise")
def _(patch: pytest.MonkeyPatch) -> None:
    real = curator.Curator._answer_step

    def skipping(self: Any, stage: Stage, run: int, batch: Any, value: np.ndarray, terms: Any) -> np.ndarray:
        found = real(self, stage, run, batch, value, terms)
        return found if len(batch) else value.copy()

    patch.setattr(curator.Curator, "_answer_step", skipping)


@fault("batches and noise from one stream", "curator", POISSON, "random bits serve twice", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = bits.NoiseSource.stream

    def shared(self: Any, purpose: str, run: int = 0) -> BitStream:
        if not purpose.endswith(", batch"):
            return real(self, purpose, run)
        message = f"{purpose.removesuffix(', batch')}\x00{run}".encode()
        return BitStream(hashlib.blake2b(message, key=self._key, digest_size=32).digest(), f"{purpose}, run {run}")

    patch.setattr(bits.NoiseSource, "stream", shared)


@fault("noise from what is left of the batch's stream", "replay", POISSON, "no random bits of its own")
def _(patch: pytest.MonkeyPatch) -> None:
    """Independent all the same, but for one change of how batches are drawn."""

    def batch(self: Any, stage: Stage, run: int) -> np.ndarray:
        self.kept_stream = self._noise.stream(f"{stage.name}, batch", run)
        return dpsgd.draw_batch(stage, self.kept_stream)

    def answer(self: Any, stage: Stage, run: int, members: Any, value: np.ndarray, terms: Any) -> np.ndarray:
        return gaussian.grid_of(stage).release(value, self.kept_stream)

    patch.setattr(curator.Curator, "_batch", batch)
    patch.setattr(curator.Curator, "_answer_step", answer)


# -------------------------------------------------------------------- accounting


@fault("forty steps charged as one", "curator", STEPS, "curator: epsilon is at least")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(events, "repeat", lambda event, count: event)


@fault("sampling that multiplies epsilon", "curator", SampledNodes("none", "node:owned,max_degree=3", runs=6000),
       "curator: epsilon is at least", seen=True)  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(accountants, "amplified", lambda epsilon, q: q * epsilon)
    patch.setattr(calibration, "before_sampling", lambda epsilon, delta, q: (epsilon / q, delta / q))


# -------------------------------------------------------------------- local reports

ONE_BIT = Subject("lpgnn", "local", 2.0, (*RANGE, ("mechanism", "one-bit")))


@fault("every bit at the whole budget", "curator", ONE_BIT, "law of noise")
def _(patch: pytest.MonkeyPatch) -> None:
    real = multi_bit.MultiBit.encode_rows

    def whole(self: Any, values: np.ndarray, bits: BitStream) -> np.ndarray:
        low, high = self.feature_range
        chance = 1 / (np.exp(self.epsilon) + 1) + (values - low) / (high - low) * np.tanh(self.epsilon / 2)
        return bits.coins(chance.clip(0, 1), values.shape)

    class Bold(multi_bit.MultiBit):
        _draw_plus_signs = whole

    def encode_rows(self: Any, rows: Any, stream: BitStream, **more: Any) -> Any:
        return real(Bold(self.epsilon, self.width, self.feature_range, self.sampled), rows, stream, **more)

    patch.setattr(multi_bit.MultiBit, "encode_rows", encode_rows)


@fault("labels told truly too often", "curator", LPGNN, "noise")
def _(patch: pytest.MonkeyPatch) -> None:
    from discreet.mechanisms.local.randomized_response import RandomizedResponse

    real = RandomizedResponse.encode_rows

    def bold(self: Any, labels: Any, stream: BitStream) -> np.ndarray:
        truth = np.asarray(labels, dtype=np.int64).clip(0)
        return np.where(stream.coins(0.5, len(labels)), truth, real(self, labels, stream))

    patch.setattr(RandomizedResponse, "encode_rows", bold)


@fault("a range read from the reports of others", "replay", LPGNN, "moved with another node's record", seen=True)
def _(patch: pytest.MonkeyPatch) -> None:
    real = local_stages.release

    def ranged(value: Any, stage: Stage, stream: BitStream) -> Any:
        dense = np.asarray(value, dtype=np.float64)
        if isinstance(stage.query, FeatureReports):
            dense = dense / np.abs(dense).max()
        return real(dense, stage, stream)

    for name in local_stages.FEATURES:
        patch.setitem(curator.MECHANISMS, name, ranged)
