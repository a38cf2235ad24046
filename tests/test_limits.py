"""The table of limits in the documents is the one in the code."""

from __future__ import annotations

import re
from pathlib import Path

from discreet import limits

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"


def in_code() -> dict[str, tuple[str, str]]:
    found = {}
    for name, value in vars(limits).items():
        if isinstance(value, limits.Limit | limits.Count):
            found[name] = (f"{value.low:g}", f"{value.high:g}")
        elif name.isupper():
            found[name] = ("", f"{value:g}")
    return found


def test_the_documented_limits_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\S*) ?\| (\S+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name: (low, high) for name, low, high in rows} == in_code()


def test_a_sentence_is_never_as_long_as_its_value() -> None:
    assert limits.shown(10**5000) == "a number of thousands of digits"
    assert len(limits.shown("x" * 10_000)) < 100
