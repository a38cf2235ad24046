"""Privacy events: Δ-normalised dp_accounting events, ours where it has none, and what can be done with them.

An event describes *one* run of a mechanism whose sensitivity, under the level's own relation, has been
divided out. Everything that knows the kinds of event is a table in this file or in ``accountants``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attr
from dp_accounting import dp_event
from dp_accounting.dp_event import DpEvent

from discreet.errors import PrivacyError


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ApproximateDpEvent(DpEvent):  # type: ignore[misc]
    """A black box that is (ε, δ)-differentially private and of which nothing more is known.

    With ε = 0 it stands for an event of probability δ in which some other bound does not hold.
    """

    epsilon: float
    delta: float


NoOpDpEvent = dp_event.NoOpDpEvent
NonPrivateDpEvent = dp_event.NonPrivateDpEvent
GaussianDpEvent = dp_event.GaussianDpEvent
LaplaceDpEvent = dp_event.LaplaceDpEvent
PoissonSampledDpEvent = dp_event.PoissonSampledDpEvent
RandomizedResponseDpEvent = dp_event.RandomizedResponseDpEvent
SelfComposedDpEvent = dp_event.SelfComposedDpEvent
ComposedDpEvent = dp_event.ComposedDpEvent
ZCDpEvent = dp_event.ZCDpEvent


def repeat(event: DpEvent, count: int) -> DpEvent:
    """The event run ``count`` times, adaptively."""
    return event if count == 1 else SelfComposedDpEvent(event, count)


def compose(events: Iterable[DpEvent]) -> DpEvent:
    """The events one after another, adaptively."""
    listed = list(events)
    if not listed:
        return NoOpDpEvent()
    return listed[0] if len(listed) == 1 else ComposedDpEvent(listed)


def leaves(event: DpEvent, count: int = 1) -> Iterator[tuple[DpEvent, int]]:
    """The elementary events with how often each runs: the one place where counts are applied."""
    if isinstance(event, SelfComposedDpEvent):
        yield from leaves(event.event, count * event.count)
    elif isinstance(event, ComposedDpEvent):
        for part in event.events:
            yield from leaves(part, count)
    elif not isinstance(event, NoOpDpEvent):
        yield event, count


# -------------------------------------------------------------------- noise as one dial


def scale_noise(event: DpEvent, factor: float) -> DpEvent:
    """The same event with its noise multiplied; events without a noise dial are returned as they are."""
    kind = type(event)
    if kind not in _SCALERS:
        raise PrivacyError(f"{kind.__name__} has no rule for scaling its noise")
    return _SCALERS[kind](event, factor)


def _multiplier(event: Any, factor: float) -> DpEvent:
    return attr.evolve(event, noise_multiplier=event.noise_multiplier * factor)


def _inner(event: Any, factor: float) -> DpEvent:
    return attr.evolve(event, event=scale_noise(event.event, factor))


def _each(event: Any, factor: float) -> DpEvent:
    return ComposedDpEvent([scale_noise(part, factor) for part in event.events])


def _zcdp(event: Any, factor: float) -> DpEvent:
    return attr.evolve(event, rho=event.rho / factor**2)


def _unchanged(event: DpEvent, factor: float) -> DpEvent:
    return event


_SCALERS: dict[type[DpEvent], Callable[[Any, float], DpEvent]] = {
    GaussianDpEvent: _multiplier,
    LaplaceDpEvent: _multiplier,
    PoissonSampledDpEvent: _inner,
    SelfComposedDpEvent: _inner,
    ComposedDpEvent: _each,
    ZCDpEvent: _zcdp,
    NoOpDpEvent: _unchanged,
    NonPrivateDpEvent: _unchanged,
    ApproximateDpEvent: _unchanged,
    RandomizedResponseDpEvent: _unchanged,
}


# -------------------------------------------------------------------- JSON, without importing what a file names

_KINDS: dict[str, type[DpEvent]] = {kind.__name__.removesuffix("DpEvent"): kind for kind in _SCALERS}


def register_event(kind: type[DpEvent], scaler: Callable[[Any, float], DpEvent] = _multiplier) -> None:
    """Let an event of another module be scaled and serialised; ``accountants`` has its own table."""
    _SCALERS[kind] = scaler
    _KINDS[kind.__name__.removesuffix("DpEvent")] = kind


def event_to_json(event: DpEvent) -> dict[str, Any]:
    """A dictionary of plain values; :func:`event_from_json` is its inverse."""
    name = type(event).__name__.removesuffix("DpEvent")
    if _KINDS.get(name) is not type(event):
        raise PrivacyError(f"{type(event).__name__} cannot be written to a certificate")
    fields = {field.name: _plain(getattr(event, field.name)) for field in attr.fields(type(event))}
    return {"kind": name, **fields}


def event_from_json(data: dict[str, Any]) -> DpEvent:
    """Read an event; only the kinds of this file are admitted."""
    if not isinstance(data, dict) or data.get("kind") not in _KINDS:
        raise PrivacyError(f"the certificate holds an event of unknown kind: {data!r}")
    kind = _KINDS[data["kind"]]
    names = {field.name for field in attr.fields(kind)}
    if set(data) - {"kind"} != names:
        raise PrivacyError(f"event {data['kind']} needs the fields {sorted(names)}, not {sorted(data)}")
    return kind(**{name: _read(data[name]) for name in names})


def _plain(value: Any) -> Any:
    if isinstance(value, DpEvent):
        return event_to_json(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return event_from_json(value)
    if isinstance(value, list):
        return [_read(item) for item in value]
    return value
