"""The search: candidates, a secret number of trials, one winner, and a certificate that charges for all of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dp_accounting.dp_event import DpEvent
from sklearn.base import clone

from discreet.errors import ParameterError, PrivacyError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.limits import shown
from discreet.mechanisms.bits import NoiseSource
from discreet.methods.base import NodeClassifier
from discreet.methods.parameters import checked_settings, plain_value
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of, group_note
from discreet.privacy.budget import Privacy
from discreet.privacy.certificate import CHARGED, FREE, NOT_ACCOUNTED, make_certificate
from discreet.privacy.events.selection import SHAPES, check_repeats, draw_repeats, select_event
from discreet.privacy.events.table import composed_curve
from discreet.privacy.levels import NoPrivacy
from discreet.privacy.plan import Plan, Stage
from discreet.queries.best_of_trials import BestOfTrials
from discreet.tuning.score import ACCURACY, Score, score_for

SEARCH = "search"
SMALLEST_SHARE = 1 / 1024
"""Of the budget, for one trial: below it the trial learns nothing."""
TOLERANCE = 1.01
"""One per cent of a trial's budget is not worth another calibration."""
Settings = Mapping[str, Any]
Reserve = Callable[[Sequence[Plan], bool], object]
"""Gets the plans that will run, and whether scores without noise give away something that the level protects."""


@dataclass(frozen=True)
class Budgeted:
    """A search that fits its budget: what each trial may spend, and what all of it costs.

    Guarantee: ``plan.epsilon`` ≤ the ε asked for, whatever the number of trials turns out to be.
    """

    trial_epsilon: float
    plan: Plan


@dataclass(frozen=True)
class Tuned:
    """The winner, fitted and certified, with its settings and its (noisy) validation score."""

    estimator: NodeClassifier
    settings: Settings
    score: float
    epsilon: float
    accounting: str
    tried: list[tuple[Settings, float]]
    """Every trial, where that may be shown: empty when the search is charged, for losers are not in the release."""


def tune(
    estimator: NodeClassifier,
    candidates: Sequence[Settings],
    graph: Graph,
    *,
    trials: float = 10.0,
    distribution: str = "logarithmic",
    score_noise: float | None = None,
    accounted: bool = True,
    metric: str = ACCURACY,
    reserve: Reserve | None = None,
) -> Tuned:
    """Search the candidates by a metric on the validation nodes and return the best, within the estimator's own budget.

    ``trials`` is how many runs to expect; the number itself is drawn in secret. With ``accounted=False`` every
    candidate is tried at the full budget and the certificate is stamped *tuning not accounted*. ``reserve`` is called
    with what will run, before any private data is asked: a ledger enters it, or raises.
    """
    if not isinstance(estimator, NodeClassifier):
        raise ParameterError(f"tune takes an estimator such as GAP(privacy), not {shown(estimator)}")
    if not isinstance(accounted, bool):
        raise ParameterError(f"accounted must be True or False, not {shown(accounted)}")
    if reserve is not None and not callable(reserve):
        raise ParameterError(f"reserve is a function that is called, not {shown(reserve)}")
    trials, score_noise = plain_value(trials), plain_value(score_noise)
    _check_trials(trials, distribution)
    privacy = estimator.checked_privacy()
    viewed = privacy.level.view(graph)
    for settings in candidates:
        checked_settings(type(estimator), estimator.method, settings)
    if not accounted or _costs_nothing(estimator, candidates, viewed):
        if reserve is not None:
            plans = [_candidate(estimator, settings, privacy).plan(viewed.public) for settings in candidates]
            reserve(plans, _reads_unpaid(estimator, candidates, viewed))
        return _try_all(estimator, candidates, viewed, _free if accounted else _not_accounted, metric)
    search = make_search(estimator, candidates, viewed, trials, distribution, score_noise, metric)
    budgeted = search.within_budget()
    if reserve is not None:
        reserve([budgeted.plan], False)
    return search.run(budgeted)


# -------------------------------------------------------------------- the charged search


def make_search(
    estimator: NodeClassifier,
    candidates: Sequence[Settings],
    graph: Graph,
    trials: float,
    distribution: str = "logarithmic",
    score_noise: float | None = None,
    metric: str = ACCURACY,
) -> Search:
    """A search over a graph as the level sees it; nothing is read from it but public facts."""
    _check_trials(trials, distribution)
    covers = _one_coverage(estimator, candidates)
    score = score_for(estimator.checked_privacy().level, covers, graph, score_noise, metric)
    return Search(estimator, candidates, graph, trials, distribution, covers, score)


def _check_trials(trials: float, distribution: str) -> None:
    if not isinstance(distribution, str) or distribution not in SHAPES:
        raise PrivacyError(f"the number of trials is {' or '.join(SHAPES)}, not {shown(distribution)}")
    if isinstance(trials, bool) or not isinstance(trials, int | float):
        raise PrivacyError(f"the expected number of runs must be a number, not {shown(trials)}")
    check_repeats(trials, SHAPES[distribution])


@dataclass(frozen=True)
class Search:
    """Candidates, how often to try, and the score to select by."""

    estimator: NodeClassifier
    candidates: Sequence[Settings]
    graph: Graph
    trials: float
    distribution: str
    covers: str
    score: Score

    @property
    def privacy(self) -> Privacy:
        """The budget of the whole."""
        return self.estimator.checked_privacy()

    @property
    def delta(self) -> float:
        """The δ of the whole."""
        return self.privacy.resolve_delta(self.graph.public.num_nodes)

    @property
    def shape(self) -> float:
        """η of the law of the number of trials."""
        return SHAPES[self.distribution]

    def within_budget(self) -> Budgeted:
        """The largest budget for one trial (to one per cent) at which the whole search keeps within the estimator's."""
        low, high, best = 0.5, 1.0, self._plan(0.5)
        while best is None:
            low, high = low / 2, low
            if low < SMALLEST_SHARE:
                raise PrivacyError(
                    f"epsilon {self.privacy.epsilon:g} does not pay for a search of {self.trials:g} trials: "
                    "expect fewer, add noise to the score, or raise epsilon"
                )
            best = self._plan(low)
        while high / low > TOLERANCE:
            middle = (low * high) ** 0.5
            found = self._plan(middle)
            low, high, best = (middle, high, found) if found is not None else (low, middle, best)
        return Budgeted(low * self.privacy.epsilon, best)

    def run(self, budgeted: Budgeted) -> Tuned:
        """Run it. The number of trials and the settings of each come from the curator's entropy, and stay here."""
        secret = NoiseSource(insecure_seed=self.estimator.insecure_noise_seed)
        repeats = draw_repeats(self.trials, self.shape, secret.stream("number of trials"))
        picks = secret.stream("settings of each trial").integers(len(self.candidates), size=repeats)
        inner = Privacy(self.privacy.level, budgeted.trial_epsilon, self.delta)
        winner: tuple[float, NodeClassifier, Settings] | None = None
        for run, pick in enumerate(picks):
            settings = self.candidates[int(pick)]
            trial = _candidate(self.estimator, settings, inner, _test_seed(self.estimator, run))
            with _silent_after_the_first(run):
                trial.fit(self.graph)
            noise = NoiseSource(insecure_seed=_test_seed(trial, run))
            scored = self.score.ask(trial, self.graph, self.delta, noise)
            if winner is None or scored > winner[0]:  # ties: first seen, as if each output carried a random number
                winner = scored, trial, settings
        assert winner is not None  # the law of the number of trials starts at 1
        best, fitted, settings = winner
        fitted.certificate_ = self._certificate(fitted, budgeted.plan)
        fitted.epsilon_spent_ = budgeted.plan.epsilon
        return Tuned(fitted, settings, best, budgeted.plan.epsilon, "charged", [])

    def _plan(self, share: float) -> Plan | None:
        """The plan of the search if a trial gets this share of ε; None where that is too much."""
        inner = Privacy(self.privacy.level, share * self.privacy.epsilon, self.delta)
        plans = [_candidate(self.estimator, s, inner).plan(self.graph.public) for s in self.candidates]
        parts = [events.compose([plan.event(), self.score.event]) for plan in plans]
        _check_curves(parts, plans)
        event = select_event(parts, self.trials, self.shape)
        if epsilon_of(event, self.delta) > self.privacy.epsilon:
            return None
        group = group_note(self.privacy.level, event, self.delta)
        notes = (
            *self.estimator._notes(self.graph.public, self.privacy.level),
            "hyper-parameters were searched; epsilon covers every trial, and only the winner is released",
            "the number of trials is secret: how long the search took, and which settings lost, must not be published",
            *([group] if group else []),
        )
        method, stages = self.estimator.method, (self._stage(event),)
        return Plan(method, self.privacy, self.delta, stages, self.covers, notes)

    def _stage(self, event: DpEvent) -> Stage:
        noise = self.score.noise if self.score.sensitivity else 0.0
        query = BestOfTrials(self.trials, self.distribution, len(self.candidates), noise)
        return Stage(SEARCH, query, query.bound(), event)

    def _certificate(self, fitted: NodeClassifier, plan: Plan) -> dict[str, Any]:
        """The winner's certificate: the search as its one stage, the winner's own stages for the reader."""
        own = fitted.certificate_
        made = make_certificate(
            plan,
            [fitted.public_, *fitted.extra_public_],
            noise=own["noise"]["source"],
            for_release=own["noise"]["for_release"],
            spent=[plan.event()],
            versions=own["versions"],
            tuning=f"{CHARGED}{plan.stages[0].query.words}, by validation {self.score.metric}",
        )
        asked = [self.score.stage.to_json()] if self.score.sensitivity else []
        return {**made, "accounting": own["accounting"], "trial_stages": [*own["stages"], *asked]}


@contextmanager
def _silent_after_the_first(run: int) -> Iterator[None]:
    """What a fit says of public data it says once: said by every trial, it would tell how many there were."""

    def passes(_: logging.LogRecord) -> bool:
        return run == 0

    log = logging.getLogger("discreet")
    log.addFilter(passes)
    try:
        yield
    finally:
        log.removeFilter(passes)


def _candidate(
    estimator: NodeClassifier, settings: Settings, privacy: Privacy, noise_seed: int | None = None
) -> NodeClassifier:
    made: NodeClassifier = clone(estimator)
    seed = made.insecure_noise_seed if noise_seed is None else noise_seed
    values = checked_settings(type(made), made.method, settings)
    return made.set_params(**values, privacy=privacy, insecure_noise_seed=seed)


def _test_seed(estimator: NodeClassifier, run: int) -> int | None:
    """Noise of its own for each trial, where a test fixes the seed; fresh entropy otherwise."""
    seed = estimator.insecure_noise_seed
    return None if seed is None else 1000 * (seed + 1) + run


def _one_coverage(estimator: NodeClassifier, candidates: Sequence[Settings]) -> str:
    """What every candidate covers: a search over settings that cover different things has no one promise."""
    privacy = estimator.checked_privacy()
    found = {_candidate(estimator, settings, privacy).covers for settings in candidates}
    if len(found) > 1:
        raise UnsupportedError(f"the candidates cover different things ({', '.join(sorted(found))}): search one kind")
    return found.pop()


def _check_curves(parts: Sequence[DpEvent], plans: Sequence[Plan]) -> None:
    for part, plan in zip(parts, plans, strict=True):
        if composed_curve(part) is None:
            raise UnsupportedError(
                f"{plan.method} at level {plan.privacy.level.spec} spends a delta of its own, and nothing is proved on "
                "what a search does to that: use --not-accounted, or another method"
            )


# -------------------------------------------------------------------- without a charge


def _costs_nothing(estimator: NodeClassifier, candidates: Sequence[Settings], graph: Graph) -> bool:
    """Level none, or methods that read nothing protected and whose predictions everyone may see."""
    privacy = estimator.checked_privacy()
    if privacy.level.kind == "none":
        return True
    if _reads_unpaid(estimator, candidates, graph):
        return False
    return not any(_candidate(estimator, settings, privacy).plan(graph.public).stages for settings in candidates)


def _reads_unpaid(estimator: NodeClassifier, candidates: Sequence[Settings], graph: Graph) -> bool:
    """Whether scores without noise would give away something that the level protects."""
    level = estimator.checked_privacy().level
    return bool(score_for(level, _one_coverage(estimator, candidates), graph).sensitivity)


def _try_all(
    estimator: NodeClassifier,
    candidates: Sequence[Settings],
    graph: Graph,
    stamp: Callable[[NodeClassifier, int, str], str],
    metric: str,
) -> Tuned:
    """Every candidate once, at the full budget; every certificate says what that means."""
    privacy = estimator.checked_privacy()
    free = score_for(NoPrivacy(), "", graph, metric=metric)
    tried, winner = [], None
    for run, settings in enumerate(candidates):
        trial = _candidate(estimator, settings, privacy, _test_seed(estimator, run)).fit(graph)
        accounting = stamp(trial, len(candidates), metric)
        scored = free.ask(trial, graph, 0.0, NoiseSource())
        tried.append((settings, scored))
        if winner is None or scored > winner[0]:
            winner = scored, trial, settings
    assert winner is not None
    best, fitted, chosen = winner
    return Tuned(fitted, chosen, best, fitted.epsilon_spent_, accounting, tried)


def _not_accounted(trial: NodeClassifier, candidates: int, metric: str) -> str:
    trial.certificate_["tuning"] = (
        f"{NOT_ACCOUNTED}: {candidates} settings were tried on the private data and the best by {metric} was kept; "
        "epsilon covers the last fit alone"
    )
    return "not accounted"


def _free(trial: NodeClassifier, candidates: int, metric: str) -> str:
    trial.certificate_["tuning"] = f"{candidates} settings were tried, by validation {metric}; {FREE}"
    return "free"
