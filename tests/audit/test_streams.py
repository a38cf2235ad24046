"""The register of streams: whole runs pass; a key that is read twice, or a stage without bits of its own, does not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import small_graph
from discreet.audit.streams import stream_faults
from discreet.mechanisms.bits import BitStream, NoiseSource, registered_streams
from discreet.mechanisms.curator import Curator
from discreet.methods.gap.estimator import GAP
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import parse_level
from tests.mechanisms.test_noise_freshness import plan_of


def test_a_register_notes_streams_while_it_is_open_and_how_far_they_were_read() -> None:
    with registered_streams() as outer, registered_streams() as inner:
        stream = NoiseSource().stream("noise", 3)
        stream.words(4)
    BitStream(bytes(32))
    assert [noted.purpose for _, noted in inner] == [noted.purpose for _, noted in outer] == ["noise, run 3"]
    assert inner[0][1].bytes_read == 32


def test_one_key_read_twice_is_a_fault_and_one_that_is_not_read_is_none() -> None:
    plan = plan_of("gaussian")
    with registered_streams() as streams:
        source = NoiseSource()
        for stage in plan.stages:
            for run in range(stage.runs):
                source.stream(stage.name, run).words(stage.shape)
        first, second = BitStream(bytes(32), "a"), BitStream(bytes(32), "b")
        first.word()
        assert stream_faults(plan, streams) == []
        second.word()
    assert stream_faults(plan, streams) == ["random bits serve twice: one key is read for 'a' and again for 'b'"]


@pytest.mark.parametrize("kind", ["gaussian", "dpsgd", "objective-on-grid"])
def test_whole_runs_have_streams_of_their_own(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(kind)
    zeros = lambda self, stage, inputs: np.zeros(stage.shape)  # noqa: E731
    monkeypatch.setattr(Curator, "_compute", zeros)
    with registered_streams() as streams:
        curator = Curator(plan, NoiseSource())
        for stage in plan.stages:
            for _ in range(stage.runs):
                curator.ask(stage.name)
        curator.finish()
    assert stream_faults(plan, streams) == []
    skipped = [(key, stream) for key, stream in streams if stream.purpose != f"{plan.stages[0].name}, run 0"]
    assert "no random bits of its own" in stream_faults(plan, skipped)[0]


@pytest.mark.parametrize("kind", ["gaussian", "dpsgd"])
def test_a_seed_is_too_short_for_noise(kind: str) -> None:
    """Whatever is made of it; a word for each number is enough."""
    plan = plan_of(kind)
    (stage,) = plan.stages
    found = []
    for count in (4, 8 * math.prod(stage.shape)):
        with registered_streams() as streams:
            source = NoiseSource()
            for name in (stage.name, f"{stage.name}, batch"):
                for run in range(stage.runs):
                    source.stream(name, run).bytes(count)
        found.append(stream_faults(plan, streams))
    assert found[0][0].startswith(f"too few random bits were read for {stage.name!r}, run 0: 32, where its law takes ")
    assert found[1] == []


def test_a_key_that_a_guarantee_rests_on_has_random_bits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the thinned basis a probability over the key is charged: a key that everyone knows makes it certainty."""
    thinned = Privacy(parse_level("node:thinned,d_max=12,p=0.5"), 4.0, 1e-3)
    model = GAP(thinned, hops=1, steps=1, head_steps=1)
    assert replay_audit(model, small_graph, pairs=1).violations == []
    monkeypatch.setattr(Curator, "_draw_key", lambda self, purpose, run: bytes(16))
    found = replay_audit(model, small_graph, pairs=1).violations
    assert found == ["no random bits of its own were read for 'edges kept, key', run 0"]
