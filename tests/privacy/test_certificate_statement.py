"""What an issuer says: one line each, and in the certificate and on the card as given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.audit.small_graphs import small_graph
from discreet.errors import ParameterError
from discreet.methods.gap.estimator import GAP
from discreet.privacy.budget import Privacy
from discreet.privacy.certificate import Statement
from discreet.privacy.levels import EdgeLevel


@pytest.mark.parametrize("wrong", ["", "  ", "two\nlines", "a\x00b", "x" * 501, 3])
@pytest.mark.parametrize("name", ["data", "purpose", "issuer", "ledger"])
def test_a_text_is_one_printable_line(name: str, wrong: Any) -> None:
    with pytest.raises(ParameterError, match=name):
        Statement(**{name: wrong})


@pytest.mark.parametrize("wrong", ["today", "2026-1-1", "20260101", "2026-02-30", ""])
def test_a_date_is_a_date(wrong: str) -> None:
    with pytest.raises(ParameterError, match="date"):
        Statement(date=wrong)


def test_it_is_in_certificate_and_card_as_given(tmp_path: Path) -> None:
    model = GAP(Privacy(EdgeLevel(), 2.0), hops=1, epochs=1, hidden=4).fit(small_graph(np.random.default_rng(0)))
    given = Statement(data="friends | <b>", purpose="show", issuer="an office", date="2026-01-31", ledger="7")
    folder = model.save(tmp_path / "release", given)
    certificate = json.loads((folder / "certificate.json").read_text())
    assert [certificate[name] for name in ("schema", "data", "purpose", "issuer", "date", "ledger", "parent")] == [
        2,
        "friends | <b>",
        "show",
        "an office",
        "2026-01-31",
        "7",
        None,
    ]
    card = (folder / "card.md").read_text()
    assert "friends \\| &lt;b>" in card
    assert "an office" in card
    assert "2026-01-31" in card


def test_what_nobody_says_is_null_but_the_date(tmp_path: Path) -> None:
    model = GAP(Privacy(EdgeLevel(), 2.0), hops=1, epochs=1, hidden=4).fit(small_graph(np.random.default_rng(0)))
    certificate = json.loads((model.save(tmp_path / "release") / "certificate.json").read_text())
    assert [certificate[name] for name in ("data", "purpose", "issuer", "ledger", "parent")] == [None] * 5
    assert len(certificate["date"]) == 10
    assert certificate["duties"]
    assert "n = " in certificate["delta_reason"]
    assert certificate["facts"][0]["num_nodes"] == model.public_.num_nodes
    for stage in certificate["stages"]:
        assert stage["proof"] == "proved here"
        assert stage["noise"]["exact"] is True
        assert stage["noise"]["std"] > 0
