"""What is audited: a method with its parameters, made cheap where that does not touch what is claimed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from sklearn.base import clone

from discreet.audit.worst_pairs import NODES
from discreet.methods.base import NodeClassifier
from discreet.privacy.budget import Privacy

QUICK: dict[str, int] = {"epochs": 1, "hidden": 4, "steps": 2, "head_steps": 2}
"""Fields that decide how long a fit takes, where a method has them. Noise is calibrated to whatever steps there are."""
_WIDEST, _MOST_STEPS = 8, 5
"""Of hidden layers and of steps, what whole fits of a release keep: an audit makes hundreds."""
_COUNT = re.compile(r"\b(int|Steps|Rounds|Width)\b")
"""Types of whole numbers, as fields name them."""


def cheap(estimator: NodeClassifier, kept: Collection[str] = ()) -> NodeClassifier:
    """The estimator with short training; parameters named in ``kept`` stay as they are."""
    found = clone(estimator)
    found.set_params(**{name: value for name, value in found._pinned().items() if name not in kept})
    found.set_params(**{name: value for name, value in QUICK.items() if name in _whole_fields(found, kept)})
    return found


@dataclasses.dataclass(frozen=True)
class Subject:
    """An estimator whose plan is audited as it is, and the same with fewer steps for whole fits."""

    planned: NodeClassifier
    fitted: NodeClassifier
    release: dict[str, Any] | None = None


def method_subject(estimator: NodeClassifier, kept: Collection[str] = ()) -> Subject:
    """A method, trained for a few steps unless the caller set how many."""
    quick = cheap(estimator, kept)
    return Subject(quick, quick)


def release_subject(folder: str | Path) -> Subject:
    """The configuration of a release: its parameters, level and (ε, δ), on graphs of a few nodes.

    Its plan keeps every step, and batches keep their rate. In whole fits the steps are cut, with the noise
    calibrated to what is left: replay and pipeline see the same code at the same (ε, δ).
    """
    from discreet.release.load import load_release

    loaded = load_release(folder)
    privacy = loaded.checked_privacy()
    planned = clone(loaded)
    planned.set_params(privacy=Privacy(privacy.level, privacy.epsilon, loaded.plan_.delta), **loaded._pinned())
    fields = _whole_fields(planned, ())
    small = {"epochs": 1, **{name: _at_most(getattr(planned, name), _WIDEST) for name in ("hidden",) if name in fields}}
    planned.set_params(**{name: value for name, value in small.items() if name in fields})
    _keep_batch_rate(planned, loaded.public_.num_train)
    fitted = clone(planned)
    steps = [name for name in ("steps", "head_steps") if name in fields]
    fitted.set_params(**{name: _at_most(getattr(planned, name), _MOST_STEPS) for name in steps})
    certificate = loaded.certificate_
    return Subject(planned, fitted, {"folder": str(folder), "certificate": certificate["digest"]})


def _at_most(value: int | None, most: int) -> int:
    """The smaller of the two; where the method would choose by public facts, ``most``."""
    return most if value is None else min(value, most)


def _keep_batch_rate(estimator: NodeClassifier, num_train: int) -> None:
    size = getattr(estimator, "batch_size", None)
    if size is not None:
        smallest = max(1, int(0.7 * NODES))  # as many training nodes as the smallest split of an audit's graph has
        estimator.set_params(batch_size=min(smallest, max(1, round(size / num_train * smallest))))


def _whole_fields(estimator: NodeClassifier, kept: Collection[str]) -> set[str]:
    """The parameters that take whole numbers: those that hold one, or say that they would."""
    return {
        field.name
        for field in dataclasses.fields(estimator)
        if field.name not in kept and (_is_whole(getattr(estimator, field.name)) or _COUNT.search(str(field.type)))
    }


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
