"""``discreet doctor``: what a bug report needs, without anything private; and what killed runs left behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.declared import DataRoot, Json
from discreet.cli.output import report

PACKAGES = (
    *("discreet", "torch", "dp-accounting", "numpy", "scipy", "scikit-learn", "pydantic", "safetensors", "pandas"),
    *("numba", "cryptography", "typer"),
)
OPTIONAL = {"torch-geometric": "pyg", "networkx": "networkx", "pyarrow": "parquet"}


def doctor(
    folder: Annotated[
        list[Path] | None, typer.Argument(help="Look for leftovers of killed runs here too, beside this folder.")
    ] = None,
    data_root: DataRoot = None,
    clean: Annotated[bool, typer.Option("--clean", help="Remove what killed runs left behind.")] = False,
    as_json: Json = False,
) -> None:
    """Report versions, devices, places, what is missing or broken, and what killed runs left behind."""
    from discreet.files import remove_leftover

    left = _leftovers(folder or [])
    found = examine(data_root) | {"leftovers": [_shown(path) for path in left]}
    if clean:
        for path in left:
            remove_leftover(path)
        found["removed"] = len(left)
    report(found, as_json)


def examine(data_root: Path | None = None) -> dict[str, Any]:
    """Everything that helps to explain why something does not work here; of paths, the home folder is left out."""
    import platform

    import torch

    from discreet.graph.datasets import available, data_roots
    from discreet.methods.registry import broken_methods
    from discreet.privacy.calibration import cache_dir

    found = [row.name for row in available(data_root) if row.status == "found"]
    versions = {name: _version(name) for name in PACKAGES}
    missing = [f"{name} (pip install 'discreet[{extra}]')" for name, extra in OPTIONAL.items() if not _version(name)]
    broken = broken_methods()
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "memory_gb": _memory_gb(),
        "encoding": sys.stdout.encoding,
        **versions,
        "devices": ", ".join(["cpu", *(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))]),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "data_roots": ", ".join(
            f"{name} ({'exists' if root.is_dir() else 'absent'})"
            for name, root in zip(_root_names(data_root), data_roots(data_root), strict=True)
        ),
        "datasets_found": ", ".join(found) or "none: only csbm, which needs no file",
        "calibrations": _shown(cache_dir()),
        "missing_extras": ", ".join(missing) or "none",
        "broken_methods": "; ".join(f"{name}: {reason}" for name, reason in broken.items()) or "none",
    }


def _root_names(data_root: Path | None) -> list[str]:
    """Places of data as whoever reads the report may know them: a path may name a customer."""
    from discreet.graph.datasets import ENVIRONMENT, cache_root

    given = ["--data-root"] * bool(data_root) + [f"${ENVIRONMENT}"] * bool(os.environ.get(ENVIRONMENT))
    return [*given, _shown(cache_root())]


def _leftovers(folders: list[Path]) -> list[Path]:
    """In this folder, in those that are named, and in our own caches."""
    from discreet.files import leftovers
    from discreet.graph.datasets import cache_root
    from discreet.privacy.calibration import cache_dir

    places = dict.fromkeys(
        Path(os.path.abspath(place)) for place in (*_current_folder(), *folders, cache_root(), cache_dir())
    )
    return [path for place in places for path in leftovers(place)]


def _current_folder() -> list[Path]:
    """This folder; none where it has been removed."""
    try:
        return [Path.cwd()]
    except FileNotFoundError:
        return []


def _shown(path: Path) -> str:
    """A path as seen from here, or without the name of the person whose home it is in."""
    from discreet.files import home_folder

    home = home_folder()
    for here in _current_folder():
        if path.is_relative_to(here) and not home.is_relative_to(here):
            return str(path.relative_to(here))
    return str(Path("~") / path.relative_to(home)) if path.is_relative_to(home) else str(path)


def _memory_gb() -> float | None:
    """Memory of the machine; None where the system does not tell."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
