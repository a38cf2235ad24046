"""``discreet bench``: read a suite, run what it lacks, print and write its tables and figures."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.bench.runner import Outcome
    from discreet.bench.suite import Suite
    from discreet.bench.trials import Entry

OUT = "bench-results"


def bench(
    suite: Annotated[
        str | None, typer.Argument(help="A suite by name (see --list), or the path of a .toml file.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help=f"Where results are kept and looked for; {OUT}/SUITE if not given.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Some of the trials: a method, dataset or level, or KEY=VALUE. Repeatable."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds, instead of the suite's.")] = None,
    first_seed: Annotated[int | None, typer.Option(min=0, help="The first seed, instead of the suite's.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes, one thread each; one a core if not given.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds after which a trial counts as failed.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run failed trials again.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse to run where a dataset is absent.")] = False,
    tables_only: Annotated[
        bool, typer.Option("--tables-only", help="Run nothing: tables of the results there are.")
    ] = False,
    form: Annotated[
        str, typer.Option("--format", help="What to print: terminal, markdown, latex or csv.")
    ] = "terminal",
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Draw the suite's figures.")] = True,
    listing: Annotated[bool, typer.Option("--list", help="Show the suites, or the cells of one, and stop.")] = False,
    data_root: Annotated[Path | None, typer.Option("--data-root", help="Where datasets are looked for first.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="A line a trial on standard error.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Run a suite of trials and print its tables. Run again, it goes on where it stopped.

    Exit code 1 if a trial failed. Accuracy figures are research figures, outside every guarantee.
    """
    from discreet.bench.suite import read_suite
    from discreet.bench.tables import check_layout
    from discreet.bench.trials import expand, paper_only, select
    from discreet.bench.writers import FORMATS

    if form not in (*FORMATS, "csv"):
        raise ParameterError(f"--format is terminal, markdown, latex or csv, not {form!r}")
    if suite is None:
        if not listing:
            raise ParameterError("say which suite to run; discreet bench --list shows them")
        _list_suites(as_json)
        return
    wanted = read_suite(suite)
    entries = expand(wanted, seeds=seeds, first_seed=first_seed)
    printed = list(paper_only(wanted))
    check_layout(wanted, [*entries, *printed])
    entries = select(entries, only or ())
    if listing:
        _list_cells(wanted, entries, as_json)
        return
    folder = out or Path(OUT) / wanted.name
    outcome = _run(entries, folder, tables_only, jobs or wanted.jobs, timeout, retry_failed, strict, data_root, verbose)
    _warn_of_sources(entries, outcome.rows)
    everything = entries if only else [*entries, *printed]
    written = _write(wanted, everything, outcome, folder, figures)
    _print(wanted, everything, outcome, written, form, as_json)
    if any(outcome.rows[e.trial.id]["status"] != "ok" for e in entries if e.trial.id in outcome.rows):
        raise typer.Exit(1)


def _run(
    entries: Sequence[Entry],
    folder: Path,
    tables_only: bool,
    jobs: int | None,
    timeout: float | None,
    retry_failed: bool,
    strict: bool,
    data_root: Path | None,
    verbose: bool,
) -> Outcome:
    from discreet.bench.runner import Options, Outcome, default_jobs, run
    from discreet.bench.store import read_rows
    from discreet.errors import DataNotFoundError

    if not tables_only:
        options = Options(jobs or default_jobs(), data_root, strict, retry_failed, timeout, verbose)
        return run(entries, folder, options)
    if not folder.is_dir():
        raise DataNotFoundError(f"there are no results at {folder}")
    return Outcome(read_rows(folder))


# -------------------------------------------------------------------- what it writes and prints


def _write(suite: Suite, entries: Sequence[Entry], outcome: Outcome, folder: Path, figures: bool) -> list[str]:
    """tables.md, tables.tex, cells.csv and one .svg a figure, each whole or not at all."""
    from discreet.bench.store import written_whole
    from discreet.bench.summary import cells
    from discreet.bench.tables import layouts
    from discreet.bench.writers import cells_csv, latex, markdown

    made = layouts(suite, entries, outcome.rows)
    texts = {
        "tables.md": "\n".join(map(markdown, made)),
        "tables.tex": "\n".join(map(latex, made)),
        "cells.csv": cells_csv(cells(entries, outcome.rows, *_measured(suite))),
    }
    for name, text in texts.items():
        with written_whole(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [*texts, *(_draw(suite, entries, outcome, folder) if figures else [])]


def _measured(suite: Suite) -> tuple[str, str]:
    """What the CSV holds: the metric of the first table."""
    from discreet.bench.tables import tables_of

    first = tables_of(suite)[0]
    return first.metric, first.mask


def _draw(suite: Suite, entries: Sequence[Entry], outcome: Outcome, folder: Path) -> list[str]:
    drawn = []
    for figure in suite.figures:
        from discreet.bench.figures import draw

        path = folder / f"{figure.name}.svg"
        try:
            if draw(figure, entries, outcome.rows, path):
                drawn.append(path.name)
        except ImportError as error:
            print(f"no figures: {error}; results and tables are there", file=sys.stderr)
            break
    return drawn


def _print(
    suite: Suite, entries: Sequence[Entry], outcome: Outcome, written: Sequence[str], form: str, as_json: bool
) -> None:
    from discreet.bench.summary import cells
    from discreet.bench.tables import layouts
    from discreet.bench.writers import FORMATS, cells_csv
    from discreet.command_output import print_json

    found = cells(entries, outcome.rows, *_measured(suite))
    if as_json:
        print_json(_as_json(suite, found, outcome, written))
    elif form == "csv":
        print(cells_csv(found), end="")
    else:
        print("\n".join(map(FORMATS[form], layouts(suite, entries, outcome.rows))), end="")
    for name, reason in outcome.absent.items():
        print(f"not run: {name}: {reason}", file=sys.stderr)


def _as_json(suite: Suite, found: Sequence[Any], outcome: Outcome, written: Sequence[str]) -> dict[str, Any]:
    metric, mask = _measured(suite)
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
                "mean": _finite(cell.mean),
                "half_interval": _finite(cell.half),
                "paper": cell.paper,
                "covers": cell.covers,
                "epsilon_spent": _finite(cell.spent),
                "reasons": sorted(set(cell.reasons)),
            }
            for cell in found
        ],
        "note": "accuracy is a research figure, outside every guarantee",
    }


def _finite(value: float) -> float | None:
    return None if value != value else value


def _warn_of_sources(entries: Sequence[Entry], rows: Mapping[str, Any]) -> None:
    """Rows made by other versions of the source stay as they are; that they are old is said."""
    from discreet.bench.execute import source_digest

    used = [rows[e.trial.id] for e in entries if e.trial.id in rows]
    old = sum(row["versions"].get("source") != source_digest() for row in used)
    if old:
        print(f"{old} of {len(used)} rows were made by another version of the source", file=sys.stderr)


def _list_suites(as_json: bool) -> None:
    from discreet.bench.suite import read_suite, suite_names
    from discreet.command_output import print_rows

    suites = [read_suite(name) for name in suite_names()]
    print_rows([{"suite": s.name, "seeds": s.seeds, "title": s.title} for s in suites], as_json)


def _list_cells(suite: Suite, entries: Sequence[Entry], as_json: bool) -> None:
    from discreet.bench.summary import cells
    from discreet.bench.tables import shown
    from discreet.command_output import print_rows

    keys = list(dict.fromkeys(key for entry in entries for key in entry.at))
    rows = [{**{key: shown(cell.at.get(key)) for key in keys}, "seeds": cell.wanted} for cell in cells(entries, {})]
    print_rows(rows, as_json)
