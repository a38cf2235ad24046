"""A client of a Dask cluster: of one that runs already, or of workers on this machine."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from discreet.errors import EngineError, ParameterError
from discreet.limits import THREADS

CONNECT_SECONDS = 30
"""How long a scheduler may take to answer before it is said that none does."""


@contextmanager
def connected(scheduler: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """A ``distributed.Client``, closed at the end: of the scheduler at this address, or of so many local workers.

    Local workers are processes of one thread, one per core unless told otherwise; they end with the block. Whoever can
    reach a scheduler can run code on its workers and read what they read: use addresses that are yours alone.
    """
    if scheduler is not None and workers is not None:
        raise ParameterError("a scheduler that runs already has its own workers: leave out their number")
    distributed = _import_distributed()
    if scheduler is not None:
        with _client_at(distributed, scheduler) as client:
            yield client
        return
    count = (os.cpu_count() or 1) if workers is None else THREADS.check("workers", workers)
    with _quiet(), _local(distributed, int(count)) as cluster, distributed.Client(cluster) as client:
        yield client


def _import_distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ParameterError("the engine dask needs dask and distributed: install discreet[cluster]") from error
    return distributed


def _client_at(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError):
        raise EngineError(f"no Dask scheduler answers at {address}") from None


def _local(distributed: Any, workers: int) -> Any:
    """Workers of this machine. Mapped files count as their memory, so no limit is set on that."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Port .* is already in use")  # of its status page, which nobody asked for
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            dashboard_address=None,
            host="127.0.0.1",
            security=True,  # keys of this cluster alone: other accounts of the machine cannot give it work
            silence_logs=logging.CRITICAL,
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Workers that are closed say so as warnings; what matters is raised."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
