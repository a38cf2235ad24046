"""``discreet attack``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from discreet.cli import main
from discreet.graph.io import save_npz
from discreet.graph.synthetic import csbm
from discreet.mechanisms.curator import Curator

QUICK = ["--data", "csbm", "--set", "epochs=1", "--set", "hidden=4", "--pairs", "60", "--fits", "20", "--no-compare"]


def test_json_has_every_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "attacks.json"
    code = main(["attack", *QUICK, "--method", "gap", "--kind", "link-stealing", "--json", "--out", str(out)])
    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found == json.loads(out.read_text())
    assert found["refuted"] is False
    assert "for the holder's eyes" in found["notes"][0]  # which links there are is looked up without noise
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


def test_a_planted_leak_ends_with_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The curator forgets its noise; the certificate says that it does not."""
    real = Curator.ask

    def without_noise(self: Curator, name: str, **inputs: Any) -> Any:
        value = self._compute(self.plan.stage(name), inputs)
        real(self, name, **inputs)
        return value

    monkeypatch.setattr(Curator, "ask", without_noise)
    save_npz(csbm(num_nodes=30, num_features=4, average_degree=3, phi=0.1, epsilon=1.0, seed=0), tmp_path / "g.npz")
    options = ["--set", "epochs=1", "--set", "hidden=4", "--set", "width=2", "--kind", "link-stealing", "--no-compare"]
    given = [
        "attack",
        "--data",
        str(tmp_path / "g.npz"),
        "--method",
        "gap",
        "--epsilon",
        "1",
        *options,
        "--pairs",
        "10",
    ]
    assert main([*given, "--fits", "60"]) == 1
    assert "THE GUARANTEE IS REFUTED" in capsys.readouterr().out
    assert main([*given, "--fits", "0"]) == 0
    assert "nothing here speaks for or against" in capsys.readouterr().out
