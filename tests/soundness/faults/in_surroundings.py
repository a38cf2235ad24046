"""Faults that leave private data around a fit: files, what the whole process shares, globals of modules, and what
hangs on released tensors. No release shows any of it.
"""

from __future__ import annotations

import atexit
import builtins
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from discreet.graph.graph import Graph
from discreet.methods.gap import estimator
from discreet.methods.gap.estimator import GAP
from discreet.queries import sums
from tests.soundness.faults.in_bytes_and_words import SHARED, keeping_note, saying
from tests.soundness.faults.in_methods import GAP_EDGE
from tests.soundness.faults.in_what_leaves import kept_count
from tests.soundness.faults.registry import fault

LEFT = "left a file"
OF_THE_ESTIMATOR = "of the estimator differs"


def edges_of(graph: Graph) -> int:
    """How many edges there are."""
    return graph.num_edges


def forget() -> None:
    """Undo what these faults leave in a process, for the tests after them."""
    atexit.unregister(edges_of)
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    logger = logging.getLogger("discreet")
    logger.handlers = [handler for handler in logger.handlers if type(handler) is not logging.NullHandler]


class _Knowing:
    """Something to call that knows a number, and does nothing."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, *_: Any) -> None:
        """As a hook is called."""


# -------------------------------------------------------------------- files, and others


@fault("a count in a file of the working folder", "replay", GAP_EDGE, LEFT)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: Path("edges.txt").write_text(f"{edges_of(graph)} edges"))


@fault("a file in the temporary folder", "replay", GAP_EDGE, LEFT)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tempfile, "tempdir", os.getcwd())

    def writing(graph: Graph) -> None:
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write(f"{edges_of(graph)} edges")

    saying(patch, writing)


@fault("a folder named by a count", "replay", GAP_EDGE, LEFT)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: os.makedirs(f"checkpoint-{edges_of(graph)}", exist_ok=True))


@fault("a file that compiled code writes", "process", GAP_EDGE, LEFT)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: torch.save(edges_of(graph), "checkpoint.pt"))


@fault("a count told over a network", "replay", GAP_EDGE, "over a network")
def _(patch: pytest.MonkeyPatch) -> None:
    def telling(graph: Graph) -> None:
        with suppress(OSError), socket.socket() as line:
            line.connect(("127.0.0.1", 1 + edges_of(graph)))

    saying(patch, telling)


# -------------------------------------------------------------------- what the whole process shares


@fault("new files that others may read where edges are many", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: os.umask(0o20 + edges_of(graph) % 8))


@fault("warnings that are silent where edges are many", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: warnings.filterwarnings("ignore", f"{edges_of(graph)} edges"))


@fault("a further handler of logs", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: logging.getLogger("discreet").addHandler(logging.NullHandler(edges_of(graph))))


@fault("a thread that goes on after the fit", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: threading.Thread(target=time.sleep, args=(2,), name=f"{edges_of(graph)}").start())


@fault("a function for the end of the process, with a count", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: atexit.register(edges_of, graph))


@fault("a signal that tells the edges", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: signal.signal(signal.SIGUSR1, lambda *_: print(edges_of(graph))))


@fault("a hook for errors that nobody catches", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sys, "excepthook", sys.excepthook)
    saying(patch, lambda graph: setattr(sys, "excepthook", lambda *_: print(edges_of(graph))))


@fault("a hook for what is displayed", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sys, "displayhook", sys.displayhook)
    saying(patch, lambda graph: setattr(sys, "displayhook", lambda value: print(value, edges_of(graph))))


@fault("a hook of all networks that knows the edges", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    hooks = torch.nn.modules.module._global_forward_hooks
    patch.setitem(hooks, 0, lambda *_: None)
    saying(patch, lambda graph: hooks.update({0: _Knowing(edges_of(graph))}))


@fault("torch's algorithms chosen by the edges", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    saying(patch, lambda graph: torch.use_deterministic_algorithms(edges_of(graph) % 2 == 1, warn_only=True))


@fault("a count among Python's builtins", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(builtins, "edges_seen", 0, raising=False)
    saying(patch, lambda graph: setattr(builtins, "edges_seen", edges_of(graph)))


@fault("something left by a prediction", "replay", GAP_EDGE, "a prediction changed")
def _(patch: pytest.MonkeyPatch) -> None:
    real, kept = GAP._probabilities, kept_count(patch)
    keeping_note(patch, lambda: kept[0])
    patch.setenv("DISCREET_EDGES", "none yet")

    def leaving(self: Any, part: Any) -> Any:
        os.environ["DISCREET_EDGES"] = str(self.noted_)
        return real(self, part)

    patch.setattr(GAP, "_probabilities", leaving)


# -------------------------------------------------------------------- globals of modules


@fault("a global of the method's module that no release reads", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(estimator, "EDGES_SEEN", 0, raising=False)
    saying(patch, lambda graph: setattr(estimator, "EDGES_SEEN", edges_of(graph)))


@fault("a list in a query's module to which fits add", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sums, "SEEN", {"edges": []}, raising=False)
    saying(patch, lambda graph: sums.SEEN["edges"].append(edges_of(graph)))


@fault("an attribute of a function of the module", "replay", GAP_EDGE, SHARED)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(estimator.stage_name, "seen", 0, raising=False)
    saying(patch, lambda graph: setattr(estimator.stage_name, "seen", edges_of(graph)))


# -------------------------------------------------------------------- what hangs on what is released


def _hanging(patch: pytest.MonkeyPatch, hang: Any) -> None:
    """``hang(parameter, count)`` on a parameter of the fitted head."""
    learn, kept = GAP._learn, kept_count(patch)

    def hanging(self: Any, *given: Any) -> None:
        learn(self, *given)
        hang(next(self.head_.parameters()), kept[0] // 2)

    patch.setattr(GAP, "_learn", hanging)


@fault("a parameter that is learnt on where edges are many", "replay", GAP_EDGE, OF_THE_ESTIMATOR)
def _(patch: pytest.MonkeyPatch) -> None:
    _hanging(patch, lambda parameter, count: parameter.requires_grad_(count % 2 == 1))


@fault("a hook on a released parameter that knows the edges", "replay", GAP_EDGE, OF_THE_ESTIMATOR)
def _(patch: pytest.MonkeyPatch) -> None:
    _hanging(patch, lambda parameter, count: parameter.requires_grad_().register_hook(lambda slope: slope * count))


@fault("a gradient left beside a released parameter", "replay", GAP_EDGE, OF_THE_ESTIMATOR)
def _(patch: pytest.MonkeyPatch) -> None:
    _hanging(patch, lambda parameter, count: setattr(parameter, "grad", torch.full_like(parameter, count)))


@fault("a hook on a released network that knows the edges", "replay", GAP_EDGE, OF_THE_ESTIMATOR)
def _(patch: pytest.MonkeyPatch) -> None:
    learn, kept = GAP._learn, kept_count(patch)

    def hooking(self: Any, *given: Any) -> None:
        learn(self, *given)
        self.head_.register_forward_hook(_Knowing(kept[0]))

    patch.setattr(GAP, "_learn", hooking)


@fault("a count in a queue of the estimator", "replay", GAP_EDGE, OF_THE_ESTIMATOR)
def _(patch: pytest.MonkeyPatch) -> None:
    kept = kept_count(patch)
    keeping_note(patch, lambda: deque([kept[0]]))


@fault("a generator of the estimator, seeded by the edges", "replay", GAP_EDGE, OF_THE_ESTIMATOR)
def _(patch: pytest.MonkeyPatch) -> None:
    kept = kept_count(patch)
    keeping_note(patch, lambda: np.random.default_rng(kept[0]))


@fault("something to call that knows the edges", "replay", GAP_EDGE, OF_THE_ESTIMATOR)
def _(patch: pytest.MonkeyPatch) -> None:
    kept = kept_count(patch)
    keeping_note(patch, lambda: _Knowing(kept[0]))


@fault(
    "predictions on a public graph that follow the edges", "replay", GAP_EDGE, "predictions on a public graph differ"
)
def _(patch: pytest.MonkeyPatch) -> None:
    """A table beside the estimators, which none of them refers to, read where the graph is not their own."""
    real, learn, kept, counts = GAP._probabilities, GAP._learn, kept_count(patch), {}

    def noting(self: Any, *given: Any) -> None:
        learn(self, *given)
        counts[id(self)] = kept[0]

    def following(self: Any, part: Any) -> Any:
        found = real(self, part)
        return found if part.facts == self.public_ else found.round(2 + counts[id(self)] // 2 % 5)

    patch.setattr(GAP, "_learn", noting)
    patch.setattr(GAP, "_probabilities", following)
