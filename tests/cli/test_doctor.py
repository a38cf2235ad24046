"""``discreet doctor``: what is here, and what is missing."""

from __future__ import annotations

import json

import pytest

from tests.cli.helpers import run


def test_it_reports_versions_and_places(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "doctor")[0] == 0
    code, out, _ = run(capsys, "doctor", "--json")
    assert code == 0
    assert {"python", "torch", "devices", "data_roots", "missing_extras"} <= json.loads(out).keys()
