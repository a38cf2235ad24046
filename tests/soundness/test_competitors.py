"""What papers compare with: what runs of the curator prove of ε is more than nothing and less than was promised."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.audit.small_graphs import small_graph
from discreet.audit.statistical import audit_curator
from discreet.privacy.levels import parse_level
from tests.contracts.cases import make

EPSILON = 8.0
"""Much, so that a few runs show some of it."""
CASES = [("lpgnet", "edge"), ("progap", "edge"), ("progap", "node:owned,max_degree=3"), ("dp-gnn", "edge"),
         ("dp-sage", "node:owned,max_degree=3")]  # fmt: skip


@pytest.mark.parametrize(("name", "spec"), CASES)
def test_statistical_lower_bound_is_below_epsilon_and_not_nothing(name: str, spec: str) -> None:
    public = parse_level(spec).view(small_graph(np.random.default_rng(1), num_nodes=6)).public
    report = audit_curator(make(name, spec, epsilon=EPSILON).plan(public), runs=300, alpha=1e-6)
    assert report.passed, report.violations
    assert report.curator is not None
    assert 0.1 < report.curator.epsilon < EPSILON
