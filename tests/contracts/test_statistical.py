"""Every method at every private level goes through the curator's part of the statistical audit, in short."""

from __future__ import annotations

from discreet.audit.statistical import audit_curator
from discreet.privacy.level_specs import parse_level
from tests.contracts.cases import every_private_case, graph_for, make


@every_private_case
def test_statistical_audit(name: str, spec: str) -> None:
    """Nothing is found, and no mechanism is unknown to the audit; 1e-6 is the chance of a false alarm."""
    plan = make(name, spec).plan(parse_level(spec).view(graph_for(spec)).public)
    report = audit_curator(plan, runs=100, alpha=1e-6)
    assert report.passed, report.violations
    assert report.curator is not None or not plan.stages, report.notes
