"""An audit report is listed in the certificate of the release that it is about."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from discreet.audit.small_graphs import small_graph
from discreet.errors import CertificateError, InvalidInputError, OutputExistsError
from discreet.methods.baselines.mlp import MLPClassifier
from discreet.privacy.budget import Privacy
from discreet.privacy.certificate import audit_digest
from discreet.privacy.levels import EdgeLevel
from discreet.release.attach import attach_report
from discreet.release.verify import verify


@pytest.fixture
def release(tmp_path: Path) -> Path:
    model = MLPClassifier(Privacy(EdgeLevel(), 2.0), epochs=1, hidden=2).fit(small_graph(np.random.default_rng(0)))
    return model.save(tmp_path / "release")


def report_about(folder: Path, passed: bool = True) -> bytes:
    digest = json.loads((folder / "certificate.json").read_text())["digest"]
    content = {"release": {"certificate": digest}, "passed": passed}
    return json.dumps({**content, "digest": audit_digest(content)}).encode()


def failed(folder: Path) -> dict[str, str]:
    return {check.name: check.detail for check in verify(folder) if not check.passed}


def test_it_is_listed_and_checked(release: Path) -> None:
    attach_report(release, report_about(release))
    assert failed(release) == {}
    assert "audit.json" in json.loads((release / "certificate.json").read_text())["files"]
    (release / "audit.json").write_bytes(b"{}")
    assert set(failed(release)) == {"audit.json"}


def test_a_violation_fails_and_is_not_overwritten(release: Path) -> None:
    attach_report(release, report_about(release, passed=False))
    assert "violation" in failed(release)["audit"]
    with pytest.raises(OutputExistsError):
        attach_report(release, report_about(release))


def test_a_report_about_another_release_fails(release: Path) -> None:
    content = {"release": {"certificate": "0" * 64}, "passed": True}
    attach_report(release, json.dumps({**content, "digest": audit_digest(content)}).encode())
    assert "another release" in failed(release)["audit"]


def test_a_signed_release_is_left_alone(release: Path) -> None:
    (release / "certificate.sig").write_bytes(b"signed")
    before = (release / "certificate.json").read_bytes()
    with pytest.raises(InvalidInputError, match="signed"):
        attach_report(release, report_about(release))
    assert (release / "certificate.json").read_bytes() == before
    assert not (release / "audit.json").exists()


def test_it_mends_nothing_that_was_broken(release: Path) -> None:
    report = report_about(release)
    (release / "card.md").write_text("another card")
    attach_report(release, report)
    assert set(failed(release)) == {"card.md"}
    (release / "audit.json").unlink()
    path = release / "certificate.json"
    path.write_bytes(path.read_bytes().replace(b"hyper-parameters were given", b"hyper-parameters were dreamt"))
    with pytest.raises(CertificateError, match="changed"):
        attach_report(release, report)
