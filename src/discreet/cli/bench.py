"""``discreet bench``: read a suite, run what it lacks, print and write its tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.declared import DataRoot, Device, Json
from discreet.cli.options import ComputeOptions
from discreet.cli.output import LOG, NOTE, check_places, print_json, print_rows
from discreet.errors import DataNotFoundError, ParameterError
from discreet.limits import SEED, THREADS, TRIALS

if TYPE_CHECKING:
    from discreet.bench.runner import Outcome
    from discreet.bench.suite import Suite
    from discreet.bench.summary import Cell
    from discreet.bench.trials import Entry

OUT = "bench-results"


@dataclass(frozen=True)
class TrialOptions:
    """Which trials of a suite."""

    only: Annotated[
        list[str] | None,
        typer.Option(help="Some of the trials: a method, dataset or level, or KEY=VALUE. Repeatable."),
    ] = None
    seeds: Annotated[
        int | None, typer.Option(min=1, max=TRIALS.high, help="How many seeds, instead of the suite's.")
    ] = None
    first_seed: Annotated[
        int | None, typer.Option(min=0, max=SEED.high // 2, help="The first seed, instead of the suite's.")
    ] = None

    preset: Annotated[
        str | None, typer.Option(help="Run the cases of methods that have this preset (paper) with it, and no others.")
    ] = None

    def read(self, suite: Suite) -> tuple[list[Entry], list[Entry]]:
        """The trials that are wanted, and what tables show of others: figures that a paper printed."""
        from discreet.bench.tables import check_layout
        from discreet.bench.trials import expand, first_in_each_place, paper_only, select, with_preset

        if self.preset is not None:
            suite = with_preset(suite, self.preset)
        entries, printed = expand(suite, seeds=self.seeds, first_seed=self.first_seed), list(paper_only(suite))
        if self.preset is not None:
            entries = first_in_each_place(entries)
        check_layout(suite, [*entries, *printed])
        return select(entries, self.only or ()), [] if self.only else printed


@dataclass(frozen=True)
class RunOptions:
    """How to run them, none of which can change a result."""

    jobs: Annotated[
        int | None, typer.Option(min=1, max=THREADS.high, help="Processes, one thread each; one per core if not given.")
    ] = None
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds after which a trial counts as failed.")] = None
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run failed trials again.")] = False
    strict: Annotated[bool, typer.Option("--strict", help="Refuse to run where a dataset is absent.")] = False
    tables_only: Annotated[
        bool, typer.Option("--tables-only", help="Run nothing: tables of the results there are.")
    ] = False
    data_root: DataRoot = None
    verbose: Annotated[bool, typer.Option("--verbose", help="One line per trial on standard error.")] = False
    device: Device = "cpu"

    def run(self, suite: Suite, entries: Sequence[Entry], folder: Path) -> Outcome:
        """Run what the folder lacks, or read what it has."""
        from discreet.bench.runner import Options, Outcome, default_jobs, run
        from discreet.bench.store import read_rows

        if not self.tables_only:
            jobs = self.jobs or suite.jobs or default_jobs()
            ComputeOptions(self.device).prepare()
            how = (self.strict, self.retry_failed, self.timeout, self.verbose, self.device)
            return run(entries, folder, Options(jobs, self.data_root, *how))
        if not folder.is_dir():
            raise DataNotFoundError(f"there are no results at {folder}")
        return Outcome(read_rows(folder))


def bench(
    trials: TrialOptions,
    how: RunOptions,
    suite: Annotated[
        str | None, typer.Argument(help="A suite by name (see --list), or the path of a .toml file.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help=f"Where results are kept and looked for; {OUT}/SUITE if not given.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="What to print: terminal, markdown, latex or csv.")
    ] = "terminal",
    metric: Annotated[
        str | None, typer.Option(help="Show this score instead of the suite's: see docs/evaluating.md.")
    ] = None,
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Draw the suite's figures.")] = True,
    listing: Annotated[bool, typer.Option("--list", help="Show the suites, or the cells of one, and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Run a suite of trials and print its tables. Run again, it goes on where it stopped.

    Exit code 1 if a trial failed. Accuracy figures are research figures, outside every guarantee.
    """
    from discreet.bench.outputs import write_outputs
    from discreet.bench.store import RESULTS
    from discreet.bench.suite import read_suite
    from discreet.bench.tables import with_metric

    _check_format(form)
    if suite is None:
        _without_suite(listing, as_json)
        return
    wanted = read_suite(suite) if metric is None else with_metric(read_suite(suite), metric)
    entries, printed = trials.read(wanted)
    if listing:
        _list_cells(entries, printed, how.data_root, as_json)
        return
    folder = out or Path(OUT) / wanted.name
    check_places(beside=folder / RESULTS)
    outcome = how.run(wanted, entries, folder)
    _warn_of_sources(entries, outcome.rows)
    written = write_outputs(wanted, [*entries, *printed], outcome.rows, folder, figures)
    if as_json:
        print_json(_as_json(wanted, [*entries, *printed], outcome, written))
    else:
        _print(wanted, [*entries, *printed], outcome, form)
        LOG.info(NOTE)  # beside the tables, which others may read as they are
    _warn_of_absent(outcome)
    if any(outcome.rows[e.trial.id]["status"] != "ok" for e in entries if e.trial.id in outcome.rows):
        raise typer.Exit(1)


def _check_format(form: str) -> None:
    from discreet.bench.writers import FORMATS

    if form not in (*FORMATS, "csv"):
        raise ParameterError(f"--format is terminal, markdown, latex or csv, not {form!r}")


# -------------------------------------------------------------------- listings


def _without_suite(listing: bool, as_json: bool) -> None:
    from discreet.bench.suite import read_suite, suite_names

    if not listing:
        raise ParameterError("say which suite to run; discreet bench --list shows them")
    suites = [read_suite(name) for name in suite_names()]
    print_rows([{"suite": s.name, "seeds": s.seeds, "title": s.title} for s in suites], as_json)


def _list_cells(entries: Sequence[Entry], printed: Sequence[Entry], root: Path | None, as_json: bool) -> None:
    """Every cell, with what its paper prints, and whether it can run: whether its graph is here."""
    from discreet.bench.graphs import is_here
    from discreet.bench.summary import cells
    from discreet.bench.tables import shown

    keys = list(dict.fromkeys(key for entry in entries for key in entry.at))
    graphs = {entry.at["dataset"]: entry.trial.dataset for entry in entries}
    here = {name for name, graph in graphs.items() if not graph or is_here(graph, root)}

    def status(cell: Cell) -> str:
        if not cell.wanted:
            return "only printed"
        return "runs" if cell.at["dataset"] in here else "graph is absent"

    print_rows(
        [
            {
                **{key: shown(cell.at.get(key)) for key in keys},
                "seeds": cell.wanted,
                "paper": shown(cell.paper),
                "status": status(cell),
            }
            for cell in cells([*entries, *printed], {})
        ],
        as_json,
    )


# -------------------------------------------------------------------- results


def _print(suite: Suite, entries: Sequence[Entry], outcome: Outcome, form: str) -> None:
    from discreet.bench.outputs import first_cells
    from discreet.bench.tables import layouts
    from discreet.bench.writers import FORMATS, cells_csv

    if form == "csv":
        print(cells_csv(first_cells(suite, entries, outcome.rows)), end="")
    else:
        print("\n".join(map(FORMATS[form], layouts(suite, entries, outcome.rows))), end="")


def _as_json(suite: Suite, entries: Sequence[Entry], outcome: Outcome, written: Sequence[str]) -> dict[str, Any]:
    from discreet.bench.outputs import first_cells, first_measured

    metric, mask = first_measured(suite)
    found = first_cells(suite, entries, outcome.rows)
    return {
        "suite": suite.name,
        "metric": metric,
        "mask": mask,
        "ran": outcome.ran,
        "failed": sum(len(cell.reasons) for cell in found),
        "skipped": outcome.absent,
        "written": list(written),
        "cells": [
            {
                **cell.at,
                "seeds": len(cell.values),
                "mean": _number(cell.mean),
                "half_interval": _number(cell.half),
                "paper": cell.paper,
                "covers": cell.covers,
                "epsilon_spent": _number(cell.spent),
                "reasons": sorted(set(cell.reasons)),
            }
            for cell in found
        ],
        "note": NOTE,
    }


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if value != value else value


def _warn_of_sources(entries: Sequence[Entry], rows: Mapping[str, Any]) -> None:
    """Rows made by other versions of the source stay as they are; that they are old is said."""
    from discreet.bench.execute import source_digest

    used = [rows[e.trial.id] for e in entries if e.trial.id in rows]
    old = sum(row.get("versions", {}).get("source") != source_digest() for row in used)
    if old:
        LOG.warning(f"{old} of {len(used)} rows were made by another version of the source")


def _warn_of_absent(outcome: Outcome) -> None:
    for name, reason in outcome.absent.items():
        LOG.warning(f"not run: {name}: {reason}")
