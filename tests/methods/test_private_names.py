"""A method overrides a private method of the classes that all share only where that is meant.

A method that had a ``_rate`` of its own once trained at that rate, when a shared class got a ``_rate`` too.
"""

from __future__ import annotations

import pytest

from discreet.methods import base, trained
from discreet.methods.registry import list_methods, load_method

FOR_EVERY_METHOD = {
    "_stages",
    "_learn",
    "_probabilities",
    "_state",
    "_seen",
    "_restore",
    "_uncovered",
    "_notes",
    "_outlook",
    "_pinned",
    "_claim",
    "_extension_stages",
    "_aggregate",
}
"""What ``NodeClassifier`` asks its subclasses to write."""
MEANT = {
    ("StartsHead", "_config"),
    ("WeighsClasses", "_check_settings"),
    ("DPMLPClassifier", "_learning_rate"),
    ("DPGNN", "_check_settings"),
    ("DPGNN", "_rule"),
    ("GAP", "_starts_from_evidence"),
    ("ProgressiveClassifier", "_starts_from_evidence"),
    ("GAP", "_why_no_weights"),
    ("SimGAT", "_config"),
}
SHARED = (base.__name__, trained.__name__)


def overridden(kind: type) -> set[tuple[str, str]]:
    """Which class of a method's line writes a private name anew that a shared class before it has."""
    found = set()
    for number, owner in enumerate(kind.__mro__):
        before = [vars(other) for other in kind.__mro__[number + 1 :] if other.__module__ in SHARED]
        private = {name for name in vars(owner) if name.startswith("_") and not name.startswith("__")}
        found |= {(owner.__name__, name) for name in private if any(name in names for names in before)}
    return {(owner, name) for owner, name in found if name not in FOR_EVERY_METHOD}


@pytest.mark.parametrize("name", sorted(list_methods()))
def test_no_shared_private_method_is_overridden_by_accident(name: str) -> None:
    assert overridden(load_method(list_methods()[name])) <= MEANT


def test_an_accident_is_seen() -> None:
    dpar = load_method(list_methods()["dpar"])
    assert overridden(type("Accident", (dpar,), {"_descent": None})) == {("Accident", "_descent")} | overridden(dpar)


def test_every_exception_is_needed() -> None:
    assert set().union(*(overridden(load_method(declared)) for declared in list_methods().values())) == MEANT
