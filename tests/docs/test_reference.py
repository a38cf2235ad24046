"""The page on certificates names every key of both files, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel

from discreet.privacy import certificate_form

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "certificate.md"


def keys_of(form: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in form.model_fields.items()}


def table(after: str) -> set[str]:
    """The keys in the first column of the first table after those words."""
    lines = PAGE.read_text(encoding="utf-8").split(after, 1)[1].split("\n| key |", 1)[1].splitlines()[2:]
    rows = lines[: next(number for number, line in enumerate(lines) if not line.startswith("|"))]
    return {key for row in rows for key in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_keys_are_those_of_the_form() -> None:
    assert table("## certificate.json") == keys_of(certificate_form._Certificate2)
    assert table("\nA stage:") == keys_of(certificate_form._Stage2)
    assert table("## config.json") == keys_of(certificate_form._Config)
