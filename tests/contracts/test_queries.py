"""Every query keeps its bound under brute force, every query has a case, and a wrong bound is found."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable

import pytest

import discreet.queries
from discreet.graph.graph import PublicFacts
from discreet.privacy.query import CHECKED, PROVED_HERE, PUBLISHED, Query
from discreet.testing import Effort, QueryCase, check_query
from tests.contracts import queries as families
from tests.contracts.wrong_bounds import WRONG_BOUNDS, WrongBound
from tests.effort import effort

CASES: list[QueryCase] = [
    case
    for module in pkgutil.iter_modules(families.__path__)
    for case in getattr(importlib.import_module(f"{families.__name__}.{module.name}"), "CASES", ())
]
# Queries that hand no value out: a key stays with the curator, and a search is run by its trials.
WITHOUT_A_VALUE = {"KeptEdges", "SampledNodes", "BestOfTrials"}
# Judged by what a fitted model predicts, in tests/tuning/test_score.py.
JUDGED_ELSEWHERE = {"ValidationHits"}


# `make slow` asks for more: all graphs of four nodes, and many larger ones.
EFFORT = Effort(exhaustive=effort(3, 4), random=effort(25, 2000))


@pytest.mark.effort
@pytest.mark.parametrize("case", CASES, ids=str)
def test_bound_holds(case: QueryCase, record_property: Callable[[str, object], None]) -> None:
    report = check_query(case, EFFORT)
    record_property("tightness", report.tightness)
    assert report.pairs >= 20, "too few pairs to say anything"
    assert not report.violations, report.violations[:3]


def _every_query() -> dict[str, type[Query]]:
    """The concrete queries of the package, by name."""
    found = {}
    for module in pkgutil.iter_modules(discreet.queries.__path__):
        for name, kind in inspect.getmembers(
            importlib.import_module(f"discreet.queries.{module.name}"), inspect.isclass
        ):
            if (
                issubclass(kind, Query)
                and not inspect.isabstract(kind)
                and kind.__module__.startswith("discreet.queries")
            ):
                found[name] = kind
    return found


def test_every_query_has_a_case() -> None:
    facts = PublicFacts(8, 4, 3, 5, False, 3)
    covered = {type(case.make(facts)).__name__ for case in CASES}
    assert _every_query().keys() - WITHOUT_A_VALUE - JUDGED_ELSEWHERE <= covered


def test_every_query_says_who_proved_it() -> None:
    """Each class for itself: a subclass has another bound, and does not inherit the word."""
    for kind in _every_query().values():
        assert kind.__dict__.get("proof") in (PROVED_HERE, PUBLISHED, CHECKED), kind


@pytest.mark.parametrize("wrong", WRONG_BOUNDS, ids=str)
def test_a_wrong_bound_is_found(wrong: WrongBound, monkeypatch: pytest.MonkeyPatch) -> None:
    """With less effort than :func:`test_bound_holds`, which finds nothing where nothing is planted."""
    (case,) = (case for case in CASES if str(case) == wrong.case)
    wrong.plant(monkeypatch)
    assert check_query(case, Effort(exhaustive=2, random=20)).violations


def test_wrong_bounds_are_planted_in_many_queries() -> None:
    facts = PublicFacts(8, 4, 3, 5, False, 3)
    made = {type(case.make(facts)) for case in CASES for wrong in WRONG_BOUNDS if str(case) == wrong.case}
    assert len(made) >= 14
