"""A graph in partitions, opened so that the workers of a Dask cluster sum over its edges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.engine.cluster import connected
from discreet.engine.dask_blocks import DaskBlocks, Progress
from discreet.graph.graph_in_blocks import GraphInBlocks
from discreet.graph.partitions import PartitionedGraph


@contextmanager
def graph_on_workers(
    folder: str | Path, scheduler: str | None = None, workers: int | None = None, progress: Progress | None = None
) -> Iterator[GraphInBlocks]:
    """The graph of a folder of partitions, for ``model.fit`` and ``model.predict`` inside the block.

    ``scheduler`` and ``workers`` as in ``engine.cluster.connected``; ``progress(title, done, total)`` hears of every
    block that is done. Workers and temporary files are gone after the block.
    """
    with PartitionedGraph(folder) as opened, connected(scheduler, workers) as client:
        yield opened.graph(DaskBlocks(client, opened, progress=progress))
