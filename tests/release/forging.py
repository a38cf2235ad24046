"""Releases spoilt on purpose: by accident (bytes), and by somebody who makes every hash right again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from discreet.privacy.card import render_card
from discreet.privacy.certificate import CERTIFICATE, seal
from discreet.privacy.release_folder import CARD, CONFIG, WEIGHTS, json_bytes

Change = Callable[[dict[str, Any]], object]


def unchanged(content: dict[str, Any]) -> None:
    """Leave it."""


def forge(folder: Path, certificate: Change = unchanged, config: Change = unchanged) -> None:
    """Change certificate and configuration, then render the card and seal everything again, as anybody could."""
    stated, configured = (json.loads((folder / name).read_text()) for name in (CERTIFICATE, CONFIG))
    certificate(stated)
    config(configured)
    (folder / CONFIG).write_text(json.dumps(configured))
    (folder / CARD).write_text(render_card(stated))
    reseal(folder, stated)


def reseal(folder: Path, stated: dict[str, Any] | None = None) -> None:
    """Make every hash that of the file that is there now."""
    if stated is None:
        stated = json.loads((folder / CERTIFICATE).read_text())
    files = {name: (folder / name).read_bytes() for name in (WEIGHTS, CONFIG, CARD)}
    (folder / CERTIFICATE).write_bytes(json_bytes(seal(stated, files)))
