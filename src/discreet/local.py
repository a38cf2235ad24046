"""Local privacy where the data is: a record is made private before it leaves its owner. Needs NumPy and cryptography.

    import discreet.local as local

    report = local.encode(record, feature_range=(0, 1), epsilon=1.0)       # on the owner's device
    answer = local.encode_label(label, num_classes=7, epsilon=1.0)         # on the owner's device

Only ``report`` and ``answer`` are sent, once; together they cost ε = 2. The server works with many of them::

    features = local.rectify(reports, feature_range=(0, 1), epsilon=1.0)   # unbiased
    confusion = local.label_confusion(num_classes=7, epsilon=1.0)

A record that is encoded twice has spent twice: keep the report and send the same one again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.arrays import Array, FloatArray, IntArray
from discreet.errors import ParameterError
from discreet.limits import CLASSES
from discreet.mechanisms.bits import NoiseSource, Randomness
from discreet.mechanisms.local.encoders import FEATURE_MECHANISMS, checked_epsilon, feature_encoder
from discreet.mechanisms.local.feature_range import Outside
from discreet.mechanisms.local.multi_bit import best_sampled
from discreet.mechanisms.local.randomized_response import RandomizedResponse

__all__ = [
    "FEATURE_MECHANISMS",
    "best_sampled",
    "encode",
    "encode_label",
    "encode_labels",
    "encode_many",
    "feature_encoder",
    "label_confusion",
    "rectify",
]


# -------------------------------------------------------------------- on the owner's device


def encode(
    record: npt.ArrayLike,
    *,
    feature_range: tuple[float, float],
    epsilon: float,
    mechanism: str = "multi-bit",
    delta: float | None = None,
    outside: Outside = "refuse",
    insecure_rng: np.random.Generator | None = None,
) -> Array:
    """The private report of one record's features.

    Parameters
    ----------
    record
        The features of one node, a flat array.
    feature_range
        The public range [low, high] of every feature. It is demanded: there is no default, and it is never read
        from records.
    epsilon
        What this report may reveal; a positive number.
    mechanism
        ``multi-bit`` (the default, a few signs), ``one-bit`` (a sign for every feature), ``laplace``, or
        ``gaussian`` (which needs ``delta``).
    outside
        ``refuse`` a record with a feature outside the range, or ``clip`` it.
    insecure_rng
        Fixes the randomness, for tests alone. By default it comes from the operating system, afresh for each call.

    Guarantee: ε-differential privacy for the whole record ((ε, δ) for ``gaussian``), see the mechanism's class.
    """
    row = _numbers(record, "a record")
    if row.ndim != 1:
        raise ParameterError(f"a record is a flat array of features, not of shape {row.shape}; see encode_many")
    encoder = feature_encoder(mechanism, width=len(row), feature_range=feature_range, epsilon=epsilon, delta=delta)
    return encoder.encode(row, _rng(insecure_rng), outside=outside)


def encode_label(
    label: int, *, num_classes: int, epsilon: float, insecure_rng: np.random.Generator | None = None
) -> int:
    """The private report of one label, a class from 0 to ``num_classes`` − 1, or −1 where there is none.

    Guarantee: ε-differential privacy for the label, and for whether there is one.
    """
    if isinstance(label, bool) or not isinstance(label, int | np.integer):
        raise ParameterError(f"label must be a whole number, not {label!r}")
    return _response(epsilon, num_classes).encode(int(label), _rng(insecure_rng))


# -------------------------------------------------------------------- many records at once


def encode_many(
    rows: Any,
    *,
    feature_range: tuple[float, float],
    epsilon: float,
    mechanism: str = "multi-bit",
    delta: float | None = None,
    outside: Outside = "refuse",
    insecure_rng: np.random.Generator | None = None,
) -> Any:
    """:func:`encode` on every row of a dense array or CSR matrix, in distribution the same and row by row independent.

    For a holder of many records, and for simulations. The reports of ``multi-bit`` are CSR where they are sparse.
    """
    given = rows.tocsr() if hasattr(rows, "tocsr") else _numbers(rows, "rows")
    if given.ndim != 2:
        raise ParameterError(f"rows must be a matrix, one record per row, not of shape {given.shape}")
    encoder = feature_encoder(
        mechanism, width=given.shape[1], feature_range=feature_range, epsilon=epsilon, delta=delta
    )
    return encoder.encode_rows(given, _rng(insecure_rng), outside=outside)


def encode_labels(
    labels: npt.ArrayLike, *, num_classes: int, epsilon: float, insecure_rng: np.random.Generator | None = None
) -> IntArray:
    """:func:`encode_label` on every label, each by itself."""
    return _response(epsilon, num_classes).encode_rows(np.asarray(labels), _rng(insecure_rng))


# -------------------------------------------------------------------- where reports arrive


def rectify(
    reports: Any,
    *,
    feature_range: tuple[float, float],
    epsilon: float,
    mechanism: str = "multi-bit",
    delta: float | None = None,
) -> FloatArray:
    """Unbiased features, dense, from one report or many, with the settings that the owners encoded with."""
    dense = _numbers(reports.toarray() if hasattr(reports, "toarray") else reports, "reports")
    if dense.ndim == 0:
        raise ParameterError("reports must be one report, a flat array, or a matrix of them, one per row")
    encoder = feature_encoder(
        mechanism, width=dense.shape[-1], feature_range=feature_range, epsilon=epsilon, delta=delta
    )
    return encoder.rectify(dense)


def label_confusion(*, num_classes: int, epsilon: float) -> FloatArray:
    """The probability of each reported class (column), given the true one (row)."""
    return _response(epsilon, num_classes).confusion()


def _numbers(given: Any, what: str) -> FloatArray:
    """An array of real numbers; masked entries, which have no value, are refused."""
    try:
        array = np.asarray(given)
        if array.dtype.kind in "cmM" or (isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given)):
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{what} must hold real numbers alone, in an array") from None


def _response(epsilon: float, num_classes: int) -> RandomizedResponse:
    """The mechanism of labels; a budget that is no number, and a count that is none, are refused."""
    CLASSES.check("the number of classes", num_classes)
    return RandomizedResponse(checked_epsilon(epsilon), num_classes)


def _rng(insecure: np.random.Generator | None) -> Randomness:
    if insecure is not None and not isinstance(insecure, np.random.Generator):
        raise ParameterError(f"insecure_rng must be a numpy.random.Generator, not {type(insecure).__name__}")
    return NoiseSource().stream("report") if insecure is None else insecure
