"""Imports point one way, heavy packages are imported late, and the public names exist."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

PACKAGE = Path(discreet.__file__).parent
# Imports point one way: a part may import itself and what stands before it.
ORDER = (
    "errors",
    "limits",
    "arrays",
    "files",
    "untrusted",
    "workers",
    "graph",
    "privacy",
    "ops",
    "queries",
    "mechanisms",
    "training",
    "methods",
)
AFTER_METHODS = {
    "release": set(),
    "tuning": set(),
    "audit": {"release"},
    "attacks": {"release"},
    "bench": {"audit", "tuning", "release"},
    "testing": {"audit", "release"},
    "local": set(),
    "engine": set(),
    "cli": {"release", "tuning", "audit", "attacks", "bench", "engine"},
    "__main__": {"cli"},
}


def allowed(part: str) -> set[str]:
    """What a part may import."""
    if part in ORDER:
        return set(ORDER[: ORDER.index(part) + 1])
    return {*ORDER, part, *AFTER_METHODS[part]}


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ("discreet", *path.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports_of(name: str) -> set[str]:
    """The modules of ours that a module imports, wherever in the file: in functions and for type checking too."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "discreet":
            within = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= within & MODULES.keys() or {str(node.module)}
    return found - {name}


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_one_way(name: str) -> None:
    if name == "discreet":
        return
    part = name.split(".")[1]
    assert part in ORDER or part in AFTER_METHODS, f"say in this test what {part} may import"
    assert {found.partition(".")[2].split(".")[0] for found in imports_of(name)} <= allowed(part)


def test_no_import_cycle() -> None:
    """Lazy imports and those for type checking count."""
    left = {name: imports_of(name) & MODULES.keys() for name in MODULES}
    while ready := [name for name, needed in left.items() if not needed]:
        for name in ready:
            del left[name]
        for needed in left.values():
            needed.difference_update(ready)
    assert not left, f"these import one another: {sorted(left)}"


def test_type_checkers_see_the_public_names() -> None:
    """The stub beside ``__init__`` names each public name once, from the module that defines it."""
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    seen = {
        alias.asname: (node.module or "").removeprefix("discreet.")
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {**discreet._NAMES, **dict.fromkeys(discreet._MODULES, "discreet")}


@pytest.mark.parametrize("path", sorted((PACKAGE / "privacy").rglob("*.py")), ids=lambda p: p.name)
def test_no_torch_in_privacy(path: Path) -> None:
    assert "import torch" not in path.read_text()
    assert "from torch" not in path.read_text()


def test_a_device_needs_numpy_and_cryptography_alone() -> None:
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
