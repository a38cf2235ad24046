"""Where sums over edges run: in this process, or on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.errors import ParameterError
from discreet.limits import THREADS, shown

if TYPE_CHECKING:
    from discreet.graph.graph import Graph
    from discreet.training.descent import Progress

LOCAL, DASK = "local", "dask"


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
