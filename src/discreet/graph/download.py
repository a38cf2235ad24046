"""Fetching a public graph's raw files through torch_geometric's own loaders."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

# Loaders whose root is the dataset's own folder; the others add folders of their own below theirs.
_ROOT_IS_FOLDER = ("Actor",)


def download(loader: str, name: str | None, folder: str, cache: Path) -> None:
    """Let ``torch_geometric.datasets.<loader>`` download, and move the raw files to ``cache / folder``.

    It works in a temporary folder inside ``cache``, so a download that breaks off leaves nothing behind.
    Whatever goes wrong there is raised as it is.
    """
    from torch_geometric import datasets

    cache.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".download-", dir=cache))
    root = scratch / _loader_root(loader, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            for options in _options(loader):
                arguments = [] if name is None else [name]
                getattr(datasets, loader)(str(root), *arguments, **options)
        _move_raw(scratch, cache)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _loader_root(loader: str, folder: str) -> str:
    if loader in _ROOT_IS_FOLDER:
        return str(Path(folder).parent)
    return "AttributedGraph" if loader == "AttributedGraphDataset" else "."


def _options(loader: str) -> list[dict[str, Any]]:
    # Planetoid's ten published splits come only with a second download of the same files.
    return [{}, {"split": "geom-gcn"}] if loader == "Planetoid" else [{}]


def _move_raw(scratch: Path, cache: Path) -> None:
    """Raw folders appear in the cache whole; what PyG processed is not kept."""
    for raw in sorted(scratch.rglob("raw"), reverse=True):  # geom-gcn's before the one that marks presence
        target = cache / raw.relative_to(scratch)
        if raw.is_dir() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(raw, target)
