"""What tests draw in place of the operating system's entropy: other bits in every test, the same in every run of it.

A test that passes here passes everywhere: no merge is lost to a draw that comes once in a thousand runs, and a failure
can be seen again. Bounds and laws of noise are judged as before, on noise that nobody chose. ``make slow`` draws
afresh, and so do tests marked ``fresh`` and all processes that tests start.
"""

from __future__ import annotations

import os
import random
import secrets
from typing import Any

import numpy as np

_from_system, _generator = secrets.token_bytes, np.random.default_rng


class Entropy:
    """Stands behind ``secrets.token_bytes`` and ``numpy.random.default_rng()`` in this process, not in its children."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._bits: random.Random | None = None

    def install(self) -> None:
        """For the whole run of the tests: a patch of one test would come after what several tests share is made."""
        secrets.token_bytes = self.token_bytes
        np.random.default_rng = self.default_rng

    def draw_for(self, name: str | None) -> random.Random | None:
        """Draw bits that belong to ``name``, or the system's where it is None. Gives what was drawn from before."""
        before = self._bits
        self._bits = None if name is None else random.Random(name)
        return before

    def go_on_with(self, bits: random.Random | None) -> None:
        """Draw again from what :meth:`draw_for` gave."""
        self._bits = bits

    def token_bytes(self, nbytes: int | None = None) -> bytes:
        """As that of ``secrets``."""
        if self._bits is None or os.getpid() != self._owner:  # forks that drew the same would not be honest forks
            return _from_system(nbytes)
        return self._bits.randbytes(32 if nbytes is None else nbytes)

    def default_rng(self, seed: Any = None) -> np.random.Generator:
        """As that of NumPy."""
        return _generator(list(self.token_bytes(16)) if seed is None else seed)
