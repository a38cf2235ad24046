"""What the command prints: results as text or as one JSON object, tables, and progress on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.graph.graph import Graph
    from discreet.methods.base import NodeClassifier
    from discreet.methods.training import Progress


def training_result(estimator: NodeClassifier, graph: Graph, seed: int, split: str) -> dict[str, Any]:
    """What ``train`` reports. Its accuracy figures read private data: they are outside every guarantee, and say so."""
    import resource

    privacy = estimator._checked_privacy()
    masks = [name for name in ("train", "val", "test") if getattr(graph, f"{name}_mask") is not None]
    figures = {
        metric: {name: estimator.score(graph, name, metric=metric, uncovered=True) for name in masks}
        for metric in ("accuracy", "micro-f1", "macro-f1")
    }
    return {
        "data": graph.name,
        "method": estimator.method,
        "level": privacy.level.spec,
        "epsilon": privacy.epsilon,
        "delta": estimator.plan_.delta,
        "epsilon_spent": estimator.epsilon_spent_,
        "accounting": estimator.plan_.accounting,
        "accuracy": figures["accuracy"],
        "by_class": {
            name: estimator.score(graph, name, by_class=True, uncovered=True) for name in masks if name == "test"
        },
        "micro_f1": figures["micro-f1"],
        "macro_f1": figures["macro-f1"],
        "seconds": estimator.fit_seconds_,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "covers": estimator.covers,
        "seed": seed,
        "split": split,
        "release": None,
        "note": "accuracy is a research figure, outside every guarantee",
    }


def say(text: object, as_json: bool) -> None:
    """Words for a person: they make way for JSON."""
    print(text, file=sys.stderr if as_json else sys.stdout)


def report(result: dict[str, Any], as_json: bool) -> None:
    """One result, as lines or as JSON."""
    if as_json:
        print_json(result)
        return
    print()
    for key, value in result.items():
        print(f"{key:16}{shown(value)}")


def shown(value: Any) -> str:
    """A value as text."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "; ".join(map(shown, value)) or "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "–" if value is None else str(value)


def print_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    """A table, or its rows as JSON."""
    if as_json:
        print_json({"rows": rows})
        return
    texts = [{k: ", ".join(v) if isinstance(v, list) else shown(v) for k, v in row.items()} for row in rows]
    widths = {key: max(len(key), *(len(row[key]) for row in texts)) for key in texts[0]}
    print("  ".join(key.ljust(width) for key, width in widths.items()).rstrip())
    for row in texts:
        print("  ".join(row[key].ljust(width) for key, width in widths.items()).rstrip())


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    print(json.dumps(finite(value), ensure_ascii=False))


def finite(value: Any) -> Any:
    """JSON has no infinity."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return "infinite" if isinstance(value, float) and value == float("inf") else value


@contextmanager
def progress_bars() -> Iterator[Progress | None]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    with Bars(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def update(title: str, done: int, total: int) -> None:
            if title not in tasks:
                tasks[title] = bars.add_task(title, total=total)
            bars.update(tasks[title], completed=done)

        yield update
