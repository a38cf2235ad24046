"""``discreet tune``: search settings within a budget, and release the winner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.config import Config, SaveConfig, config_text
from discreet.cli.declared import BesideMlp, Json, Metric, PrivateFigures
from discreet.cli.options import (
    LOCAL,
    DataOptions,
    LedgerOptions,
    MethodOptions,
    Reservation,
    StatementOptions,
    prepare,
)
from discreet.cli.output import LOG, check_places, report, say
from discreet.errors import ParameterError
from discreet.limits import SEED, TRIALS

if TYPE_CHECKING:
    from discreet.graph.graph import Graph
    from discreet.privacy.plan import Plan
    from discreet.tuning.tuner import Tuned


@dataclass(frozen=True)
class SearchedMethod(MethodOptions):
    """A method whose other settings are searched."""

    epsilon: Annotated[
        float | None,
        typer.Option(
            help="The budget of the whole search, the released model included. Default: 4, or inf at --level none."
        ),
    ] = None
    seed: Annotated[
        int,
        typer.Option(
            min=SEED.low, max=SEED.high, help="Seeds split, candidates and training, never noise or the trials."
        ),
    ] = 0


@dataclass(frozen=True)
class SearchOptions:
    """What to try, how often, and how trials are compared."""

    search: Annotated[
        list[str] | None,
        typer.Option(help="What to try: KEY=a,b,c or KEY=low..high or KEY=low..high:log. Repeatable."),
    ] = None
    space: Annotated[Path | None, typer.Option(help="A TOML file with a table [search], beside or instead.")] = None
    candidates: Annotated[
        int, typer.Option(min=1, max=TRIALS.high, help="Most settings to try, where the space is larger.")
    ] = 24
    trials: Annotated[float, typer.Option(help="How many trials to expect; the number is drawn in secret.")] = 10.0
    distribution: Annotated[str, typer.Option(help="Its law: logarithmic or geometric.")] = "logarithmic"
    score_noise: Annotated[float | None, typer.Option(help="Noise on the count of validation nodes met.")] = None
    metric: Metric = "accuracy"
    not_accounted: Annotated[
        bool,
        typer.Option("--not-accounted", help="Charge nothing: certificates are stamped `tuning not accounted`."),
    ] = False

    def drawn(self, seed: int) -> list[dict[str, Any]]:
        """The candidates, before any data is seen."""
        from discreet.tuning.space import candidates, parse_search, read_space

        of_file = {} if self.space is None else read_space(self.space)
        return candidates({**of_file, **parse_search(self.search or ())}, self.candidates, seed)


@dataclass(frozen=True)
class OfTrainAlone:
    """Options of ``train`` that a search does not have: it says why."""

    also: Annotated[list[str] | None, typer.Option(hidden=True)] = None
    engine: Annotated[str, typer.Option(hidden=True)] = LOCAL

    def refuse(self) -> None:
        """One sentence for each."""
        if self.also:
            raise ParameterError(
                "tune has no --also: every trial of a search is charged, and would be charged for both graphs; give "
                "both to discreet train, with the settings that you want"
            )
        if self.engine != LOCAL:
            raise ParameterError(
                f"tune has no --engine {self.engine}: it fits many times, in this process; discreet train has it"
            )


def tune(
    context: typer.Context,
    search: SearchOptions,
    data: DataOptions,
    method: SearchedMethod,
    issued: StatementOptions,
    ledger: LedgerOptions,
    of_train_alone: OfTrainAlone,
    out: Annotated[Path | None, typer.Option(help="Write the winner's release to this new folder.")] = None,
    private_figures: PrivateFigures = False,
    beside_mlp: BesideMlp = False,
    config: Config = None,
    save_config: SaveConfig = None,
    as_json: Json = False,
) -> None:
    """Search a method's parameters by a metric on validation nodes, with the cost of the search charged to epsilon."""
    from discreet.files import write_whole
    from discreet.release.evaluate import check_features_alone, features_alone
    from discreet.tuning.tuner import tune as run

    of_train_alone.refuse()
    check_places(out, save_config, beside=ledger.ledger)
    options = None if save_config is None else config_text(context, epsilon=method.privacy().epsilon)
    statement = issued.statement()
    ledger.check()
    tried = search.drawn(method.seed)
    graph, estimator, recommendation = prepare(data, method)
    if beside_mlp:
        check_features_alone(estimator)
    entry = Reservation(None, None)

    def reserve(plans: Sequence[Plan], unpaid: bool) -> None:
        nonlocal entry
        if recommendation is not None:  # not before all is checked: a refusal is one sentence and nothing else
            say(f"{recommendation}\n", as_json)
        entry = ledger.reserve("tune", plans, unpaid)

    found = run(
        estimator,
        tried,
        graph,
        trials=search.trials,
        distribution=search.distribution,
        score_noise=search.score_noise,
        accounted=not search.not_accounted,
        metric=search.metric,
        reserve=reserve,
    )
    if out is not None:  # saved before anything is reported, so that a search is never lost to a report
        found.estimator.save(out, entry.added_to(statement))
        entry.release(out)
    if save_config is not None and options is not None:
        write_whole(save_config, options)
    result = _result(found, graph, method.privacy().epsilon, search, len(tried), private_figures)
    if beside_mlp:
        result["mlp_test_score"] = features_alone(found.estimator, graph)[_key(search.metric)].get("test")
    if recommendation is not None:
        result["recommendation"] = recommendation.to_json()
    result |= {"release": None if out is None else str(out), "ledger": entry.entry}
    if found.accounting == "not accounted":
        LOG.warning("tuning not accounted: epsilon covers the last fit alone")
    report(result if as_json else {key: value for key, value in result.items() if key != "recommendation"}, as_json)


def _result(
    found: Tuned, graph: Graph, epsilon: float, search: SearchOptions, candidates: int, private_figures: bool
) -> dict[str, Any]:
    """What may be shown: of a charged search the winner alone, neither the number of trials nor the time."""
    from discreet.release.evaluate import figures_of_fit

    estimator = found.estimator
    figures = figures_of_fit(estimator, graph, private=private_figures)
    test_score = figures[_key(search.metric)]
    result: dict[str, Any] = {
        "data": graph.name,
        "method": estimator.method,
        "level": estimator.checked_privacy().level.spec,
        "epsilon": epsilon,
        "epsilon_spent": found.epsilon,
        "delta": estimator.plan_.delta,
        "tuning": found.accounting,
        "expected_trials": search.trials if found.accounting == "charged" else candidates,
        "candidates": candidates,
        "settings": dict(found.settings),
        "val_score": found.score,
        "metric": search.metric,
        "test_score": None if test_score is None else test_score.get("test"),
        "test_accuracy": None if test_score is None else figures["accuracy"].get("test"),
        "covers": estimator.covers,
        "warnings": figures["warnings"],
        "note": figures["note"],
    }
    if found.tried:
        result["tried"] = [{"settings": dict(settings), "val_score": score} for settings, score in found.tried]
    return result


def _key(metric: str) -> str:
    """What figures call a metric."""
    return metric.replace("-", "_")
