"""What is shipped: a wheel and a source distribution that install and train, and a core that needs no matplotlib."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TRAIN = ["train", "--data", "csbm", "--level", "edge", "--epsilon", "2", "--set", "epochs=1", "--out", "release"]
WITHOUT_MATPLOTLIB = f"""
import sys
sys.modules["matplotlib"] = None
from discreet.cli import main
sys.exit(main({TRAIN!r}))
"""


def run(*command: str | Path, cwd: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=kept, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fresh_environment(folder: Path) -> Path:
    """An environment with nothing but pip, which finds the packages that we depend on where they are."""
    venv.create(folder, with_pip=True)
    site = run(folder / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
    # Python 3.11 brings a setuptools that is older than what pyproject.toml asks for.
    run(folder / "bin" / "python", "-m", "pip", "uninstall", "--yes", "setuptools", cwd=folder)
    (Path(site.strip()) / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return folder / "bin"


def test_matplotlib_is_an_extra_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert not [name for name in project["dependencies"] if name.startswith("matplotlib")]
    assert [name for name in project["optional-dependencies"]["plot"] if name.startswith("matplotlib")]
    start = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert not [extra for extra in project["optional-dependencies"] if f"| `{extra}` |" not in start]


def test_constraints_name_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    names = {_name(requirement) for requirement in wanted} - {"discreet"}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert not names - {_name(line) for line in lines}


def _name(requirement: str) -> str:
    end = next((place for place, sign in enumerate(requirement) if sign in "<>=[~! "), len(requirement))
    return requirement[:end].lower().replace("_", "-")


@pytest.mark.slow
def test_wheel_and_source_distribution_install_and_train(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path / "dist", ".", cwd=_copy(tmp_path))
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    (source,) = (tmp_path / "dist").glob("*.tar.gz")
    held = zipfile.ZipFile(wheel).namelist()
    for name in ("py.typed", "__init__.pyi", "bench/suites/edge.toml", "graph/SHA256SUMS"):
        assert f"discreet/{name}" in held
    assert not [name for name in held if name.startswith("tests/")]
    with tarfile.open(source) as archive:
        assert [name for name in archive.getnames() if name.endswith("/README.md")]
    for number, package in enumerate((wheel, source)):
        work = tmp_path / f"work{number}"
        work.mkdir()
        programs = fresh_environment(tmp_path / f"environment{number}")
        run(programs / "python", "-m", "pip", "install", "--no-deps", "--no-build-isolation", package, cwd=work)
        assert run(programs / "discreet", "--version", cwd=work).startswith("discreet ")
        run(programs / "python", "-c", WITHOUT_MATPLOTLIB, cwd=work)
        assert "verified" in run(programs / "discreet", "verify", "release", cwd=work)


def _copy(folder: Path) -> Path:
    """The files of the repository without what builds leave behind."""
    copied = folder / "repository"
    copied.mkdir()
    shutil.copytree(ROOT / "src", copied / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copied / name)
    return copied
