"""``discreet sign`` and ``verify --key``: who issued a release, and who did not."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from discreet.privacy.certificate import digest
from discreet.privacy.release_folder import json_bytes
from tests.cli.helpers import refused, run


@pytest.fixture
def keys(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    code, out, _ = run(capsys, "sign", "--new-key", "mine", "--json")
    assert code == 0
    assert json.loads(out)["public_key"] == "mine.pub"
    assert stat.S_IMODE(Path("mine").stat().st_mode) == 0o600
    return "mine", "mine.pub"


def check(capsys: pytest.CaptureFixture[str], key: str) -> dict:
    code, out, _ = run(capsys, "verify", "release", "--key", key, "--json")
    found = next(row for row in json.loads(out)["checks"] if row["check"] == "signature")
    assert code == int(not json.loads(out)["verified"])
    return found


def test_signed_and_checked(capsys: pytest.CaptureFixture[str], release: Path, keys: tuple[str, str]) -> None:
    assert not check(capsys, keys[1])["passed"]  # not signed yet
    assert run(capsys, "sign", str(release), "--key", keys[0])[0] == 0
    assert check(capsys, keys[1])["passed"]
    assert run(capsys, "verify", str(release))[0] == 0  # integrity as before, with the signature beside it
    assert "exists already" in refused(capsys, "sign", str(release), "--key", keys[0])
    run(capsys, "sign", "--new-key", "another")
    assert not check(capsys, "another.pub")["passed"]


def test_a_certificate_that_is_sealed_again_is_not_signed(
    capsys: pytest.CaptureFixture[str], release: Path, keys: tuple[str, str]
) -> None:
    run(capsys, "sign", str(release), "--key", keys[0])
    path = release / "certificate.json"
    certificate = json.loads(path.read_text())
    certificate["notes"] = ["everything is fine"]
    path.write_bytes(json_bytes(certificate | {"digest": digest(certificate)}))
    assert "changed since" in check(capsys, keys[1])["detail"]


def test_damaged_signatures(capsys: pytest.CaptureFixture[str], release: Path, keys: tuple[str, str]) -> None:
    run(capsys, "sign", str(release), "--key", keys[0])
    path = release / "certificate.sig"
    good = json.loads(path.read_text())
    for bad in ("", "[]", "{}", "[" * 100_000, json.dumps(good | {"signature": "no base64!"}), "null"):
        path.write_text(bad)
        assert check(capsys, keys[1])["detail"] == "certificate.sig is not a signature"
    path.write_text(json.dumps(good | {"algorithm": "none"}))
    assert not check(capsys, keys[1])["passed"]
    path.write_text(json.dumps(good | {"signature": ""}))
    assert not check(capsys, keys[1])["passed"]


def test_what_does_not_verify_is_not_signed(
    capsys: pytest.CaptureFixture[str], release: Path, keys: tuple[str, str]
) -> None:
    (release / "card.md").write_text("a better card")
    code, _, err = run(capsys, "sign", str(release), "--key", keys[0])
    assert code == 1
    assert "not signed" in err
    assert not (release / "certificate.sig").exists()


def test_bad_input(capsys: pytest.CaptureFixture[str], release: Path, keys: tuple[str, str]) -> None:
    assert "--new-key FILE" in refused(capsys, "sign")
    assert "--new-key FILE" in refused(capsys, "sign", str(release))
    assert "exists already" in refused(capsys, "sign", "--new-key", keys[0])
    assert "no release" in refused(capsys, "sign", "nowhere", "--key", keys[0])
    assert "not a private key" in refused(capsys, "sign", str(release), "--key", keys[1])
    assert "is a private key" in refused(capsys, "verify", str(release), "--key", keys[0])
    Path("text").write_text("something")
    assert "not a public key" in refused(capsys, "verify", str(release), "--key", "text")
    assert "no public key" in refused(capsys, "verify", str(release), "--key", "nowhere")
