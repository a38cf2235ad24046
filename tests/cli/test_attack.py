"""``discreet attack``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet.cli import main

QUICK = ["--data", "csbm", "--set", "epochs=1", "--set", "hidden=4", "--pairs", "60", "--fits", "20", "--no-compare"]


def test_json_has_every_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "attacks.json"
    code = main(["attack", *QUICK, "--method", "gap", "--kind", "link-stealing", "--json", "--out", str(out)])
    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found == json.loads(out.read_text())
    assert found["refuted"] is False
    for attack in found["attacks"]:
        assert {"kind", "against", "auc", "auc_interval", "tpr_at_fpr", "ceiling", "pairs"} <= attack.keys()
        assert attack["tpr_at_fpr"].keys() == {"0.01", "0.001"}
    assert [attack["ceiling"] is not None for attack in found["attacks"]] == [False, False, False, False, True]


def test_bad_input_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attack", *QUICK, "--method", "gap", "--kind", "magic"]) == 2
    assert "the kinds of attack are" in capsys.readouterr().err
    taken = tmp_path / "there.json"
    taken.write_text("{}")
    assert main(["attack", *QUICK, "--method", "gap", "--out", str(taken)]) == 2
