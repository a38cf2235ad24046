"""Norms and sums of gradients in exact arithmetic: single-precision rows are whole numbers times a power of two."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np

_BITS = 8
_LONGEST = 1 << 21
"""Inner products of so many pieces of 16 bits are exact in double precision."""


def exact_gram(rows):
    """All inner products of the rows (slots, width), as fractions."""
    pieces, exponent = _pieces(np.asarray(rows, dtype=np.float32))
    count, slots, width = pieces.shape
    assert width <= _LONGEST
    flat = pieces.reshape(count * slots, width)
    products = (flat @ flat.T).reshape(count, slots, count, slots)
    found = np.zeros((slots, slots), dtype=object)
    for i in range(count):
        for j in range(count):
            whole = np.vectorize(int, otypes=[object])(products[i, :, j])
            found += whole * (1 << (_BITS * (i + j)))
    return found * Fraction(2) ** (2 * exponent)


def _pieces(rows):
    """Rows = 2^exponent · Σ_i 256^i pieces_i, every piece whole and below 2^16."""
    mantissa, exponents = np.frexp(rows.astype(np.float64))
    whole = (mantissa * 2**24).astype(np.int64)
    exponents = np.where(whole == 0, 0, exponents - 24).astype(np.int64)
    least = int(exponents[whole != 0].min(initial=0)) if (whole != 0).any() else 0
    shift = np.where(whole == 0, 0, exponents - least)
    place, rest = shift // _BITS, shift % _BITS
    pieces = np.zeros((int(place.max(initial=0)) + 3, *rows.shape))
    sign, whole = np.sign(whole), np.abs(whole)
    for i in range(3):
        piece = sign * ((whole >> (_BITS * i)) & 255) * (1 << rest)
        np.put_along_axis(pieces, (place + i)[None], piece[None].astype(np.float64), axis=0)
    return pieces, least


def exact_square(rows, gradients):
    """‖Σ_j a_j g_jᵀ‖² of one example, as a fraction. (A column of ones in ``rows`` is the bias.)"""
    total: Fraction = (exact_gram(rows) * exact_gram(gradients)).sum()
    return total


def exact_sum(rows, gradients, factors):
    """Σ_i c_i Σ_j a_ij g_ijᵀ in fractions, (width, outputs); rows are (examples, slots, width)."""
    total = np.zeros((rows.shape[2], gradients.shape[2]), dtype=object)
    for given, above, factor in zip(rows, gradients, factors, strict=True):
        scaled = _fractions(above) * Fraction(factor)
        for a, g in zip(_fractions(given), scaled, strict=True):
            total += np.outer(a, g)
    return total


def _fractions(values):
    return np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(np.asarray(values))


def length(values):
    """The norm of doubles or fractions, off by no more than the last digits of a double."""
    flat = np.asarray(values).ravel()
    if flat.dtype == object:
        return root(Fraction(sum(v**2 for v in flat)))
    return math.sqrt(math.fsum(np.square(flat, dtype=np.float64)))


def root(square):
    """The square root of a fraction, to the last digit of a double."""
    with mpmath.workdps(50):
        return float(mpmath.sqrt(mpmath.mpf(square.numerator) / mpmath.mpf(square.denominator)))


def parts(rows, gradients):
    """P = Σ_j ‖a_j‖‖g_j‖, to fifty digits."""
    with mpmath.workdps(50):
        inner, outer = exact_gram(rows).diagonal(), exact_gram(gradients).diagonal()
        roots = [mpmath.sqrt(_mp(a)) * mpmath.sqrt(_mp(g)) for a, g in zip(inner, outer, strict=True)]
        return mpmath.fsum(roots)


def _mp(value):
    value = Fraction(value)
    return mpmath.mpf(value.numerator) / mpmath.mpf(value.denominator)


def exact_factor(rows, gradients, bound, spare, few, most):
    """What ``ops.clipping`` means a factor to be, without any rounding; for one layer with several slots."""
    with mpmath.workdps(50):
        square, whole = _mp(exact_square(rows, gradients)), parts(rows, gradients)
        longest = max((square + spare * whole**2) * (1 + few), whole**2 * (1 + few) / most**2)
        return Fraction(*_ratio(mpmath.mpf(bound) / max(mpmath.mpf(bound), mpmath.sqrt(longest))))


def _ratio(value):
    sign, mantissa, exponent, _ = value._mpf_
    assert not sign
    return (int(mantissa) << exponent, 1) if exponent >= 0 else (int(mantissa), 1 << -exponent)


def check_of_the_ruler():
    """The ruler itself against plain fractions."""
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((3, 5)) * 10.0 ** rng.integers(-44, 38, (3, 5))).astype(np.float32)
    exact = [[sum(a * b for a, b in zip(p, q, strict=True)) for q in _fractions(rows)] for p in _fractions(rows)]
    assert (exact_gram(rows) == np.array(exact, dtype=object)).all()
    total = exact_sum(rows[None], rows[None, :, :2], [1.0])
    assert exact_square(rows, rows[:, :2]) == (total**2).sum()
    assert math.isclose(length([3.0, 4.0]), 5.0, rel_tol=1e-16)
