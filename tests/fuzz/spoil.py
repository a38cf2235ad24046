"""What every grammar makes: arguments and a filled folder; and bytes that are nearly right."""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

Prepare = Callable[[Path], None]
Case = tuple[list[str], Prepare]
Random = random.Random


@cache
def scratch() -> Path:
    """A folder for what is made once; it goes with the process."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-once-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def spoilt(rng: Random, content: bytes) -> bytes:
    """A few bytes changed, cut, doubled or added."""
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(content) + 1)
        to = min(len(content), at + rng.choice([1, 1, 3, 50]))
        noise = bytes(rng.choice([0, 10, 34, 44, 92, 255, rng.randrange(256)]) for _ in range(rng.choice([1, 2, 9])))
        content = rng.choice([content[:at] + noise + content[at:], content[:at] + content[to:], content[:at]])
        content = content if rng.random() < 0.95 else content * 2
    return content


def choose_value(rng: Random, value: Any) -> tuple[Any, Any]:
    """A value somewhere in JSON: the table or list that it stands in, and its place there."""
    spot = value
    key = rng.choice(list(spot))
    while isinstance(spot[key], dict | list) and spot[key] and rng.random() < 0.8:
        spot = spot[key]
        key = rng.choice(list(spot) if isinstance(spot, dict) else list(range(len(spot))))
    return spot, key
