"""Many independent trials of the real thing: the curator alone on fixed inputs, or whole fits.

Every trial has a noise source of its own, keyed with fresh entropy. Trials run here or in worker processes,
which are spawned, not forked, so that none inherits another's noise.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from discreet.arrays import Array, BoolArray, FloatArray, IntArray
from discreet.audit.attacks import Seen, attack_on
from discreet.audit.recording import ADVERSARIES, RecordingCurator, ReplayingCurator, batch_faults, dense
from discreet.audit.replay import split_all
from discreet.audit.streams import stream_faults
from discreet.graph.graph import Graph
from discreet.mechanisms import dpsgd, gaussian
from discreet.mechanisms.bits import NoiseSource, registered_streams
from discreet.mechanisms.curator import Curator
from discreet.methods.base import NodeClassifier
from discreet.privacy.events.table import split_sampling
from discreet.privacy.plan import Plan, Stage
from discreet.queries.gradients import GradientSteps
from discreet.workers import map_in_workers

Index = tuple[str, int]
CHUNK = 250
"""Trials per task of a worker: seconds of work, so that progress shows and memory stays small."""
KEPT_ENTRIES = 12
"""Entries of an answer that are kept of every trial; a fault of the noise shows in few of them."""
LEAST_BYTES = 32  # four numbers on grids of 2²⁰ steps and more
"""How many entries of a stage's noise are kept for the tests of its distribution."""
KEPT_FEATURES = 256
"""Numbers that are kept of everything that a fit releases, for the discriminant to learn from."""


@dataclass
class Trials:
    """What many trials on one graph (or one side of a worst pair) gave."""

    log_ratio: FloatArray
    features: FloatArray
    noise: dict[Index, FloatArray] = field(default_factory=dict)
    batches: dict[Index, BoolArray] = field(default_factory=dict)
    prints: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    faults: list[str] = field(default_factory=list)


def merged(parts: Sequence[Trials]) -> Trials:
    """All trials of one side together."""
    return Trials(
        np.concatenate([part.log_ratio for part in parts]),
        np.concatenate([part.features for part in parts]),
        {index: np.concatenate([part.noise[index] for part in parts]) for index in parts[0].noise},
        {index: np.concatenate([part.batches[index] for part in parts]) for index in parts[0].batches},
        np.concatenate([part.prints for part in parts]),
        sorted({fault for part in parts for fault in part.faults}),
    )


# -------------------------------------------------------------------- the curator alone


@dataclass(frozen=True)
class CuratorTask:
    """Trials of a plan on fixed inputs, by stage: ``inputs[name]`` is the worst pair, ``side`` says which of it."""

    plan: Plan
    inputs: dict[str, tuple[Array, Array]]
    side: int
    runs: int

    def run(self) -> Trials:
        """Put the inputs to fresh curators, again and again."""
        sides = [{name: pair[side] for name, pair in self.inputs.items()} for side in (0, 1)]
        rate, rng = node_rate(self.plan), np.random.default_rng()
        # Where nodes are sampled first, a unit that loses its coin is absent, as it is on the second side.
        won = rng.random(self.runs) < rate
        seen = [_one_curator(self.plan, sides[self.side if here else 1]) for here in won]
        found = self._summary(seen)
        if rate < 1:
            found.log_ratio = np.logaddexp(math.log(rate) + found.log_ratio, math.log1p(-rate))
        return found

    def _summary(self, seen: list[_Watching]) -> Trials:
        faults = sorted({fault for trial in seen for fault in trial.faults})
        found = Trials(np.zeros(len(seen)), np.empty((len(seen), 0)), prints=_prints(seen), faults=faults)
        columns = []
        for position, (stage, run) in enumerate(_asked_runs(self.plan, self.inputs)):
            attack, pair = attack_on(stage), self.inputs[stage.name]
            assert attack is not None
            answers = _stacked(seen, position)
            found.log_ratio += attack.log_ratio(stage, answers, *pair)
            if run not in _kept_runs(stage):
                continue
            found.faults.extend(_off_the_grid(stage, answers.answers, seen[0].answers[position].dtype))
            columns.append(answers.answers[:, _spaced(answers.answers.shape[1], KEPT_ENTRIES)])
            if attack.noise is not None:
                noise = attack.noise(stage, answers, pair[self.side])
                found.noise[stage.name, run] = noise[:, _spaced(noise.shape[1], KEPT_ENTRIES)]
            if answers.batches is not None:
                found.batches[stage.name, run] = answers.batches
        found.features = np.hstack([found.features, *columns])
        return found


def node_rate(plan: Plan) -> float:
    """The probability with which a node takes part at all; 1 where none are sampled."""
    return split_sampling(plan.event())[0]


class _Watching(Curator):
    """The curator as it is, with its answers and batches remembered."""

    def __init__(self, plan: Plan, noise: NoiseSource) -> None:
        super().__init__(plan, noise)
        self.answers: list[Array] = []
        self.drawn: list[IntArray | None] = []
        self.examples: list[int] = []
        self.prints: list[int] = []
        self.faults: list[str] = []
        self._worst: Array = np.empty(0)

    def put(self, stage: Stage, value: Array) -> None:
        """Put an input to the curator in the place of what its query would compute."""
        before = len(self.drawn)
        self._worst = value
        self.answers.append(dense(Curator.ask(self, stage.name)))
        self.prints.extend(_prints_of(stage, self.answers[-1]))
        if len(self.drawn) == before:
            self.drawn.append(None)
        self.examples.append(stage.query.num_examples if isinstance(stage.query, GradientSteps) else 0)

    def _compute(self, stage: Stage, inputs: Mapping[str, Any]) -> Array:
        return self._worst[inputs["batch"]].sum(axis=0) if "batch" in inputs else self._worst

    def _terms(self, stage: Stage, inputs: Mapping[str, Any]) -> Array:
        return self._worst

    def _draw_key(self, purpose: str, run: int) -> bytes:
        key = super()._draw_key(purpose, run)
        self.prints.append(_print(np.frombuffer(key, dtype=np.uint8)))  # no key comes twice, as no noise does
        return key

    def _batch(self, stage: Stage, run: int) -> IntArray:
        batch = super()._batch(stage, run)
        self.faults.extend(batch_faults(stage, batch))
        self.drawn.append(batch)
        return batch


def _one_curator(plan: Plan, inputs: dict[str, Array]) -> _Watching:
    with registered_streams() as streams:
        curator = _Watching(plan, NoiseSource())
        for stage in plan.stages:
            for _ in range(stage.runs):
                if stage.name in inputs:
                    curator.put(stage, inputs[stage.name])
                else:
                    curator.draw_key(stage.name)
        curator.finish()
    curator.faults.extend(stream_faults(plan, streams))
    return curator


def _asked_runs(plan: Plan, inputs: dict[str, Any]) -> Iterator[tuple[Stage, int]]:
    return ((stage, run) for stage in plan.stages for run in range(stage.runs) if stage.name in inputs)


def _stacked(seen: list[_Watching], position: int) -> Seen:
    answers = np.array([trial.answers[position].reshape(-1) for trial in seen], dtype=np.float64)
    if seen[0].drawn[position] is None:
        return Seen(answers)
    batches = np.zeros((len(seen), seen[0].examples[position]), dtype=np.bool_)
    for row, trial in enumerate(seen):
        batches[row, trial.drawn[position]] = True
    return Seen(answers, batches)


def _prints(seen: list[_Watching]) -> npt.NDArray[np.uint64]:
    """A short hash of every answer and secret key: two that agree were made from the same bits, or from none."""
    return np.array([mark for trial in seen for mark in trial.prints], dtype=np.uint64)


def _prints_of(stage: Stage, answer: Array) -> list[int]:
    """Nothing where answers may agree by chance: a few numbers on a grid do, among thousands of trials."""
    attack = attack_on(stage)
    return [_print(answer)] if attack is not None and attack.continuous and answer.nbytes >= LEAST_BYTES else []


def _print(answer: Array) -> int:
    return int.from_bytes(hashlib.blake2b(np.ascontiguousarray(answer).tobytes(), digest_size=8).digest(), "little")


def _off_the_grid(stage: Stage, answers: FloatArray, drawn_as: np.dtype[Any]) -> list[str]:
    """Gaussian noise in floating point gives itself away by its low bits; on the public grid there are none."""
    if stage.mechanism not in ("gaussian", dpsgd.MECHANISM) or stage.noise_std == 0:
        return []
    steps = answers / gaussian.grid_of(stage).step
    on_it = drawn_as == np.float64 and np.array_equal(steps, np.rint(steps))
    return [] if on_it else [f"answers of stage {stage.name!r} do not lie on its public grid"]


def _kept_runs(stage: Stage) -> set[int]:
    return {0, 1, stage.runs - 1}


def _spaced(size: int, kept: int) -> IntArray:
    """Positions spread over all entries, the first and the last among them."""
    return np.unique(np.linspace(0, size - 1, min(size, kept)).round().astype(np.int64))


# -------------------------------------------------------------------- whole fits


@dataclass(frozen=True)
class FitTask:
    """Fits on one of two neighbours, each replayed on the other, so that the true likelihood ratio is known.

    A method may choose a stage's input by the answers before it. Fitting on one graph and replaying the answers on
    the other gives what went in on both, conditioned on the same answers, stage by stage.
    """

    estimator: NodeClassifier
    plan: Plan
    pair: tuple[Graph, Graph]
    side: int
    runs: int

    def run(self) -> Trials:
        """Fit again and again with fresh noise."""
        found = [self._one_fit() for _ in range(self.runs)]
        ratios, released, prints, faults = zip(*found, strict=True)
        return Trials(
            np.array(ratios),
            np.array(released),
            prints=np.array([mark for row in prints for mark in row], dtype=np.uint64),
            faults=sorted({fault for row in faults for fault in row}),
        )

    def _one_fit(self) -> tuple[float, FloatArray, list[int], list[str]]:
        here, there = (self.pair[self.side], self.pair[1 - self.side])
        first, second = clone(self.estimator), clone(self.estimator)
        rng = np.random.default_rng(0)
        (parts, private), (other_parts, other_private) = (split_all(first, [graph]) for graph in (here, there))
        recorder = RecordingCurator(self.plan, NoiseSource(), private, ADVERSARIES["own"], rng)
        first._fit_with(parts, recorder)
        player = ReplayingCurator(self.plan, NoiseSource(), other_private, recorder)
        second._fit_with(other_parts, player)
        sides = (recorder, player) if self.side == 0 else (player, recorder)
        stages = [self.plan.stage(record.stage) for record in recorder.records]
        prints = [
            mark
            for stage, record in zip(stages, recorder.records, strict=True)
            for mark in _prints_of(stage, record.answer)
        ]
        prints += [_print(np.frombuffer(key, dtype=np.uint8)) for key in recorder.keys]
        return self._ratio(recorder, *sides), self._released(first, here), prints, recorder.faults

    def _ratio(self, recorder: RecordingCurator, one: RecordingCurator, two: RecordingCurator) -> float:
        """Log-likelihood ratio of the first graph against the second, over all stages whose mechanism is known.

        Where nodes are sampled first, replay would give away who was: then there is none.
        """
        if node_rate(self.plan) < 1:
            return 0.0
        total, batches = 0.0, iter(recorder.batches)
        for record, first, second in zip(recorder.records, one.records, two.records, strict=True):
            stage = self.plan.stage(record.stage)
            attack = attack_on(stage)
            mask = None
            if isinstance(stage.query, GradientSteps):
                mask = np.zeros((1, stage.query.num_examples), dtype=np.bool_)
                mask[0, next(batches)] = True
            if attack is not None:
                seen = Seen(record.answer.reshape(1, -1).astype(np.float64), mask)
                total += float(attack.log_ratio(stage, seen, first.value, second.value)[0])
        return total

    @staticmethod
    def _released(fitted: NodeClassifier, graph: Graph) -> FloatArray:
        """What an adversary gets to see, as one vector: weights, caches, and predictions where anyone may read them."""
        parts = [np.asarray(array, dtype=np.float64).reshape(-1) for array in fitted._seen().values()]
        if fitted.covers == "weights+predictions":
            parts.append(fitted.predict_proba(graph).reshape(-1).astype(np.float64))
        whole = np.concatenate([*parts, np.zeros(1)])
        return np.asarray(whole[_spaced(len(whole), KEPT_FEATURES)])


# -------------------------------------------------------------------- here, or in workers

Task = CuratorTask | FitTask


def run_trials(
    make: Callable[[int, int], Task],
    runs: int,
    *,
    workers: int = 0,
    title: str = "trials",
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Trials, Trials]:
    """``runs`` trials on each side; ``make(side, n)`` gives a task of n trials. ``workers=0`` stays in this process."""
    sizes = [min(CHUNK, runs - start) for start in range(0, runs, CHUNK)]
    tasks = [make(side, size) for size in sizes for side in (0, 1)]
    parts: list[Trials] = []
    with closing(_results(tasks, workers)) as results:  # its processes end with it
        for number, part in enumerate(results):
            parts.append(part)
            if progress is not None:
                progress(title, sum(sizes[: (number + 1) // 2]), runs)
    return merged(parts[0::2]), merged(parts[1::2])


def _results(tasks: Sequence[Task], workers: int) -> Generator[Trials, None, None]:
    if workers == 0:
        yield from (task.run() for task in tasks)
        return
    yield from map_in_workers(_run, tasks, workers)


def _run(task: Task) -> Trials:
    return task.run()
