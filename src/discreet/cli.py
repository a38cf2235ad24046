"""The command. Thin: it reads options, calls the library, and prints. Nothing heavy is imported for --help."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.audit.command import audit
from discreet.bench.command import bench
from discreet.command_output import print_json, print_rows, progress_bars, report, say, training_result
from discreet.errors import DiscreetError, InvalidInputError, ParameterError, UnsupportedError
from discreet.methods.by_options import estimator_from_options, parse_delta
from discreet.tuning.command import tune

if TYPE_CHECKING:
    from discreet.graph.graph import Graph
    from discreet.methods.base import NodeClassifier
    from discreet.methods.recommend import Recommendation
    from discreet.privacy.levels import Level

app = typer.Typer(
    name="discreet",
    help="Learn on private graphs: say what is protected and how much, see the plan, train, release, verify.",
    epilog="Start with: discreet train --data csbm --method gap --level edge --epsilon 4 --out release",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Data = Annotated[
    str,
    typer.Option(help="A dataset by name (see `discreet data`), a .npz file, or a folder with edges and nodes tables."),
]
Root = Annotated[Path | None, typer.Option("--data-root", help="Where datasets are looked for first.")]
Column = Annotated[
    list[str] | None,
    typer.Option("--column", help="For tables: ROLE=NAME with role source, target, id, label or split. Repeatable."),
]
Directed = Annotated[
    bool | None, typer.Option("--directed/--undirected", help="Read edges with their directions, or both ways.")
]
Split = Annotated[
    str,
    typer.Option(help="75/10/15 (per cent), 20/500/1000 (a class, val, test), 80/20:inductive, public, geom-gcn:0."),
]
AUTO = "auto"
Method = Annotated[str, typer.Option(help="One of `discreet methods`.")]
Choice = Annotated[str, typer.Option("--method", help="One of `discreet methods`, or auto: see docs/recommend.md.")]
LevelSpec = Annotated[
    str, typer.Option("--level", help="What is protected: none, edge, edge:directed, neighbor:K, node:…, local.")
]
Epsilon = Annotated[float, typer.Option(help="Privacy budget; inf goes with --level none.")]
Delta = Annotated[str, typer.Option(help="A number, or auto: from the public number of nodes.")]
Seed = Annotated[int, typer.Option(help="Seeds the split and the training, never the privacy noise.")]
Setting = Annotated[list[str] | None, typer.Option("--set", help="A parameter of the method, KEY=VALUE. Repeatable.")]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output, everything else on standard error.")
]
Device = Annotated[str, typer.Option(help="cpu or cuda.")]
Threads = Annotated[int | None, typer.Option(help="Threads for training; torch's choice by default.")]
_INTERRUPTED = 130  # what typer makes of Ctrl-C
Release = Annotated[Path, typer.Argument(help="A folder that `discreet train --out` wrote.")]


@app.command()
def train(
    data: Data = "csbm",
    method: Choice = "gap",
    level: LevelSpec = "edge",
    epsilon: Epsilon = 4.0,
    delta: Delta = "auto",
    split: Split = "75/10/15",
    seed: Seed = 0,
    settings: Setting = None,
    out: Annotated[Path | None, typer.Option(help="Write the release to this new folder.")] = None,
    data_root: Root = None,
    columns: Column = None,
    directed: Directed = None,
    device: Device = "cpu",
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Train a model within a budget and, with --out, release it with a certificate."""
    from discreet.methods.release import check_free, save_release

    if out is not None:
        check_free(out)
    protected, choose = _choice(method, level, epsilon, delta, settings, seed, device, threads)
    graph = _graph(data, data_root, columns, directed, split, seed, protected)
    estimator, recommendation = choose(graph)
    if recommendation is not None:
        say(f"{recommendation}\n", as_json)
    say(estimator.plan(graph.public), as_json)
    with progress_bars() as progress:
        estimator.fit(graph, progress=progress)
    result = training_result(estimator, graph, seed, split)
    if recommendation is not None:
        result["recommendation"] = recommendation.to_json()
    if out is not None:
        result["release"] = str(save_release(estimator, out))
    report(result, as_json)


@app.command()
def plan(
    data: Data = "csbm",
    method: Choice = "gap",
    level: LevelSpec = "edge",
    epsilon: Epsilon = 4.0,
    delta: Delta = "auto",
    split: Split = "75/10/15",
    seed: Seed = 0,
    settings: Setting = None,
    data_root: Root = None,
    columns: Column = None,
    directed: Directed = None,
    as_json: Json = False,
) -> None:
    """Show what training would ask of private data, with sensitivities, noise and ε; train nothing."""
    protected, choose = _choice(method, level, epsilon, delta, settings, seed, "cpu", None)
    graph = _graph(data, data_root, columns, directed, split, seed, protected)
    estimator, recommendation = choose(graph)
    made = estimator.plan(graph.public)
    if as_json:
        print_json(
            {
                **({} if recommendation is None else {"recommendation": recommendation.to_json()}),
                "method": made.method,
                "level": made.privacy.level.spec,
                "epsilon": made.privacy.epsilon,
                "delta": made.delta,
                "epsilon_spent": made.epsilon,
                "accounting": made.accounting,
                "epsilon_by_accountant": made.spend(),
                "covers": made.covers,
                "stages": [{**stage.to_json(), "noise_std": stage.noise_std} for stage in made.stages],
                "notes": list(made.notes),
            }
        )
    else:
        print(made if recommendation is None else f"{recommendation}\n\n{made}")


@app.command()
def methods(as_json: Json = False) -> None:
    """List the methods, the levels that each supports, and what its guarantee covers."""
    from discreet.methods.registry import methods as known

    rows = [
        {"method": m.name, "levels": list(m.levels), "covers": m.covers, "summary": m.summary} for m in known().values()
    ]
    print_rows(rows, as_json)


@app.command("data")
def data_command(data_root: Root = None, as_json: Json = False) -> None:
    """List the datasets that have a name, with their statistics, and whether their files are here."""
    from discreet.graph.datasets import available

    rows = [
        {
            "name": d.name,
            "nodes": d.nodes,
            "edges": d.edges,
            "features": d.features,
            "classes": d.classes,
            "status": d.status,
        }
        for d in available(data_root)
    ]
    print_rows(rows, as_json)


@app.command()
def predict(
    release: Release,
    data: Data,
    out: Annotated[Path, typer.Option(help="Write node, predicted class and probability to this new CSV file.")],
    audience: Annotated[
        str, typer.Option(help="anyone, or owner where each prediction goes to its node alone.")
    ] = "anyone",
    public_graph: Annotated[
        bool,
        typer.Option("--public-graph", help="Nothing in this graph is private: apply the weights freely."),
    ] = False,
    uncovered: Annotated[
        bool, typer.Option(help="Predict outside the guarantee; what you publish is then not private.")
    ] = False,
    data_root: Root = None,
    columns: Column = None,
    directed: Directed = None,
    as_json: Json = False,
) -> None:
    """Predict the class of every node, within what the release's guarantee covers, or not at all."""
    from discreet.methods.predictions import write_predictions
    from discreet.methods.release import check_free, load_release

    check_free(out)
    estimator = load_release(release)
    graph = _load(data, data_root, columns, directed)
    probabilities = estimator.predict_proba(graph, audience=audience, public=public_graph, uncovered=uncovered)
    write_predictions(out, graph, probabilities)
    report({"release": str(release), "nodes": graph.num_nodes, "covers": estimator.covers, "out": str(out)}, as_json)


@app.command()
def verify(release: Release, as_json: Json = False) -> None:
    """Check a release: recompute ε from its events and compare the hash of every file."""
    from discreet.errors import DataNotFoundError
    from discreet.privacy.certificate import verify as run_checks

    if not release.is_dir():
        raise DataNotFoundError(f"there is no release at {release}")
    checks = run_checks(release)
    passed = all(check.passed for check in checks)
    if as_json:
        rows = [{"check": c.name, "passed": c.passed, "detail": c.detail} for c in checks]
        print_json({"release": str(release), "verified": passed, "checks": rows})
    else:
        for check in checks:
            print(f"{'ok  ' if check.passed else 'FAIL'}  {check.name:20} {check.detail}")
        print(
            "verified: the parts belong together (this shows integrity, not who made them)"
            if passed
            else "NOT VERIFIED"
        )
    if not passed:
        raise typer.Exit(1)


@app.command()
def doctor(data_root: Root = None, as_json: Json = False) -> None:
    """Report versions, devices, where data is looked for, and what is missing."""
    from discreet.doctor import examine

    report(examine(data_root), as_json)


app.command()(audit)
app.command()(bench)
app.command()(tune)


# -------------------------------------------------------------------- reading options


def _choice(
    method: str,
    level: str,
    epsilon: float,
    delta: str,
    settings: list[str] | None,
    seed: int,
    device: str,
    threads: int | None,
) -> tuple[Level, Callable[[Graph], tuple[NodeClassifier, Recommendation | None]]]:
    """Check every option before any data is read; ``auto`` needs the graph's public facts to name a method."""
    if method != AUTO:
        estimator = estimator_from_options(method, level, epsilon, delta, settings, seed, device, threads)
        return estimator._checked_privacy().level, lambda graph: (estimator, None)
    from discreet.methods.compute import Compute
    from discreet.methods.recommend import Auto
    from discreet.privacy.budget import Privacy
    from discreet.privacy.level_specs import parse_level

    auto = Auto.from_settings(Privacy(parse_level(level), epsilon, parse_delta(delta)), settings or ())
    compute = Compute(device, threads)
    compute.prepare()

    def choose(graph: Graph) -> tuple[NodeClassifier, Recommendation]:
        found = auto.recommend(auto.privacy.level.view(graph).public)
        return auto.estimator(found).set_params(random_state=seed, compute=compute), found

    return auto.privacy.level, choose


def _load(data: str, root: Path | None, columns: list[str] | None, directed: bool | None) -> Graph:
    from discreet.graph.datasets import resolve

    roles = dict(_role(text) for text in columns or ())
    return resolve(data, root, directed, **roles)


def _role(text: str) -> tuple[str, str]:
    role, equals, name = text.partition("=")
    if not equals:
        raise ParameterError(f"--column takes ROLE=NAME, not {text!r}")
    return role, name


def _graph(
    data: str,
    root: Path | None,
    columns: list[str] | None,
    directed: bool | None,
    split: str,
    seed: int,
    level: Level,
) -> Graph:
    from discreet.graph.splits import reads_labels
    from discreet.graph.splits import split as split_graph

    private = level.kind in ("node", "neighbor") or level.spec in ("local", "local:labels")
    if reads_labels(split) and private:
        raise UnsupportedError(
            f"the split {split} is chosen by looking at labels, which level {level.kind} protects: use per cent"
        )
    return split_graph(_load(data, root, columns, directed), split, seed)


def main(arguments: list[str] | None = None) -> int:
    """Run the command: 0 done, 2 bad input (one sentence), 1 anything else."""
    try:
        code = app(args=arguments, prog_name="discreet", standalone_mode=False)
    except InvalidInputError as error:
        return _fail(str(error), 2)
    except DiscreetError as error:
        return _fail(str(error), 1)
    except typer.TyperException as error:
        return _fail(error.format_message(), 2)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted; nothing was written", 1)
    except OSError as error:
        return _fail(f"{error.strerror or error}: {error.filename or 'input or output failed'}", 1)
    if code == _INTERRUPTED:
        return _fail("interrupted; nothing was written", 1)
    return code if isinstance(code, int) else 0


def _fail(sentence: str, code: int) -> int:
    print(f"discreet: {sentence}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
