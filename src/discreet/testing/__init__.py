"""Contracts as functions: what every query and every method must do, for ours and for those of other packages.

    from discreet.testing import QueryCase, check_query, method_checks

``check_query`` brute-forces a bound; ``method_checks`` lists the checks of a method by name, to be run by any test
runner (``@pytest.mark.parametrize("check", method_checks(case), ids=str)`` with ``check()`` as the test).
"""

from discreet.testing.methods import MethodCase, MethodCheck, method_checks
from discreet.testing.queries import HOSTILITY, Effort, QueryCase, QueryReport, check_query

__all__ = [
    "HOSTILITY",
    "Effort",
    "MethodCase",
    "MethodCheck",
    "QueryCase",
    "QueryReport",
    "check_query",
    "method_checks",
]
