"""Run the attacks: against a model, beside a network without privacy and one that reads no edge."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.attacks.attribute import feature_inference, label_inference
from discreet.attacks.fits import Progress
from discreet.attacks.game import Toggled, play
from discreet.attacks.link_stealing import (
    from_predictions,
    with_features,
    with_known_links,
    with_known_nodes,
    with_shadow,
)
from discreet.attacks.linkteller import linkteller
from discreet.attacks.membership import membership
from discreet.attacks.pairs import balanced_pairs
from discreet.attacks.rates import Rates
from discreet.attacks.victim import FEATURES_ALONE, NO_PRIVACY, RELEASE, Victim
from discreet.errors import DiscreetError, GraphError, ParameterError
from discreet.graph.graph import Graph
from discreet.methods.base import NodeClassifier
from discreet.methods.registry import find_method, load_method
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import NoPrivacy

KINDS = ("link-stealing", "linkteller", "membership", "attribute")
HIDDEN = "the guarantee lets nobody read the predictions of others, so there is nothing to compare"
FOR_THE_HOLDER = (
    "attacks are judged by the links and records themselves, without noise: these figures are for the holder's eyes, "
    "outside every guarantee"
)
REFUSED = "the model refuses to predict on changed features, or there is no link among the nodes"
NO_FEATURE = "no feature is zero for one node and not for another"


@dataclass(frozen=True)
class Effort:
    """How hard to try: pairs to guess, nodes for LinkTeller, shadow models, fits on each side of a toggled game.

    After ``seconds`` no further fit or question is begun; what is missing then is named in the report.
    """

    pairs: int = 2000
    nodes: int = 300
    shadows: int = 16
    fits: int = 100
    workers: int = 0
    seed: int = 0
    seconds: float = math.inf


class OutOfTimeError(DiscreetError):
    """The time that the attacks may take is over."""


@dataclass
class AttackReport:
    """What each attack reached. ``refuted`` where a toggled game went above the ceiling of its guarantee."""

    subject: dict[str, Any]
    attacks: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def refuted(self) -> bool:
        """Whether any attack refutes the guarantee."""
        return any(attack.get("refuted", False) for attack in self.attacks)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"subject": self.subject, "attacks": self.attacks, "refuted": self.refuted, "notes": self.notes}


def run_attacks(
    victim: Victim,
    kinds: Sequence[str],
    effort: Effort,
    *,
    compare: bool = True,
    shadow: Graph | None = None,
    progress: Progress | None = None,
) -> AttackReport:
    """The attacks of these kinds on a fitted model, and the same on its comparisons.

    Comparisons are ``gcn`` without privacy and ``mlp``, which reads no edge and so says how much links and attributes
    can be guessed from public features and like linking to like, at no privacy loss at all. Only toggled games have a
    ceiling and a verdict. ``shadow`` is another graph, with its links, that the attacker has.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ParameterError(f"the kinds of attack are {', '.join(KINDS)} and all, not {unknown[0]!r}")
    report = AttackReport(_subject(victim))
    timed = _stop_after(time.monotonic() + effort.seconds, progress)
    try:
        for one in _victims(victim, compare, timed):
            for kind in kinds:
                for row in _ATTACKS[kind](one, effort, shadow, timed):
                    report.attacks.append(row)
        report.attacks += [] if victim.is_open and not victim.uncovered else _toggled(victim, kinds, effort, timed)
    except OutOfTimeError:
        report.notes.append(f"not all attacks were run: the time limit of {effort.seconds:g} seconds was over")
    report.notes += _notes(report)
    return report


def _victims(victim: Victim, compare: bool, progress: Progress) -> Iterator[Victim]:
    yield victim
    if compare:
        yield from _comparisons(victim.graph, progress)


def _stop_after(end: float, progress: Progress | None) -> Progress:
    """``progress`` that stops the work once the time is over: every epoch, fit and question reports to it."""

    def report(title: str, done: int, total: int) -> None:
        if progress is not None:
            progress(title, done, total)
        if time.monotonic() > end:
            raise OutOfTimeError(title)

    return report


def _subject(victim: Victim) -> dict[str, Any]:
    privacy = victim.estimator.checked_privacy()
    plan = victim.estimator.plan_
    return {
        "data": victim.graph.name,
        "method": victim.estimator.method,
        "level": privacy.level.spec,
        "epsilon": privacy.epsilon,
        "delta": plan.delta,
        "covers": victim.estimator.covers,
        "uncovered": victim.uncovered,
    }


def _comparisons(graph: Graph, progress: Progress | None) -> Iterator[Victim]:
    for method, name in (("gcn", NO_PRIVACY), ("mlp", FEATURES_ALONE)):
        yield Victim(_without_privacy(method).fit(graph, progress=progress), graph, name)


def _without_privacy(method: str) -> NodeClassifier:
    return load_method(find_method(method))(Privacy(NoPrivacy(), float("inf")))


# -------------------------------------------------------------------- one kind at a time


def _link_stealing(
    victim: Victim, effort: Effort, shadow: Graph | None, progress: Progress | None
) -> Iterator[dict[str, Any]]:
    rows, rng = victim.rows(), np.random.default_rng(effort.seed)
    if rows is None:
        yield _missing("link-stealing", victim, HIDDEN)
        return
    pairs = balanced_pairs(victim.graph, effort.pairs, rng)
    yield _row("link-stealing", victim, from_predictions(rows, pairs), knows="predictions")
    yield _row("link-stealing", victim, with_features(rows, victim.graph, pairs), knows="predictions and features")
    for learn, knows in ((with_known_nodes, "all links of half of the nodes"), (with_known_links, "half of the links")):
        try:
            yield _row("link-stealing", victim, learn(rows, victim.graph, effort.pairs, rng), knows=knows)
        except GraphError as too_small:  # half of a small graph can be without a link
            yield _missing("link-stealing", victim, f"{knows}: {too_small}")
    if shadow is not None:
        model = _without_privacy("mlp" if victim.name == FEATURES_ALONE else "gcn").fit(shadow)
        there = Victim(model, shadow).rows()
        assert there is not None
        taught = balanced_pairs(shadow, effort.pairs, rng)
        found = with_shadow(rows, victim.graph, pairs, there, shadow, taught)
        yield _row("link-stealing", victim, found, knows="a shadow graph")


def _linkteller(
    victim: Victim, effort: Effort, shadow: Graph | None, progress: Progress | None
) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(effort.seed)
    nodes = rng.choice(victim.graph.num_nodes, min(effort.nodes, victim.graph.num_nodes), replace=False)
    found = linkteller(victim, np.sort(nodes), progress)
    if found is None:
        yield _missing("linkteller", victim, REFUSED)
    else:
        knows = (
            f"answers to changed features; precision {found.extra['precision']['1']:.2f} at the true number of links"
        )
        yield _row("linkteller", victim, found, knows=knows)


def _membership(
    victim: Victim, effort: Effort, shadow: Graph | None, progress: Progress | None
) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(effort.seed)
    found = membership(victim, effort.shadows, rng, workers=effort.workers, progress=progress)
    yield from (_row("membership", victim, rates, knows=f"shadow models, {name}") for name, rates in found.items())


def _attribute(
    victim: Victim, effort: Effort, shadow: Graph | None, progress: Progress | None
) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(effort.seed)
    yield _row("attribute", victim, label_inference(victim, effort.pairs, rng), knows="features; guesses the label")
    found = feature_inference(victim, effort.pairs, rng)
    knows = "all but one feature; guesses that"
    yield _missing("attribute", victim, NO_FEATURE) if found is None else _row("attribute", victim, found, knows=knows)


_ATTACKS: dict[str, Callable[[Victim, Effort, Graph | None, Progress | None], Iterator[dict[str, Any]]]] = {
    "link-stealing": _link_stealing,
    "linkteller": _linkteller,
    "membership": _membership,
    "attribute": _attribute,
}


def _toggled(victim: Victim, kinds: Sequence[str], effort: Effort, progress: Progress | None) -> list[dict[str, Any]]:
    """The game of the level's own unit: an edge stands for stolen links, a node for membership."""
    kind = "link-stealing" if victim.estimator.checked_privacy().level.kind == "edge" else "membership"
    if kind not in kinds or not effort.fits:
        return []
    rng = np.random.default_rng(effort.seed)
    options: dict[str, Any] = {"uncovered": victim.uncovered, "workers": effort.workers, "progress": progress}
    found: Toggled = play(victim.estimator, victim.graph, effort.fits, rng, **options)
    row = _row(kind, victim, found.rates, knows="all but one unit, which a coin puts in or leaves out")
    return [{**row, "ceiling": found.ceiling, "refuted": found.refuted}]


def _row(kind: str, victim: Victim, rates: Rates, knows: str | None = None) -> dict[str, Any]:
    return {"kind": kind, "against": victim.name, "knows": knows, **rates.to_json(), "ceiling": None}


def _missing(kind: str, victim: Victim, why: str) -> dict[str, Any]:
    nothing = {"auc": None, "auc_interval": None, "tpr_at_fpr": None, "pairs": 0, "ceiling": None}
    return {"kind": kind, "against": victim.name, "knows": None, **nothing, "why": why}


def _notes(report: AttackReport) -> list[str]:
    found = [] if report.subject["level"] == NoPrivacy().spec else [FOR_THE_HOLDER]
    found += [
        "links and attributes can be guessed from public features and from like linking to like even where nothing was "
        f"spent: compare the lines against {RELEASE!r} with those against {FEATURES_ALONE!r}, not with one half"
    ]
    if any(attack["ceiling"] for attack in report.attacks):
        found.append("a ceiling is what the guarantee allows any attack that faces one unit put in or left out")
    return found
