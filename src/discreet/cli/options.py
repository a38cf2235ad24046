"""Options that several commands share (``declared`` says how they are written), read once.

A command takes a group of them as one parameter (``data: DataOptions``), and the group reads what was given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol

import typer

from discreet.cli.declared import (
    Columns,
    Data,
    DataName,
    DataRoot,
    Delta,
    Device,
    Directed,
    EdgesUntil,
    Epsilon,
    Issuer,
    LevelSpec,
    Method,
    Mmap,
    Preset,
    Purpose,
    SchemaFile,
    Seed,
    SeedOfTraining,
    Settings,
    Split,
    SplitOfTraining,
    Threads,
    Threshold,
    TrustDownload,
)
from discreet.cli.output import LOG
from discreet.errors import GraphError, ParameterError
from discreet.limits import THREADS, shown

if TYPE_CHECKING:
    from discreet.graph.graph import Graph
    from discreet.graph.schema import Schema
    from discreet.graph.tables import OtherLabels
    from discreet.methods.base import NodeClassifier
    from discreet.methods.parameters import Compute
    from discreet.methods.recommend import Recommendation
    from discreet.privacy.budget import Privacy
    from discreet.privacy.certificate import Statement
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.levels import Level
    from discreet.privacy.plan import Plan
    from discreet.training.descent import Progress

AUTO = "auto"
DEFAULT_EPSILON = 4.0
"""The budget at which docs/results.md compares all methods."""
LOCAL, DASK = "local", "dask"
NOTHING_TO_MEASURE = "measure; discreet predict needs none"
"""How the refusal of a graph without labels ends."""
THRESHOLDS = ("balanced-accuracy", "macro-f1")
"""What a decision can be moved for, as ``methods.decision`` has it."""


class GraphReader(Protocol):
    """Whoever reads a graph in partitions otherwise than as a whole."""

    def read(self, data: str) -> Graph:
        """The graph of this folder."""


@dataclass(frozen=True)
class GraphOptions:
    """Which graph, and how to read it."""

    data: Data
    data_root: DataRoot = None
    columns: Columns = None
    schema: SchemaFile = None
    directed: Directed = None
    trust_download: TrustDownload = False
    edges_until: EdgesUntil = None
    mmap: Mmap = False

    def read(
        self,
        release: Schema | None = None,
        *,
        drafting: bool = False,
        engine: GraphReader | None = None,
        other_labels: OtherLabels = "ignore",
    ) -> Graph:
        """The graph, without a split; by the schema of a release, where it is to be predicted on.

        ``drafting`` ignores columns of tables that cannot be read, for a first look. An ``engine`` reads partitions.
        ``other_labels`` says what becomes of labels that the release does not know.
        """
        if engine is not None:
            if self.columns or any(given is not None for given in (self.schema, self.directed, self.edges_until)):
                raise ParameterError("partitions know their columns and directions: say these to discreet data convert")
            return engine.read(self.data)
        from discreet.graph.datasets import resolve
        from discreet.graph.partitions import has_partitions

        options: dict[str, Any] = read_roles(self.columns or ())
        fetched: dict[str, Any] = {"trust_download": self.trust_download}
        if self.schema is not None:
            options["schema"] = self.schema
        if self.edges_until is not None:
            options["edges_until"] = self.edges_until
        if self.mmap:
            options["mmap"] = True
        if drafting and Path(self.data).is_dir() and not has_partitions(Path(self.data)):
            options["drafting"] = True
        if release is None:
            return resolve(self.data, self.data_root, self.directed, **fetched, **options)
        if self.schema is not None:
            raise ParameterError("a release brings its own schema: leave --schema out")
        fetched |= {"reader": release, "other_labels": other_labels}
        return resolve(self.data, self.data_root, self.directed, **fetched, **options)


@dataclass(frozen=True)
class DataOptions(GraphOptions):
    """Which graph, and how its nodes are split."""

    data: Data = "csbm"
    split: Split = None
    seed: Seed = 0

    def load(self, level: Level, release: Schema | None = None, engine: GraphReader | None = None) -> Graph:
        """The graph with its split; one that reads labels is refused where the level protects them.

        By the schema of a release it is read for figures on labels: one that the release does not know is refused, as
        figures on the others alone would pass for figures on all.
        """
        from discreet.graph.parts import check_declared
        from discreet.graph.splits import OWN, check_public, split, usual_split

        if self.split is not None:
            check_public(self.split, level.private)
        graph = self.read(release, engine=engine, other_labels="refuse")
        check_declared(level.view(graph), level.private)  # before a split could say something of private labels
        if graph.train_mask is not None and self.split not in (None, OWN):
            LOG.warning(f"{graph.name} brings a split of its own, which --split {self.split} replaces")
        return split(graph, self.split or usual_split(graph), self.seed)


@dataclass(frozen=True)
class MeasuredDataOptions(DataOptions):
    """A graph to measure a release on, split as in its training unless another split is named."""

    split: SplitOfTraining = None
    seed: SeedOfTraining = None  # type: ignore[assignment]

    def load_for(self, estimator: NodeClassifier, *, every_node: bool = False) -> Graph:
        """The graph as the release reads it, with labels and a split; ``every_node`` can do without the latter.

        Nodes of another split than that of training may have been trained on: a warning says so.
        """
        from discreet.graph.graph import OWN_SPLIT
        from discreet.graph.parts import LABELS
        from discreet.graph.splits import USUAL, check_public, refuse_unlabelled, split

        trained = estimator.split_  # None in releases of before
        spec = self.split or (USUAL if trained is None else trained.spec)
        seed = self.seed if self.seed is not None else 0 if trained is None else trained.seed
        private = estimator.checked_privacy().level.private
        check_public(spec, private)
        graph = self.read(estimator.schema_, other_labels="refuse")
        if LABELS not in private:  # whether anybody has a label may be private, too
            refuse_unlabelled(graph, NOTHING_TO_MEASURE)
        if spec == OWN_SPLIT and graph.train_mask is None:
            if every_node:
                return graph
            raise GraphError(
                f"the model was trained on a split that its data brought, and {graph.name} brings none: name one with "
                "--split, or measure every labelled node (discreet evaluate --nodes all)"
            )
        if trained is not None and trained != (spec, 0 if spec == OWN_SPLIT else seed):
            LOG.warning(
                f"the model was trained on split {trained.spec} of seed {trained.seed}: if on these data, some nodes "
                f"of split {spec} of seed {seed} were trained on"
            )
        return split(graph, spec, seed)


@dataclass(frozen=True)
class ComputeOptions:
    """Where and how the arithmetic runs; cannot affect privacy."""

    device: Device = "cpu"
    threads: Threads = None

    def prepare(self) -> Compute:
        """Check the device and set the threads."""
        from discreet.methods.parameters import Compute

        compute = Compute(self.device, self.threads)
        compute.prepare()
        return compute


@dataclass(frozen=True)
class MethodOptions:
    """Which method, and the guarantee that it has to give."""

    method: Method = AUTO
    level: LevelSpec = "edge"
    epsilon: Epsilon = None
    delta: Delta = "auto"
    settings: Settings = None
    seed: Seed = 0
    device: Device = "cpu"
    threads: Threads = None
    preset: Preset = "discreet"
    threshold: Threshold = None

    def choice(self) -> Choice:
        """The method by name or ``auto``, every option checked before any data is read."""
        if self.method == AUTO:
            return self._auto()
        estimator = self.estimator()
        return Choice(estimator.checked_privacy().level, lambda graph: (estimator, None))

    def estimator(self) -> NodeClassifier:
        """The method of that name, unfitted."""
        from discreet.methods.registry import find_method, load_method

        declared, privacy = find_method(self.method), self.privacy()
        from discreet.methods.parameters import parse_settings  # torch, once the words are known to be right

        kind = load_method(declared)
        settings = parse_settings(kind, self.method, self._given(), preset=self.preset)
        estimator = kind(privacy, compute=self._compute(), **{"random_state": self.seed, **settings})
        estimator.checked_privacy()
        return estimator

    def _given(self) -> list[str]:
        """What --set and --threshold say."""
        if self.threshold is None:
            return list(self.settings or ())
        if self.threshold not in THRESHOLDS:
            raise ParameterError(f"--threshold is {' or '.join(THRESHOLDS)}, not {shown(self.threshold)}")
        return [*(self.settings or ()), f"decide_by={self.threshold}"]

    def _auto(self) -> Choice:
        """A choice that waits for the graph's public facts."""
        from discreet.methods.declaration import DISCREET
        from discreet.methods.parameters import parse_settings
        from discreet.methods.recommend import Auto

        if self.preset != DISCREET:
            raise ParameterError(
                f"--method auto chooses among our own settings: name a method for --preset {self.preset}"
            )
        own = [text for text in self._given() if text.partition("=")[0] in Auto.SETTINGS]
        auto = Auto.from_settings(self.privacy(), own)
        level, compute = auto.privacy.level, self._compute()
        rest = [text for text in self._given() if text not in own]

        def choose(graph: Graph) -> tuple[NodeClassifier, Recommendation]:
            found = auto.recommend(level.view(graph).public)
            estimator = auto.estimator(found).set_params(random_state=self.seed, compute=compute)
            return estimator.set_params(**parse_settings(type(estimator), estimator.method, rest)), found

        return Choice(level, choose)

    def privacy(self) -> Privacy:
        """The level and the budget; level none has none unless one is given, which is then refused."""
        from discreet.privacy.budget import Privacy
        from discreet.privacy.levels import NoPrivacy, parse_level

        level = parse_level(self.level)
        usual = math.inf if isinstance(level, NoPrivacy) else DEFAULT_EPSILON
        return Privacy(level, usual if self.epsilon is None else self.epsilon, delta_of(self.delta))

    def _compute(self) -> Compute:
        return ComputeOptions(self.device, self.threads).prepare()


@dataclass(frozen=True)
class StatementOptions:
    """What the issuer says of the release."""

    data_name: DataName = None
    purpose: Purpose = None
    issuer: Issuer = None

    def statement(self) -> Statement | None:
        """What was said, checked; None where nothing was."""
        if self.data_name is None and self.purpose is None and self.issuer is None:
            return None
        from discreet.privacy.certificate import Statement

        return Statement(self.data_name, self.purpose, self.issuer)


@dataclass(frozen=True)
class LedgerOptions:
    """Where a run is entered before it starts, and under which name."""

    ledger: Annotated[Path | None, typer.Option(help="Enter this run in a ledger before it starts.")] = None
    dataset: Annotated[str | None, typer.Option(help="With --ledger: the name of the private data.")] = None
    population: Annotated[
        str | None, typer.Option(help="With --ledger: the people in it, where several datasets hold the same.")
    ] = None
    limit: Annotated[
        float | None, typer.Option(help="With --ledger: the epsilon that all runs on these people may spend together.")
    ] = None

    def check(self) -> None:
        """Refuse options that do not go together; call it before any data is read."""
        given = (self.dataset, self.population, self.limit)
        if self.ledger is None and any(value is not None for value in given):
            raise ParameterError("--dataset, --population and --limit go with --ledger FILE")
        if self.ledger is not None and self.dataset is None:
            raise ParameterError("--ledger needs --dataset NAME: what the private data is called in it")

    def reserve(self, command: str, plans: Sequence[Plan], unpaid: bool = False) -> Reservation:
        """Enter what ``plans`` will ask; call it before private data is asked, and let its errors through.

        ``unpaid`` says that private data is read beyond the plans without noise. Without ``--ledger`` nothing is
        entered.
        """
        self.check()
        if self.ledger is None or self.dataset is None:
            return Reservation(None, None)
        from discreet.privacy import events
        from discreet.privacy.ledger import Ledger, Run

        asked = [plan.event() for plan in plans] + [events.NonPrivateDpEvent()] * unpaid
        first = plans[0]
        run = Run(command, first.method, first.privacy.level.spec, events.compose(asked), first.delta)
        ledger = Ledger(self.ledger)
        return Reservation(ledger, ledger.reserve(run, self.dataset, self.population, self.limit))


class Reservation(NamedTuple):
    """An entry of a ledger that counts as spent; or none, where no ledger was named."""

    ledger: Ledger | None
    entry: str | None

    def added_to(self, statement: Statement | None) -> Statement | None:
        """The issuer's statement with the id of this entry."""
        if self.entry is None:
            return statement
        from discreet.privacy.certificate import Statement

        return replace(statement or Statement(), ledger=self.entry)

    def release(self, folder: Path) -> None:
        """Say that the release in ``folder`` is the one that was reserved."""
        if self.ledger is None or self.entry is None:
            return
        from discreet.privacy.release_folder import read_certificate

        self.settle(str(read_certificate(folder)["digest"]))

    def settle(self, digest: str) -> None:
        """Say that what has this digest is what was reserved."""
        if self.ledger is not None and self.entry is not None:
            self.ledger.release(self.entry, digest)


class Choice(NamedTuple):
    """What is protected, and the estimator for a graph; with the reasons where ``auto`` chose it."""

    level: Level
    choose: Callable[[Graph], tuple[NodeClassifier, Recommendation | None]]


class Prepared(NamedTuple):
    """A graph with its split, and the unfitted estimator for it."""

    graph: Graph
    estimator: NodeClassifier
    recommendation: Recommendation | None


def prepare(data: DataOptions, method: MethodOptions, engine: GraphReader | None = None) -> Prepared:
    """Check every option, then read the data."""
    LOG.debug("reading options")
    choice = method.choice()
    LOG.debug("reading data")
    graph = data.load(choice.level, engine=engine)
    return Prepared(graph, *choice.choose(graph))


def read_like(graph: Graph, data: DataOptions, name: str, engine: GraphReader | None = None) -> Graph:
    """Another graph of the same kind: its tables are read by the schema of the first, its labels are not needed.

    That schema holds what --column says, a column of labels among it, which this table may lack.
    """
    from discreet.graph.matching import match_graph
    from discreet.graph.schema import Schema

    known = replace(graph.schema or Schema(), classes=graph.class_names, features=graph.feature_names)
    named = replace(data, data=name, schema=None, columns=data.columns if graph.schema is None else None)
    return match_graph(named.read(graph.schema, engine=engine), known, graph.public)


@dataclass(frozen=True)
class EngineOptions:
    """Which engine, and where its workers are."""

    engine: Annotated[
        str,
        typer.Option(help="local, or dask: workers sum over the edges of --data, a folder of partitions."),
    ] = LOCAL
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="With --engine dask: the address of a running scheduler, tcp://HOST:PORT; without it, workers here."
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            min=THREADS.low,
            max=THREADS.high,
            help="With --engine dask: how many workers on this machine; one per core without it.",
        ),
    ] = None

    @contextmanager
    def running(self) -> Iterator[Engine | None]:
        """The engine, until the end of the block; None where everything runs in this process."""
        if self.engine not in (LOCAL, DASK):
            raise ParameterError(f"--engine is {LOCAL} or {DASK}, not {shown(self.engine)}")
        if self.engine == LOCAL:
            if self.scheduler is not None or self.workers is not None:
                raise ParameterError(f"--scheduler and --workers go with --engine {DASK}")
            yield None
            return
        with ExitStack() as stack:
            yield Engine(self, stack)


class Engine:
    """Reads graphs so that workers sum over their edges; what it starts and makes ends with ``stack``."""

    def __init__(self, options: EngineOptions, stack: ExitStack) -> None:
        """Nothing is started before data is read."""
        self._options, self._stack = options, stack
        self.progress: Progress | None = None

    def read(self, data: str) -> Graph:
        """The graph of a folder of partitions, its edges in blocks."""
        from discreet.files import expand_home
        from discreet.graph.partitions import has_partitions

        folder = expand_home(data)
        if not has_partitions(folder):
            raise ParameterError(
                f"--engine {DASK} reads a folder of partitions, and {shown(data)} is none: make one with discreet data "
                "convert DATA --out FOLDER --partitions K"
            )
        from discreet.engine.graphs import graph_on_workers

        options = self._options
        opened = graph_on_workers(folder, options.scheduler, options.workers, progress=self._report)
        return self._stack.enter_context(opened)

    def _report(self, title: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(title, done, total)


LISTS = ("features", "ignore", "classes")
"""Roles of --column that take several names, with commas or by being repeated."""
SINGLE = ("source", "target", "time", "weight", "full_weight", "id", "label", "split", "weights")


def read_roles(given: Sequence[str]) -> dict[str, Any]:
    """What --column says, by role; a role that is one column may stand once."""
    roles: dict[str, Any] = {}
    for text in given:
        role, equals, name = text.partition("=")
        if not equals or not name.strip():
            raise ParameterError(f"--column takes ROLE=NAME, not {shown(text)}")
        if role not in (*LISTS, *SINGLE):
            raise ParameterError(f"--column has no role {shown(role)}: use {', '.join((*SINGLE, *LISTS))}")
        if role in LISTS:
            roles[role] = [*roles.get(role, ()), *(part.strip() for part in name.split(",") if part.strip())]
        elif role in roles:
            raise ParameterError(f"--column {role}=… is given twice: a table has one such column")
        else:
            roles[role] = name
    return roles


def delta_of(text: str) -> float | Literal["auto"]:
    """δ as it was given: a number, or auto."""
    if text == "auto":
        return "auto"
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"--delta takes a number or auto, not {shown(text)}") from None
