"""Sums over edges in partitions, block by block on the workers of a Dask cluster.

Tables (public or released rows; inside a query that asks several times, its own workings) are put into files that
workers map, so that one machine holds them once. A worker's answer is a function of its block and the tables alone:
who computes it, how often, and in which order cannot show. The scratch folder is as private as the partitions.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Array, FloatArray
from discreet.errors import DiscreetError, EngineError
from discreet.graph.graph_in_blocks import sum_block
from discreet.graph.partition_manifest import StoredBlock
from discreet.graph.partitions import PartitionedGraph

AHEAD = 2
"""Blocks given out for each worker: while one is sent back, another is computed. More would only take memory."""
TRIES = 5
"""How many workers may die on a block before it is given up: then it is the block's doing, its memory perhaps."""
TICK = 2.0
"""Seconds between two looks at whether a worker is left."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class BlockSums:
    """What a worker runs: a sum over one block of edges, from files."""

    folder: str
    num_nodes: int
    tables: list[str]
    hears: str | None
    weighted: bool

    @property
    def width(self) -> int:
        """Columns of the result."""
        return int(np.load(self.tables[0], mmap_mode="r").shape[1])

    def __call__(self, block: StoredBlock) -> FloatArray:
        """The sums of the block's receivers.

        Dask writes what a task raises to the worker's log, so an error of any other kind is named and no more.
        """
        try:
            return self._sums(block)
        except DiscreetError:
            raise
        except Exception as error:
            raise _block_error(block, error) from None

    def _sums(self, block: StoredBlock) -> FloatArray:
        rows = [np.load(path, mmap_mode="r") for path in self.tables]
        heard = None if self.hears is None else np.load(self.hears, mmap_mode="r")[block.rows]
        return sum_block(Path(self.folder), block, self.num_nodes, rows, hears=heard, weighted=self.weighted)


def _block_error(block: StoredBlock, error: Exception) -> EngineError:
    """One sentence with the kind of error alone: its words may name sizes that are private."""
    return EngineError(
        f"workers could not sum over block {block.number} ({type(error).__name__}): each needs this version of "
        "discreet[cluster], the partitions under the same path, and memory for one block"
    )


class DaskBlocks:
    """Sums over the edges of a graph in partitions by the workers of ``client``, which must see its folder.

    ``patience`` is how many seconds to wait while there is no worker at all: two minutes, in which a cluster starts new
    ones.
    """

    def __init__(
        self, client: Any, partitions: PartitionedGraph, *, patience: float = 120.0, progress: Progress | None = None
    ) -> None:
        """Nothing is read yet."""
        self._client, self._partitions = client, partitions
        self._patience, self._progress = patience, progress
        self._passes = 0

    def sums(self, tables: Sequence[Array], *, hears: Array | None, weighted: bool) -> FloatArray:
        """``ops.sparse.sums_over_edges`` for all nodes, bit for bit what one process gives.

        Raises :class:`EngineError` where workers are lost for good; nothing is kept then.
        """
        manifest = self._partitions.manifest
        self._passes += 1
        folder = Path(tempfile.mkdtemp(prefix="tables-", dir=self._partitions.scratch))
        shared = random.getstate()  # Dask draws from it which worker to ask; whoever fits gets it back as it was
        try:
            paths = [_saved(folder / f"table-{number}.npy", table) for number, table in enumerate(tables)]
            heard = None if hears is None else _saved(folder / "hears.npy", hears)
            return self._collect(BlockSums(str(self._partitions.folder), manifest.num_nodes, paths, heard, weighted))
        finally:
            random.setstate(shared)
            shutil.rmtree(folder, ignore_errors=True)

    def _collect(self, task: BlockSums) -> FloatArray:
        blocks = self._partitions.manifest.blocks
        found = np.empty((task.num_nodes, task.width))
        waiting = list(reversed(blocks))
        running: dict[Any, StoredBlock] = {}
        try:
            while waiting or running:
                while waiting and len(running) < AHEAD * max(len(self._workers()), 1):
                    block = waiting.pop()
                    running[self._client.submit(task, block, pure=False, retries=TRIES)] = block
                for future in self._finished(running):
                    block = running.pop(future)
                    found[block.rows] = self._result(future, block)
                    future.release()
                    self._report(len(blocks) - len(waiting) - len(running), len(blocks))
        finally:
            for future in running:
                future.cancel()
        return found

    def _workers(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        return found

    def _finished(self, running: dict[Any, StoredBlock]) -> list[Any]:
        """Those that are done; an error where there has been no worker for too long."""
        from distributed import wait

        alone_since: float | None = None
        while True:
            try:
                return list(wait(list(running), timeout=TICK, return_when="FIRST_COMPLETED").done)
            except TimeoutError:
                if self._workers():
                    alone_since = None
                    continue
            alone_since = time.monotonic() if alone_since is None else alone_since
            if time.monotonic() - alone_since > self._patience:
                raise EngineError(
                    f"the cluster has had no worker for {self._patience:g} seconds: nothing was released, and nothing "
                    "is kept; start workers and run it again"
                )

    def _result(self, future: Any, block: StoredBlock) -> FloatArray:
        """What a worker found; what it raised in one sentence without private values."""
        try:
            found: FloatArray = future.result()
        except DiscreetError:
            raise
        except Exception as error:
            raise _block_error(block, error) from None
        return found

    def _report(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(f"pass {self._passes} over the edges", done, total)


def _saved(path: Path, array: Any) -> str:
    np.save(path, np.ascontiguousarray(array), allow_pickle=False)
    return str(path)
