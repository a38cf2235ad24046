"""``discreet attack``: what real attacks reach, beside what the guarantee allows."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.declared import Json, Workers
from discreet.cli.options import DataOptions, MeasuredDataOptions, MethodOptions, prepare
from discreet.cli.output import check_places, print_json, print_rows, progress_bars
from discreet.limits import SAMPLES, TRIALS

if TYPE_CHECKING:
    from discreet.attacks.report import AttackReport, Effort
    from discreet.attacks.victim import Victim
    from discreet.graph.graph import Graph
    from discreet.training.descent import Progress

ALL = "all"


@dataclass(frozen=True)
class AttackOptions:
    """Which attacks, and how hard to try."""

    kind: Annotated[str, typer.Option(help="link-stealing, linkteller, membership, attribute or all.")] = ALL
    pairs: Annotated[int, typer.Option(min=10, max=SAMPLES.high, help="Pairs of nodes, or nodes, to guess about.")] = (
        2000
    )
    nodes: Annotated[int, typer.Option(min=2, max=SAMPLES.high, help="Nodes whose features LinkTeller changes.")] = 300
    shadows: Annotated[int, typer.Option(min=4, max=TRIALS.high, help="Shadow models for membership.")] = 16
    fits: Annotated[
        int,
        typer.Option(
            min=0, max=SAMPLES.high, help="Fits with and without one unit, for the game with a ceiling; 0 for none."
        ),
    ] = 100
    workers: Workers = 0
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds after which no further attack is begun.")] = None
    compare: Annotated[bool, typer.Option(help="Attack a network without privacy, and one on features, too.")] = True
    uncovered: Annotated[bool, typer.Option("--uncovered", help="Attack predictions outside the guarantee, too.")] = (
        False
    )

    def kinds(self) -> list[str]:
        """Names of attacks."""
        from discreet.attacks.report import KINDS

        return list(KINDS) if self.kind == ALL else [self.kind]

    def effort(self, seed: int) -> Effort:
        """Numbers."""
        from discreet.attacks.report import Effort

        seconds = math.inf if self.timeout is None else self.timeout
        return Effort(self.pairs, self.nodes, self.shadows, self.fits, self.workers, seed, seconds)


def attack(
    data: DataOptions,
    method: MethodOptions,
    options: AttackOptions,
    release: Annotated[
        Path | None, typer.Argument(help="Attack this release on --data instead of a fresh fit of --method.")
    ] = None,
    shadow: Annotated[str | None, typer.Option(help="Another dataset that the attacker has, with its links.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the result to this new JSON file.")] = None,
    as_json: Json = False,
) -> None:
    """Attack a model: steal links, find members, guess attributes, from what the guarantee lets an attacker see.

    Exit code 1 where an attack goes above the ceiling of the guarantee.
    """
    from discreet.attacks.report import run_attacks
    from discreet.files import to_json, write_whole

    check_places(out)
    with progress_bars() as progress:
        victim = _victim(data, method, release, options.uncovered, progress)
        found = run_attacks(
            victim,
            options.kinds(),
            options.effort(data.seed),
            compare=options.compare,
            shadow=None if shadow is None else _shadow(shadow, data),
            progress=progress,
        )
    if out is not None:
        write_whole(out, json.dumps(to_json(found.to_json()), indent=2, ensure_ascii=False) + "\n")
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)
    if found.refuted:
        raise typer.Exit(1)


def _victim(
    data: DataOptions, method: MethodOptions, release: Path | None, uncovered: bool, progress: Progress | None
) -> Victim:
    from discreet.attacks.victim import Victim

    if release is None:
        graph, estimator, _ = prepare(data, method)
        return Victim(estimator.fit(graph, progress=progress), graph, uncovered=uncovered)
    from discreet.release.load import load_release

    loaded = load_release(release)
    as_trained = MeasuredDataOptions(**{**vars(data), "seed": None if data.split is None else data.seed})
    return Victim(loaded, as_trained.load_for(loaded), uncovered=uncovered)


def _shadow(name: str, data: DataOptions) -> Graph:
    from discreet.graph.datasets import resolve
    from discreet.graph.splits import split, usual_split

    other = resolve(name, data.data_root, data.directed)
    return split(other, data.split or usual_split(other), data.seed)


def _print(found: AttackReport) -> None:
    subject = found.subject
    budget = f"epsilon {subject['epsilon']:g}"
    print(f"attacks on {subject['method']} at level {subject['level']}, {budget}, {subject['data']}\n")
    print_rows([_line(attack) for attack in found.attacks], as_json=False)
    print()
    for note in found.notes:
        print(f"note  {note}")
    print(_verdict(found))


def _verdict(found: AttackReport) -> str:
    if found.refuted:
        return "THE GUARANTEE IS REFUTED"
    if any(attack["ceiling"] for attack in found.attacks):
        return "no attack went above the ceiling of the guarantee"
    return "no game with a ceiling was played: nothing here speaks for or against the guarantee"


def _line(attack: dict[str, Any]) -> dict[str, Any]:
    named = {"kind": attack["kind"], "against": attack["against"], "knows": attack["knows"] or "–"}
    if attack["auc"] is None:
        return {**named, "auc": "–", "interval": "–", "tpr at 1 %": "–", "ceiling": "–", "pairs": 0}
    low, high = attack["auc_interval"]
    ceiling = attack["ceiling"]
    return {
        **named,
        "auc": f"{attack['auc']:.3f}",
        "interval": f"{low:.3f}–{high:.3f}",
        "tpr at 1 %": f"{attack['tpr_at_fpr']['0.01']:.3f}",
        "ceiling": "–" if ceiling is None else f"auc {ceiling['auc']:.3f}, tpr {ceiling['0.01']:.3f}",
        "pairs": attack["pairs"],
    }
