"""Which method to use: compared on public facts, before any data is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from discreet.errors import DiscreetError, ParameterError, UnsupportedError
from discreet.graph.graph import PublicFacts
from discreet.limits import shown
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
PREFERRED = {**dict.fromkeys(("none", "edge", "neighbor", "node"), "hop-bayes"), "local": "lpgnn"}
"""The method to use at a level if it can run: measured on eleven graphs no rule on public facts did better (docs)."""


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
        """Two lines: what was chosen and why, and what each alternative would offer."""
        others = [candidate for candidate in self.candidates if candidate != self.chosen]
        offered = ", ".join(f"{c.title} {c.outlook.words}" for c in others if c.outlook is not None)
        alike: dict[str, list[str]] = {}
        for candidate in others:
            if candidate.outlook is None:
                alike.setdefault(candidate.remark.partition(";")[0], []).append(candidate.title)  # a hint may follow
        out = ", ".join(f"{', '.join(titles)} ({why})" for why, titles in alike.items())
        lines = [f"method {self.chosen.title}: {self.reason}"]
        if offered or out:
            known = f"other methods, with how much of labels / edges their noise leaves: {offered}" if offered else ""
            lines.append("; ".join(part for part in (known, f"not compared: {out}" if out else "") if part))
        return "\n".join(lines)

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

    SETTINGS: ClassVar = ("covers", "expected_degree")

    privacy: Privacy
    covers: Literal["predictions", "own", "weights"] = "predictions"
    expected_degree: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 10.0

    def __post_init__(self) -> None:
        """Refuse what is not a choice."""
        if not isinstance(self.privacy, Privacy):
            raise ParameterError(
                f"privacy must be a Privacy such as Privacy(EdgeLevel(), 4), not {shown(self.privacy)}"
            )
        validate(type(self), "auto", {"covers": self.covers, "expected_degree": self.expected_degree})

    @classmethod
    def from_settings(cls, privacy: Privacy, settings: Iterable[str]) -> Auto:
        """Read ``key=value`` texts."""
        return cls(privacy, **parse_settings(cls, "auto", settings))

    def recommend(self, public: PublicFacts) -> Recommendation:
        """Compare every method that supports the level, and name one.

        Guarantee: reads the level, the budget and public facts only, so the choice costs nothing.
        """
        if not isinstance(public, PublicFacts):
            raise ParameterError(f"public facts are wanted, as graph.public holds them, not {type(public).__name__}")
        level = self.privacy.level
        if level.kind not in COMPARED:
            return self._named_by_level()
        found = [self._judge(public, info, settings) for info, settings in _variants(level.kind)]
        usable = [candidate for candidate in found if candidate.outlook is not None]
        if not usable:
            why = next((c.remark for c in found if c.method == PREFERRED[level.kind]), "there is none")
            raise UnsupportedError(f"no method covers {self.covers} at level {level.spec} within this budget: {why}")
        preferred = [candidate for candidate in usable if candidate.method == PREFERRED[level.kind]]
        chosen = max(preferred or usable, key=lambda candidate: candidate.score)
        return Recommendation(chosen, self._reason(chosen), tuple(sorted(found, key=lambda c: -c.score)))

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

    def _named_by_level(self) -> Recommendation:
        """Where edges carry no noise, a level has one method that is named without a comparison."""
        kind = self.privacy.level.kind
        names = [info.name for info, settings in _variants(kind) if not settings]
        others = [
            Candidate(name, remark="nothing to compare: edges carry no noise")
            for name in names
            if name != PREFERRED[kind]
        ]
        chosen = Candidate(PREFERRED[kind])
        return Recommendation(chosen, self._reason(chosen), (chosen, *others))

    def _reason(self, chosen: Candidate) -> str:
        kind = self.privacy.level.kind
        if kind == "local":
            return "reports of features and labels, denoised over public edges; it is the plainer of the methods here"
        if kind == "none":
            return "it does well where like links to like, and where it does not"
        if chosen.outlook is None or chosen.method != PREFERRED[kind]:
            return f"{PREFERRED[kind]} cannot run here, and of the others this one loses least to noise"
        if chosen.outlook.graph == 0:
            return "it reads features alone where the noise would drown the edges, as it would here"
        return (
            f"it trusts edges as far as the noise on them allows; if a node has about {self._degree():g} neighbours, "
            f"they set two classes {chosen.outlook.graph:.2g} standard deviations of noise apart"
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
