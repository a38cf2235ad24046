"""Options that several commands share: declared once, and read once.

A command takes a group of them as one parameter (``data: DataOptions``), and the group reads what was given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol

import typer

from discreet.cli.logs import LOG
from discreet.errors import ParameterError
from discreet.limits import SEED, THREADS, shown

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

AUTO = "auto"

# -------------------------------------------------------------------- declared

Data = Annotated[
    str,
    typer.Option(help="A dataset by name (see `discreet data`), a .npz file, or a folder with tables or partitions."),
]
DataRoot = Annotated[Path | None, typer.Option("--data-root", help="Where datasets are looked for first.")]
TrustDownload = Annotated[
    bool, typer.Option("--trust-download", help="Download files of a named dataset whose checksum is not known.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="For tables: ROLE=NAME with role source, target, time, weight, id, label, split, features, ignore or "
        "classes; the last three take NAME,NAME,…. Repeatable.",
    ),
]
Threshold = Annotated[
    str | None,
    typer.Option(
        "--threshold",
        help="Decide so that validation nodes do best by balanced-accuracy or macro-f1; where labels are public and "
        "predictions covered.",
    ),
]
BesideMlp = Annotated[
    bool,
    typer.Option(
        "--beside-mlp", help="Fit mlp too, on public features alone, and print its accuracy beside the model's."
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", help="What columns of tables mean. Default: schema.toml in their folder, if any."),
]
EdgesUntil = Annotated[
    str | None,
    typer.Option("--edges-until", help="For tables: only edges up to this moment, 2024-06-30 for example."),
]
Directed = Annotated[
    bool | None, typer.Option("--directed/--undirected", help="Read edges with their directions, or both ways.")
]
Mmap = Annotated[
    bool, typer.Option("--mmap", help="Leave dense features of a .npz file on disk: they may be larger than memory.")
]
Split = Annotated[
    str,
    typer.Option(help="75/10/15 (per cent), 20/500/1000 (per class, val, test), 80/20:inductive, public, geom-gcn:0."),
]
Seed = Annotated[
    int, typer.Option(min=SEED.low, max=SEED.high, help="Seeds the split and the training, never the privacy noise.")
]
Method = Annotated[str, typer.Option(help="One of `discreet methods`, or auto: see docs/recommend.md.")]
LevelSpec = Annotated[
    str, typer.Option("--level", help="What is protected: none, edge, edge:directed, neighbor:K, node:…, local.")
]
Epsilon = Annotated[float, typer.Option(help="Privacy budget; inf goes with --level none.")]
Delta = Annotated[str, typer.Option(help="A number, or auto: from the public number of nodes.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="A parameter of the method, KEY=VALUE. Repeatable.")]
Preset = Annotated[
    str, typer.Option(help="Whose defaults: discreet, or paper (for a method that is named after a paper).")
]
Device = Annotated[str, typer.Option(help="cpu or cuda.")]
Threads = Annotated[
    int | None,
    typer.Option(min=THREADS.low, max=THREADS.high, help="Threads that torch may use. Default: torch decides."),
]
Workers = Annotated[int, typer.Option(min=0, max=THREADS.high, help="Worker processes; 0 works in this one.")]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output, everything else on standard error.")
]
DataName = Annotated[str | None, typer.Option("--data-name", help="What to call the data in the certificate.")]
Purpose = Annotated[str | None, typer.Option(help="What the release is for, in one line, for the certificate.")]
Issuer = Annotated[str | None, typer.Option(help="Who answers for the release, for the certificate.")]
PrivateFigures = Annotated[
    bool,
    typer.Option("--private-figures", help="Measure on private labels too: for the holder's eyes, not covered."),
]
Metric = Annotated[
    str,
    typer.Option(help="accuracy, balanced-accuracy, micro-f1, macro-f1, roc-auc or pr-auc: see docs/evaluating.md."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks; they may hold private values.")]
LogLevel = Annotated[
    str, typer.Option("--log-level", help="What to say on standard error: debug, info, warning or error.")
]
LogJson = Annotated[bool, typer.Option("--log-json", help="Log lines as JSON objects.")]
OF_ALL = (("debug", False, Debug), ("log_level", "info", LogLevel), ("log_json", False, LogJson))
"""The options of every command, with their defaults."""
Release = Annotated[Path, typer.Argument(help="A folder that `discreet train --out` wrote.")]


# -------------------------------------------------------------------- read


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
    split: Split = "75/10/15"
    seed: Seed = 0

    def load(self, level: Level, release: Schema | None = None, engine: GraphReader | None = None) -> Graph:
        """The graph with its split; one that reads labels is refused where the level protects them.

        By the schema of a release it is read for figures on labels: one that the release does not know is refused, as
        figures on the others alone would pass for figures on all.
        """
        from discreet.graph.splits import check_public, split

        check_public(self.split, level.private)
        return split(self.read(release, engine=engine, other_labels="refuse"), self.split, self.seed)


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
    epsilon: Epsilon = 4.0
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
        return Choice(estimator._checked_privacy().level, lambda graph: (estimator, None))

    def estimator(self) -> NodeClassifier:
        """The method of that name, unfitted."""
        from discreet.methods.registry import find_method, load_method

        declared, privacy = find_method(self.method), self._privacy()
        from discreet.methods.parameters import parse_settings  # torch, once the words are known to be right

        kind = load_method(declared)
        settings = parse_settings(kind, self.method, [f"preset={self.preset}", *self._given()])
        estimator = kind(privacy, compute=self._compute(), **{"random_state": self.seed, **settings})
        estimator._checked_privacy()
        return estimator

    def _given(self) -> list[str]:
        """What --set and --threshold say."""
        threshold = [] if self.threshold is None else [f"decide_by={self.threshold}"]
        return [*(self.settings or ()), *threshold]

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
        auto = Auto.from_settings(self._privacy(), own)
        level, compute = auto.privacy.level, self._compute()
        rest = [text for text in self._given() if text not in own]

        def choose(graph: Graph) -> tuple[NodeClassifier, Recommendation]:
            found = auto.recommend(level.view(graph).public)
            estimator = auto.estimator(found).set_params(random_state=self.seed, compute=compute)
            return estimator.set_params(**parse_settings(type(estimator), estimator.method, rest)), found

        return Choice(level, choose)

    def _privacy(self) -> Privacy:
        from discreet.privacy.budget import Privacy
        from discreet.privacy.levels import parse_level

        return Privacy(parse_level(self.level), self.epsilon, delta_of(self.delta))

    def _compute(self) -> Compute:
        return ComputeOptions(self.device, self.threads).prepare()


@dataclass(frozen=True)
class StatementOptions:
    """What the issuer says of the release."""

    data_name: DataName = None
    purpose: Purpose = None
    issuer: Issuer = None

    def statement(self) -> Statement:
        """Checked."""
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

    def added_to(self, statement: Statement) -> Statement:
        """The issuer's statement with the id of this entry."""
        return statement if self.entry is None else replace(statement, ledger=self.entry)

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
