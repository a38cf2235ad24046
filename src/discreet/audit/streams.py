"""Which random bits a run was made of: none serves twice, and every stage has enough of its own.

Noise, batches and keys are independent because each is drawn from a stream of its own. Statistics see a dependence only
where it is strong; the register of streams sees it at once.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator

from discreet.mechanisms import dpsgd, gaussian
from discreet.mechanisms.bits import KEY_BYTES, StreamRegister
from discreet.mechanisms.curator import MECHANISMS
from discreet.mechanisms.local import stages as local
from discreet.privacy.plan import Plan, Stage
from discreet.queries.kept_edges import KeptEdges
from discreet.queries.sampled_nodes import SampledNodes

_DECIDED_BY_A_KEY = {KeptEdges.mechanism, SampledNodes.mechanism}
"""Stages that hand nothing out: what is charged is a probability over a key that nobody else may know."""
_BITS_OF_A_KEY = 128
"""What :meth:`Curator.draw_key` entrusts to the private parts."""


def stream_faults(plan: Plan, register: StreamRegister) -> list[str]:
    """What is wrong with the streams of one whole run of a plan.

    Every stream starts at byte 0 of its key and moves on, so bytes serve twice exactly where two streams that were
    read have one key. A draw whose law has an entropy of h bits takes h of them in the mean, however it is made: where
    fewer were read, what was drawn follows from a seed, or from nothing.
    """
    return [*_keys_used_twice(register), *_too_little_read(plan, register)]


def _keys_used_twice(register: StreamRegister) -> Iterator[str]:
    readers = defaultdict(list)
    for key, stream in register:
        if stream.bytes_read:
            readers[key].append(stream.purpose or "a stream inside another")
    for names in readers.values():
        if len(names) > 1:
            yield f"random bits serve twice: one key is read for {names[0]!r} and again for {names[1]!r}"


def _too_little_read(plan: Plan, register: StreamRegister) -> Iterator[str]:
    """Noise, a batch or a key that was drawn from another's stream, from none, or from a seed; the first of each."""
    read: Counter[str | None] = Counter()
    for _, stream in register:
        read[stream.purpose] += 8 * stream.bytes_read
    for stage in plan.stages:
        for name, least in _needs(stage):
            short = [run for run in range(stage.runs) if read[f"{name}, run {run}"] < least]
            if short:
                yield _in_words(name, short[0], read[f"{name}, run {short[0]}"], least)


def _in_words(name: str, run: int, bits: int, least: int) -> str:
    if not bits:
        return f"no random bits of its own were read for {name!r}, run {run}"
    return f"too few random bits were read for {name!r}, run {run}: {bits}, where its law takes {least}"


def _needs(stage: Stage) -> Iterator[tuple[str, int]]:
    """The streams that each run of a stage must read, and how many bits of each at least.

    Our sampler of Gaussians reads whole words of 64 bits for every number, so that none of its draws is below its
    entropy. Batches of small graphs and other mechanisms have too little of it to tell a seed from a draw.
    """
    if not stage.is_private or local.is_local(stage) or not math.prod(stage.shape):
        return
    if stage.mechanism == dpsgd.MECHANISM:
        yield stage.name, _entropy_of_noise(stage)
        if not dpsgd.steps_of(stage).takes_all:
            yield f"{stage.name}, batch", 1
    elif stage.mechanism in MECHANISMS:
        yield stage.name, _entropy_of_noise(stage) if stage.mechanism == "gaussian" else 1
    elif stage.mechanism in _DECIDED_BY_A_KEY:
        yield f"{stage.name}, key", _BITS_OF_A_KEY


def _entropy_of_noise(stage: Stage) -> int:
    """Of a Gaussian on its grid: above log₂ σ bits for each number, σ in steps. Portions have seeds of their own."""
    if stage.noise_std == 0:
        return 1
    size = math.prod(stage.shape)
    if size > gaussian.PORTION:
        return 8 * KEY_BYTES * math.ceil(size / gaussian.PORTION)
    return max(1, math.floor(size * math.log2(gaussian.grid_of(stage).sigma_steps)))
