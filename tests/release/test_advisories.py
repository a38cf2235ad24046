"""Releases of versions with a known break fail, and no others do."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.release.advisories import ADVISORIES, advisories


def made_by(version: str, method: str, mechanism: str, kind: str = "Gaussian", delta: float = 1e-6) -> dict[str, Any]:
    return {
        "schema": 2,
        "method": method,
        "delta": delta,
        "versions": {"discreet": version},
        "stages": [{"mechanism": mechanism, "event": {"kind": kind}}],
        "epsilon_by_accountant": {"pld": 1.0},
    }


@pytest.mark.parametrize("version", ["0.1.0.dev0", "0.1.0", "0.1.9", "not a version", "0"])
def test_old_releases_are_concerned(version: str) -> None:
    names = [advisory.name for advisory in advisories(made_by(version, "dp-gnn", "dpsgd"))]
    assert names == ["clipping in single precision"]
    assert advisories(made_by(version, "hop-bayes", "gaussian"))
    assert advisories(made_by(version, "gcon", "objective"))
    assert advisories(made_by(version, "dp-mlp", "dpsgd", delta=1e-12))


def test_others_are_not() -> None:
    assert not advisories(made_by("0.2.0.dev0", "dp-gnn", "dpsgd"))
    assert not advisories(made_by("0.2.0", "hop-bayes", "gaussian", delta=1e-12))
    assert not advisories(made_by("0.1.0", "gap", "gaussian"))
    assert not advisories(made_by("0.1.0", "dp-gnn", "dpsgd", kind="NonPrivate"))  # level none promises nothing


def test_schema_1_is_old_whatever_version_it_states() -> None:
    assert advisories({**made_by("0.2.0.dev0", "dp-gnn", "dpsgd"), "schema": 1})
    assert not advisories({**made_by("0.2.0.dev0", "gap", "gaussian"), "schema": 1})


def test_a_trial_of_a_search_counts() -> None:
    searched = made_by("0.1.0", "dp-gnn", "repeat-and-select")
    assert not advisories(searched)
    assert advisories({**searched, "trial_stages": [{"mechanism": "dpsgd", "event": {"kind": "Gaussian"}}]})


def test_each_says_why_in_one_line() -> None:
    assert all(advisory.why and "\n" not in advisory.why for advisory in ADVISORIES)
