"""The published attack in its strong form: which values can a float64 answer *not* have come from?

NumPy draws a normal number as ``whole · width[layer]``: 52 random bits times one of 256 doubles (Marsaglia and Tsang's
ziggurat). So an answer ``value + noise`` rules a value out for certain where no double z that NumPy can draw gives it:
either because adding ``value`` to any double gives another answer (Mironov 2012), or because the only doubles that
would are no whole multiples of any layer's width. What is left over is what the answer can have come from.
"""

from __future__ import annotations

import functools

import numpy as np

_FAR = 3.0
"""Beyond it few layers are left, and what they rule out is no more than any Gaussian's tail tells."""
_KNOWN = 10_000
_WHOLE = 2.0**52
_NEAR = 2
"""How many doubles on either side of ``answer − value`` are tried: with answers and values of one size that is all."""


@functools.cache
def layer_widths() -> np.ndarray:
    """The 256 doubles that NumPy multiplies whole numbers by, read off numbers that it draws from words that are known.

    Most numbers take one word: 8 bits for the layer, one for the sign, 52 for the whole number.
    """
    words, normals = zip(*(_known(counter) for counter in range(_KNOWN)), strict=True)
    layer = np.array([word & 0xFF for word in words])
    whole = np.array([float(word >> 9 & (1 << 52) - 1) for word in words])
    drawn = np.abs(np.array(normals))
    return np.array([_width(whole[layer == number], drawn[layer == number]) for number in range(256)])


def _known(counter: int) -> tuple[int, float]:
    """A word, and the normal number that NumPy draws when that word comes first."""
    word = np.random.Philox(key=0, counter=counter).random_raw()
    return int(word), float(np.random.Generator(np.random.Philox(key=0, counter=counter)).standard_normal())


def _width(whole: np.ndarray, drawn: np.ndarray) -> float:
    """The double that gives most of these numbers; the rest took further words."""
    near = np.median(drawn / whole)
    candidates = near * (1 + np.arange(-8, 9) * 2.0**-53)
    return float(max(candidates, key=lambda width: int((whole * width == drawn).sum())))


def can_be_drawn(normals: np.ndarray) -> np.ndarray:
    """Whether each double is ``whole · width`` for some layer; what lies far out counts as possible."""
    size, widths = np.abs(normals)[..., None], layer_widths()
    whole = np.rint(size / widths)
    drawn = ((whole + step) * widths == size for step in (-1, 0, 1))
    return np.any([(found & (whole < _WHOLE)).any(axis=-1) for found in drawn], axis=0) | (size[..., 0] > _FAR)


def ruled_out(answers: np.ndarray, value: float) -> np.ndarray:
    """Which answers cannot be ``value`` plus a normal number that NumPy drew."""
    middle = answers - value
    candidates = [middle]
    for towards in (-np.inf, np.inf):
        last = middle
        for _ in range(_NEAR):
            last = np.nextafter(last, towards)
            candidates.append(last)
    found = np.array(candidates)
    leads_there = found + value == answers
    exact = np.abs(middle) >= np.abs(answers) / 2  # else a whole range of doubles leads there, and nothing is known
    return exact & ~(leads_there & can_be_drawn(found)).any(axis=0)


def verdict(answers: np.ndarray, values: tuple[float, float]) -> float | None:
    """The only one of two values that all the answers can have come from; None where the attack does not know."""
    left = [value for value in values if not ruled_out(answers, value).any()]
    return left[0] if len(left) == 1 else None


def share_ruled_out(answers: np.ndarray, values: np.ndarray, scale: float) -> float:
    """The share of answers that cannot be their value plus ``scale`` times a normal number that NumPy drew."""
    return float(np.mean([_none_leads_there(*pair, scale) for pair in zip(answers, values, strict=True)]))


def _none_leads_there(answer: float, value: float, scale: float) -> bool:
    if abs(answer - value) < abs(answer) / 2 or abs(answer - value) > _FAR * scale:
        return False  # a whole range of doubles leads there, or few layers are left: nothing is known
    noise = _nearest(np.array([answer - value]), _NEAR)
    noise = noise[value + noise == answer]
    normals = np.concatenate([_nearest(noise / scale, _NEAR), np.zeros(0)])
    made = np.isin(scale * normals, noise)
    return not can_be_drawn(normals[made]).any()


def _nearest(middle: np.ndarray, count: int) -> np.ndarray:
    """Doubles on either side, themselves included."""
    below, above, found = middle, middle, [middle]
    for _ in range(count):
        below, above = np.nextafter(below, -np.inf), np.nextafter(above, np.inf)
        found += [below, above]
    return np.concatenate(found)
