"""Curators that audits put in the place of the real one: one records what passes through it, others replay that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from discreet.arrays import Array, IntArray
from discreet.audit.fingerprints import form
from discreet.audit.refusals import PastTheRefusalError
from discreet.graph.parts import PrivatePart
from discreet.mechanisms import dpsgd
from discreet.mechanisms.bits import NoiseSource
from discreet.mechanisms.curator import Curator, Terms
from discreet.mechanisms.local import stages as local_stages
from discreet.privacy.plan import Plan, Stage

_T = TypeVar("_T")
Adversary = Callable[[Array, np.random.Generator], Array]

# Float32 sums of a few hundred unit rows carry rounding of this relative size.
TOLERANCE = 1e-5

# What an adversary might have made the noise come out as: the bound must hold after any of these.
ADVERSARIES: dict[str, Adversary] = {
    "own": lambda value, rng: value,
    "zeros": lambda value, rng: np.zeros_like(value),
    "huge": lambda value, rng: value * np.float32(1e6),
    "sign-flipped": lambda value, rng: -value,
    "random": lambda value, rng: rng.standard_normal(value.shape).astype(value.dtype),
}


@dataclass
class Record:
    """What was seen at one run of one stage."""

    stage: str
    run: int
    form: str
    value: Array
    answer: Array
    public_state: Mapping[str, Array]


class RecordingCurator(Curator):
    """Runs the plan as usual, through an adversary, and keeps what it saw."""

    def __init__(
        self,
        plan: Plan,
        noise: NoiseSource,
        private: Sequence[PrivatePart],
        adversary: Adversary,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(plan, noise, private)
        self.records: list[Record] = []
        self.batches: list[IntArray] = []
        self.keys: list[bytes] = []
        self.faults: list[str] = []
        self.words: list[str] = []
        self.micro_batch: int | None = None
        self._adversary = adversary
        self._rng = rng

    def compute_on(self, device: str, micro_batch: int) -> None:
        """In portions of the audit's own, where it forces some."""
        super().compute_on(device, self.micro_batch or micro_batch)

    def _answer(self, stage: Stage, run: int, value: Any) -> Array:
        state, held, value = self._watched_state(), form(value), dense(value)
        honest = dense(super()._answer(stage, run, value))
        answer = local_stages.in_alphabet(self._adversary(honest, self._rng), stage)
        self.records.append(Record(stage.name, run, held, value.copy(), answer.copy(), dict(state)))
        return answer

    def _batch(self, stage: Stage, run: int) -> IntArray:
        self.batches.append(super()._batch(stage, run))
        self.faults.extend(batch_faults(stage, self.batches[-1]))
        return self.batches[-1]

    def _draw_key(self, name: str, run: int) -> bytes:
        self.keys.append(super()._draw_key(name, run))
        return self.keys[-1]

    def _answer_step(self, stage: Stage, run: int, batch: IntArray, value: Array, terms: Terms) -> Array:
        """Record the clipped terms of *all* examples, whichever the batch holds, and check that they are its sum."""
        state, every_term = self._watched_state(), self._every_term(stage, batch, value, terms)
        answer = self._adversary(super()._answer_step(stage, run, batch, value, terms), self._rng)
        self.records.append(Record(stage.name, run, form(value), every_term, answer.copy(), dict(state)))
        return answer

    def _every_term(self, stage: Stage, batch: IntArray, value: Array, terms: Terms) -> Array:
        found = terms().astype(np.float64)
        allowed = TOLERANCE * (1 + len(batch)) * dpsgd.steps_of(stage).clip_norm
        if np.linalg.norm(found[batch].sum(axis=0) - value) > allowed:
            self.faults.append(f"what stage {stage.name!r} adds is not the sum of the terms of its batch")
        return found


class ReplayingCurator(RecordingCurator):
    """Hands out recorded answers, batches and keys instead of fresh ones."""

    def __init__(
        self, plan: Plan, noise: NoiseSource, private: Sequence[PrivatePart], recorded: RecordingCurator
    ) -> None:
        super().__init__(plan, noise, private, ADVERSARIES["own"], np.random.default_rng(0))
        self._recorded = recorded

    def _answer(self, stage: Stage, run: int, value: Any) -> Array:
        if local_stages.is_local(stage):
            Curator._answer(self, stage, run, dense(value))  # an encoder may refuse a record, as it would in a fit
        return self._replay(stage, run, form(value), dense(value))

    def _answer_step(self, stage: Stage, run: int, batch: IntArray, value: Array, terms: Terms) -> Array:
        return self._replay(stage, run, form(value), self._every_term(stage, batch, value, terms))

    def _replay(self, stage: Stage, run: int, held: str, value: Array) -> Array:
        answer = _next(self._recorded.records, self.records).answer.copy()
        self.records.append(Record(stage.name, run, held, value.copy(), answer.copy(), dict(self._watched_state())))
        return answer

    def _batch(self, stage: Stage, run: int) -> IntArray:
        self.batches.append(_next(self._recorded.batches, self.batches))
        return self.batches[-1]

    def _draw_key(self, name: str, run: int) -> bytes:
        self.keys.append(_next(self._recorded.keys, self.keys))
        return self.keys[-1]


class OtherSecretsCurator(ReplayingCurator):
    """Hands out recorded answers, with batches and keys of its own: nothing that leaves may follow those."""

    def _batch(self, stage: Stage, run: int) -> IntArray:
        return Curator._batch(self, stage, run)

    def _draw_key(self, name: str, run: int) -> bytes:
        return Curator._draw_key(self, name, run)

    def _answer_step(self, stage: Stage, run: int, batch: IntArray, value: Array, terms: Terms) -> Array:
        return self._replay(stage, run, form(value), value)


def _next(recorded: list[_T], replayed: list[_T]) -> _T:
    if len(replayed) == len(recorded):
        raise PastTheRefusalError
    return recorded[len(replayed)]


def batch_faults(stage: Stage, batch: IntArray) -> list[str]:
    """What no batch may be, however it was drawn: an example twice, or one that does not exist."""
    if len(np.unique(batch)) < len(batch):
        return [f"a batch of stage {stage.name!r} holds an example twice"]
    if len(batch) and not 0 <= batch.min() <= batch.max() < dpsgd.steps_of(stage).num_examples:
        return [f"a batch of stage {stage.name!r} holds an example that does not exist"]
    return []


def dense(value: Any) -> Array:
    """The graphs of an audit are small: sparse records and reports are compared as arrays."""
    return np.asarray(value if isinstance(value, np.ndarray) else value.toarray())
