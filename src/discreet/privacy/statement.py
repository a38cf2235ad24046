"""What the issuer says of a release: which data, what for, by whom, when, and what it follows from."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.errors import ParameterError

LONGEST = 500
"""Characters of one text: a name or a sentence, no document."""
TEXTS = ("data", "purpose", "issuer", "ledger")
FIELDS = (*TEXTS, "date", "parent")


@dataclass(frozen=True)
class Statement:
    """Words of the issuer, as given; nothing here is read off the data, and nobody checks that it is true.

    Parameters
    ----------
    data, purpose, issuer
        The name of the data, what the release is for, and who answers for it.
    date
        ``2026-01-31``; today (UTC) where none is given.
    parent
        The certificate of the release that this one extends.
    ledger
        The id of this release's entry in a ledger.
    """

    data: str | None = None
    purpose: str | None = None
    issuer: str | None = None
    date: str | None = None
    parent: Mapping[str, Any] | None = None
    ledger: str | None = None

    def __post_init__(self) -> None:
        """Refuse texts that are too long or do not stand on one line, and dates that are none."""
        for name in TEXTS:
            _check_text(name, getattr(self, name))
        if self.date is not None:
            check_date(self.date)

    def added_to(self, certificate: Mapping[str, Any]) -> dict[str, Any]:
        """The certificate with this statement; what is not given stays as the certificate has it."""
        given = {name: getattr(self, name) for name in FIELDS if getattr(self, name) is not None}
        date = given.get("date") or certificate.get("date") or datetime.datetime.now(datetime.UTC).date().isoformat()
        return {**certificate, **given, "date": date}


def check_date(text: str) -> None:
    """Refuse what is no date as ISO 8601 writes it."""
    try:
        right = datetime.date.fromisoformat(text).isoformat() == text
    except (TypeError, ValueError):
        right = False
    if not right:
        raise ParameterError(f"a date is written as 2026-01-31, not {text!r}")


def _check_text(name: str, text: str | None) -> None:
    if text is None:
        return
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST or not text.isprintable():
        raise ParameterError(f"{name} must be one line of 1 to {LONGEST} printable characters, not {text!r:.80}")
