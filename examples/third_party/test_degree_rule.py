"""The rule keeps the contract of methods, and its query the contract of queries."""

import pytest
from degree_rule import DegreeRule, Degrees

from discreet import Privacy, parse_level
from discreet.testing import MethodCase, QueryCase, check_query, method_checks

LEVELS = ("edge", "edge:directed")
CASES = [
    MethodCase(lambda level=level, **parameters: DegreeRule(Privacy(parse_level(level), 1.0), **parameters))
    for level in LEVELS
]
CHECKS = [check for case in CASES for check in method_checks(case)]


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_method(check):
    check()


@pytest.mark.parametrize("level", LEVELS)
def test_query(level):
    case = QueryCase("degrees", level, lambda facts: Degrees(facts.num_nodes, facts.directed), lambda *_: {})
    report = check_query(case)
    assert not report.violations, report.violations[0]
    assert report.tightness > 0.999  # the bound is attained, so it is not larger than it must be
