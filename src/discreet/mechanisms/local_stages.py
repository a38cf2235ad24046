"""Reports as stages of a plan: what every node says of its own record, and what the curator does when devices are
simulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import GraphError
from discreet.mechanisms.feature_range import Outside
from discreet.mechanisms.local_encoders import FEATURE_MECHANISMS, FeatureEncoder, feature_encoder
from discreet.mechanisms.multi_bit import MultiBit
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.privacy import events
from discreet.privacy.plan import Stage

LABELS = "randomized-response"
_PREFIX = "local "
FEATURES = tuple(_PREFIX + name for name in FEATURE_MECHANISMS)
METRIC = "rows"
_WHY = "a report is made of one record alone, where that record lives, and nothing else of it leaves"


def feature_stage(
    name: str,
    mechanism: str,
    shape: tuple[int, int],
    *,
    epsilon: float,
    feature_range: Any,
    outside: Outside,
    delta: float | None = None,
) -> Stage:
    """Every node reports its features once.

    Guarantee: neighbours differ in one record, so one row of the value changes and one report with it; the encoder
    makes that report ε-private ((ε, δ) for ``gaussian``). Whatever is computed from reports is post-processing.
    """
    given = delta if mechanism == "gaussian" else None
    encoder = feature_encoder(mechanism, width=shape[1], feature_range=feature_range, epsilon=epsilon, delta=given)
    parameters: dict[str, Any] = {
        "epsilon": float(epsilon),
        "delta": given,
        "low": encoder.feature_range[0],
        "high": encoder.feature_range[1],
        "outside": outside,
        "noise_std": encoder.noise_std,
    }
    if isinstance(encoder, MultiBit):
        parameters["sampled"] = encoder.sampled
    return Stage(
        name=name,
        query="what every node reports of its own features",
        mechanism=_PREFIX + mechanism,
        sensitivity=1.0,
        metric=METRIC,
        why=_WHY,
        event=events.ApproximateDpEvent(float(epsilon), given or 0.0),
        shape=shape,
        parameters=parameters,
    )


def label_stage(name: str, count: int, num_classes: int, epsilon: float) -> Stage:
    """Every node that has to label itself reports a class once.

    Guarantee: as for features; a node without a label reports too, so that having one stays private.
    """
    response = RandomizedResponse(epsilon, num_classes)
    return Stage(
        name=name,
        query="what every training and validation node reports of its own label",
        mechanism=LABELS,
        sensitivity=1.0,
        metric=METRIC,
        why=_WHY,
        event=events.ApproximateDpEvent(float(epsilon), 0.0),
        shape=(count,),
        parameters={"epsilon": float(epsilon), "classes": num_classes, "noise_std": response.noise_std},
    )


def encoder_of(stage: Stage) -> FeatureEncoder:
    """The encoder that a stage was planned with."""
    at = stage.parameters
    return feature_encoder(
        stage.mechanism.removeprefix(_PREFIX),
        width=stage.shape[1],
        feature_range=(at["low"], at["high"]),
        epsilon=at["epsilon"],
        delta=at["delta"],
    )


def response_of(stage: Stage) -> RandomizedResponse:
    """The randomised response that a stage was planned with."""
    return RandomizedResponse(stage.parameters["epsilon"], stage.parameters["classes"])


def is_local(stage: Stage) -> bool:
    """Whether the stage is a collection of reports."""
    return stage.mechanism == LABELS or stage.mechanism in FEATURES


def release(value: Any, stage: Stage, rng: np.random.Generator) -> Any:
    """The reports of all records, each as its owner would make it; the records themselves without privacy."""
    if isinstance(stage.event, events.NonPrivateDpEvent):
        return value.copy()
    if stage.mechanism == LABELS:
        return response_of(stage).encode_rows(value, rng).astype(np.float64)
    return encoder_of(stage).encode_rows(value, rng, outside=stage.parameters["outside"])


def check_reports(value: Any, stage: Stage) -> None:
    """Refuse what cannot have come from the encoder: the guarantee of received reports rests on their owners."""
    admitted = response_of(stage) if stage.mechanism == LABELS else encoder_of(stage)
    if not admitted.admits(value):
        raise GraphError(
            f"what was given as reports for stage {stage.name!r} cannot have come from {stage.mechanism} with these "
            "settings: encode every record with discreet.local, with the same range and epsilon"
        )


def in_alphabet(value: Any, stage: Stage) -> Any:
    """The nearest thing to ``value`` that could be a set of reports: what an adversary may hand back."""
    if isinstance(stage.event, events.NonPrivateDpEvent) or not is_local(stage):
        return value
    if stage.mechanism == LABELS:
        whole = np.nan_to_num(np.round(np.abs(value)))
        return np.minimum(whole, stage.parameters["classes"] - 1)
    encoder = encoder_of(stage)
    return _signs(value, encoder) if isinstance(encoder, MultiBit) else value


def _signs(value: npt.NDArray[Any], encoder: MultiBit) -> npt.NDArray[np.float32]:
    """m signs in every row, where the value is largest."""
    at = np.argsort(-np.abs(value), axis=1, kind="stable")[:, : encoder.sampled]
    found = np.zeros(value.shape, dtype=np.float32)
    np.put_along_axis(found, at, np.where(np.take_along_axis(value, at, axis=1) < 0, -1, 1).astype(np.float32), axis=1)
    return found
