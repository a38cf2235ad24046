"""What a plan knows of a question to private data: words, how far one unit can move the answer, what it costs, who
proved that, and how its noise is drawn.

The questions themselves live in ``discreet.queries``, one file each. This is their common form.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dp_accounting.dp_event import DpEvent

from discreet.errors import PlanViolationError
from discreet.graph.parts import PrivatePart
from discreet.privacy import events

# -------------------------------------------------------------------- how sure a stage is

PROVED_HERE = "proved here"
"""The proof stands in the docstring of the query (and of its event); tests search small graphs for a counterexample."""
PUBLISHED = "published proof"
"""The bound or the cost rests on a theorem of a paper that the docstring names."""
CHECKED = "numerically checked"
"""No proof is known; searches found nothing above what is stated."""
STATED = "stated by its author"
"""A query of another package that says nothing of its proof."""
NOTHING_PROMISED = "nothing is promised"
"""Level ``none``."""

PROOFS = (PROVED_HERE, PUBLISHED, CHECKED, STATED, NOTHING_PROMISED)

NO_NOISE = "no noise"
IN_FLOATING_POINT = "drawn and added in floating point, from cryptographic random bits; no bound is proved on rounding"
_ON_A_GRID = "exact on a public grid"
_ROUGH = ("objective",)
_SAMPLERS = {
    "gaussian": f"{_ON_A_GRID}: a discrete Gaussian from ChaCha20",
    "dpsgd": f"{_ON_A_GRID}: a discrete Gaussian from ChaCha20; batches by exact coins",
    "laplace": f"{_ON_A_GRID}: rounded Laplace noise from ChaCha20",
    "gumbel-top-k": "exact: picks by coins from ChaCha20; values with rounded Laplace noise on a public grid",
    "gaussian-top-k": f"{_ON_A_GRID}: a discrete Gaussian from ChaCha20",
    "edge-rand": "exact: coins from ChaCha20",
    "lap-graph": f"{_ON_A_GRID}: rounded Laplace noise from ChaCha20",
    "objective-on-grid": f"{_ON_A_GRID}: discrete Gaussians from ChaCha20, in the objective and on its minimiser; what "
    "rounding changes is bounded, and the latter hides it",
    "repeat-and-select": "exact where every stage of a trial is: see the trial's stages",
    "thinning": "exact: a secret key from ChaCha20",
    "node-sampling": "exact: coins from ChaCha20",
}
_REPORTS = "exact: coins, or noise on a public grid, from ChaCha20"


def is_exact(mechanism: str) -> bool:
    """Whether the noise of a mechanism has the law that its proof is about, without rounding."""
    return mechanism not in _ROUGH


def sampler(mechanism: str) -> str:
    """How a mechanism draws its noise, in words."""
    return _SAMPLERS.get(mechanism, _REPORTS) if is_exact(mechanism) else IN_FLOATING_POINT


# -------------------------------------------------------------------- questions


@dataclass(frozen=True)
class Bound:
    """How far the answer without noise can move between neighbours, in which metric, and why.

    ``metric`` is ``l2``, ``l1``, ``linf``, ``rows-l2-sum``, ``rows`` or ``examples``: what the mechanism measures
    distance in. ``clip`` is the norm at which the query itself cuts rows, where the bound rests on that.
    """

    sensitivity: float
    metric: str
    why: str
    clip: float | None = None


NO_BOUND = "no bound: level none promises nothing"


class Query(ABC):
    """One bounded question, made at plan from public facts and answered by the curator.

    A subclass is a frozen dataclass. It states in its docstring: neighbours, bound, proof or reference; and in
    ``proof`` which of these (``privacy.query``), each class for itself, for a subclass has another bound. Inputs of
    :meth:`answer` are public or released values, equal on neighbours; the query projects them itself, so that the bound
    holds for *every* value of them. What depends on private rows is computed inside.
    """

    mechanism: ClassVar[str] = "gaussian"
    proof: ClassVar[str]

    @property
    def proof_status(self) -> str:
        """Who proved the bound: what the class itself declares, not what it inherits."""
        declared: str = type(self).__dict__.get("proof", STATED)
        return declared

    @property
    def adds_over_edges(self) -> bool:
        """Whether :meth:`answer` reads no edge but through ``ops.sparse.sums_over_edges``."""
        return False

    @property
    @abstractmethod
    def words(self) -> str:
        """What is asked, in words."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of the value; the curator refuses any other."""

    @property
    def answer_shape(self) -> tuple[int, ...] | None:
        """The shape of the answer where it is not the shape of the value."""
        return None

    @property
    def answered_by(self) -> str:
        """The name of the mechanism that answers."""
        return self.mechanism

    @abstractmethod
    def bound(self) -> Bound:
        """How far the value moves between neighbours of the level that the query was made for."""

    def parameters(self) -> dict[str, Any]:
        """What else the mechanism needs, as plain values for the certificate."""
        return {}

    def event(self, share: float, runs: int) -> DpEvent:
        """One run, at the noise with which all runs together take ``share`` of a plan's squared privacy loss.

        Shares are relative: one common factor scales the noise of all stages of a plan to its budget.
        """
        return events.GaussianDpEvent(math.sqrt(runs / share))

    def noise_std(self, event: DpEvent, sensitivity: float) -> float:
        """Standard deviation (scale, for Laplace and Gumbel) of the noise on each entry."""
        first = next((leaf for leaf, _ in events.leaves(event)), event)
        inner = first.event if isinstance(first, events.PoissonSampledDpEvent) else first
        return float(getattr(inner, "noise_multiplier", math.nan)) * sensitivity

    @abstractmethod
    def answer(self, private: PrivatePart, *args: Any, **inputs: Any) -> Any:
        """The value without noise. Called by the curator alone, with the query's own inputs by name."""


@dataclass(frozen=True)
class StoredQuery(Query):
    """A query as a certificate has it: it can be read, compared and accounted, not asked."""

    stored_words: str
    stored_mechanism: str
    stored_shape: tuple[int, ...]
    stored_answer_shape: tuple[int, ...] | None
    stored_parameters: Mapping[str, Any] = field(hash=False)
    stored_bound: Bound
    stored_proof: str = STATED

    @property
    def proof_status(self) -> str:
        """What the certificate says of the proof."""
        return self.stored_proof

    @property
    def words(self) -> str:
        """What was asked."""
        return self.stored_words

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self.stored_shape

    @property
    def answer_shape(self) -> tuple[int, ...] | None:
        """The shape of the answer where it differs."""
        return self.stored_answer_shape

    @property
    def answered_by(self) -> str:
        """The mechanism that answered."""
        return self.stored_mechanism

    def bound(self) -> Bound:
        """What the certificate states."""
        return self.stored_bound

    def parameters(self) -> dict[str, Any]:
        """What the certificate states."""
        return dict(self.stored_parameters)

    def noise_std(self, event: DpEvent, sensitivity: float) -> float:
        """From the parameters where they say so, else from the event."""
        if "noise_std" in self.stored_parameters:
            return float(self.stored_parameters["noise_std"])
        return super().noise_std(event, sensitivity)

    def answer(self, private: PrivatePart, **inputs: Any) -> Any:
        """A certificate reads nothing."""
        raise PlanViolationError("a query that was read from a certificate cannot be asked")


@dataclass(frozen=True)
class Exposed(Query):
    """All of the data, as often as training likes: the one stage of level ``none`` where a method names no other."""

    mechanism: ClassVar[str] = "none"
    proof: ClassVar[str] = NOTHING_PROMISED

    @property
    def words(self) -> str:
        """Everything."""
        return "all of the data, as often as training likes"

    @property
    def shape(self) -> tuple[int, ...]:
        """No value is handed over."""
        return ()

    def bound(self) -> Bound:
        """None."""
        return Bound(math.inf, "l2", NO_BOUND)

    def answer(self, private: PrivatePart, **inputs: Any) -> Any:
        """Everything is public at level none already."""
        raise PlanViolationError("level none exposes data; it does not ask for it")
