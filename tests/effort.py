"""How hard a test tries: quickly before every merge, at length in ``make slow``, which sets DISCREET_EFFORT=high.

Tests that ask for :func:`effort` are marked ``effort``, so that ``make slow`` runs them again at length.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from discreet.audit.replay import ReplayReport, replay_audit
from discreet.graph.graph import Graph
from discreet.methods.base import NodeClassifier

HIGH = os.environ.get("DISCREET_EFFORT") == "high"
BLOCK = 5
"""Pairs that are replayed before anybody looks: every adversary once."""


def effort(quick: int, at_length: int) -> int:
    """How many of something a test tries."""
    return at_length if HIGH else quick


def replay_until(
    done: Callable[[ReplayReport], bool],
    estimator: NodeClassifier,
    graphs: Callable[[np.random.Generator], Graph],
    *,
    most: int,
    least: int = BLOCK,
) -> ReplayReport:
    """Pairs in blocks with seeds of their own until ``done`` says that they showed enough, or there were ``most``.

    For tests that wait for something to show: a planted fault, or a bound that is met. ``pairs`` of the report are
    those of whole blocks; the last one ends where it showed enough.
    """
    whole = ReplayReport()
    for block in range(most // BLOCK):
        drawn = block * BLOCK

        def look(_: str, number: int, __: int, drawn: int = drawn) -> None:
            if drawn + number >= least and done(whole):
                raise _EnoughError

        with suppress(_EnoughError):
            replay_audit(estimator, graphs, pairs=BLOCK, seed=block, progress=look, report=whole)
        whole.pairs = drawn + BLOCK
        if whole.pairs >= least and done(whole):
            break
    return whole


class _EnoughError(Exception):
    """Something showed."""


def caught(report: ReplayReport) -> bool:
    """Whether something was found: enough for a planted fault."""
    return not report.passed
