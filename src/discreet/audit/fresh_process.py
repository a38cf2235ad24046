"""Is a fit the same in a fresh process? What an earlier fit left in a cache of the process would make it another.

A cache that outlives a fit hides from replay: both sides then read the data of whichever came first, and nothing
moves. In a process in which nothing was fitted before, there is nothing to read.

The process has an empty working folder and an empty temporary folder of its own: what lies there after the fit, the fit
has left, be it by compiled code that does not say which files it opens.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from discreet.audit.files_left import left_files
from discreet.audit.fingerprints import fingerprint
from discreet.audit.recording import ADVERSARIES, RecordingCurator
from discreet.audit.replay import split_all
from discreet.graph.graph import Graph
from discreet.mechanisms.bits import NoiseSource
from discreet.methods.base import NodeClassifier
from discreet.privacy.plan import Plan
from discreet.workers import map_in_workers

_SEED = 0
"""Of noise and everything else: equal on both sides, so that they differ by what was there before alone."""


def fresh_process_faults(
    estimator: NodeClassifier, graph: Graph, neighbor: Graph, *, prepare: Callable[[], None] | None = None
) -> list[str]:
    """Fit the neighbour after the graph here, and by itself in a fresh process: all that is seen must be the same.

    ``prepare`` runs first in the fresh process. Where methods cannot be sent to another process, an error of pickling
    or importing is raised.
    """
    plan = estimator.plan(graph.public)
    seen_of(estimator, plan, graph)
    here = seen_of(estimator, plan, neighbor)
    task = (prepare, estimator, plan, neighbor, torch.get_num_threads())
    ((there, files),) = map_in_workers(_seen_in_process, [task], 1, _context())
    names = [name for name in sorted({*here, *there}) if here.get(name) != there.get(name)]
    apart = [
        f"after another fit {name} differs from that of a fresh process: an earlier fit's data was kept"
        for name in names
    ]
    return [*apart[:1], *left_files("fit", files)]


def seen_of(estimator: NodeClassifier, plan: Plan, graph: Graph) -> dict[str, bytes]:
    """Digests of what one fit with known noise sees and gives: stages, then what is released."""
    made: NodeClassifier = clone(estimator)
    parts, private = split_all(made, [graph])
    noise, rng = NoiseSource(insecure_seed=_SEED), np.random.default_rng(_SEED)
    curator = RecordingCurator(plan, noise, private, ADVERSARIES["own"], rng)
    made._fit_with(parts, curator)
    stages = {f"stage {record.stage!r}, run {record.run}": record for record in curator.records}
    released: dict[str, Any] = {f"{name} of the release": array for name, array in made._state().items()}
    return {name: fingerprint(value) for name, value in {**stages, **released}.items()}


def _seen_in_process(
    task: tuple[Callable[[], None] | None, NodeClassifier, Plan, Graph, int],
) -> tuple[dict[str, bytes], list[str]]:
    """What the fit sees and gives, and the names of the files that it leaves."""
    prepare, estimator, plan, graph, threads = task
    if prepare is not None:
        prepare()
    torch.set_num_threads(threads)
    with _own_folders() as folder:
        found = seen_of(estimator, plan, graph)
        return found, sorted(path.name for path in folder.rglob("*") if path.is_file())


@contextmanager
def _own_folders() -> Iterator[Path]:
    """Work in an empty folder with an empty one for temporary files; for a process that does nothing else."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tempfile.tempdir = str(folder / "temporary")
        os.mkdir(tempfile.tempdir)
        os.environ.update(dict.fromkeys(("TMPDIR", "TEMP", "TMP"), tempfile.tempdir))
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def _context() -> Any:
    """Processes that are forked from one that has imported everything and fitted nothing, where there are such."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__, "numba"])  # which the first fit of a process would load
    return context
