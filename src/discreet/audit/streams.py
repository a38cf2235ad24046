"""Which random bits a run was made of: no byte serves twice, and every stage has streams of its own.

Noise, batches and keys are independent because each is drawn from a stream of its own. Statistics see a dependence only
where it is strong; the register of streams sees it at once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from discreet.mechanisms import dpsgd
from discreet.mechanisms.bits import StreamRegister
from discreet.mechanisms.curator import MECHANISMS
from discreet.mechanisms.local import stages as local
from discreet.privacy.plan import Plan, Stage
from discreet.queries.kept_edges import KeptEdges
from discreet.queries.sampled_nodes import SampledNodes

_DECIDED_BY_A_KEY = {KeptEdges.mechanism, SampledNodes.mechanism}
"""Stages that hand nothing out: what is charged is a probability over a key that nobody else may know."""


def stream_faults(plan: Plan, register: StreamRegister) -> list[str]:
    """What is wrong with the streams of one whole run of a plan.

    Every stream starts at byte 0 of its key and moves on, so bytes serve twice exactly where two streams that were
    read have one key.
    """
    return [*_keys_used_twice(register), *_without_stream(plan, register)]


def _keys_used_twice(register: StreamRegister) -> Iterator[str]:
    readers = defaultdict(list)
    for key, stream in register:
        if stream.bytes_read:
            readers[key].append(stream.purpose or "a stream inside another")
    for names in readers.values():
        if len(names) > 1:
            yield f"random bits serve twice: one key is read for {names[0]!r} and again for {names[1]!r}"


def _without_stream(plan: Plan, register: StreamRegister) -> Iterator[str]:
    """Noise or a batch that was drawn from another's stream, or from none."""
    read = {stream.purpose for _, stream in register if stream.bytes_read}
    for stage in plan.stages:
        for name in _purposes(stage):
            missing = [run for run in range(stage.runs) if f"{name}, run {run}" not in read]
            if missing:
                yield f"no random bits of its own were read for {name!r}, run {missing[0]}"


def _purposes(stage: Stage) -> Iterator[str]:
    """The streams that each run of a stage must read."""
    if not stage.is_private or local.is_local(stage) or not math.prod(stage.shape):
        return
    if stage.mechanism == dpsgd.MECHANISM:
        yield stage.name
        if not dpsgd.steps_of(stage).takes_all:
            yield f"{stage.name}, batch"
    elif stage.mechanism in MECHANISMS:
        yield stage.name
    elif stage.mechanism in _DECIDED_BY_A_KEY:
        yield f"{stage.name}, key"
