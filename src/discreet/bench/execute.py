"""One trial, start to end: load, split, fit, score, and a row that says how it went.

A row is a research record: its accuracy figures read private data and are outside every guarantee.
"""

from __future__ import annotations

import hashlib
import platform
import resource
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from discreet.bench.graphs import graph_of
from discreet.bench.suite import SCORES
from discreet.bench.trials import FORMAT, Trial, estimator_of
from discreet.files import to_json

PACKAGES = ("discreet", "torch", "numpy", "scipy", "dp-accounting")


def execute(trial: Trial, root: Path | None, device: str = "cpu") -> dict[str, Any]:
    """Run a trial, its arithmetic on ``device``; whatever goes wrong becomes a row with its reason."""
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    _reset_peak()
    try:
        outcome = {"status": "ok", "reason": None, **_run(trial, root, device)}
    except Exception as error:  # a failed trial must not stop the others
        outcome = {"status": "failed", "reason": reason_of(error)}
    return {
        **head(trial),
        **outcome,
        "wall_seconds": time.perf_counter() - clock,
        "peak_rss_mb": _peak_mb(),
        "started": started,
        "device": device,
    }


def head(trial: Trial) -> dict[str, Any]:
    """What a row says of its trial, whatever came of it."""
    return {
        "id": trial.id,
        "format": FORMAT,
        "trial": trial.to_json(),
        "settings": trial.settings_digest,
        "constants": trial.constants_digest,
        "versions": versions(),
    }


def reason_of(error: BaseException) -> str:
    """One line; the kind of error is named where it is not one of ours."""
    text = " ".join(str(error).split())[:500]
    ours = type(error).__module__ == "discreet.errors"
    return text if ours and text else f"{type(error).__name__}: {text}".removesuffix(": ")


def _run(trial: Trial, root: Path | None, device: str) -> dict[str, Any]:
    if trial.measure is not None:
        from discreet.bench.measures import run_measure

        clock = time.perf_counter()
        found = run_measure(trial.measure, trial.settings, trial.seed)
        return {"metrics": found, "seconds": time.perf_counter() - clock}
    from discreet.graph.splits import split
    from discreet.methods.parameters import Compute
    from discreet.release.evaluate import evaluate

    graph = split(graph_of(trial.dataset, trial.seed, root), trial.split, trial.seed)
    estimator = estimator_of(trial).set_params(compute=Compute(device)).fit(graph)
    figures = evaluate(estimator, graph)
    return {
        "metrics": {metric: figures[metric] for metric in SCORES},
        "epsilon_spent": to_json(estimator.epsilon_spent_),
        "delta": estimator.plan_.delta,
        "covers": estimator.covers,
        "accounting": estimator.certificate_["accounting"],
        "seconds": estimator.fit_seconds_,
    }


# -------------------------------------------------------------------- what made it


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Python, the packages that matter, and a hash of our own source."""
    found = {"python": platform.python_version(), "source": source_digest()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@lru_cache(maxsize=1)
def source_digest() -> str:
    """The package's own files as one short hash: results of another source are told apart by it."""
    folder = Path(__file__).parents[1]
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        whole.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()[:12]


def _reset_peak() -> None:
    """Let the kernel count the peak anew, where it can (Linux): a worker runs many trials."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mb() -> float:
    """Peak resident memory of the trial; of the process so far where the kernel cannot tell them apart."""
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
