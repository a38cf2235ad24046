"""A constant behind a default of None is seen: its trials run again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from discreet.bench.constants import constants_digest
from discreet.methods.hop_bayes import stages
from discreet.methods.registry import list_methods


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    constants_digest.cache_clear()
    yield
    constants_digest.cache_clear()


def test_a_changed_constant_of_its_family_alone_changes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: constants_digest(name) for name in list_methods()}
    monkeypatch.setattr(stages, "STEPS", stages.STEPS + 1)
    constants_digest.cache_clear()
    changed = {name for name in list_methods() if constants_digest(name) != before[name]}
    assert "hop-bayes" in changed
    assert not {"gap", "dpar", "gcon", "lpgnn"} & changed
