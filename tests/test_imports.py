"""Imports point one way, heavy packages are imported late, and the public names exist."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

PACKAGE = Path(discreet.__file__).parent
# What a module of each folder may import of ours; anything may import errors.
ALLOWED = {
    "errors": set(),
    "graph": {"graph"},
    "privacy": {"privacy"},
    "mechanisms": {"mechanisms", "privacy"},
    "ops": {"ops", "graph", "privacy"},
    "methods": {"methods", "ops", "mechanisms", "privacy", "graph"},
    "audit": {"audit", "methods", "ops", "mechanisms", "privacy", "graph", "command_output"},
    "local": {"mechanisms"},
    "bench": {"bench", "methods", "ops", "mechanisms", "privacy", "graph", "command_output"},
    "tuning": {"tuning", "methods", "mechanisms", "privacy", "graph", "command_output"},
    "doctor": {"graph", "privacy"},
    "command_output": {"methods", "graph"},
    "cli": {"audit", "bench", "tuning", "methods", "graph", "privacy", "doctor", "command_output"},
}


def imports_of(path: Path) -> set[str]:
    """Top-level parts of our package that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if name.startswith("discreet."):
                found.add(name.split(".")[1])
            elif name == "discreet" and isinstance(node, ast.ImportFrom):
                found |= {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if part == "__init__":
        return
    assert part in ALLOWED, f"say in this test what {part} may import"
    assert imports_of(path) - {"errors"} <= ALLOWED[part]


@pytest.mark.parametrize("path", sorted((PACKAGE / "privacy").rglob("*.py")), ids=lambda p: p.name)
def test_no_torch_in_privacy(path: Path) -> None:
    assert "import torch" not in path.read_text()
    assert "from torch" not in path.read_text()


def test_a_device_needs_numpy_alone() -> None:
    code = (
        "import sys, discreet; discreet.local.encode([0.5, 1], feature_range=(0, 1), epsilon=1.0);"
        "discreet.local.encode_label(1, num_classes=3, epsilon=1.0);"
        "heavy = {'torch', 'scipy', 'pandas', 'dp_accounting', 'sklearn', 'pydantic'} & set(sys.modules);"
        "print(sorted(heavy)); sys.exit(bool(heavy))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("module", ["discreet", "discreet.cli", "discreet.graph", "discreet.privacy.plan"])
def test_heavy_packages_are_imported_late(module: str) -> None:
    code = (
        f"import sys, {module}; heavy = {{'torch', 'torch_geometric', 'pandas', 'networkx', 'sklearn'}}"
        " & set(sys.modules); print(sorted(heavy)); sys.exit(bool(heavy))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_public_names_exist() -> None:
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None
    with pytest.raises(AttributeError):
        discreet.nothing  # noqa: B018
