"""Privacy events: Δ-normalised dp_accounting events, ours where it has none, and what can be done with them."""

from dp_accounting.dp_event import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)

from discreet.privacy.events.black_box import ApproximateDpEvent
from discreet.privacy.events.group_sampling import GroupFixedSampledGaussianDpEvent, GroupSampledGaussianDpEvent
from discreet.privacy.events.node_sampling import SampledNodesDpEvent
from discreet.privacy.events.selection import OneOfDpEvent
from discreet.privacy.events.table import (
    KINDS,
    Kind,
    add_kind,
    compose,
    composed_curve,
    event_from_json,
    event_to_json,
    for_two_units,
    is_free_of_noise,
    kind_of,
    leaves,
    rdp_curve,
    repeat,
    scale_noise,
    split_sampling,
)
from discreet.privacy.events.top_k import OneShotTopKDpEvent

__all__ = [
    "KINDS",
    "ApproximateDpEvent",
    "ComposedDpEvent",
    "GaussianDpEvent",
    "GroupFixedSampledGaussianDpEvent",
    "GroupSampledGaussianDpEvent",
    "Kind",
    "LaplaceDpEvent",
    "NoOpDpEvent",
    "NonPrivateDpEvent",
    "OneOfDpEvent",
    "OneShotTopKDpEvent",
    "PoissonSampledDpEvent",
    "RandomizedResponseDpEvent",
    "RepeatAndSelectDpEvent",
    "SampledNodesDpEvent",
    "SelfComposedDpEvent",
    "ZCDpEvent",
    "add_kind",
    "compose",
    "composed_curve",
    "event_from_json",
    "event_to_json",
    "for_two_units",
    "is_free_of_noise",
    "kind_of",
    "leaves",
    "rdp_curve",
    "repeat",
    "scale_noise",
    "split_sampling",
]
