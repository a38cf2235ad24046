"""``discreet doctor``: versions, devices, data, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.cli.options import DataRoot, Json
from discreet.cli.output import report

PACKAGES = ("discreet", "torch", "dp-accounting", "numpy", "scipy", "scikit-learn", "pydantic", "safetensors", "pandas")
OPTIONAL = {"torch-geometric": "pyg", "networkx": "networkx", "pyarrow": "parquet"}


def doctor(data_root: DataRoot = None, as_json: Json = False) -> None:
    """Report versions, devices, where data is looked for, and what is missing."""
    report(examine(data_root), as_json)


def examine(data_root: Path | None = None) -> dict[str, Any]:
    """Everything that helps to explain why something does not work here."""
    import platform

    import torch

    from discreet.graph.datasets import available, data_roots
    from discreet.privacy.calibration import cache_dir

    found = [row.name for row in available(data_root) if row.status == "found"]
    versions = {name: _version(name) for name in PACKAGES}
    missing = [f"{name} (pip install 'discreet[{extra}]')" for name, extra in OPTIONAL.items() if not _version(name)]
    return {
        "python": platform.python_version(),
        **versions,
        "devices": ", ".join(["cpu", *(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))]),
        "threads": torch.get_num_threads(),
        "data_roots": ", ".join(
            f"{root} ({'exists' if root.is_dir() else 'absent'})" for root in data_roots(data_root)
        ),
        "datasets_found": ", ".join(found) or "none: only csbm, which needs no file",
        "calibrations": str(cache_dir()),
        "missing_extras": ", ".join(missing) or "none",
    }


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
