"""Which method to use: compared on public facts, before any data is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from discreet.errors import DiscreetError, UnsupportedError
from discreet.graph.graph import PublicFacts
from discreet.methods.base import NodeClassifier
from discreet.methods.declaration import Declaration
from discreet.methods.outlook import Outlook
from discreet.methods.parameters import parse_settings, validate
from discreet.methods.registry import list_methods, load_method
from discreet.privacy.budget import Privacy

ENOUGH_COVERAGE = {
    "predictions": ("weights+predictions", "weights+others-predictions"),
    "own": ("own-prediction", "weights+predictions", "weights+others-predictions"),
    "weights": ("weights", "weights+predictions", "weights+others-predictions", "own-prediction"),
}
COMPARED = ("edge", "neighbor", "node")
WORTH = 0.05
"""A method that reads edges must promise this much more than one that does not: less is within the guess."""


@dataclass(frozen=True)
class Candidate:
    """A method with settings, and what it can be expected to learn; ``remark`` says why it is out, if it is."""

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    outlook: Outlook | None = None
    remark: str = ""

    @property
    def title(self) -> str:
        """The method with its settings."""
        return " ".join([self.method, *(f"{key}={value}" for key, value in self.settings.items())])

    @property
    def score(self) -> float:
        """How much it can be expected to learn; negative if it is out."""
        return -1.0 if self.outlook is None else self.outlook.score


@dataclass(frozen=True)
class Recommendation:
    """The method to use, why, and what it was compared with."""

    chosen: Candidate
    reason: str
    candidates: tuple[Candidate, ...]

    def __str__(self) -> str:
        """The comparison, then the choice."""
        rows = [("method", "training", "graph", "score", "remark"), *map(_row, self.candidates)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*(f"  {line}" for line in lines), "", f"use {self.chosen.title}: {self.reason}"])

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "method": self.chosen.method,
            "settings": dict(self.chosen.settings),
            "reason": self.reason,
            "candidates": [
                {
                    "method": candidate.method,
                    "settings": dict(candidate.settings),
                    "training": None if candidate.outlook is None else candidate.outlook.learning,
                    "graph": None if candidate.outlook is None else candidate.outlook.graph,
                    "score": None if candidate.outlook is None else candidate.outlook.score,
                    "remark": candidate.remark,
                }
                for candidate in self.candidates
            ],
        }


@dataclass
class Auto:
    """What ``--method auto`` chooses with.

    Parameters
    ----------
    covers
        What must be covered: ``predictions`` (those of others, at least, for anyone), ``own`` (each node reads its
        own), or the ``weights`` alone. Methods are compared within one coverage only.
    expected_degree
        How many neighbours a node has, as you would guess without looking: the number of edges is private.
    """

    privacy: Privacy
    covers: Literal["predictions", "own", "weights"] = "predictions"
    expected_degree: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 10.0

    def __post_init__(self) -> None:
        """Refuse what is not a choice."""
        validate(type(self), "auto", {"covers": self.covers, "expected_degree": self.expected_degree})

    @classmethod
    def from_settings(cls, privacy: Privacy, settings: Iterable[str]) -> Auto:
        """Read ``key=value`` texts."""
        return cls(privacy, **parse_settings(cls, "auto", settings))

    def recommend(self, public: PublicFacts) -> Recommendation:
        """Compare every method that supports the level, and name one.

        Guarantee: reads the level, the budget and public facts only, so the choice costs nothing.
        """
        level = self.privacy.level
        if level.kind not in COMPARED:
            raise UnsupportedError(
                f"auto weighs what edges tell against noise on them, and level {level.kind} has none: name a method"
            )
        found = [self._judge(public, info, settings) for info, settings in _variants(level.kind)]
        usable = [candidate for candidate in found if candidate.outlook is not None]
        if not usable:
            raise UnsupportedError(f"no method covers {self.covers} at level {level.spec}")
        chosen, reason = self._choose(usable)
        return Recommendation(chosen, reason, tuple(sorted(found, key=lambda c: -c.score)))

    def estimator(self, recommendation: Recommendation) -> NodeClassifier:
        """The recommended method, unfitted."""
        chosen = recommendation.chosen
        return load_method(list_methods()[chosen.method])(self.privacy, **chosen.settings)

    def _judge(self, public: PublicFacts, info: Declaration, settings: Mapping[str, Any]) -> Candidate:
        estimator = load_method(info)(self.privacy, **settings)
        try:
            if estimator.covers not in ENOUGH_COVERAGE[self.covers]:
                return Candidate(info.name, settings, remark=f"covers {estimator.covers}")
            plan = estimator.plan(public)
        except DiscreetError as error:
            return Candidate(info.name, settings, remark=str(error))
        return Candidate(info.name, settings, estimator._outlook(plan, public, self._degree()))

    def _degree(self) -> float:
        bound = getattr(self.privacy.level, "max_degree", None)
        return self.expected_degree if bound is None else min(self.expected_degree, float(bound))

    def _choose(self, usable: list[Candidate]) -> tuple[Candidate, str]:
        best = max(usable, key=lambda candidate: candidate.score)
        plain = max((c for c in usable if _graph(c) == 0), key=lambda c: c.score, default=None)
        if plain is not None and best.score < plain.score + WORTH:
            reading = max((c for c in usable if _graph(c) > 0), key=lambda c: c.score, default=None)
            return plain, (
                f"with about {self._degree():g} neighbours a node the graph is not worth its noise: the best that "
                f"reads edges, {'none' if reading is None else reading.title}, promises no more"
            )
        return best, (
            f"with about {self._degree():g} neighbours a node its noise leaves two classes {_graph(best):.2g} standard "
            f"deviations apart, the most for what training costs"
        )


def recommend(public: PublicFacts, privacy: Privacy, **options: Any) -> Recommendation:
    """The method to use at this level and budget; options as in :class:`Auto`."""
    return Auto(privacy, **options).recommend(public)


def _variants(level: str) -> Iterable[tuple[Declaration, Mapping[str, Any]]]:
    """Every method at that level, with the settings that change what it covers."""
    for info in list_methods().values():
        if level in info.levels:
            yield info, {}
            yield from ((info, settings) for settings in info.variants.get(level, ()))


def _graph(candidate: Candidate) -> float:
    assert candidate.outlook is not None
    return candidate.outlook.graph


def _row(candidate: Candidate) -> tuple[str, str, str, str, str]:
    if candidate.outlook is None:
        return candidate.title, "–", "–", "–", candidate.remark
    outlook = candidate.outlook
    return candidate.title, f"{outlook.learning:.3g}", f"{outlook.graph:.3g}", f"{outlook.score:.2f}", ""
