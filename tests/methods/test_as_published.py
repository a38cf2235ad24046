"""One switch for papers whose epsilon cannot be proved: a claim, nothing covered, less noise than sound."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import UncoveredReleaseError, UnsupportedError
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods.base import NodeClassifier
from discreet.methods.dp_gnn.estimator import DPGNN
from discreet.methods.dp_gnn.sage import DPSAGE
from discreet.methods.dpar.estimator import DPAR
from discreet.methods.dpdgc.estimator import DPDGC
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import parse_level
from discreet.release.verify import verify

EPSILON = 0.25
"""Small: what a claim really spends is many times that, and loss distributions that wide take long."""

CASES: list[tuple[type[NodeClassifier], str, dict[str, Any], float | None]] = [
    (DPAR, "node:owned,max_degree=2", {"sources": 10, "steps": 2, "node_rate": 0.5, "batch_size": 5}, None),
    (DPDGC, "edge", {"embedding": "trained", "embedding_steps": 2, "epochs": 1}, math.sqrt(2)),
    (
        DPDGC,
        "node:owned,max_degree=3,change=replace",
        {"embedding": "trained", "embedding_steps": 2, "steps": 2},
        7 / 4,
    ),
    (DPGNN, "node:owned,max_degree=2", {"clipping": "per-layer", "steps": 2}, math.sqrt(3)),
]


@pytest.mark.parametrize(("kind", "spec", "settings", "ratio"), CASES, ids=lambda given: getattr(given, "method", None))
def test_it_is_a_claim_that_covers_nothing(
    kind: type[NodeClassifier], spec: str, settings: dict[str, Any], ratio: float | None, tmp_path: Path
) -> None:
    graph, privacy = split(csbm(60, 6), "60/20/20", 0), Privacy(parse_level(spec), EPSILON)
    made = kind(privacy, accounting="as-published", insecure_noise_seed=1, **settings)
    plan = made.plan_for(graph)
    assert (plan.accounting, plan.covers, plan.epsilon) == ("as-published", "nothing", EPSILON)
    assert min(plan.spend().values()) > EPSILON
    assert "NOT VERIFIED" in str(plan)
    assert "are covered" not in str(plan)
    if ratio is not None:
        stage = {"dpdgc": "embedding", "dp-gnn": "network"}[made.method]
        name = "rows" if (made.method, privacy.level.kind) == ("dpdgc", "edge") else stage
        sound = kind(privacy, **settings).plan_for(graph).stage(name)
        assert sound.noise_std / plan.stage(name).noise_std == pytest.approx(ratio, rel=1e-3)
    made.fit(graph).save(tmp_path / "release")
    failed = [check.name for check in verify(tmp_path / "release") if not check.passed]
    assert failed == ["accounting", "noise"]
    for audience in ("anyone", "owner"):
        with pytest.raises(UncoveredReleaseError, match="no guarantee covers it"):
            made.predict(graph, audience=audience)
    assert made.predict_proba(graph, uncovered=True).shape == (60, 2)


def test_the_claim_is_about_layers_that_are_clipped_apart() -> None:
    graph, privacy = split(csbm(60, 6), "60/20/20", 0), Privacy(parse_level("node"), 2.0)
    flat, apart = (DPGNN(privacy, accounting="as-published", clipping=rule) for rule in ("flat", "per-layer"))
    assert flat.plan_for(graph) == apart.plan_for(graph)


@pytest.mark.parametrize(("kind", "level"), [(DPGNN, "edge"), (DPSAGE, "node"), (DPGNN, "neighbor:1,max_degree=2")])
def test_what_no_paper_claims_is_refused(kind: type[DPGNN], level: str) -> None:
    made = kind(Privacy(parse_level(level), 2.0), accounting="as-published")
    with pytest.raises(UnsupportedError, match="no published epsilon"):
        made.plan_for(split(csbm(60, 6), "60/20/20", 0))
