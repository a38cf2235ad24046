"""The curator: the only holder of noise. It executes a plan, stage by stage, and writes the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from dp_accounting.dp_event import DpEvent

from discreet.errors import PlanViolationError
from discreet.mechanisms import dpsgd, gaussian, local_stages, objective, topk
from discreet.mechanisms.noise import NoiseSource
from discreet.mechanisms.noise_ahead import NoiseAhead
from discreet.privacy import events
from discreet.privacy.plan import Plan, Stage

Array = npt.NDArray[Any]
Mechanism = Callable[[Array, Stage, np.random.Generator], Array]
PublicState = Callable[[], Mapping[str, Array]]

MECHANISMS: dict[str, Mechanism] = {
    "gaussian": gaussian.release,
    "objective": objective.release,
    **dict.fromkeys((*local_stages.FEATURES, local_stages.LABELS), local_stages.release),
    topk.GUMBEL: topk.release_gumbel,
    topk.GAUSSIAN: topk.release_gaussian,
}


@dataclass(frozen=True)
class LedgerEntry:
    """One run of one stage."""

    stage: str
    run: int
    event: DpEvent


class Curator:
    """Answers the queries of a plan, in its order, each as often as planned, and nothing else.

    Guarantee: what it has handed out is described by :attr:`ledger`; at :meth:`finish` the ledger equals
    the plan. A stage out of order, run too often, or of another shape is refused before any noise is drawn.
    """

    def __init__(self, plan: Plan, noise: NoiseSource) -> None:
        """Hold the plan and the noise; nothing is drawn yet."""
        self.plan = plan
        self._noise = noise
        self._pending = [(stage, run) for stage in plan.stages for run in range(stage.runs)]
        self._next = 0
        self._public_state: PublicState = dict
        self._also_watched: dict[str, PublicState] = {}
        self._ahead: dict[str, NoiseAhead] = {}
        self.ledger: list[LedgerEntry] = []

    @property
    def noise_description(self) -> str:
        """Where the noise came from, for the certificate."""
        return self._noise.describe()

    @property
    def for_release(self) -> bool:
        """Whether the noise was drawn from fresh entropy."""
        return self._noise.secure

    def watch(self, public_state: PublicState) -> None:
        """Tell auditors how to read the method's public state at a stage's entry; costs nothing here."""
        self._public_state = public_state

    def watch_also(self, name: str, state: PublicState) -> None:
        """Something more to watch, such as an optimiser that lives as long as one stage."""
        self._also_watched[name] = state

    def _watched_state(self) -> dict[str, Array]:
        more = {f"{name}.{key}": value for name, read in self._also_watched.items() for key, value in read().items()}
        return {**self._public_state(), **more}

    def measure(self, name: str, value: Array) -> Array:
        """The answer to stage ``name`` with its noise: ``value`` must be bounded as the plan says.

        A selection of the largest entries may be asked of a sparse matrix.
        """
        stage, run = self._admit(name)
        if stage.mechanism not in MECHANISMS:
            raise PlanViolationError(f"stage {name!r} is answered by {stage.mechanism}, not measured")
        answer = self._answer(stage, run, self._checked(stage, value))
        self._enter(stage, run)
        return answer

    def receive(self, name: str, reports: Any) -> Any:
        """Take reports that their owners made: nothing is drawn here, and what cannot be a report is refused."""
        stage, run = self._admit(name)
        if not local_stages.is_local(stage):
            raise PlanViolationError(f"stage {name!r} is answered by {stage.mechanism}, not by reports")
        checked = self._checked(stage, reports)
        local_stages.check_reports(checked, stage)
        self._enter(stage, run)
        return checked

    def step(self, name: str, query: dpsgd.ClippedTerms) -> Array:
        """The noisy sum of clipped terms over a fresh batch, which is drawn here as the stage's event says."""
        stage, run = self._admit(name)
        if stage.mechanism != dpsgd.MECHANISM:
            raise PlanViolationError(f"stage {name!r} is answered by {stage.mechanism}, not by steps")
        batch = self._batch(stage, run)
        value = self._checked(stage, query.total(batch))
        answer = self._answer_step(stage, run, batch, value, query)
        self._enter(stage, run)
        return answer

    def key(self, name: str) -> bytes:
        """16 secret bytes for choices among edges; a stage of the plan where a guarantee is over them."""
        planned = any(stage.name == name for stage in self.plan.stages)
        stage, run = self._admit(name) if planned else (None, 0)
        if stage is not None:
            self._enter(stage, run)
        return self._draw_key(name, run)

    def expose(self, name: str) -> None:
        """Note that the method now reads private data without protection: only where the plan says so."""
        stage, run = self._admit(name)
        if not isinstance(stage.event, events.NonPrivateDpEvent):
            raise PlanViolationError(f"stage {name!r} is private: it must be measured, not exposed")
        self._enter(stage, run)

    def finish(self) -> None:
        """Check that every stage ran: a ledger shorter than its plan is a bug in the method."""
        if self._next < len(self._pending):
            raise PlanViolationError(f"stage {self._pending[self._next][0].name!r} of the plan never ran")
        for ahead in self._ahead.values():
            ahead.close()

    def spent_event(self) -> DpEvent:
        """What actually ran, as one event."""
        return events.compose(entry.event for entry in self.ledger)

    def _admit(self, name: str) -> tuple[Stage, int]:
        if self._next >= len(self._pending):
            raise PlanViolationError(f"stage {name!r} was asked for, but the plan has run out")
        stage, run = self._pending[self._next]
        if stage.name != name:
            raise PlanViolationError(f"stage {name!r} was asked for, but {stage.name!r} is next in the plan")
        return stage, run

    def _enter(self, stage: Stage, run: int) -> None:
        self.ledger.append(LedgerEntry(stage.name, run, stage.event))
        self._next += 1

    @staticmethod
    def _checked(stage: Stage, value: Any) -> Any:
        """Shape as planned, finite numbers; CSR stays CSR."""
        array: Any = value if sp.issparse(value) else np.asarray(value)
        if array.shape != stage.shape:
            raise PlanViolationError(f"stage {stage.name!r} has shape {stage.shape} in the plan, not {array.shape}")
        entries = array.data if sp.issparse(array) else array
        if entries.dtype.kind != "f" or not np.isfinite(entries).all():
            raise PlanViolationError(f"stage {stage.name!r} got values that are not finite numbers")
        return array

    def _answer(self, stage: Stage, run: int, value: Array) -> Array:
        """Draw the noise; auditors override this to record or to replay."""
        return MECHANISMS[stage.mechanism](value, stage, self._noise.stream(stage.name, run))

    def _batch(self, stage: Stage, run: int) -> dpsgd.IntArray:
        """Draw a batch; auditors override this too."""
        return dpsgd.draw_batch(stage, self._noise.stream(f"{stage.name}, batch", run))

    def _draw_key(self, name: str, run: int) -> bytes:
        return self._noise.stream(f"{name}, key", run).bytes(16)

    def _answer_step(
        self, stage: Stage, run: int, batch: dpsgd.IntArray, value: Array, query: dpsgd.ClippedTerms
    ) -> Array:
        """Add the noise of this run, which was drawn while the step was computed; auditors also ask for all terms."""
        if stage.noise_std == 0:
            return value.copy()
        if stage.name not in self._ahead:
            self._ahead[stage.name] = NoiseAhead(self._noise, stage.name, stage.runs, value.size)
        return dpsgd.release(value, stage, self._ahead[stage.name].take())
