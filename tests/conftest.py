"""What every test shares: one thread, and a calibration cache of its own."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.effort import HIGH
from tests.entropy import Entropy

os.environ.setdefault("OMP_NUM_THREADS", "1")
# A shell's background ignores Ctrl-C, and so would every command that a test starts and interrupts.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

ENTROPY = Entropy()
if not HIGH:
    ENTROPY.install()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test draws bits of its own, and others in a further try; one that is marked ``fresh`` draws the system's."""
    ENTROPY.draw_for(None if item.get_closest_marker("fresh") else f"{item.nodeid}, try {_try_of(item)}")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    """What several tests share has bits of its own, whichever of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    before = ENTROPY.draw_for(f"{fixturedef.baseid}, {fixturedef.argname}")
    try:
        return (yield)
    finally:
        ENTROPY.go_on_with(before)


@pytest.fixture(autouse=True, scope="session")
def _private_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests neither read nor fill the user's calibrations; the workers of one run share theirs."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "calibrations"
    folder.mkdir(exist_ok=True)
    os.environ["DISCREET_CACHE"] = str(folder)


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that writes to a relative path writes to its own folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def record_property(request: pytest.FixtureRequest) -> Callable[[str, object], None]:
    """Keep a figure for the summary, as text: worker processes pass on nothing else."""

    def record(name: str, value: object) -> None:
        request.node.user_properties.append((name, _text(value)))

    return record


@pytest.fixture
def attempt(request: pytest.FixtureRequest) -> int:
    """The how manieth try of a test this is: tests that share runs of noise draw others in a further try."""
    return _try_of(request.node)


def _try_of(item: Any) -> int:
    return getattr(item, "execution_count", 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a fresh draw of noise may decide (accuracy, an audit's power) gets two further tries; nothing else does."""
    for item in items:
        if item.get_closest_marker("chance"):
            item.add_marker(pytest.mark.flaky(reruns=2))


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what tests measured: how tight each bound is."""
    measured = [
        (report.nodeid, name, value)
        for report in terminalreporter.stats.get("passed", [])
        for name, value in report.user_properties
    ]
    if measured:
        terminalreporter.section("measured")
        for test, name, value in measured:
            terminalreporter.write_line(f"{test}: {name} {value}")
