"""A suite that runs in seconds, and rows that were never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.bench.suite import Suite, parse_suite
from discreet.bench.trials import Entry

TINY = """
title = "tiny"
datasets = ["small"]
seeds = 3
first_seed = 0
graphs = { small = "csbm:num_nodes=60,num_features=4,average_degree=6" }

[[cases]]
method = "mlp"
level = "edge"
epsilon = 1
settings = { epochs = 2, hidden = 4 }

[[cases]]
name = "too many labels"
method = "mlp"
level = "edge"
epsilon = 1
split = "500/10/10"
seeds = 1
"""


def suite(text: str = TINY, name: str = "tiny") -> Suite:
    return parse_suite(text, name)


def written(folder: Path, text: str = TINY) -> Path:
    path = folder / "tiny.toml"
    path.write_text(text)
    return path


def row(entry: Entry, value: float, **more: Any) -> dict[str, Any]:
    """A row as if the trial had run: the score is given as a share."""
    return {
        "id": entry.trial.id,
        "trial": entry.trial.to_json(),
        "status": "ok",
        "reason": None,
        "metrics": {"accuracy": {"test": value, "val": value / 2}},
        "covers": "weights+predictions",
        "epsilon_spent": 1.0,
        "seconds": 2.0,
        "peak_rss_mb": 100.0,
        "wall_seconds": 2.0,
        "versions": {},
        **more,
    }
