"""What all code of a process shares, each with the way to read it: generators, settings, handlers and hooks.

Whatever a fit changed here would carry private data to whatever runs next.
"""

from __future__ import annotations

import atexit
import contextvars
import decimal
import gc
import locale
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.metrics  # noqa: F401  (loading it draws from Python's generator, which the first fit would be blamed for)
import torch
from torch.nn.modules import module as networks

_SIGNALS = sorted(number for number in signal.valid_signals() if number < 32)  # those with names of their own
_HOOKS = ("excepthook", "displayhook", "unraisablehook", "breakpointhook")
_HOOKS_OF_NETWORKS = [
    name for name, value in vars(networks).items() if name.startswith("_global_") and isinstance(value, dict)
]

ALWAYS: dict[str, Callable[[], Any]] = {
    "torch's generator": lambda: torch.random.get_rng_state().numpy().tobytes(),
    "NumPy's generator": lambda: _words_of(np.random.get_state()),  # noqa: NPY002  (the one that nobody should use)
    "Python's generator": random.getstate,
    "torch's number of threads": torch.get_num_threads,
    "torch's default type": torch.get_default_dtype,
    "torch's precision of products": torch.get_float32_matmul_precision,
    "torch's choice of algorithms": lambda: _choice_of_algorithms(),
    "torch's way with gradients": lambda: (torch.is_grad_enabled(), torch.is_anomaly_enabled()),
    "NumPy's way with floating-point errors": np.geterr,
    "NumPy's way to print": np.get_printoptions,
    "the precision of decimals": lambda: decimal.getcontext().prec,
    "the environment": lambda: dict(os.environ),
    "the depth of calls": sys.getrecursionlimit,
    "the collection of garbage": lambda: (gc.isenabled(), gc.get_threshold()),
    "the locale": lambda: locale.setlocale(locale.LC_ALL),
    "the levels of logs": lambda: [logging.getLogger(name).level for name in (None, "discreet")],
    "the handler of a signal": lambda: [signal.getsignal(number) for number in _SIGNALS],
    "a hook of Python": lambda: [*(getattr(sys, name) for name in _HOOKS), threading.excepthook],
    "standard output or standard error": lambda: (sys.stdout, sys.stderr),
    "the working folder": os.getcwd,
    "the temporary folder": lambda: tempfile.tempdir,
    "who may read new files": lambda: _mask_of_files(),
}
"""What a fit leaves as it was, be it the first of its process."""

ONCE_LOADED: dict[str, Callable[[], Any]] = {
    "the filters of warnings": lambda: (list(warnings.filters), warnings.showwarning),
    "the loggers": lambda: _loggers(),
    "what runs at the end of the process": atexit._ncallbacks,  # which functions, nobody can list
    "the modules that are loaded": lambda: list(sys.modules),
    "a hook of all networks": lambda: [list(getattr(networks, name).items()) for name in _HOOKS_OF_NETWORKS],
    "a variable of the context": lambda: list(contextvars.copy_context().items()),
}
"""What modules may change while they are loaded, and nothing after them."""


def _words_of(state: Any) -> tuple[Any, ...]:
    """A state of NumPy's generator, so that == compares all of it."""
    name, words, *rest = state
    return name, words.tobytes(), *rest


def _choice_of_algorithms() -> tuple[Any, ...]:
    cudnn = torch.backends.cudnn
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32),
        torch.backends.mkldnn.enabled,
    )


def _mask_of_files() -> int:
    """It can be read only by setting it: for that moment, so that nobody else may read what is made."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _loggers() -> list[Any]:
    """Levels, handlers and filters of the root and of all that have a name."""
    named = [one for one in list(logging.Logger.manager.loggerDict.values()) if isinstance(one, logging.Logger)]
    return [
        (one.name, one.level, one.disabled, one.propagate, list(one.handlers), list(one.filters))
        for one in (logging.getLogger(), *named)
    ]
