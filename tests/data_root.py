"""Where real graphs are, for tests that need them: $DISCREET_DATA, or a folder beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def _find() -> Path | None:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    places = [os.environ.get("DISCREET_DATA"), beside]
    return next((Path(place) for place in places if place and (Path(place) / "Cora").is_dir()), None)


DATA_ROOT: Path | None = _find()
needs_data = pytest.mark.skipif(
    DATA_ROOT is None, reason="real graphs not found: set DISCREET_DATA to the folder that holds them"
)
