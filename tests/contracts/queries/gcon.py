"""Cases of the queries that gcon and gcon-ssp ask."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.privacy.levels import EdgeLevel
from discreet.queries.moments import Moments, SmoothedFeatureMoments, SmoothedLabelMoments
from discreet.queries.propagated import INFINITE, PropagatedRows
from discreet.testing import QueryCase
from tests.contracts.queries.hostile import hostile_rows

ALPHA, WIDTH, CLASSES = 0.3, 3, 3
STEPS: tuple[tuple[float, ...], ...] = ((1,), (INFINITE,), (0, 2, INFINITE))


def _entering(facts: PublicFacts, everyone: bool) -> int:
    return facts.num_nodes if everyone else facts.num_train


def _rows(steps: tuple[float, ...], everyone: bool, weighed: bool = False) -> QueryCase:
    def make(facts: PublicFacts) -> PropagatedRows:
        count, width = _entering(facts, everyone), len(steps) * WIDTH
        return PropagatedRows(
            EdgeLevel(),
            ALPHA,
            steps,
            everyone,
            count,
            width,
            CLASSES,
            loss="soft-margin",
            loss_width=1.0,
            ridge=1.0,
            weighed=weighed,
            num_nodes=facts.num_nodes,
        )

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        count = _entering(public.facts, everyone)
        return {
            "rows": hostile_rows(public.num_nodes, WIDTH, rng, hostility),
            "targets": hostile_rows(count, CLASSES, rng, hostility),
            "usable": rng.random((count, 1)) < 0.8,
            "shares": hostile_rows(count, 1, rng, hostility)[:, 0],
        }

    named = "weighed propagated rows" if weighed else "propagated rows"
    return QueryCase(f"{named}, steps {steps}, {_whose(everyone)}", "edge", make, inputs)


def _moments(smooth: str, steps: tuple[float, ...], everyone: bool) -> QueryCase:
    def make(facts: PublicFacts) -> Moments:
        if smooth == "labels":
            return SmoothedLabelMoments(EdgeLevel(), ALPHA, steps, everyone, WIDTH, CLASSES)
        return SmoothedFeatureMoments(EdgeLevel(), ALPHA, steps, everyone, len(steps) * WIDTH, CLASSES, gram_weight=0.5)

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        return {
            "rows": hostile_rows(public.num_nodes, WIDTH, rng, hostility),
            "labels": hostile_rows(public.num_nodes, CLASSES, rng, hostility),
            "shares": hostile_rows(_entering(public.facts, everyone), 1, rng, hostility)[:, 0]
            if rng.integers(2)
            else None,
        }

    return QueryCase(f"moments of smoothed {smooth}, steps {steps}, {_whose(everyone)}", "edge", make, inputs)


def _whose(everyone: bool) -> str:
    return "all nodes" if everyone else "training nodes"


CASES = [
    *(_rows(steps, everyone) for steps in STEPS for everyone in (True, False)),
    *(_rows(STEPS[2], everyone, weighed=True) for everyone in (True, False)),
    *(
        _moments(smooth, steps, everyone)
        for smooth in ("labels", "features")
        for steps in STEPS
        for everyone in (True, False)
    ),
]
