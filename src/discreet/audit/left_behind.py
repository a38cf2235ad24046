"""What a fit may leave behind in its process: nothing. State of the whole process would carry private data to whatever
runs next.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

STATE: dict[str, Callable[[], Any]] = {
    "torch's generator": lambda: torch.random.get_rng_state().numpy().tobytes(),
    "NumPy's generator": lambda: _words_of(np.random.get_state()),  # noqa: NPY002  (the one that nobody should use)
    "Python's generator": random.getstate,
    "torch's number of threads": torch.get_num_threads,
    "torch's default type": torch.get_default_dtype,
    "the environment": lambda: dict(os.environ),
    "the working directory": os.getcwd,
}


def process_state() -> dict[str, Any]:
    """What the whole process shares, as it is now; audits read it around every fit, so nothing is hashed."""
    return {name: read() for name, read in STATE.items()}


def changes_since(before: dict[str, Any]) -> list[str]:
    """What is no longer as it was, by name."""
    now = process_state()
    return [name for name, mark in before.items() if now[name] != mark]


def _words_of(state: Any) -> tuple[Any, ...]:
    """A state of NumPy's generator, so that == compares all of it."""
    name, words, *rest = state
    return name, words.tobytes(), *rest
