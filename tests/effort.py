"""How hard a test tries: quickly before every merge, at length in ``make slow``, which sets DISCREET_EFFORT=high.

Tests that ask for :func:`effort` are marked ``effort``, so that ``make slow`` runs them again at length.
"""

from __future__ import annotations

import os
from collections.abc import Callable

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
    those drawn.
    """
    whole = ReplayReport()
    for block in range(most // BLOCK):
        report = replay_audit(estimator, graphs, pairs=BLOCK, seed=block)
        whole.pairs += BLOCK
        whole.violations += report.violations
        for name, ratio in report.ratio.items():
            whole.ratio[name] = max(ratio, whole.ratio.get(name, 0.0))
        if whole.pairs >= least and done(whole):
            break
    return whole


def caught(report: ReplayReport) -> bool:
    """Whether something was found: enough for a planted fault."""
    return not report.passed
