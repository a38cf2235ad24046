"""An estimator from what a command line says; everything is checked before any data is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.methods.base import NodeClassifier


def estimator_from_options(
    method: str,
    level: str,
    epsilon: float,
    delta: str,
    settings: Sequence[str] | None,
    seed: int,
    device: str = "cpu",
    threads: int | None = None,
) -> NodeClassifier:
    """The method by name under a level and budget, with settings of the form KEY=VALUE."""
    from discreet.methods.registry import find_method
    from discreet.privacy.budget import Privacy
    from discreet.privacy.level_specs import parse_level

    info = find_method(method)
    privacy = Privacy(parse_level(level), epsilon, parse_delta(delta))
    from discreet.methods.compute import Compute
    from discreet.methods.parameters import parse_settings

    kind = info.load()
    parameters: dict[str, Any] = {"random_state": seed, **parse_settings(kind, method, settings or ())}
    compute = Compute(device, threads)
    compute.prepare()
    estimator = kind(privacy, compute=compute)
    estimator.set_params(**parameters)
    estimator._checked_privacy()
    return estimator


def parse_delta(text: str) -> Any:
    """A number, or ``auto``."""
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"--delta takes a number or auto, not {text!r}") from None
