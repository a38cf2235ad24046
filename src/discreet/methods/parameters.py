"""The parameters of an estimator: its annotated fields are their one declaration and their schema.

Options that cannot affect privacy, where and how the arithmetic runs, are in :class:`Compute`.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_type_hints

import numpy as np
import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails
from torch import nn

from discreet import limits
from discreet.errors import InvalidInputError, ParameterError
from discreet.files import json_or_text
from discreet.graph.graph import PublicFacts
from discreet.limits import Count, Limit, shown
from discreet.ops.memory import GIB, free_bytes
from discreet.training.encoder_modules import read_encoder


def _between(limit: Limit) -> Any:
    return Field(ge=limit.low, le=limit.high, allow_inf_nan=False)


def _counted(limit: Count) -> Any:
    return Field(ge=limit.low, le=limit.high)


Norm = Annotated[float, _between(limits.NORM)]
RowNorm = Annotated[float, _between(limits.ROW_NORM)]
ScoreClip = Annotated[float, _between(limits.SCORE_CLIP)]
Restart = Annotated[float, _between(limits.RESTART)]
Rate = Annotated[float, _between(limits.RATE)]
Share = Annotated[float, _between(limits.SHARE)]
Multiplier = Annotated[float, _between(limits.MULTIPLIER)]
Weight = Annotated[float, _between(limits.WEIGHT)]
Ridge = Annotated[float, _between(limits.RIDGE)]
Decay = Annotated[float, _between(limits.DECAY)]
Probability = Annotated[float, _between(limits.PROBABILITY)]
Fraction = Annotated[float, _between(limits.FRACTION)]
Seed = Annotated[int, _counted(limits.SEED)]
Width = Annotated[int, _counted(limits.WIDTH)]
Layers = Annotated[int, _counted(limits.LAYERS)]
Hops = Annotated[int, _counted(limits.HOPS)]
Rounds = Annotated[int, _counted(limits.ROUNDS)]
Steps = Annotated[int, Field(ge=1, le=limits.ROUNDS.high)]
Propagations = Annotated[int, _counted(limits.PROPAGATIONS)]
Examples = Annotated[int, _counted(limits.EXAMPLES)]


def _readable(encoder: Any) -> Any:
    if encoder is not None:
        read_encoder(encoder)
    return encoder


OwnEncoder = Annotated[Any, AfterValidator(_readable)]
"""A module of torch whose layers are supported, their words, or None."""

COPIES = 8
"""Arrays of one double per node and class that a fit holds at once."""

PER_FEATURE = 16.0
"""Bytes of one column of weights, with its gradient and the optimiser's two: networks have more than one."""

# Objects of our own, checked by their own constructors, and never set from text.
OBJECTS = ("privacy", "compute")


@dataclass(frozen=True)
class Compute:
    """Device, threads, and how many examples a private step takes at once (None: what suits the device).

    Results agree across settings up to floating-point rounding.
    """

    device: str = "cpu"
    threads: int | None = None
    micro_batch: int | None = None

    @property
    def examples_at_once(self) -> int:
        """What fits a processor's caches; on a GPU, where each micro-batch is many calls, what a query admits."""
        if self.micro_batch is not None:
            return self.micro_batch
        return 1 << 12 if torch.device(self.device).type == "cpu" else 1 << 20

    def prepare(self) -> torch.device:
        """Check the device and set the thread count, where one is asked for."""
        try:
            device = torch.device(self.device)
        except (RuntimeError, TypeError, ValueError):
            raise ParameterError(f"device {shown(self.device)} is not known: use cpu or cuda") from None
        if device.type not in ("cpu", "cuda"):
            raise ParameterError(f"device {self.device!r} is not supported: use cpu or cuda")
        if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
            raise ParameterError(f"device {self.device} was asked for, but torch sees no such CUDA device here")
        if self.micro_batch is not None:
            limits.EXAMPLES.check("micro_batch", self.micro_batch)
        if self.threads is not None:
            limits.THREADS.check("threads", self.threads)
            torch.set_num_threads(self.threads)
        return device

    def check_memory(self, facts: PublicFacts) -> None:
        """Refuse a fit whose working arrays cannot fit in the memory that is free: better now than after an hour."""
        needed = working_bytes(facts)
        if needed > GIB and needed > (free := free_bytes()):
            raise InvalidInputError(
                f"a fit on {facts.num_nodes} nodes with {facts.num_features} features and {facts.num_classes} classes "
                f"takes about {needed / GIB:.1f} GiB beside the graph, and {free / GIB:.1f} GiB are free: "
                "use a machine with more memory"
            )


def working_bytes(facts: PublicFacts) -> float:
    """What a fit takes beside the graph, whatever its edges."""
    return COPIES * 8.0 * facts.num_nodes * max(facts.num_classes, 1) + PER_FEATURE * facts.num_features


@cache
def schema(estimator: type) -> type[BaseModel]:
    """A strict pydantic model with the parameters of the estimator's constructor."""
    hints = get_type_hints(estimator, include_extras=True)
    parameters = inspect.signature(estimator).parameters
    fields: dict[str, Any] = {
        name: (hints[name], parameter.default) for name, parameter in parameters.items() if name not in OBJECTS
    }
    return create_model(
        estimator.__name__, __config__=ConfigDict(strict=True, extra="forbid", protected_namespaces=()), **fields
    )


def validate(estimator_class: type, method: str, values: Mapping[str, Any]) -> None:
    """Refuse a value of the wrong type or range with one sentence that names parameter, rule and value."""
    plain = {name: plain_value(value) for name, value in values.items() if name not in OBJECTS}
    for name, value in plain.items():
        if not _can_be_stored(value):
            kinds = "a number, a text, a list of these or None"
            raise ParameterError(f"{method}: {name} must be {kinds}, not {type(value).__name__} {limits.shown(value)}")
    try:
        schema(estimator_class)(**plain)
    except ValidationError as error:
        first = _most_precise(error)
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, InvalidInputError):  # a sentence of our own
            raise type(cause)(f"{method}: {cause}") from None
        name = str(first["loc"][0]) if first["loc"] else "?"
        rule = limits.plain_rule(first["msg"])
        raise ParameterError(f"{method}: {name} {rule}, not {limits.shown(first['input'])}") from None


def _most_precise(error: ValidationError) -> ErrorDetails:
    """The first that is wrong, said of the part that is: a value of two forms has a message for either."""
    found = error.errors()
    same = [details for details in found if details["loc"][:1] == found[0]["loc"][:1]]
    return max(same, key=lambda details: len(details["loc"]))


def parse_settings(estimator_class: type, method: str, settings: Iterable[str], **usual: Any) -> dict[str, Any]:
    """``key=value`` texts as parameters over ``usual`` ones, checked. Values are JSON; what is not JSON is a word."""
    parsed = dict(usual)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise ParameterError(f"--set takes key=value, not {setting!r}")
        value = _from_text(text)
        word = value == float("inf") and not admits(estimator_class, key, value) and admits(estimator_class, key, text)
        parsed[key] = text if word else value
    return checked_settings(estimator_class, method, parsed)


def checked_settings(estimator_class: type, method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by name, as a file gives them: lists become tuples; an unknown name is refused with the nearest."""
    known = list(schema(estimator_class).model_fields)
    for key in settings:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
            raise ParameterError(f"{method} has no parameter {key!r}: {hint}")
    values = {key: _tuples(value) for key, value in settings.items()}
    validate(estimator_class, method, values)
    return values


def stored(values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as a release stores them: objects are left out, and an encoder is its layers in words."""
    return {
        name: read_encoder(value).to_words() if isinstance(value, nn.Module) else value
        for name, value in values.items()
        if name not in OBJECTS
    }


def admits(estimator_class: type, key: str, value: Any) -> bool:
    """Whether the estimator has a parameter of that name that takes this value."""
    try:
        checked_settings(estimator_class, "", {key: value})
    except ParameterError:
        return False
    return True


def _from_text(text: str) -> Any:
    if text in ("inf", "infinity"):
        return float("inf")
    return json_or_text(text, "--set")


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def plain_value(value: Any) -> Any:
    """The same value with NumPy's numbers as Python's, which are reckoned with in double precision."""
    if isinstance(value, np.generic):
        return value.item()
    if type(value) in (list, tuple):
        return type(value)(plain_value(item) for item in value)
    return {key: plain_value(item) for key, item in value.items()} if type(value) is dict else value


def _can_be_stored(value: Any) -> bool:
    """Whether a release can hold it: a fit whose settings cannot be written down could not be saved."""
    if isinstance(value, list | tuple):
        return all(_can_be_stored(item) for item in value)
    if isinstance(value, dict):
        return all(_can_be_stored(item) for item in (*value, *value.values()))
    return value is None or isinstance(value, bool | int | float | str | nn.Module)
