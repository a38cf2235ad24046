"""``discreet report``: a release, or bench results, as one page for people."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.declared import Json, PrivateFigures
from discreet.cli.options import MeasuredDataOptions
from discreet.cli.output import check_places
from discreet.cli.output import report as print_result
from discreet.errors import DataNotFoundError, ParameterError

if TYPE_CHECKING:
    from discreet.release.report.accuracy import Paid


@dataclass(frozen=True)
class MeasuredOn(MeasuredDataOptions):
    """The graph to measure accuracy on, where that is wanted."""

    data: Annotated[str | None, typer.Option(help="Measure accuracy on this graph, beside a model without edges.")] = (
        None  # type: ignore[assignment]
    )


@dataclass(frozen=True)
class BesideOptions:
    """What is shown beside the release."""

    attacks: Annotated[Path | None, typer.Option(help="What `discreet attack --out` wrote.")] = None
    audit: Annotated[Path | None, typer.Option(help="What `discreet audit --out` wrote.")] = None
    sweep: Annotated[Path | None, typer.Option(help="Bench results over ε, cells.csv of `discreet bench`.")] = None
    ledger: Annotated[Path | None, typer.Option(help="The ledger that this release is entered in.")] = None
    policy: Annotated[Path | None, typer.Option(help="Thresholds of the verdict, a TOML file.")] = None
    node_name: Annotated[str, typer.Option(help="What a node is called on the page.")] = "person"
    edge_name: Annotated[str, typer.Option(help="What an edge is called on the page.")] = "link"


def report(
    what: Annotated[list[Path], typer.Argument(help="A release, or CSV files of bench results.")],
    out: Annotated[Path, typer.Option(help="Write the page to this new file.")],
    beside: BesideOptions,
    data: MeasuredOn,
    private_figures: PrivateFigures = False,
    as_json: Json = False,
) -> None:
    """Write one self-contained HTML page: may this be published, what is protected and what is not, and why."""
    from discreet.files import write_whole

    check_places(out)
    if out.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"the page is HTML: name it {out.with_suffix('.html').name!r:.80}, which a browser prints")
    folders = [path for path in what if path.is_dir()]
    if not folders:
        from discreet.release.report.bench_page import render_bench

        write_whole(out, render_bench(what))
    elif len(what) == 1:
        write_whole(out, _release_page(folders[0], beside, data, private_figures))
    else:
        raise ParameterError("discreet report takes one release, or CSV files of bench results")
    print_result({"report": str(out)}, as_json)


def _release_page(folder: Path, beside: BesideOptions, data: MeasuredOn, private_figures: bool) -> str:
    from discreet.privacy.ledger import Ledger
    from discreet.release.report.inputs import read_attacks, read_audit, read_rows
    from discreet.release.report.page import Beside, render_report
    from discreet.release.report.policy import read_policy
    from discreet.release.report.words import Names

    for name in (beside.node_name, beside.edge_name):
        if not (name.strip() and len(name) <= 40 and name.isprintable()):
            raise ParameterError(f"a name of nodes or edges has 1 to 40 printable characters, not {name!r:.60}")
    if beside.ledger is not None and not beside.ledger.is_file():
        raise DataNotFoundError(f"there is no ledger at {beside.ledger}")
    given = Beside(
        attacks=None if beside.attacks is None else read_attacks(beside.attacks),
        audit=None if beside.audit is None else read_audit(beside.audit),
        sweep=() if beside.sweep is None else read_rows(beside.sweep)[1],
        ledger=None if beside.ledger is None else Ledger(beside.ledger),
        paid=None if data.data is None else _measured(folder, data, private_figures),
        names=Names(beside.node_name, beside.edge_name),
        policy=read_policy(beside.policy),
    )
    return render_report(folder, given)


def _measured(folder: Path, data: MeasuredOn, private_figures: bool) -> Paid:
    from discreet.release.load import load_release
    from discreet.release.report.accuracy import accuracy_paid

    estimator = load_release(folder)
    return accuracy_paid(estimator, data.load_for(estimator), private_figures)
