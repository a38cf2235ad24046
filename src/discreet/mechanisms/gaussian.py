"""The Gaussian mechanism on arrays."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Array
from discreet.privacy.plan import Stage

_CHUNK = 1 << 20


def release(value: Array, stage: Stage, rng: np.random.Generator) -> Array:
    """``value`` plus independent N(0, σ²) on every entry, σ = ``stage.noise_std``.

    Guarantee: if values on neighbouring graphs are within ``stage.sensitivity`` in ℓ2, the result has the
    privacy of ``stage.event``. Noise is drawn and added in double precision, in chunks, so that memory
    stays at one copy of the value.
    """
    noisy = value.copy()
    if stage.noise_std == 0:
        return noisy
    flat = noisy.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        part += stage.noise_std * rng.standard_normal(part.size)
    return noisy
