"""``discreet report``: the verdict, what is and is not protected, hostile texts, and the page in a real browser."""

from __future__ import annotations

import html
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from dp_accounting.dp_event import GaussianDpEvent

from discreet.audit.small_graphs import small_graph
from discreet.cli import main
from discreet.privacy.events.gaussian import gaussian_epsilon
from discreet.privacy.levels import parse_level
from discreet.privacy.release_folder import json_bytes
from discreet.release.report.accuracy import accuracy_paid
from discreet.release.report.inputs import read_attacks
from discreet.release.report.page import Beside, _groups, chance, figure, percent, render_report
from discreet.release.report.policy import CONDITIONS, PUBLISH, STOP, Evidence, Policy, judge, read_policy, verdict
from tests.browser import CHROMIUM, browser
from tests.contracts.cases import make

STORED = Path(__file__).parents[1] / "stored"
RESULTS = Path(__file__).parents[3] / "docs" / "results"
GOOD = Evidence([], "node", "node", 0.5, 1e-6, 1000, "weights+predictions", True, True, True, False, 0.9)
EVIL = "<script>alert(1)</script>"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, PUBLISH),
        ({"epsilon": 2.0}, CONDITIONS),
        ({"total": 2.0}, CONDITIONS),
        ({"epsilon": 9.0}, STOP),
        ({"total": float("inf")}, STOP),
        ({"delta": 0.01}, STOP),
        ({"level_kind": "edge"}, CONDITIONS),
        ({"level_kind": "none"}, STOP),
        ({"level_kind": "local", "level": "local:features"}, CONDITIONS),
        ({"covers": "weights"}, CONDITIONS),
        ({"audited": None}, CONDITIONS),
        ({"audited": False}, STOP),
        ({"refuted": True}, STOP),
        ({"refuted": None}, CONDITIONS),
        ({"broken": ["digest: changed"]}, STOP),
        ({"exact": False}, CONDITIONS),
        ({"stated": False}, CONDITIONS),
        ({"nodes": None}, CONDITIONS),
    ],
)
def test_the_rule(changed: dict, expected: str) -> None:
    assert verdict(judge(GOOD._replace(**changed), Policy())) == expected


def test_the_rule_is_the_organisations(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('fine_epsilon = 3\nno_audit = "stop"\n')
    policy = read_policy(path)
    assert verdict(judge(GOOD._replace(epsilon=2.0), policy)) == PUBLISH
    assert verdict(judge(GOOD._replace(audited=None), policy)) == STOP
    for bad in ("wrong = 1", "fine_epsilon = true", 'no_audit = "perhaps"', "fine_epsilon = -1"):
        path.write_text(bad)
        assert main(["report", str(STORED / "mlp"), "--policy", str(path), "--out", "page.html"]) == 2


def test_numbers_are_never_rounded_to_comfort() -> None:
    assert percent(0.99999) == "more than 99.9 %"
    assert percent(1e-9) == "less than 0.1 %"
    assert percent(1.0) == "100 %"
    assert (chance(0.0), chance(1 / 1234), chance(0.5)) == ("never", "once in 1,200", "with probability 50 %")


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("gap-edge", "The features of every person"),
        ("lpgnn", "every link is taken as public"),
        ("sage-none", "Nothing is promised"),
        ("mlp", "read nothing that the guarantee protects"),
    ],
)
def test_it_says_what_is_not_protected(release: str, said: str) -> None:
    page = render_report(STORED / release, Beside())
    assert said in page
    assert "NOT protected" in page
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")


def test_several_units_together() -> None:
    """Each bound is proved for its group; groups beyond one that is lost are said to lose more, and are not drawn."""
    level = parse_level("node:owned,max_degree=3")
    groups = _groups(GaussianDpEvent(0.5), 1e-6, level)
    assert [group.words for group in groups] == [
        figure(gaussian_epsilon(2.0, 1e-6)),
        figure(groups[1].epsilon),
        "more",
        "more",
    ]
    assert groups[1].epsilon > 20 > groups[0].epsilon
    assert [group.event is None for group in groups] == [False, False, True, True]
    quiet = _groups(GaussianDpEvent(10.0), 1e-6, level)
    assert [group.epsilon for group in quiet] == [gaussian_epsilon(k / 10, 1e-6) for k in (1, 2, 4, 8)]


def test_it_says_who_signed(tmp_path: Path) -> None:
    folder = shutil.copytree(STORED / "gap-edge", tmp_path / "release")
    assert "not signed" in render_report(folder, Beside())
    assert main(["sign", "--new-key", "mine"]) == 0
    assert main(["sign", str(folder), "--key", "mine"]) == 0
    key = json.loads((folder / "certificate.sig").read_text())["key"]
    assert f"signed by the key {key}" in html.unescape(render_report(folder, Beside()))
    (folder / "certificate.sig").write_text("{}")
    page = render_report(folder, Beside())
    assert "THE SIGNATURE IS WRONG" in page
    assert STOP in page


def test_texts_of_others_are_escaped(tmp_path: Path) -> None:
    folder = shutil.copytree(STORED / "gap-edge", tmp_path / "release")
    certificate = json.loads((folder / "certificate.json").read_text())
    certificate["notes"] = [EVIL]
    certificate["method"] = EVIL
    certificate["stages"][0]["why"] = EVIL
    (folder / "certificate.json").write_bytes(json_bytes(certificate))
    attack = {"kind": EVIL, "against": EVIL, "auc": 0.5, "auc_interval": [0.4, 0.6], "pairs": 3}
    Path("attacks.json").write_text(json.dumps({"attacks": [attack], "refuted": False}))
    given = ["--attacks", "attacks.json", "--node-name", "<b>", "--out", "page.html"]
    assert main(["report", str(folder), *given]) == 0
    page = Path("page.html").read_text()
    assert EVIL not in page
    assert "<b>" not in page
    assert STOP in page  # the certificate was changed


def test_attacks_without_a_ceiling_do_not_speak_for_a_guarantee() -> None:
    row = {"kind": "link-stealing", "against": "release", "auc": 0.6, "auc_interval": [0.5, 0.7], "pairs": 44_850}
    game = {**row, "auc": 0.5, "ceiling": {"auc": 0.6, "0.01": 0.02}}
    for rows, said in (([row], "None of these attacks has a ceiling"), ([row, game], "No attack reached more than")):
        Path("attacks.json").write_text(json.dumps({"attacks": rows, "refuted": False}))
        page = render_report(STORED / "gap-edge", Beside(attacks=read_attacks(Path("attacks.json"))))
        assert said in page
        assert ("Attacks:</strong> none reached more" in page) == (len(rows) == 2)
        assert "44,850" in page
        assert "for the holder's eyes" in page


def test_bad_input_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    Path("deep.json").write_text("[" * 100_000)
    Path("list.json").write_text("[]")
    Path("odd.json").write_text('{"attacks": [{"kind": 1, "auc": 7, "against": "x"}], "refuted": false}')
    Path("table.csv").write_text("a,b\n1,2\n")
    release = str(STORED / "mlp")
    for arguments in (
        *([release, "--attacks", name] for name in ("deep.json", "list.json", "odd.json", "nowhere.json")),
        [release, "--audit", "list.json"],
        [release, "--sweep", "table.csv"],
        [release, "--ledger", "nowhere.db"],
        [release, "--edge-name", ""],
        [release, release],
        ["table.csv"],
        ["nowhere"],
    ):
        assert main(["report", *arguments, "--out", "page.html"]) == 2, arguments
        assert capsys.readouterr().err.count("\n") == 1
        assert not Path("page.html").exists()
    assert main(["report", release, "--out", "page.pdf"]) == 2  # which would hold a page that no reader of PDF opens
    assert "name it 'page.html'" in capsys.readouterr().err


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: pages are not looked at in a browser")
@pytest.mark.slow
def test_pages_in_a_browser() -> None:
    assert main(["report", str(STORED / "gap-edge"), "--sweep", str(RESULTS / "gcon-fig1.csv"), "--out", "r.html"]) == 0
    assert main(["report", str(RESULTS / "gcon-fig1.csv"), str(RESULTS / "node.csv"), "--out", "b.html"]) == 0
    with browser() as page:
        for name in ("r.html", "b.html"):
            for width in (390, 1280):
                page.open(Path(name), width, dark=width == 390)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
        page.open(Path("r.html"), 390)
        assert page.evaluate("document.querySelector('.verdict .word').textContent") in (CONDITIONS, STOP, PUBLISH)
        page.open(Path("b.html"), 1280)
        head = "document.querySelectorAll('th button')[6].click()"  # the mean
        page.evaluate(head)
        column = "[...document.querySelectorAll('tbody')[0].rows].map(r => Number(r.cells[6].textContent))"
        found = page.evaluate(column)
        assert found == sorted(found)
        page.evaluate("s = document.querySelector('input'); s.value = 'no such'; s.dispatchEvent(new Event('input'))")
        assert page.evaluate("document.querySelector('.shown').textContent").startswith("0 of")
        assert page.complaints == []


def test_private_features_are_not_read_for_a_comparison() -> None:
    """Where labels are public and features are not, mlp would read the latter without noise."""
    graph = small_graph(np.random.default_rng(0), num_nodes=12)
    local = make("lpgnn", "local:features").fit(graph)
    shown, all_of_it = (accuracy_paid(local, graph, private).rows for private in (False, True))
    assert [row.name for row in shown] == ["this release", "the commonest class"]
    assert {row.name: row.covered for row in all_of_it} == {
        "this release": True,
        "no graph (mlp)": False,
        "no privacy (gcn)": False,
        "the commonest class": True,
    }
    edge = make("mlp", "edge").fit(graph)
    assert [row.name for row in accuracy_paid(edge, graph, False).rows][1] == "no graph (mlp)"
