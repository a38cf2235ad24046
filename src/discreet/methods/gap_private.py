"""GAP where features and labels are private too: encoder and head by noisy steps, hops under a degree bound.

One calibration covers encoder, hops and head: all are Gaussian (every step takes every training node), so what each
costs adds up in squares, and ``split`` divides that sum among the three. It is chosen from public facts alone.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from discreet.errors import UnsupportedError
from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.methods.dp_mlp import FeatureLosses, own_example
from discreet.methods.private_training import (
    IntArray,
    PrivateOptions,
    example_losses,
    train_privately,
    training_ids,
)
from discreet.methods.training import Progress
from discreet.ops.degrees import bound_degrees, hop_sensitivity
from discreet.ops.sparse import feature_tensor
from discreet.privacy import events
from discreet.privacy.levels import Level, NeighborLevel, NodeLevel
from discreet.privacy.plan import Stage

if TYPE_CHECKING:
    from discreet.methods.gap import GAP

ENCODER, HEAD, KEY = "encoder", "head", "edges kept"
FAILURE_SHARE = 0.1
"""The part of δ that pays for the event that thinning keeps more entries than its bound says."""

BoundedLevel = NodeLevel | NeighborLevel


def options_of(gap: GAP, steps: int, rate: float) -> PrivateOptions:
    """Full batches, flat clipping, Adam: what both networks are trained with."""
    return PrivateOptions(steps, rate, None, "poisson", gap.clip_norm, "flat", "adam", "cosine", 0.5)


# -------------------------------------------------------------------- plan


def private_stages(gap: GAP, public: Sequence[PublicFacts], level: BoundedLevel) -> list[Stage]:
    """Key (thinned), encoder, hops of every graph, head; noise relative to one another as ``split`` says."""
    facts, touch = public[0], own_example(level)
    encoder, classifier, head = gap._networks(facts, torch.Generator())
    for_encoder, for_hops, for_head = gap.split
    stacked = nn.Sequential(encoder, classifier)
    hops = gap._hops() * len(public)
    trained = options_of(gap, gap.steps, gap.step_size), options_of(gap, gap.head_steps, gap.head_step_size)
    first = trained[0].stage(
        ENCODER, "clipped gradients of the encoder on features", stacked, facts.num_train, touch, 1.0
    )
    last = trained[1].stage(HEAD, "clipped gradients of the head", head, facts.num_train, touch, 1.0)
    return [
        *_key_stage(gap, public, level),
        _relative(first, math.sqrt(first.runs / for_encoder)),
        *(
            _relative(stage, math.sqrt(hops / for_hops))
            for number, other in enumerate(public)
            for stage in _hop_stages(gap, number, other, level, _largest(public))
        ),
        _relative(last, math.sqrt(last.runs / for_head)),
    ]


def _relative(stage: Stage, multiplier: float) -> Stage:
    """The stage with this multiplier over its sensitivity."""
    assert isinstance(stage.event, events.GaussianDpEvent)
    return stage.scaled(multiplier / stage.event.noise_multiplier)


def _largest(public: Sequence[PublicFacts]) -> PublicFacts:
    """The graph whose size decides δ, and with it how much of δ thinning may use."""
    return max(public, key=lambda facts: facts.num_nodes)


def _hop_stages(gap: GAP, number: int, facts: PublicFacts, level: BoundedLevel, largest: PublicFacts) -> list[Stage]:
    from discreet.methods.gap import stage_name

    stages = []
    for hop in range(1, gap._hops() + 1):
        sensitivity, why, _ = hop_bound(gap, level, hop, largest)
        stages.append(
            Stage(
                name=stage_name(number, hop),
                query=f"{gap.aggregation} of the neighbours' rows, hop {hop}",
                mechanism="gaussian",
                sensitivity=sensitivity,
                metric="l2",
                why=why,
                event=events.GaussianDpEvent(1.0),
                shape=(facts.num_nodes, gap._width(facts)),
            )
        )
    return stages


def hop_bound(gap: GAP, level: BoundedLevel, hop: int, largest: PublicFacts) -> tuple[float, str, float | None]:
    """How far a hop moves over *all* rows, why, and the norm to which its rows are clipped (None: not at all).

    Guarantee. *owned*: entries into a node belong to its senders, so the unit's own row does not move, and
    ``hop_sensitivity`` bounds all rows. *promised* and *thinned*: the unit's own row loses its senders too. It is
    clipped to norm B, so it moves by at most B (null: what was there goes to zero) or 2B; clipping is a
    projection, which brings no two rows further apart, so the bound on the rows of others stands. All rows, and
    hence the caches, are covered on every basis.
    """
    if gap.aggregation == "symmetric":
        raise UnsupportedError("symmetric aggregation reaches one hop further at node level: use sum or mean")
    failure = failure_of(gap, level, largest)
    base, why = hop_sensitivity(level, hop=hop, aggregation=gap.aggregation, failure=failure)
    if level.edges == "owned":
        return base, why, None
    null = isinstance(level, NodeLevel) and level.change == "null"
    clip = 1.0 if gap.aggregation == "mean" else max(1.0, base / (2 if null else 4))
    own = clip if null else 2 * clip
    return math.hypot(base, own), f"{why}; its own row is clipped to norm {clip:.4g}", clip


def failure_of(gap: GAP, level: BoundedLevel, largest: PublicFacts) -> float | None:
    """δ′ of one graph, on the thinned basis; δ itself comes from the largest of all graphs."""
    if level.edges != "thinned":
        return None
    return FAILURE_SHARE * gap._checked_privacy().resolve_delta(largest.num_nodes)


def key_stage(failure: float) -> Stage:
    """The event that more entries survive thinning than the bound says."""
    return Stage(
        name=KEY,
        query="which entries survive thinning",
        mechanism="thinning",
        sensitivity=1.0,
        metric="rows",
        why="with this probability one node keeps more entries than the bound of later stages",
        event=events.ApproximateDpEvent(0.0, failure),
        shape=(),
        parameters={"noise_std": 0.0},
    )


def _key_stage(gap: GAP, public: Sequence[PublicFacts], level: BoundedLevel) -> list[Stage]:
    failures = [failure_of(gap, level, _largest(public)) for _ in public]
    return [key_stage(sum(failure for failure in failures if failure))] if level.edges == "thinned" else []


def split_note(gap: GAP) -> str:
    """How the budget is divided, in words."""
    parts = ", ".join(
        f"{share:.0%} {name}" for name, share in zip((ENCODER, "hops", HEAD), _shares(gap.split), strict=True)
    )
    return f"the squared privacy loss is divided by constants: {parts}"


def _shares(split: tuple[float, float, float]) -> list[float]:
    return [part / sum(split) for part in split]


# -------------------------------------------------------------------- fit


def learn_privately(gap: GAP, graphs: Sequence[Graph], curator: Curator, progress: Progress | None) -> None:
    """Key, encoder, hops, head, in the order of the plan."""
    level = gap._checked_privacy().level
    assert isinstance(level, NodeLevel | NeighborLevel)
    key = curator.key(KEY)
    _train_encoder(gap, graphs[0], curator, progress)
    gap.caches_, largest = [], _largest([graph.public for graph in graphs])
    for number, graph in enumerate(graphs):
        bounds = [hop_bound(gap, level, hop, largest)[2] for hop in range(1, gap._hops() + 1)]
        clips = [clip for clip in bounds if clip is not None]
        gap.caches_.append(gap._noisy_hops(bound_degrees(graph, level, key), number, curator, clips))
    _train_head(gap, graphs[0], curator, progress)


def _train_encoder(gap: GAP, graph: Graph, curator: Curator, progress: Progress | None) -> None:
    stacked = nn.Sequential(gap.encoder_, gap.classifier_)
    losses = FeatureLosses(stacked, graph, gap._device)
    options = options_of(gap, gap.steps, gap.step_size)
    train_privately(stacked, losses, curator, ENCODER, options, compute=gap.compute, progress=progress)


def _train_head(gap: GAP, graph: Graph, curator: Curator, progress: Progress | None) -> None:
    """An example is a node's own features and label beside its released rows: one node touches one example."""
    ids = torch.from_numpy(training_ids(graph)).to(gap._device)
    own = gap._own(feature_tensor(graph.features, gap._device))[ids]
    inputs = torch.cat([own, *(rows[ids] for rows in gap.caches_[0])], dim=1)
    labels = torch.tensor(graph.labels, device=gap._device)[ids]

    def losses(positions: IntArray) -> Tensor:
        if len(positions) == len(labels):
            return example_losses(gap.head_(inputs), labels)
        chosen = torch.from_numpy(positions).to(gap._device)
        return example_losses(gap.head_(inputs[chosen]), labels[chosen])

    options = options_of(gap, gap.head_steps, gap.head_step_size)
    train_privately(gap.head_, losses, curator, HEAD, options, compute=gap.compute, progress=progress)


def public_key(graph: Graph) -> bytes:
    """Tells graphs apart by what node level takes as public: how many nodes, and their ids. No data enters."""
    found = hashlib.sha256(f"{graph.num_nodes}".encode())
    if graph.node_ids is not None:
        found.update("\x00".join(str(name) for name in graph.node_ids).encode())
    return found.digest()


def all_distinct(keys: list[bytes], *, private: bool) -> list[bytes]:
    """The keys of the graphs of a fit; an error where two are the same: a prediction could not say which it means."""
    if len(set(keys)) < len(keys):
        how = "give them node ids that differ" if private else "the features of both are the same, so leave one out"
        raise UnsupportedError(f"two of the graphs cannot be told apart by what is public of them: {how}")
    return keys


def is_private(level: Level) -> bool:
    """Whether features and labels are protected at this level."""
    return isinstance(level, NodeLevel | NeighborLevel)
