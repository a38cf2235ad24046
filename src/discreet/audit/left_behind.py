"""What a fit may leave behind in its process: nothing. State of the whole process would carry private data to whatever
runs next.
"""

from __future__ import annotations

import decimal
import logging
import os
import random
import signal
import sys
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
    "torch's precision of products": torch.get_float32_matmul_precision,
    "NumPy's way with floating-point errors": np.geterr,
    "NumPy's way to print": np.get_printoptions,
    "the precision of decimals": lambda: decimal.getcontext().prec,
    "the depth of calls": sys.getrecursionlimit,
    "the levels of logs": lambda: [logging.getLogger(name).level for name in (None, "discreet")],
    "the handler of a signal": lambda: [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
    "the working directory": os.getcwd,
}


def process_state() -> dict[str, Any]:
    """What the whole process shares, as it is now; audits read it around every fit, so nothing is hashed."""
    return {name: read() for name, read in STATE.items()}


def class_state(instance: object) -> dict[tuple[type, str], int]:
    """Which object stands under each name of the classes of an instance: all others of these classes read them too."""
    return {(kind, name): id(value) for kind in type(instance).__mro__ for name, value in vars(kind).items()}


def changes_since(before: dict[str, Any]) -> list[str]:
    """What is no longer as it was, by name."""
    now = process_state()
    return [name for name, mark in before.items() if now[name] != mark]


def _words_of(state: Any) -> tuple[Any, ...]:
    """A state of NumPy's generator, so that == compares all of it."""
    name, words, *rest = state
    return name, words.tobytes(), *rest
