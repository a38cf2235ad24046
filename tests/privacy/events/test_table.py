"""The table of event kinds: every row is complete, and counts are applied like loops."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import attr
import numpy as np
import pytest
from dp_accounting.dp_event import DpEvent

from discreet.errors import PrivacyError
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of, epsilon_of_two, pld_epsilon, rdp_epsilon, spend
from discreet.privacy.events.table import KINDS, Kind, add_kind, kind_of

DELTA = 1e-5
GAUSSIAN = events.GaussianDpEvent(4.0)
# One event of every kind, with noise that gives an ε of everyday size.
SAMPLES: dict[str, DpEvent] = {
    "Gaussian": GAUSSIAN,
    "Laplace": events.LaplaceDpEvent(3.0),
    "PoissonSampled": events.PoissonSampledDpEvent(0.1, events.GaussianDpEvent(1.5)),
    "GroupSampledGaussian": events.GroupSampledGaussianDpEvent(6.0, 0.1, 3, "replace"),
    "GroupFixedSampledGaussian": events.GroupFixedSampledGaussianDpEvent(8.0, 1000, 100, 3, "replace"),
    "OneShotTopK": events.OneShotTopKDpEvent(9.0, 2),
    "RandomizedResponse": events.RandomizedResponseDpEvent(0.5, 3),
    "Approximate": events.ApproximateDpEvent(0.3, 1e-8),
    "ZC": events.ZCDpEvent(0.05),
    "NonPrivate": events.NonPrivateDpEvent(),
    "SampledNodes": events.SampledNodesDpEvent(0.3),
    "OneOf": events.OneOfDpEvent([GAUSSIAN, events.repeat(events.GaussianDpEvent(9.0), 2)]),
    "RepeatAndSelect": events.RepeatAndSelectDpEvent(events.GaussianDpEvent(8.0), 5.0, 0.0),
    "NoOp": events.NoOpDpEvent(),
    "SelfComposed": events.SelfComposedDpEvent(GAUSSIAN, 3),
    "Composed": events.ComposedDpEvent([GAUSSIAN, events.LaplaceDpEvent(3.0)]),
}
WITHOUT_A_DIAL = {"RandomizedResponse", "Approximate", "NonPrivate", "SampledNodes", "NoOp"}
REFUSED_FOR_TWO = {"PoissonSampled", "RandomizedResponse", "Approximate", "ZC"}


def sample_and_kind(name: str) -> tuple[DpEvent, Kind]:
    return SAMPLES[name], kind_of(SAMPLES[name])


def test_there_is_a_sample_of_every_kind() -> None:
    assert set(SAMPLES) == {kind.name for kind in KINDS.values()}
    assert {type(event) for event in SAMPLES.values()} == set(KINDS)


@pytest.mark.parametrize("name", SAMPLES)
def test_json_round_trip_under_the_name_of_the_class(name: str) -> None:
    """Stored certificates name the class without its suffix, then the fields in the order of the class."""
    event, kind = sample_and_kind(name)
    written = json.dumps(events.event_to_json(event))
    assert events.event_from_json(json.loads(written)) == event
    assert kind.name == type(event).__name__.removesuffix("DpEvent")
    assert list(json.loads(written)) == ["kind", *(field.name for field in attr.fields(type(event)))]


@pytest.mark.parametrize("name", SAMPLES)
def test_scaling(name: str) -> None:
    event, _ = sample_and_kind(name)
    scaled = events.scale_noise(event, 2.0)
    assert type(scaled) is type(event)
    assert (scaled == event) == (name in WITHOUT_A_DIAL)
    assert events.scale_noise(event, 1.0) == event
    if name not in WITHOUT_A_DIAL:
        assert epsilon_of(scaled, DELTA) < epsilon_of(event, DELTA)


@pytest.mark.parametrize("name", SAMPLES)
def test_two_units_cost_more_or_are_refused(name: str) -> None:
    event, _ = sample_and_kind(name)
    if name in REFUSED_FOR_TWO:
        with pytest.raises(PrivacyError, match="no rule for two units"):
            events.for_two_units(event)
    elif name == "SampledNodes":
        assert epsilon_of_two(events.compose([event, GAUSSIAN]), DELTA) > epsilon_of(GAUSSIAN, DELTA)
    elif name in ("NonPrivate", "NoOp"):
        assert events.for_two_units(event) == event
    else:
        assert epsilon_of_two(event, DELTA) > epsilon_of(event, DELTA)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("account", [pld_epsilon, rdp_epsilon])
def test_count_equals_a_loop(name: str, account: Callable[[DpEvent, float], float | None]) -> None:
    event, kind = sample_and_kind(name)
    if kind.sampling is not None:
        with pytest.raises(PrivacyError, match="sampled once"):
            account(events.repeat(event, 5), DELTA)
        return
    counted, looped = account(events.repeat(event, 5), DELTA), account(events.compose([event] * 5), DELTA)
    assert (counted is None) == (looped is None)
    if counted is not None:
        assert counted == pytest.approx(looped, rel=2e-3, abs=1e-3)
        assert counted > (account(event, DELTA) or 0.0) or counted in (0.0, np.inf)


@pytest.mark.parametrize("name", [name for name, event in SAMPLES.items() if kind_of(event).pld is not None])
def test_the_distribution_of_a_count_is_that_of_a_loop(name: str) -> None:
    event, kind = sample_and_kind(name)
    assert kind.pld is not None
    counted, once = kind.pld(event, 4), kind.pld(event, 1)
    assert counted is not None
    assert once is not None
    looped = once.compose(once).compose(once).compose(once)
    for epsilon in (0.1, 0.5, 1.0):
        assert counted.get_delta_for_epsilon(epsilon) == pytest.approx(
            looped.get_delta_for_epsilon(epsilon), rel=1e-2, abs=1e-9
        )


@pytest.mark.parametrize("name", ["Gaussian", "Laplace", "GroupSampledGaussian", "OneShotTopK"])
def test_no_noise_inside_a_selection_is_infinite(name: str) -> None:
    silent = events.scale_noise(SAMPLES[name], 0.0)
    assert events.is_free_of_noise(silent)
    curve = events.composed_curve(events.OneOfDpEvent([silent, GAUSSIAN]))
    assert curve is not None
    assert np.isinf(curve).all()


# -------------------------------------------------------------------- a kind of another package


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ExponentialDpEvent(DpEvent):  # type: ignore[misc]
    epsilon: float


PURE = Kind(
    "test.Exponential",
    scaled=lambda event, factor: ExponentialDpEvent(event.epsilon / factor),
    doubled=lambda event: ExponentialDpEvent(2 * event.epsilon),
    black_box=lambda event: (event.epsilon, 0.0),
)


@pytest.fixture
def another_kind() -> Iterator[None]:
    add_kind(ExponentialDpEvent, PURE)
    yield
    del KINDS[ExponentialDpEvent]


def test_an_unknown_kind_is_refused_everywhere() -> None:
    event = ExponentialDpEvent(1.0)
    uses: list[Callable[[], Any]] = [
        lambda: events.event_to_json(event),
        lambda: events.scale_noise(event, 2.0),
        lambda: epsilon_of(event, DELTA),
        lambda: epsilon_of_two(event, DELTA),
    ]
    for use in uses:
        with pytest.raises(PrivacyError, match="ExponentialDpEvent is no known kind"):
            use()


@pytest.mark.usefixtures("another_kind")
def test_a_kind_that_was_added_is_accounted_and_stored() -> None:
    event = events.repeat(ExponentialDpEvent(1.0), 3)
    assert events.event_from_json(events.event_to_json(event)) == event
    assert spend(event, DELTA) == {"basic": 3.0}
    assert epsilon_of(events.scale_noise(event, 2.0), DELTA) == 1.5


@pytest.mark.usefixtures("another_kind")
@pytest.mark.parametrize(("kind", "name"), [(ExponentialDpEvent, "new"), (DpEvent, "Gaussian")])
def test_no_kind_is_replaced(kind: type[DpEvent], name: str) -> None:
    with pytest.raises(PrivacyError, match="already"):
        add_kind(kind, replace(PURE, name=name))
