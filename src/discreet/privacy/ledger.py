"""The ledger: one file that knows every release from the same data, and refuses the one that is too much.

A release is entered before private data is read: a *reservation*, which becomes a *release* once its folder is written.
Both count as spent. What they spend together is computed by :mod:`discreet.privacy.totals`.

Guarantee. A reservation is on disk before :meth:`Ledger.reserve` returns (SQLite with a rollback journal and
``synchronous=EXTRA``), so there is no release without its entry, whenever the process dies; where the disk is full or
the file cannot be written, reserving raises and nothing has run. Reading what is spent, judging the limit and entering
the reservation are one exclusive transaction, so two processes cannot both take what is left for one. Entries are never
removed, and nothing of them changes but the step from reservation to release: the file itself refuses anything else.
SQLite's locks must work where the file lies: a local disk, not every network share.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dp_accounting.dp_event import DpEvent

from discreet.errors import DataNotFoundError, DiscreetError, LedgerError, ParameterError
from discreet.limits import LEDGER_ENTRIES, shown
from discreet.privacy import events
from discreet.privacy.accountants import spend
from discreet.privacy.filter import Cost, RenyiFilter, together
from discreet.privacy.levels import parse_level

FORMAT = 1
"""SQLite's ``user_version`` of a ledger."""
WAIT_SECONDS = 60.0
"""How long a process waits for another one's transaction; each takes milliseconds."""
LONGEST_NAME = 200
"""Characters of a name: names are printed in tables."""

_TABLES = """
CREATE TABLE IF NOT EXISTS datasets (name TEXT PRIMARY KEY, population TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS entries (
  id TEXT PRIMARY KEY, dataset TEXT NOT NULL REFERENCES datasets(name), command TEXT NOT NULL, method TEXT NOT NULL,
  level TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, event TEXT NOT NULL, reserved TEXT NOT NULL,
  released TEXT, certificate TEXT
);
CREATE TABLE IF NOT EXISTS limits (
  population TEXT NOT NULL, relation TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, fixed TEXT NOT NULL,
  before INTEGER NOT NULL, PRIMARY KEY (population, relation)
);
CREATE TRIGGER IF NOT EXISTS entries_stay BEFORE DELETE ON entries
  BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never removed'); END;
CREATE TRIGGER IF NOT EXISTS entries_are_fixed BEFORE UPDATE ON entries
  WHEN OLD.released IS NOT NULL OR NEW.id IS NOT OLD.id OR NEW.dataset IS NOT OLD.dataset
    OR NEW.command IS NOT OLD.command OR NEW.method IS NOT OLD.method OR NEW.level IS NOT OLD.level
    OR NEW.epsilon IS NOT OLD.epsilon OR NEW.delta IS NOT OLD.delta OR NEW.event IS NOT OLD.event
    OR NEW.reserved IS NOT OLD.reserved
  BEGIN SELECT RAISE(ABORT, 'entries of a ledger never change'); END;
CREATE TRIGGER IF NOT EXISTS limits_stay BEFORE DELETE ON limits
  BEGIN SELECT RAISE(ABORT, 'limits of a ledger are never removed'); END;
CREATE TRIGGER IF NOT EXISTS limits_are_fixed BEFORE UPDATE ON limits
  BEGIN SELECT RAISE(ABORT, 'limits of a ledger never change'); END;
CREATE TRIGGER IF NOT EXISTS entries_keep_their_place BEFORE UPDATE ON entries WHEN NEW.rowid IS NOT OLD.rowid
  BEGIN SELECT RAISE(ABORT, 'entries of a ledger never change'); END;
CREATE TRIGGER IF NOT EXISTS entries_are_not_replaced BEFORE INSERT ON entries
  WHEN EXISTS (SELECT 1 FROM entries WHERE id = NEW.id OR rowid = NEW.rowid)
  BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never replaced'); END;
CREATE TRIGGER IF NOT EXISTS limits_are_not_replaced BEFORE INSERT ON limits
  WHEN EXISTS (
    SELECT 1 FROM limits WHERE (population = NEW.population AND relation = NEW.relation) OR rowid = NEW.rowid
  )
  BEGIN SELECT RAISE(ABORT, 'limits of a ledger are never replaced'); END;
CREATE TRIGGER IF NOT EXISTS datasets_stay BEFORE DELETE ON datasets
  BEGIN SELECT RAISE(ABORT, 'datasets of a ledger are never removed'); END;
CREATE TRIGGER IF NOT EXISTS datasets_are_not_replaced BEFORE INSERT ON datasets
  WHEN EXISTS (SELECT 1 FROM datasets WHERE name = NEW.name OR rowid = NEW.rowid)
  BEGIN SELECT RAISE(ABORT, 'datasets of a ledger are never replaced'); END;
CREATE TRIGGER IF NOT EXISTS datasets_only_join BEFORE UPDATE ON datasets
  WHEN NEW.name IS NOT OLD.name OR NEW.rowid IS NOT OLD.rowid OR OLD.population IS NOT OLD.name
    OR EXISTS (SELECT 1 FROM limits WHERE population IN (OLD.population, NEW.population))
  BEGIN SELECT RAISE(ABORT, 'datasets of a ledger never change, but that one joins a population without limits'); END;
"""
_OBJECTS = {(kind.lower(), name) for kind, name in re.findall(r"CREATE (TABLE|TRIGGER) IF NOT EXISTS (\w+)", _TABLES)}
"""Every table and rule of a ledger; what SQLite adds is called sqlite_…, a name that nobody else can give."""
MOST_OBJECTS = 1000
"""Names in a file from a stranger that are looked at."""
_COLUMNS = "id, dataset, population, command, method, level, epsilon, delta, event, reserved, released, certificate"


@dataclass(frozen=True)
class Run:
    """What is about to run: what is protected, by which method, and its event.

    ``epsilon`` is what is proved for the event at ``delta``; infinite at level ``none``.
    """

    command: str
    method: str
    level: str
    event: DpEvent
    delta: float

    @property
    def relation(self) -> str:
        """Which graphs count as neighbours."""
        return parse_level(self.level).relation

    @property
    def epsilon(self) -> float:
        """The smallest ε that any accountant proves; infinite where none knows the event, or at level none."""
        if parse_level(self.level).kind == "none":
            return math.inf
        return min(spend(self.event, self.delta).values(), default=math.inf)


@dataclass(frozen=True)
class Entry(Run):
    """A run as the ledger holds it; ``released`` and ``certificate`` are None while it is a reservation."""

    id: str
    dataset: str
    population: str
    reserved: str
    released: str | None
    certificate: str | None
    stated: float

    @property
    def epsilon(self) -> float:
        """As it was computed when the run was entered."""
        return self.stated


@dataclass(frozen=True)
class Limit:
    """The most that all runs of a population may spend at one level; ``before`` counts the entries when it was set."""

    population: str
    relation: str
    filter: RenyiFilter
    fixed: str
    before: int


class Ledger:
    """A ledger in a file. Every method opens it, does one transaction, and closes it."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    # ---------------------------------------------------------------- write

    def reserve(self, run: Run, dataset: str, population: str | None = None, limit: float | None = None) -> str:
        """Enter a run that is about to start, and return the id of its entry; it counts as spent from now on.

        Raises :class:`LedgerError` where the run would exceed the limit of its population. ``limit`` is fixed at the
        run's δ when it is first given and holds for all later runs, whether they name it or not. Names that differ in
        case, in spaces around them or in how a character is encoded are one name.
        """
        dataset = _checked_name("dataset", dataset)
        population = None if population is None else _checked_name("population", population)
        stated = run.epsilon  # first: it may take seconds, and locks nobody out
        if not self.path.exists():  # what a new ledger would refuse leaves no file behind
            with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
                _prepare(connection, self.path)
                _enter(connection, run, stated, dataset, population, limit)
        with self._transaction(create=True) as connection:
            return _enter(connection, run, stated, dataset, population, limit)

    def release(self, entry: str, certificate: str) -> None:
        """Say that the release of a reservation is written, by its certificate's digest."""
        with self._transaction() as connection:
            changed = connection.execute(
                "UPDATE entries SET released = ?, certificate = ? WHERE id = ? AND released IS NULL",
                (_now(), certificate, entry),
            )
            if changed.rowcount != 1:
                raise LedgerError(f"{self.path} holds no open reservation {entry}")

    # ---------------------------------------------------------------- read

    def entries(self, population: str | None = None) -> list[Entry]:
        """Every entry, oldest first; or those of one population."""
        with self._transaction() as connection:
            return _entries(connection, population)

    def limits(self) -> list[Limit]:
        """Every limit that was fixed."""
        with self._transaction() as connection:
            return _limits(connection, None)

    # ---------------------------------------------------------------- the file

    @contextmanager
    def _transaction(self, create: bool = False) -> Iterator[sqlite3.Connection]:
        """An exclusive transaction, on disk when it ends, and undone by an error."""
        if not create and not self.path.exists():
            raise DataNotFoundError(f"there is no ledger at {self.path}")
        if self.path.exists() and not self.path.is_file():
            raise LedgerError(f"{self.path} is not a plain file, which a ledger is")
        try:
            with closing(self._connect()) as connection:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    _prepare(connection, self.path)
                    yield connection
                except BaseException:
                    connection.rollback()
                    raise
                connection.commit()
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {self.path} cannot be used: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        # Transactions are begun and ended here, never behind our back.
        # An absolute path: SQLite keeps what it is given as ":memory:" in memory alone.
        connection = sqlite3.connect(self.path.absolute(), timeout=WAIT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection


# -------------------------------------------------------------------- within a transaction


def _enter(
    connection: sqlite3.Connection, run: Run, stated: float, dataset: str, population: str | None, limit: float | None
) -> str:
    """The id of a new entry, unless the run would exceed a limit of its population."""
    dataset = _as_known(connection, dataset)
    people = _join(connection, dataset, None if population is None else _as_known(connection, population))
    known = _entries(connection, people)
    if limit is not None:
        _fix_limit(connection, run, people, limit, len(known))
    for fixed in _limits(connection, people):
        _judge(fixed, run, stated, known)
    number = secrets.token_hex(8)
    connection.execute(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
        (
            *(number, dataset, run.command, run.method, run.level, stated, run.delta),
            *(json.dumps(events.event_to_json(run.event)), _now()),
        ),
    )
    return number


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make what is missing of the tables and their rules; refuse what is something else, or from a later version."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    held = connection.execute(f"SELECT type, name FROM sqlite_master LIMIT {MOST_OBJECTS}").fetchall()
    new = found == 0 and not held
    if not new and found != FORMAT:
        raise LedgerError(f"{path} is not a ledger of format {FORMAT}, the one that this version reads")
    others = [name for kind, name in held if (kind, name) not in _OBJECTS and not name.startswith("sqlite_")]
    if others:  # a view in the place of a table, or a rule of somebody else's, would run as part of what is asked here
        raise LedgerError(f"{path} holds {others[0]!r:.60}, which no ledger holds")
    for statement in _statements():  # a file of before may lack a rule
        connection.execute(statement)
    if new:
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def _statements() -> Iterator[str]:
    """The statements of the schema one by one: a script would commit the transaction that it is part of."""
    statement = ""
    for line in _TABLES.strip().splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _checked_name(what: str, given: str) -> str:
    """The name in one encoding, without spaces around it."""
    name = unicodedata.normalize("NFKC", given).strip(" ")
    if not (name and len(name) <= LONGEST_NAME and name.isprintable()):
        raise ParameterError(f"--{what} takes a name of 1 to {LONGEST_NAME} printable characters, not {shown(given)}")
    return name


def _as_known(connection: sqlite3.Connection, name: str) -> str:
    """The name as the ledger already spells it, for a dataset or a population; as it is where it is new."""
    found = connection.execute("SELECT name FROM datasets UNION SELECT population FROM datasets ORDER BY 1").fetchall()
    known = [str(row[0]) for row in found]
    if name in known:
        return name
    return next((other for other in known if _folded(other) == _folded(name)), name)


def _folded(name: str) -> str:
    """What two spellings of one name have in common."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).strip(" ").casefold())


def _join(connection: sqlite3.Connection, dataset: str, population: str | None) -> str:
    """The population that a dataset belongs to, its own name where none was ever given."""
    row = connection.execute("SELECT population FROM datasets WHERE name = ?", (dataset,)).fetchone()
    if row is None:
        connection.execute("INSERT INTO datasets VALUES (?, ?)", (dataset, population or dataset))
        return population or dataset
    (before,) = row
    if population is None or population == before:
        return str(before)
    if before != dataset:
        raise LedgerError(f"dataset {dataset!r} belongs to population {before!r}, not to {population!r}")
    if _limits(connection, before) or _limits(connection, population):
        raise LedgerError(
            f"dataset {dataset!r} has entries of its own, and cannot join population {population!r} once there is a "
            "limit: what was spent would no longer fit what was promised"
        )
    connection.execute("UPDATE datasets SET population = ? WHERE name = ?", (population, dataset))
    return population


def _entries(connection: sqlite3.Connection, population: str | None) -> list[Entry]:
    """Entries, oldest first, of one population or of all."""
    wanted = "" if population is None else "WHERE population = ?"
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM entries JOIN datasets ON entries.dataset = datasets.name {wanted} "
        f"ORDER BY reserved, entries.rowid LIMIT {LEDGER_ENTRIES + 1}",
        () if population is None else (population,),
    ).fetchall()
    if len(found) > LEDGER_ENTRIES:
        raise LedgerError(f"the ledger holds more than {LEDGER_ENTRIES} entries")
    return [_entry(*row) for row in found]


def _entry(
    number: str, dataset: str, population: str, command: str, method: str, level: str, epsilon: float, delta: float,
    event: str, reserved: str, released: str | None, certificate: str | None,
) -> Entry:  # fmt: skip
    words = [number, dataset, population, command, method, level, event, reserved]
    words += [word for word in (released, certificate) if word is not None]
    try:
        if not all(isinstance(word, str) for word in words) or not _are_figures(epsilon, delta):
            raise ValueError("a column does not hold what it should")
        parse_level(level)
        read = events.event_from_json(json.loads(event))
    except (DiscreetError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise LedgerError(f"entry {number!r:.40} of the ledger cannot be read: {error}") from None
    return Entry(
        command, method, level, read, float(delta), number, dataset, population, reserved, released, certificate,
        float(epsilon),
    )  # fmt: skip


def _are_figures(epsilon: Any, delta: Any) -> bool:
    """Whether two columns hold an ε, which may be infinite, and a δ."""
    return isinstance(epsilon, float) and isinstance(delta, float) and epsilon >= 0 and 0 <= delta < 1


def _limits(connection: sqlite3.Connection, population: str | None) -> list[Limit]:
    wanted = "" if population is None else "WHERE population = ?"
    found = connection.execute(
        f"SELECT population, relation, epsilon, delta, fixed, before FROM limits {wanted} ORDER BY fixed",
        () if population is None else (population,),
    )
    return [_limit(*row) for row in found]


def _limit(population: str, relation: str, epsilon: float, delta: float, fixed: str, before: int) -> Limit:
    words = all(isinstance(word, str) for word in (population, relation, fixed))
    if not (words and _are_figures(epsilon, delta) and isinstance(before, int)):
        raise LedgerError("a limit of the ledger cannot be read: a column does not hold what it should")
    return Limit(population, relation, RenyiFilter(epsilon, delta), fixed, before)


def _fix_limit(connection: sqlite3.Connection, run: Run, population: str, limit: float, before: int) -> None:
    """Store a limit that is new; one that differs from what was fixed is refused."""
    made = RenyiFilter(limit, run.delta)
    known = [found for found in _limits(connection, population) if found.relation == run.relation]
    if not known:
        connection.execute(
            "INSERT INTO limits VALUES (?, ?, ?, ?, ?, ?)",
            (population, run.relation, made.epsilon, made.delta, _now(), before),
        )
    elif known[0].filter.epsilon != limit:
        raise LedgerError(
            f"the limit of {population!r} at level {run.relation} was fixed at epsilon {known[0].filter.epsilon:g}; "
            "it cannot be changed once results may have been seen"
        )


def _judge(limit: Limit, run: Run, epsilon: float, known: list[Entry]) -> None:
    """Refuse a run that would take its population beyond a limit.

    The very first run of a population is chosen before anything was seen, so no filter is needed to let it use up the
    whole limit by its own ε; whether the filter has room for it then decides if there can be a second.
    """
    who = f"{limit.population!r} at level {limit.relation}"
    if limit.relation != run.relation:
        raise LedgerError(
            f"there is a limit of epsilon {limit.filter.epsilon:g} for {who}, and a run at level {run.relation} says "
            "nothing of that level: its total would be infinite"
        )
    if not known and epsilon <= limit.filter.epsilon and run.delta <= limit.filter.delta:
        return
    spent = spent_of(limit, known)
    if not limit.filter.admits(spent, limit.filter.cost(run.event, epsilon, run.delta)):
        room = limit.filter.room(spent)
        left = f"a run of about epsilon {room:.3g}" if room else "no further run"
        raise LedgerError(
            f"this run of epsilon {epsilon:.4g} would exceed the limit of epsilon {limit.filter.epsilon:g} for {who}; "
            f"{len(known)} earlier runs leave room for {left}"
        )


def spent_of(limit: Limit, entries: list[Entry]) -> Cost:
    """What the entries of a population take of a limit; an entry at another level takes everything."""
    return together(
        [
            limit.filter.cost(entry.event, entry.epsilon, entry.delta)
            if entry.relation == limit.relation
            else Cost(math.inf, 0.0)
            for entry in entries
        ]
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
