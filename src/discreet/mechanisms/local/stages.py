"""Reports as stages of a plan: what every node says of its own record, and what the curator does when devices are
simulated."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Array, SingleArray
from discreet.errors import GraphError, PlanViolationError
from discreet.mechanisms.bits import Randomness
from discreet.mechanisms.local.encoders import FEATURE_MECHANISMS, FeatureEncoder, feature_encoder
from discreet.mechanisms.local.feature_range import Outside
from discreet.mechanisms.local.multi_bit import MultiBit
from discreet.mechanisms.local.randomized_response import RandomizedResponse
from discreet.privacy.plan import Stage
from discreet.queries.reports import PREFIX, FeatureReports, LabelReports, Reports

FEATURES = tuple(PREFIX + name for name in FEATURE_MECHANISMS)


def feature_stage(
    name: str,
    mechanism: str,
    shape: tuple[int, int],
    *,
    epsilon: float,
    feature_range: Any,
    outside: Outside,
    delta: float | None = None,
    graph: int = 0,
) -> Stage:
    """Every node reports its features once; ``gaussian`` alone takes a δ."""
    given = delta if mechanism == "gaussian" else None
    encoder = feature_encoder(mechanism, width=shape[1], feature_range=feature_range, epsilon=epsilon, delta=given)
    low, high = encoder.feature_range
    sampled = encoder.sampled if isinstance(encoder, MultiBit) else None
    query = FeatureReports(
        float(epsilon), encoder.noise_std, mechanism, shape, low, high, outside, delta=given, sampled=sampled
    )
    return Stage.of(name, query, graph=graph)


def label_stage(name: str, count: int, num_classes: int, epsilon: float, missing: int = -1) -> Stage:
    """Every node that has to label itself reports a class once; ``missing`` stands where none was asked."""
    response = RandomizedResponse(epsilon, num_classes)
    return Stage.of(name, LabelReports(float(epsilon), response.noise_std, count, num_classes, missing))


def encoder_of(stage: Stage) -> FeatureEncoder:
    """The encoder that a stage was planned with."""
    query = stage.query
    if not isinstance(query, FeatureReports):
        raise PlanViolationError(f"stage {stage.name!r} asks for no reports of features")
    return feature_encoder(
        query.encoder,
        width=query.size[1],
        feature_range=(query.low, query.high),
        epsilon=query.epsilon,
        delta=query.delta,
    )


def response_of(stage: Stage) -> RandomizedResponse:
    """The randomised response that a stage was planned with."""
    query = stage.query
    if not isinstance(query, LabelReports):
        raise PlanViolationError(f"stage {stage.name!r} asks for no reports of labels")
    return RandomizedResponse(query.epsilon, query.classes)


def is_local(stage: Stage) -> bool:
    """Whether the stage is a collection of reports."""
    return isinstance(stage.query, Reports)


def release(value: Any, stage: Stage, randomness: Randomness) -> Any:
    """The reports of all records, each as its owner would make it; the records themselves without privacy."""
    if not stage.is_private:
        return value.copy()
    if isinstance(stage.query, LabelReports):
        return response_of(stage).encode_rows(value, randomness).astype(np.float64)
    assert isinstance(stage.query, FeatureReports)
    outside: Any = stage.query.outside
    return encoder_of(stage).encode_rows(value, randomness, outside=outside)


def check_reports(value: Any, stage: Stage) -> None:
    """Refuse what cannot have come from the encoder: the guarantee of received reports rests on their owners."""
    labels = isinstance(stage.query, LabelReports)
    admitted = response_of(stage) if labels else encoder_of(stage)
    if not admitted.admits(value):
        raise GraphError(
            f"what was given as reports for stage {stage.name!r} cannot have come from {stage.mechanism} with these "
            "settings: encode every record with discreet.local, with the same range and epsilon"
        )


def in_alphabet(value: Any, stage: Stage) -> Any:
    """The nearest thing to ``value`` that could be a set of reports: what an adversary may hand back."""
    if not stage.is_private or not is_local(stage):
        return value
    if isinstance(stage.query, LabelReports):
        whole = np.nan_to_num(np.round(np.abs(value)))
        return np.minimum(whole, stage.query.classes - 1)
    encoder = encoder_of(stage)
    return _signs(value, encoder) if isinstance(encoder, MultiBit) else value


def _signs(value: Array, encoder: MultiBit) -> SingleArray:
    """m signs in every row, where the value is largest."""
    at = np.argsort(-np.abs(value), axis=1, kind="stable")[:, : encoder.sampled]
    found = np.zeros(value.shape, dtype=np.float32)
    np.put_along_axis(found, at, np.where(np.take_along_axis(value, at, axis=1) < 0, -1, 1).astype(np.float32), axis=1)
    return found
