"""What a fit or a prediction may leave behind outside its release: nothing, in the process or beside it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from discreet.audit.files_left import watched_outside
from discreet.audit.module_globals import ModuleGlobals, own_modules, same_objects
from discreet.audit.process_state import ALWAYS, ONCE_LOADED
from discreet.audit.words import recorded_words
from discreet.methods.base import NodeClassifier
from discreet.privacy.query import Query


@dataclass
class Seen:
    """What was said, and what is wrong with what was left behind."""

    words: list[str]
    faults: list[str] = field(default_factory=list)


@contextmanager
def watched(
    doing: str, estimator: NodeClassifier, *, again: bool = False, queries: Sequence[Query] = ()
) -> Iterator[Seen]:
    """Watch what ``doing`` names, a fit or a prediction.

    ``again``: the same was done just before, on a neighbour and with the same answers. Then no module is loaded for the
    first time, so whatever modules change while they are loaded must stay, and so must the globals of the modules of
    the method and of its queries.
    """
    state = {**ALWAYS, **ONCE_LOADED} if again else ALWAYS
    modules = own_modules([estimator, *queries]) if again else []
    with recorded_words() as words, watched_outside() as outside:
        seen = Seen(words)
        threads, classes, names = threading.enumerate(), _class_state(estimator), ModuleGlobals(modules)
        before = {name: read() for name, read in state.items()}
        yield seen
        changed = [name for name, mark in before.items() if state[name]() != mark]
        changed += [] if same_objects(classes, _class_state(estimator)) else ["its class"]
        changed += ["the threads that run"] if set(threading.enumerate()) - set(threads) else []
        changed += names.apart_from(ModuleGlobals(modules))
    seen.faults += [f"a {doing} changed {name}, which the whole process shares" for name in changed]
    seen.faults += outside.faults(doing)


def _class_state(instance: object) -> dict[tuple[type, str], Any]:
    """Which object stands under each name of the classes of an instance: all others of these classes read them too."""
    return {(kind, name): value for kind in type(instance).__mro__ for name, value in vars(kind).items()}
