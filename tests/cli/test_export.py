"""``discreet export --registry``: the record has the registry's fields and no other, and says what is missing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from discreet.release.registry_record import BASIC, FIELDS, LISTS, registry_record, to_yaml
from tests.cli.helpers import refused, run

STORED = Path(__file__).parents[1] / "release" / "stored"
PEOPLE = {
    "basic.name": "Payments: a model",
    "basic.data_curators": "A bank; Its auditor",
    "basic.description": 'A "model": of payments',
    "basic.intended_use": "find fraud",
    "basic.data_product_region": "Europe",
    "basic.publication_date": "2026-03-31",
    "basic.data_product_sector": "Finance",
    "privacy_loss.privacy_parameters_details": "below one over the number of nodes",
    "deployment_model.actors": "the bank",
    "deployment_model.data_source_type_details": "one month",
    "implementation.justification": "policy",
    "administrative.registry_authors": "A person",
}
ALL = [word for key, value in PEOPLE.items() for word in ("--set", f"{key}={value}")]


def check(record: dict[str, Any]) -> None:
    """The registry's form: these keys and no other; texts, but for numbers and lists."""
    assert set(record) == {"url_slug", "status", "tier", "deployment"}
    assert re.fullmatch("[a-z0-9_]+", record["url_slug"])
    assert (record["status"], record["tier"] in (1, 2, 3)) == ("Draft", True)
    deployment = record["deployment"]
    assert deployment.keys() <= FIELDS.keys()
    assert set(BASIC) - {"data_product_sector"} <= deployment["basic"].keys()
    assert deployment["administrative"]["registry_authors"]
    for section, fields in deployment.items():
        assert fields.keys() <= set(FIELDS[section])
        for field, value in fields.items():
            if field == "privacy_parameters":
                assert value.keys() <= {"epsilon", "delta", "rho"}
                assert all(isinstance(number, int | float) for number in value.values())
            elif (section, field) in LISTS:
                assert all(isinstance(item, str) for item in value)
            else:
                assert isinstance(value, str), (section, field)


@pytest.mark.parametrize("release", ["gap-edge", "lpgnn", "dpar", "mlp", "sage-none"])
def test_the_record_is_valid(capsys: pytest.CaptureFixture[str], release: str) -> None:
    yaml = pytest.importorskip("yaml")
    assert run(capsys, "export", str(STORED / release), "--registry", "--out", "record.yaml")[0] == 0
    check(yaml.safe_load(Path("record.yaml").read_text()))


def test_what_people_know(capsys: pytest.CaptureFixture[str]) -> None:
    yaml = pytest.importorskip("yaml")
    code, out, _ = run(capsys, "export", str(STORED / "gap-edge"), "--registry", *ALL)
    assert code == 0
    record = yaml.safe_load(Path("payments_a_model.yaml").read_text())
    check(record)
    assert record["tier"] == 3
    assert record["deployment"]["basic"]["data_curators"] == ["A bank", "Its auditor"]
    assert record["deployment"]["basic"]["description"] == 'A "model": of payments'
    assert record["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 4.0, "delta": 0.001}
    assert "tier" in out


def test_a_record_without_a_name_is_filed_under_its_release(capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(STORED / "mlp", "March 2026")
    assert run(capsys, "export", "March 2026", "--registry")[0] == 0
    text = Path("march_2026.yaml").read_text()
    assert 'url_slug: "march_2026"' in text
    assert 'name: "TO DO"' in text


def test_what_is_missing_is_marked() -> None:
    from discreet.privacy.release_folder import read_certificate

    certificate = read_certificate(STORED / "gap-edge")
    record = registry_record(certificate)
    assert record["tier"] == 1
    notes = record["deployment"]["administrative"]["notes"].split("; ")
    assert len(notes) >= len(certificate["notes"]) + len(certificate["caveats"])  # sentences do not run together
    assert 'intended_use: "TO DO"' in to_yaml(record)
    assert "delta: 1.0e-05" in to_yaml({"delta": 1e-5})


def test_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    release = str(STORED / "mlp")
    assert "--registry" in refused(capsys, "export", release)
    assert "no release" in refused(capsys, "export", "nowhere", "--registry")
    for bad in ("basic.colour=red", "name", "privacy_loss.privacy_parameters=0", "basic.name="):
        refused(capsys, "export", release, "--registry", "--set", bad)
    assert "Finance" in refused(capsys, "export", release, "--registry", "--set", "basic.data_product_sector=Money")
