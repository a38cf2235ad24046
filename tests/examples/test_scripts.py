"""The scripts of examples/ run as they are, and the third party's files are those of the page that explains them."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("social_network", "is told: class"),
        ("local_reports", "2 classes, from 1000 reports"),
        ("dask", "the same release, to the bit"),
    ],
)
def test_it_runs(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name == "dask":
        pytest.importorskip("distributed")
    runpy.run_path(str(EXAMPLES / name / "run.py"), run_name="__main__")
    assert said in capsys.readouterr().out


def test_the_third_party_is_what_the_page_explains() -> None:
    page = (ROOT / "docs" / "adding-a-method.md").read_text(encoding="utf-8")
    method, _, tests = re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert (EXAMPLES / "third_party" / "degree_rule.py").read_text(encoding="utf-8") == method
    assert (EXAMPLES / "third_party" / "test_degree_rule.py").read_text(encoding="utf-8") == tests
    points = tomllib.loads((EXAMPLES / "third_party" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert points["entry-points"]["discreet.methods"] == {"degree-rule": "degree_rule:DEGREE_RULE"}


def test_every_example_is_listed() -> None:
    listed = re.findall(r"\]\((\w+)/", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
