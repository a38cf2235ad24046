"""The figures of a fit as text: scores by mask, the classes by name, and which class was taken for which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.cli.output import aligned, shown

MOST_CLASSES = 12
"""A confusion table of more columns does not fit on a terminal; --json has it."""

_SCORES = {
    "accuracy": "accuracy",
    "majority": "  the commonest class throughout",
    "features_alone": "  mlp, on features alone",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro-F1",
    "roc_auc": "ROC-AUC",
    "pr_auc": "PR-AUC",
}
_COLUMNS = {
    **{name: name for name in ("nodes", "predicted", "precision", "recall")},
    **{"roc_auc": "ROC-AUC", "pr_auc": "PR-AUC"},
}


def figures_text(result: Mapping[str, Any]) -> str:
    """Scores by mask, the classes by name, the confusion table and the warnings."""
    if result["accuracy"] is None:
        return str(result["note"])
    name = next(iter(result["by_class"]), "test")
    blocks = [
        _scores(result),
        _classes(name, result["by_class"].get(name, [])),
        _confusion(result["confusion"].get(name, []), result["classes"]),
        *(f"warning: {sentence}" for sentence in result["warnings"]),
        str(result["note"]),
    ]
    return "\n\n".join(block for block in blocks if block)


def _scores(result: Mapping[str, Any]) -> str:
    masks = list(result["accuracy"])
    rows = [[title, *(shown(result[key][mask]) for mask in masks)] for key, title in _SCORES.items() if key in result]
    return aligned([["", *masks], *rows])


def _classes(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    head = [f"class ({name} nodes)", *_COLUMNS.values()]
    return aligned([head, *([row["name"], *(shown(row[column]) for column in _COLUMNS)] for row in rows)])


def _confusion(table: Sequence[Sequence[object]], names: Sequence[str]) -> str:
    if not table or len(names) > MOST_CLASSES:
        return ""
    head = ["true class \\ predicted", *names]
    return aligned([head, *([name, *map(str, row)] for name, row in zip(names, table, strict=True))])


def table_text(result: Mapping[str, Any]) -> str:
    """Figures that were released with noise, and what they cost."""
    certificate, both = result["certificate"], result["composed"]
    scores = [[_SCORES[key], shown(result[key])] for key in _SCORES if key in result]
    rows = zip(result["classes"], result["precision"], result["recall"], strict=True)
    counts = [[f"{count:.0f}" for count in row] for row in result["confusion"]]
    return "\n\n".join(
        [
            aligned(scores),
            aligned([["class", "precision", "recall"], *([name, shown(one), shown(two)] for name, one, two in rows)]),
            _confusion(counts, result["classes"]),
            f"every count carries noise of standard deviation {result['noise_on_counts']:.3g}",
            f"epsilon {shown(certificate['epsilon'])} at delta {shown(certificate['delta'])} for somebody in these "
            "data alone; "
            f"with the release {shown(both['epsilon'])} at delta {shown(both['delta'])} for somebody in both",
        ]
    )
