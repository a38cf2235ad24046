"""The statistical audit: can the answers of many runs tell two neighbours apart better than ε allows?

Replay sees sensitivities. This sees the rest: the scale, reuse and dependence of noise, how batches are drawn, and
whatever of private data reaches a release past all stages. It has three parts.

*Curator*: the plan's stages as the curator runs them, on inputs as far apart as they declare, very many times.
*Pipeline*: whole fits on the worst pair of neighbouring graphs that was found, as many times as there is patience.
*Noise*: what was added in the first part against the law that the plan states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from discreet.arrays import Array, FloatArray
from discreet.audit.attacks import attack_on
from discreet.audit.bounds import LowerBound, epsilon_lower_bound
from discreet.audit.compare import differences
from discreet.audit.noise_checks import NoiseCheck, law_checks, noise_checks, repeats
from discreet.audit.one_run import OneRun
from discreet.audit.trials import CuratorTask, FitTask, Trials, run_trials
from discreet.audit.worst_pairs import WorstPair
from discreet.graph.graph import Graph
from discreet.methods.base import NodeClassifier
from discreet.privacy import events
from discreet.privacy.plan import Plan, Stage

Progress = Callable[[str, int, int], None]
ALPHA = 1e-4
"""How often an honest method may be called a violation, all tests of an audit together."""
_FAR_SHARE, _FEWEST_FAR = 10, 80
"""Of the runs, how many are made once more on inputs far from zero."""
SHARES = {"curator": 0.25, "pipeline": 0.25, "one run": 0.25, "noise": 0.25}
"""Of the false alarms, what each part of an audit may cause: the same, and all of them together."""


@dataclass
class StatisticalReport:
    """What the trials showed. A bound above ``epsilon`` is a violation, and so is an unlikely noise check."""

    epsilon: float
    delta: float
    alpha: float = ALPHA
    curator: LowerBound | None = None
    pipeline: LowerBound | None = None
    one_run: OneRun | None = None
    checks: list[NoiseCheck] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def violations(self) -> list[str]:
        """What contradicts the guarantee, in words."""
        found = list(self.faults)
        for name, bound in (("curator", self.curator), ("pipeline", self.pipeline)):
            if bound is not None and bound.epsilon > self.epsilon:
                found.append(
                    f"{name}: epsilon is at least {bound.epsilon:.4g}, above {self.epsilon:g} ({bound.statistic})"
                )
        if self.one_run is not None and self.one_run.epsilon > self.epsilon:
            found.append(f"one run: epsilon is at least {self.one_run.epsilon:.4g}, above {self.epsilon:g}")
        for check in self.unlikely:
            found.append(f"{check.name} ({check.stage}): {check.detail}, probability {check.p_value:.2g}")
        return found

    @property
    def unlikely(self) -> list[NoiseCheck]:
        """Noise checks that an honest library fails too rarely to be believed (Bonferroni over all of them)."""
        limit = self.alpha * SHARES["noise"] / max(1, len(self.checks))
        return [check for check in self.checks if check.p_value < limit]

    @property
    def passed(self) -> bool:
        """Whether nothing contradicts the guarantee."""
        return not self.violations

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "alpha": self.alpha,
            "curator": None if self.curator is None else self.curator.to_json(),
            "pipeline": None if self.pipeline is None else self.pipeline.to_json(),
            "one_run": None if self.one_run is None else self.one_run.to_json(),
            "noise": [check.to_json() for check in self.checks],
            "violations": self.violations,
            "notes": self.notes,
        }


# -------------------------------------------------------------------- the curator at its declared worst


def audit_curator(
    plan: Plan,
    *,
    runs: int,
    alpha: float = ALPHA,
    workers: int = 0,
    progress: Progress | None = None,
    report: StatisticalReport | None = None,
) -> StatisticalReport:
    """Run the plan's stages on the worst inputs that they declare, ``runs`` times on each side."""
    report = StatisticalReport(plan.privacy.epsilon, plan.delta, alpha) if report is None else report
    inputs = worst_inputs(plan)
    if inputs is None:
        unknown = sorted({stage.mechanism for stage in plan.stages if not _is_known(stage)})
        report.notes.append(f"no attack is known on {', '.join(unknown)}: the curator's part was left out")
        return report
    if not inputs:
        report.notes.append("no stage adds noise: there is nothing for the curator's part to look at")
        return report
    one, two = run_trials(
        lambda side, n: CuratorTask(plan, inputs, side, n), runs, workers=workers, title="curator", progress=progress
    )
    report.curator = _bound(one, two, plan, alpha * SHARES["curator"])
    report.faults.extend(sorted({*one.faults, *two.faults}))
    both = np.concatenate([one.prints, two.prints])
    report.checks.extend([repeats(both), *noise_checks(plan, two)[1:]])
    far = far_inputs(plan, inputs)
    if far:
        trials = CuratorTask(plan, {**inputs, **far}, 1, max(_FEWEST_FAR, runs // _FAR_SHARE)).run()
        report.checks.extend(
            law_checks(plan, {index: trials.noise[index] for index in trials.noise if index[0] in far})
        )
    return report


def far_inputs(plan: Plan, inputs: Mapping[str, tuple[Array, Array]]) -> dict[str, tuple[Array, Array]]:
    """Inputs far from zero, for stages whose mechanisms have some: noise must not shrink where answers are large."""
    attacks = {stage.name: attack_on(stage) for stage in plan.stages if stage.name in inputs}
    stages = {name: attack.far for name, attack in attacks.items() if attack is not None and attack.far is not None}
    return {name: (value, value) for name, far in stages.items() for value in [far(plan.stage(name))]}


def worst_inputs(plan: Plan) -> dict[str, tuple[Array, Array]] | None:
    """The worst pair of inputs of every stage that adds noise; None where a mechanism is not known."""
    if not all(_is_known(stage) for stage in plan.stages):
        return None
    return {stage.name: attack.worst(stage) for stage in plan.stages if (attack := attack_on(stage)) is not None}


def _is_known(stage: Stage) -> bool:
    return attack_on(stage) is not None or _only_draws_a_key(stage)


def _only_draws_a_key(stage: Stage) -> bool:
    return stage.shape == () and stage.noise_std == 0


# -------------------------------------------------------------------- whole fits


def audit_pipeline(
    estimator: NodeClassifier,
    pair: WorstPair,
    *,
    runs: int,
    alpha: float = ALPHA,
    workers: int = 0,
    progress: Progress | None = None,
    report: StatisticalReport | None = None,
) -> StatisticalReport:
    """Fit on both graphs of a pair, ``runs`` times each, and attack the answers and the release."""
    plan = estimator.plan(pair.graph.public)
    report = StatisticalReport(plan.privacy.epsilon, plan.delta, alpha) if report is None else report
    graphs = (pair.graph, pair.neighbor)
    report.faults.extend(_plain_fits(estimator, pair.graph, plan))
    one, two = run_trials(
        lambda side, n: FitTask(estimator, plan, graphs, side, n),
        runs,
        workers=workers,
        title="fits",
        progress=progress,
    )
    report.pipeline = _bound(one, two, plan, alpha * SHARES["pipeline"])
    report.faults.extend(sorted({*one.faults, *two.faults}))
    report.checks.append(repeats(np.concatenate([one.prints, two.prints])))
    return report


def _plain_fits(estimator: NodeClassifier, graph: Graph, plan: Plan) -> list[str]:
    """``fit`` itself, as users call it, twice with one ``random_state``: nothing of the noise may come again."""
    if not any((attack := attack_on(stage)) is not None and attack.continuous for stage in plan.stages):
        return []
    fitted = [clone(estimator).fit(graph) for _ in range(2)]
    if not differences(*(one._state() for one in fitted)):
        return ["two fits gave the same release: noise is not drawn afresh"]
    if not fitted[0].certificate_["noise"]["for_release"]:
        return ["the certificate says that noise was not drawn from entropy"]
    return []


# -------------------------------------------------------------------- statistics


def _bound(one: Trials, two: Trials, plan: Plan, alpha: float) -> LowerBound:
    """The likelihood ratio of the answers, and linear tests learned from the first fifth of the runs."""
    learned = len(one.log_ratio) // 5
    sides: list[dict[str, FloatArray]] = [{"log-likelihood ratio": side.log_ratio} for side in (one, two)]
    if one.features.shape[1]:
        for name, shrunk in (("learned direction", 0.5), ("direction in which noise cancels", 1e-9)):
            direction = _discriminant(one.features[:learned], two.features[:learned], shrunk)
            for side, trials in zip(sides, (one, two), strict=True):
                side[name] = trials.features @ direction
    gaussian = all(isinstance(event, events.GaussianDpEvent) for event, _ in events.leaves(plan.event()))
    return epsilon_lower_bound(sides[0], sides[1], plan.delta, alpha, gaussian=gaussian, learned=learned)


def _discriminant(one: FloatArray, two: FloatArray, shrunk: float) -> FloatArray:
    """Fisher's direction, the covariance shrunk towards independence; hardly shrunk, it finds combinations in
    which noise cancels, as it does where noise was reused.
    """
    spread = np.concatenate([one, two]).std(axis=0)
    moving = spread > 1e-9 * np.abs(one).max(axis=0)
    weight = np.where(moving, 1 / np.where(moving, spread, 1.0), 0.0)
    a, b = one * weight, two * weight
    within = np.atleast_2d((np.cov(a, rowvar=False) + np.cov(b, rowvar=False)) / 2)
    within = (1 - shrunk) * within + shrunk * np.eye(a.shape[1])
    direction = np.linalg.solve(within, a.mean(axis=0) - b.mean(axis=0))
    return np.asarray(direction / max(1e-300, float(np.linalg.norm(direction))) * weight)
