"""The documentation lists every planted fault with the check that was named for it, and nothing else."""

from __future__ import annotations

from pathlib import Path

from tests.soundness.faults.registry import FAULTS
from tests.soundness.faults.table import HEAD, promised

DOCS = Path(__file__).parents[2] / "docs" / "audit.md"


def test_docs_list_every_fault() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert HEAD in text
    listed = [line for line in text[text.index(HEAD) :].splitlines()[2:] if line.startswith("|")]
    assert len(listed) == len(FAULTS)
    for line, fault in zip(listed, FAULTS.values(), strict=True):
        assert line.startswith(promised(fault))
        assert "0 of" not in line
