"""``discreet tune``: search settings within a budget, and release the winner."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.errors import UnsupportedError

if TYPE_CHECKING:
    from discreet.graph.graph import Graph
    from discreet.methods.base import NodeClassifier
    from discreet.tuning.tuner import Tuned


def tune(
    search: Annotated[
        list[str] | None,
        typer.Option(help="What to try: KEY=a,b,c or KEY=low..high or KEY=low..high:log. Repeatable."),
    ] = None,
    space: Annotated[Path | None, typer.Option(help="A TOML file with a table [search], beside or instead.")] = None,
    data: Annotated[str, typer.Option(help="A dataset by name, a .npz file, or a folder of tables.")] = "csbm",
    method: Annotated[str, typer.Option(help="One of `discreet methods`.")] = "gap",
    level: Annotated[str, typer.Option(help="What is protected, as for `discreet train`.")] = "edge",
    epsilon: Annotated[float, typer.Option(help="The budget of the whole search, the released model included.")] = 4.0,
    delta: Annotated[str, typer.Option(help="A number, or auto: from the public number of nodes.")] = "auto",
    split: Annotated[str, typer.Option(help="A split with validation nodes, as for `discreet train`.")] = "75/10/15",
    seed: Annotated[int, typer.Option(help="Seeds split, candidates and training, never noise or the trials.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A fixed parameter, KEY=VALUE. Repeatable.")
    ] = None,
    trials: Annotated[float, typer.Option(help="How many trials to expect; the number is drawn in secret.")] = 10.0,
    distribution: Annotated[str, typer.Option(help="Its law: logarithmic or geometric.")] = "logarithmic",
    candidates: Annotated[int, typer.Option(help="Most settings to try, where the space is larger.")] = 24,
    score_noise: Annotated[float | None, typer.Option(help="Noise on the count of validation nodes met.")] = None,
    not_accounted: Annotated[
        bool,
        typer.Option("--not-accounted", help="Charge nothing: certificates are stamped `tuning not accounted`."),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Write the winner's release to this new folder.")] = None,
    data_root: Annotated[Path | None, typer.Option("--data-root", help="Where datasets are looked for first.")] = None,
    directed: Annotated[bool | None, typer.Option("--directed/--undirected", help="How edges are read.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Search a method's parameters by validation accuracy, with the cost of the search charged to epsilon."""
    from discreet.command_output import report
    from discreet.methods.by_options import estimator_from_options
    from discreet.methods.release import check_free, save_release
    from discreet.tuning.space import candidates as drawn
    from discreet.tuning.space import parse_search, read_space
    from discreet.tuning.tuner import tune as run

    if out is not None:
        check_free(out)
    wanted = {**(read_space(space) if space is not None else {}), **parse_search(search or ())}
    estimator = estimator_from_options(method, level, epsilon, delta, settings, seed)
    tried = drawn(wanted, candidates, seed)
    graph = _graph(data, data_root, directed, split, seed, estimator)
    found = run(
        estimator,
        tried,
        graph,
        trials=trials,
        distribution=distribution,
        score_noise=score_noise,
        accounted=not not_accounted,
    )
    result = _result(found, graph, epsilon, level, method, trials, len(tried))
    if out is not None:
        result["release"] = str(save_release(found.estimator, out))
    if found.accounting == "not accounted":
        print("tuning not accounted: epsilon covers the last fit alone", file=sys.stderr)
    report(result, as_json)


def _graph(
    data: str, root: Path | None, directed: bool | None, split: str, seed: int, estimator: NodeClassifier
) -> Graph:
    from discreet.graph.datasets import resolve
    from discreet.graph.splits import reads_labels
    from discreet.graph.splits import split as split_graph

    level = estimator._checked_privacy().level
    if reads_labels(split) and level.kind not in ("none", "edge"):
        raise UnsupportedError(
            f"the split {split} is chosen by looking at labels, which level {level.kind} protects: use per cent"
        )
    return split_graph(resolve(data, root, directed), split, seed)


def _result(
    found: Tuned, graph: Graph, epsilon: float, level: str, method: str, trials: float, candidates: int
) -> dict[str, Any]:
    """What may be shown: of a charged search the winner alone, neither the number of trials nor the time."""
    result: dict[str, Any] = {
        "data": graph.name,
        "method": method,
        "level": level,
        "epsilon": epsilon,
        "epsilon_spent": found.epsilon,
        "delta": found.estimator.plan_.delta,
        "tuning": found.accounting,
        "expected_trials": trials if found.accounting == "charged" else candidates,
        "candidates": candidates,
        "settings": dict(found.settings),
        "val_score": found.score,
        "test_accuracy": found.estimator.score(graph, "test", uncovered=True),
        "covers": found.estimator.covers,
        "release": None,
        "note": "test accuracy is a research figure, outside every guarantee",
    }
    if found.tried:
        result["tried"] = [{"settings": dict(settings), "val_score": score} for settings, score in found.tried]
    return result
