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

from discreet.audit.fingerprints import fingerprint

STATE: dict[str, Callable[[], Any]] = {
    "torch's generator": torch.random.get_rng_state,
    "NumPy's generator": lambda: np.random.get_state(),  # noqa: NPY002  (the very one that nobody should use)
    "Python's generator": lambda: repr(random.getstate()),
    "torch's number of threads": torch.get_num_threads,
    "torch's default type": lambda: str(torch.get_default_dtype()),
    "the environment": lambda: dict(os.environ),
    "the working directory": os.getcwd,
}


def process_state() -> dict[str, bytes]:
    """Digests of what the whole process shares."""
    return {name: fingerprint(read()) for name, read in STATE.items()}


def changes_since(before: dict[str, bytes]) -> list[str]:
    """What is no longer as it was, by name."""
    now = process_state()
    return [name for name, mark in before.items() if now[name] != mark]
