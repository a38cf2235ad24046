"""The curator: the only holder of private data and of noise. It executes a plan and writes the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from dp_accounting.dp_event import DpEvent

from discreet.arrays import Array, IntArray
from discreet.errors import PlanViolationError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.mechanisms import dpsgd, gaussian, laplace, noisy_graph, topk
from discreet.mechanisms.bits import NoiseSource, Randomness
from discreet.mechanisms.dpsgd import NoiseAhead
from discreet.mechanisms.gaussian import Grid
from discreet.mechanisms.local import stages as local
from discreet.mechanisms.objective import perturbation
from discreet.privacy.plan import Plan, Stage
from discreet.queries.edge_cells import FLIPPED, LARGEST
from discreet.queries.gradients import GradientSteps
from discreet.queries.propagated import ON_A_GRID
from discreet.queries.reports import LABELS

Mechanism = Callable[[Array, Stage, Randomness], Array]
PublicState = Callable[[], Mapping[str, Array]]
Terms = Callable[[], Array]

MECHANISMS: dict[str, Mechanism] = {
    "gaussian": gaussian.release,
    "laplace": laplace.release,
    FLIPPED: noisy_graph.release_flipped,
    LARGEST: noisy_graph.release_largest,
    ON_A_GRID: perturbation.release,
    **dict.fromkeys((*local.FEATURES, LABELS), local.release),
    topk.GUMBEL: topk.release_gumbel,
    topk.GAUSSIAN: topk.release_gaussian,
}


@dataclass(frozen=True)
class LedgerEntry:
    """One run of one stage."""

    stage: str
    run: int
    event: DpEvent


def check_blocks(plan: Plan, graphs: Sequence[Graph]) -> None:
    """Refuse, before anything is asked, a question that edges in blocks cannot answer."""
    for stage in plan.stages:
        if stage.graph < len(graphs) and graphs[stage.graph].in_blocks and not stage.query.adds_over_edges:
            raise UnsupportedError(
                f"{plan.method}: stage {stage.name!r} asks for more than sums over edges, and the edges of this graph "
                "lie in partitions: take the whole graph (--engine local), or another method"
            )


def _are_finite(numbers: Array) -> bool:
    """Whether all are; a sum that is finite says so without writing anything."""
    with np.errstate(all="ignore"):  # a warning would tell of private values
        return bool(np.isfinite(numbers.sum()) or np.isfinite(numbers).all())


class Curator:
    """Answers the queries of a plan, in its order, each as often as planned, and nothing else.

    Guarantee: what it has handed out is described by :attr:`ledger`; at :meth:`finish` the ledger equals
    the plan. A stage out of order, run too often, or of another shape is refused before any noise is drawn. The
    private parts are not handed out.
    """

    def __init__(self, plan: Plan, noise: NoiseSource, private: Sequence[PrivatePart] = ()) -> None:
        """Hold the plan, the noise and the private parts, the fitted graph's first; nothing is drawn or read yet."""
        self.plan = plan
        self._noise = noise
        self.__private = tuple(private)
        check_blocks(plan, [part.graph for part in self.__private])
        self._pending = [(stage, run) for stage in plan.stages for run in range(stage.runs)]
        self._next = 0
        self._public_state: PublicState = dict
        self._also_watched: dict[str, PublicState] = {}
        self._ahead: dict[str, NoiseAhead] = {}
        self._grids: dict[str, Grid] = {}
        self.ledger: list[LedgerEntry] = []

    @classmethod
    def with_fresh_noise(
        cls, plan: Plan, private: Sequence[PrivatePart], *, insecure_seed: int | None = None
    ) -> Curator:
        """A curator with a noise source of its own, which nobody else has seen; a seed is for tests alone."""
        return cls(plan, NoiseSource(insecure_seed=insecure_seed), private)

    def compute_on(self, device: str, micro_batch: int) -> None:
        """Say where queries compute and in what portions; cannot affect privacy."""
        for part in self.__private:
            part.device, part.micro_batch = device, micro_batch

    @property
    def noise_description(self) -> str:
        """Where the noise came from, for the certificate."""
        return self._noise.describe()

    @property
    def for_release(self) -> bool:
        """Whether the noise was drawn from fresh entropy."""
        return self._noise.secure

    # ---------------------------------------------------------------- what a method may ask

    def steps(self, name: str) -> tuple[Stage, GradientSteps]:
        """A stage of noisy steps and its query: what a loop that asks for them has to know."""
        stage = self.plan.stage(name)
        return stage, dpsgd.steps_of(stage)

    def ask(self, name: str, **inputs: Any) -> Any:
        """The answer to stage ``name`` with its noise. ``inputs`` are public or released values that its query takes.

        A stage of noisy steps also draws its batch here, as its event says.
        """
        stage, run = self._admit(name)
        if stage.mechanism == dpsgd.MECHANISM:
            answer = self._take_step(stage, run, inputs)
        elif stage.mechanism in MECHANISMS:
            answer = self._answer(stage, run, self._checked(stage, self._compute(stage, inputs)))
        else:
            raise PlanViolationError(f"stage {name!r} is answered by {stage.mechanism}, which hands nothing out")
        self._enter(stage, run)
        return answer

    def receive(self, name: str) -> Any:
        """Reports that their owners made: nothing is drawn here, and what cannot be a report is refused."""
        stage, run = self._admit(name)
        if not local.is_local(stage):
            raise PlanViolationError(f"stage {name!r} is answered by {stage.mechanism}, not by reports")
        reports = self._checked(stage, self._compute(stage, {}))
        local.check_reports(reports, stage)
        self._enter(stage, run)
        return reports

    def draw_key(self, purpose: str) -> None:
        """Draw 16 secret bytes for choices among private data and entrust them to the private parts.

        A stage of the plan where a guarantee is over the key. The method does not see it.
        """
        stage, run = self._admit(purpose) if self.plan.has(purpose) else (None, 0)
        if stage is not None:
            self._enter(stage, run)
        key = self._draw_key(purpose, run)
        for part in self.__private:
            part.entrust(purpose, key)

    def expose(self, name: str) -> None:
        """Note that the method reads data without protection: only where the plan says so."""
        stage, run = self._admit(name)
        if stage.is_private:
            raise PlanViolationError(f"stage {name!r} is private: it must be asked, not exposed")
        self._enter(stage, run)

    def finish(self) -> None:
        """Check that every stage ran: a ledger shorter than its plan is a bug in the method."""
        if self._next < len(self._pending):
            raise PlanViolationError(f"stage {self._pending[self._next][0].name!r} of the plan never ran")
        for ahead in self._ahead.values():
            ahead.close()

    @property
    def spent(self) -> list[DpEvent]:
        """What actually ran, in order."""
        return [entry.event for entry in self.ledger]

    # ---------------------------------------------------------------- for audits

    def watch(self, public_state: PublicState) -> None:
        """Tell auditors how to read the method's public state at a stage's entry; costs nothing here."""
        self._public_state = public_state

    def watch_also(self, name: str, state: PublicState) -> None:
        """Something more to watch, such as an optimiser that lives as long as one stage."""
        self._also_watched[name] = state

    def _watched_state(self) -> dict[str, Array]:
        more = {f"{name}.{key}": value for name, read in self._also_watched.items() for key, value in read().items()}
        return {**self._public_state(), **more}

    # ---------------------------------------------------------------- one stage

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

    def _compute(self, stage: Stage, inputs: Mapping[str, Any]) -> Any:
        """The query on the private part; auditors override this to put worst inputs."""
        return stage.query.answer(self.__private[stage.graph], **inputs)

    def _take_step(self, stage: Stage, run: int, inputs: Mapping[str, Any]) -> Array:
        batch = self._batch(stage, run)
        value = self._checked(stage, self._compute(stage, {**inputs, "batch": batch}))
        return self._answer_step(stage, run, batch, value, lambda: self._terms(stage, inputs))

    def _terms(self, stage: Stage, inputs: Mapping[str, Any]) -> Array:
        """The clipped terms of all examples, one row each: for audits alone."""
        return dpsgd.steps_of(stage).terms(self.__private[stage.graph], **inputs)

    @staticmethod
    def _checked(stage: Stage, value: Any) -> Any:
        """Shape as planned, finite numbers; CSR stays CSR."""
        array: Any = value if sp.issparse(value) else np.asarray(value)
        if array.shape != stage.shape:
            raise PlanViolationError(
                f"stage {stage.name!r} has shape {stage.shape} in the plan, and its answer another"
            )
        entries = array.data if sp.issparse(array) else array
        if entries.dtype.kind != "f" or not _are_finite(entries):
            raise PlanViolationError(f"stage {stage.name!r} got values that are not finite numbers")
        return array

    def _answer(self, stage: Stage, run: int, value: Array) -> Array:
        """Draw the noise; auditors override this to record or to replay."""
        return MECHANISMS[stage.mechanism](value, stage, self._noise.stream(stage.name, run))

    def _batch(self, stage: Stage, run: int) -> IntArray:
        """Draw a batch; auditors override this too."""
        return dpsgd.draw_batch(stage, self._noise.stream(f"{stage.name}, batch", run))

    def _draw_key(self, purpose: str, run: int) -> bytes:
        return self._noise.stream(f"{purpose}, key", run).bytes(16)

    def _answer_step(self, stage: Stage, run: int, batch: IntArray, value: Array, terms: Terms) -> Array:
        """Add the noise of this run, which was drawn while the step was computed; auditors also ask for all terms."""
        if stage.noise_std == 0:
            return value.copy()
        if stage.name not in self._ahead:
            self._grids[stage.name] = gaussian.grid_of(stage)
            self._ahead[stage.name] = NoiseAhead(self._noise, stage.name, stage.runs, self._grids[stage.name])
        return self._grids[stage.name].add(value, self._ahead[stage.name].take())
