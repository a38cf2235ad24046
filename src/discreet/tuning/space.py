"""What a search may try: lists and ranges of settings, and the candidates drawn from them, before any data is seen."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import ParameterError
from discreet.files import json_or_text, parse_toml, read_text
from discreet.limits import TRIALS, shown

_NUMBER = r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
LARGEST = 2.0**53  # beyond it whole numbers have gaps, and so would what is drawn
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(:log)?")


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    values: tuple[Any, ...]

    def draw(self, rng: np.random.Generator) -> Any:
        """One of them, each as likely as any other."""
        return self.values[int(rng.integers(len(self.values)))]


@dataclass(frozen=True)
class Range:
    """A number between two others, both included; whole if both are whole."""

    low: float
    high: float
    log: bool = False

    def draw(self, rng: np.random.Generator) -> Any:
        """Uniform, or uniform in the logarithm."""
        if isinstance(self.low, int) and isinstance(self.high, int) and not self.log:
            return int(rng.integers(self.low, self.high + 1))
        if not self.log:
            return float(rng.uniform(self.low, self.high))
        value = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        return min(max(round(value), self.low), self.high) if whole else value


Space = Mapping[str, Choice | Range]


def parse_search(texts: Iterable[str]) -> dict[str, Choice | Range]:
    """``key=a,b,c`` or ``key=low..high`` or ``key=low..high:log``, as the command takes them."""
    space: dict[str, Choice | Range] = {}
    for text in texts:
        key, equals, given = text.partition("=")
        if not equals or not key or not given:
            raise ParameterError(f"--search takes key=a,b,c or key=low..high, not {shown(text)}")
        match = _RANGE.fullmatch(given)
        space[key] = (
            _range(key, json_or_text(match[1], "--search"), json_or_text(match[2], "--search"), match[3] is not None)
            if match
            else Choice(tuple(json_or_text(part, "--search") for part in given.split(",")))
        )
    return space


def read_space(path: Path) -> dict[str, Choice | Range]:
    """A TOML file with a table ``[search]``: lists of values, or ``{ low = …, high = …, log = true }``."""
    content = parse_toml(read_text(path, "search space"), str(path))
    search = content.get("search")
    if not isinstance(search, dict) or set(content) != {"search"}:
        raise ParameterError(f"{path} must hold one table, [search]")
    return {key: _entry(key, value) for key, value in search.items()}


def candidates(space: Space, most: int, seed: int) -> list[dict[str, Any]]:
    """Settings to try: every combination where that is a small number, else so many drawn at random.

    They depend on the space and the seed alone, so they are public.
    """
    if not space:
        raise ParameterError("a search needs something to search: --search key=a,b,c or a file of them")
    TRIALS.check("the number of candidates", most)
    choices = [part.values for part in space.values() if isinstance(part, Choice)]
    if len(choices) == len(space) and math.prod(map(len, choices)) <= most:
        return [dict(zip(space, point, strict=True)) for point in itertools.product(*choices)]
    rng = np.random.default_rng(seed)
    drawn = ({key: part.draw(rng) for key, part in space.items()} for _ in range(most))
    return list({json.dumps(point, sort_keys=True, default=str): point for point in drawn}.values())


def _entry(key: str, value: Any) -> Choice | Range:
    if isinstance(value, list) and value:
        return Choice(tuple(value))
    if isinstance(value, dict) and {"low", "high"} <= value.keys() <= {"low", "high", "log"}:
        return _range(key, value["low"], value["high"], bool(value.get("log", False)))
    raise ParameterError(f"search key {key} takes a list of values or {{ low = …, high = … }}, not {shown(value)}")


def _range(key: str, low: Any, high: Any, log: bool) -> Range:
    numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high))
    if not numbers or not low < high or max(abs(low), abs(high)) > LARGEST:
        ends = f"{shown(low)} to {shown(high)}"
        raise ParameterError(f"search key {key}: a range runs from a number to a larger one, up to 2⁵³, not {ends}")
    if log and low <= 0:
        raise ParameterError(f"search key {key}: a logarithmic range starts above 0, not at {low}")
    return Range(low, high, log)
