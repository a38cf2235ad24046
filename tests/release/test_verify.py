"""Verification: a release as it is passes, and everything that somebody may have done to it is refused."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from discreet.audit.small_graphs import small_graph
from discreet.audit.subjects import cheap
from discreet.errors import CertificateError, DiscreetError
from discreet.mechanisms.bits import FIXED
from discreet.methods.baselines.dp_mlp import DPMLPClassifier
from discreet.methods.baselines.mlp import MLPClassifier
from discreet.methods.gap.estimator import GAP
from discreet.methods.registry import find_method, load_method
from discreet.privacy import events
from discreet.privacy.accountants import spend
from discreet.privacy.budget import Privacy
from discreet.privacy.calibration import calibrate
from discreet.privacy.certificate import FREE, digest
from discreet.privacy.levels import EdgeLevel, NodeLevel, parse_level
from discreet.privacy.plan import Stage
from discreet.privacy.release_folder import json_bytes
from discreet.release.consistency import _check_columns
from discreet.release.load import load_release
from discreet.release.rebuild import _alike
from discreet.release.signature import check_signature, new_key, sign
from discreet.release.verify import Examined, examine, verify
from tests.release.flips import STORED, flips
from tests.release.forging import Change, forge, reseal, unchanged


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One release for all tests, which must not touch it."""
    graph = small_graph(np.random.default_rng(0))
    model = GAP(Privacy(EdgeLevel(), 2.0), hops=2, epochs=1, hidden=4).fit(graph)
    return model.save(str(tmp_path_factory.mktemp("made") / "release"))


@pytest.fixture
def release(released: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return shutil.copytree(released, tmp_path / "release")


def failed(folder: Path) -> set[str]:
    return {check.name for check in verify(folder) if not check.passed}


def sentence(folder: Path) -> str:
    """What the one failed check says: one line; whoever loads the release gets it as an error."""
    (found,) = (check for check in verify(folder) if not check.passed)
    assert "\n" not in found.detail
    with pytest.raises(DiscreetError):
        load_release(folder)
    return found.detail


def test_accepted_as_it_is(release: Path) -> None:
    assert failed(release) == set()


def test_noise_may_differ_by_what_calibration_leaves_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another machine the search may end a little higher; notes that speak of this noise are right then too."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("discreet.privacy.plan.calibrate", lambda *asked: 1.0015 * calibrate(*asked))
        graph = small_graph(np.random.default_rng(0), num_nodes=12)
        privacy = Privacy(NodeLevel(3), 2.0, 1e-2)
        DPMLPClassifier(privacy, steps=2).fit(graph).save(tmp_path / "release")
    assert not failed(tmp_path / "release")


def test_every_file_is_read_once(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Counter[str] = Counter()
    original = os.open

    def counted(path: Any, *options: Any, **more: Any) -> int:
        if Path(os.fspath(path)).parent == release:
            opened[Path(os.fspath(path)).name] += 1
        return original(path, *options, **more)

    monkeypatch.setattr(os, "open", counted)
    load_release(release)
    assert opened == dict.fromkeys(["certificate.json", "card.md", "config.json", "weights.safetensors"], 1)


# -------------------------------------------------------------------- bytes


@pytest.mark.parametrize("name", ["weights.safetensors", "config.json", "card.md"])
def test_one_byte_is_noticed(release: Path, name: str) -> None:
    content = bytearray((release / name).read_bytes())
    content[len(content) // 2] ^= 1
    (release / name).write_bytes(content)
    assert failed(release) == {name}


def flip_each(folder: Path, name: str, step: int = 1) -> None:
    """No flip of a byte may pass, or raise."""
    assert [place for place, noticed in flips(folder, name, step) if not noticed] == []


@pytest.fixture(scope="module")
def shortest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with little in it."""
    graph = small_graph(np.random.default_rng(0))
    model = MLPClassifier(Privacy(EdgeLevel(), 2.0), epochs=1, hidden=2).fit(graph)
    return model.save(str(tmp_path_factory.mktemp("made") / "release"))


@pytest.mark.parametrize("name", ["certificate.json", "config.json", "card.md"])
def test_every_byte_is_noticed(shortest: Path, tmp_path: Path, name: str) -> None:
    flip_each(shutil.copytree(shortest, tmp_path / "release"), name)


@pytest.mark.parametrize("name", ["certificate.json", "config.json", "card.md", "weights.safetensors"])
def test_bytes_of_an_old_release_are_noticed(tmp_path: Path, name: str) -> None:
    """Also those that leave the value equal, such as another space."""
    folder = shutil.copytree(STORED / "gap-edge", tmp_path / "release")
    flip_each(folder, name, step=13)
    path = folder / "certificate.json"
    path.write_bytes(path.read_bytes().replace(b'": ', b'":  ', 1))
    assert "not written as" in sentence(folder)


def test_every_byte_of_a_signature_is_noticed(shortest: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(shortest, tmp_path / "release")
    new_key(tmp_path / "key")
    sign(folder, tmp_path / "key")
    assert examine(folder).passed
    flip_each(folder, "certificate.sig")


def test_bytes_of_the_weights_are_noticed(release: Path) -> None:
    flip_each(release, "weights.safetensors", step=29)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["certificate.json", "config.json", "card.md", "weights.safetensors"])
def test_every_byte_of_a_longer_release_is_noticed(release: Path, name: str) -> None:
    flip_each(release, name)


def test_other_bytes_of_the_same_value_are_noticed(release: Path) -> None:
    path = release / "certificate.json"
    path.write_text(path.read_text().replace('": ', '":  ', 1))
    assert "not written as" in sentence(release)


# -------------------------------------------------------------------- the folder


def test_missing_file_is_noticed(release: Path) -> None:
    (release / "card.md").unlink()
    assert failed(release) == {"card.md"}


@pytest.mark.parametrize("name", ["edges.csv", "audit.json", "weights.safetensors.bak"])
def test_a_file_that_is_not_listed_is_refused(release: Path, name: str) -> None:
    (release / name).write_text("source,target\n1,2\n")
    assert name in sentence(release)
    assert "does not list" in sentence(release)


def test_a_signature_may_lie_beside_where_it_is_one(release: Path, tmp_path: Path) -> None:
    new_key(tmp_path / "key")
    sign(release, tmp_path / "key")
    assert failed(release) == set()
    (release / "certificate.sig").write_bytes(b"anything")
    assert failed(release) == {"signature"}
    with pytest.raises(CertificateError, match="not a signature"):
        load_release(release)


@pytest.mark.parametrize("name", [".hidden", "two\nlines", "a b", "ø", "-x"])
def test_a_name_that_is_not_plain_is_refused(release: Path, name: str) -> None:
    (release / name).write_text("")
    assert "plain" in sentence(release)


def test_a_folder_and_many_files_are_refused(release: Path) -> None:
    (release / "more").mkdir()
    assert "more" in sentence(release)
    for number in range(20):
        (release / f"file{number}").write_text("")
    assert "more than 16 files" in sentence(release)


@pytest.mark.parametrize("name", ["card.md", "certificate.json", "weights.safetensors", "config.json"])
@pytest.mark.parametrize("target", ["/dev/zero", "itself", "nowhere"])
def test_links_are_not_followed(release: Path, tmp_path: Path, name: str, target: str) -> None:
    (release / name).rename(tmp_path / "itself")
    (release / name).symlink_to(target if target.startswith("/") else tmp_path / target)
    assert "link" in sentence(release)


@pytest.mark.parametrize("name", ["card.md", "certificate.json", "weights.safetensors", "certificate.sig"])
def test_a_pipe_is_not_waited_for(release: Path, name: str) -> None:
    (release / name).unlink(missing_ok=True)
    os.mkfifo(release / name)
    assert "regular" in sentence(release)


@pytest.mark.parametrize("name", ["card.md", "certificate.json", "config.json", "weights.safetensors"])
def test_a_file_without_end_is_not_read(release: Path, name: str) -> None:
    os.truncate(release / name, 1 << 40)  # a file with a hole: it takes no room
    assert "larger than" in sentence(release)


def test_no_folder() -> None:
    assert failed(Path("nowhere")) == {"certificate"}


# -------------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "JSON"),
        ("not json", "JSON"),
        ("[]", "schema"),
        ("{}", "schema"),
        ('{"schema": 99}', "schema"),
        ('{"schema": true}', "lacks"),
        ('{"schema": 2}', "lacks"),
        ('{"schema": 2, "schema": 2}', "twice"),
        ("[" * 100_000, "JSON"),
        ("[" * 500 + "]" * 500, "nested"),
        ('{"schema": NaN}', "NaN"),
        ('{"schema": 1e999}', "double"),
        ('{"schema": ' + "9" * 5000 + "}", "64 bits"),
        ('{"schema": "\\ud800"}', "characters"),
        ('{"schema": "\\u0000"}', "characters"),
    ],
)
def test_garbage_is_refused_in_one_sentence(release: Path, content: str, word: str) -> None:
    (release / "certificate.json").write_text(content)
    assert word in sentence(release)
    forge_text(release)


def forge_text(folder: Path) -> None:
    """The same in other files is noticed by their hashes, before anybody parses them."""
    (folder / "config.json").write_bytes((folder / "certificate.json").read_bytes())
    assert failed(folder) == {"certificate"}


@pytest.mark.parametrize(
    "text", ['{"format": 1, "format": 1}', "[" * 5000, "{}", "[]", '{"format": NaN}', '{"format": 1, "more": 2}', ""]
)
def test_a_sealed_configuration_that_is_none_is_refused(release: Path, text: str) -> None:
    (release / "config.json").write_text(text)
    reseal(release)
    assert failed(release) == {"configuration"}
    assert "config.json" in sentence(release)


# -------------------------------------------------------------------- sealed again


def set_in(*path: str | int, value: Any) -> Change:
    """A change of one place."""

    def change(content: dict[str, Any]) -> None:
        place: Any = content
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


def scale(*path: str | int, factor: float) -> Change:
    def change(content: dict[str, Any]) -> None:
        place: Any = content
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] *= factor

    return change


LAPLACE = {"kind": "Laplace", "noise_multiplier": 50.0}
FIGURE = "- **Guarantee**: ε = 0.1"
"""A line of a card."""
FORGED: dict[str, tuple[Change, Change, str]] = {
    # what contradicts the public facts
    "other classes": (unchanged, set_in("schema", "classes", value=["a"]), "configuration"),
    "other features": (unchanged, set_in("schema", "features", value=["a"]), "configuration"),
    "other directions": (unchanged, set_in("schema", "directed", value=True), "configuration"),
    # what a form can refuse
    "no runs": (set_in("stages", 0, "runs", value=0), unchanged, "certificate"),
    "half a run": (set_in("stages", 0, "runs", value=1.5), unchanged, "certificate"),
    "runs that are true": (set_in("stages", 0, "runs", value=True), unchanged, "certificate"),
    "runs without end": (set_in("stages", 0, "runs", value=10**18), unchanged, "certificate"),
    "delta of 1": (set_in("delta", value=1.0), unchanged, "certificate"),
    "delta below 0": (set_in("delta", value=-1e-6), unchanged, "certificate"),
    "a text for delta": (set_in("delta", value="1e-5"), unchanged, "certificate"),
    "epsilon below 0": (set_in("epsilon", value=-1.0), unchanged, "certificate"),
    "stages that are none": (set_in("stages", value=3), unchanged, "certificate"),
    "no event": (lambda c: c["stages"][0].pop("event"), unchanged, "certificate"),
    "an unknown key": (set_in("more", value=1), unchanged, "certificate"),
    "a hash that is none": (set_in("digest", value="x"), unchanged, ""),
    # what contradicts
    "delta of 0": (set_in("delta", value=0.0), unchanged, "configuration"),
    "another delta": (set_in("delta", value=1e-4), unchanged, "configuration"),
    "another delta of the budget": (set_in("budget", "delta", value=1e-4), unchanged, "configuration"),
    "both deltas": (
        lambda c: c.update(delta=1e-4, budget={**c["budget"], "delta": 1e-4}),
        unchanged,
        "configuration",
    ),
    "another budget": (set_in("budget", "epsilon", value=3.0), unchanged, "configuration"),
    "another method": (set_in("method", value="dpdgc"), unchanged, "configuration"),
    "no such method": (set_in("method", value="gpa"), set_in("method", value="gpa"), "plan"),
    "another level": (set_in("level", "spec", value="edge:directed"), unchanged, "configuration"),
    "no such level": (set_in("level", "spec", value="planet"), unchanged, "configuration"),
    "a level that it does not have": (
        set_in("level", value={"spec": "local", "relation": ""}),
        set_in("privacy", "level", value="local"),
        "configuration",
    ),
    "another relation in words": (set_in("level", "relation", value="everything"), unchanged, "configuration"),
    "fewer duties": (set_in("duties", value=[]), unchanged, "configuration"),
    "fewer caveats": (set_in("caveats", value=[]), unchanged, "configuration"),
    "somebody else to trust": (set_in("trust", value="nobody"), unchanged, "configuration"),
    "another task": (set_in("task", value="weather"), unchanged, "configuration"),
    "another source of noise": (set_in("noise", "source", value="dice"), unchanged, "configuration"),
    "tuning in other words": (set_in("tuning", value="none at all"), unchanged, "configuration"),
    "a search that was not free": (set_in("tuning", value=f"3 settings; {FREE}"), unchanged, "configuration"),
    "a search that no stage pays for": (set_in("tuning", value="charged: 3 trials"), unchanged, "configuration"),
    "noise that a seed fixed": (unchanged, set_in("params", "insecure_noise_seed", value=1), "configuration"),
    "no such coverage": (set_in("covers", value={"name": "all", "means": ""}), unchanged, "configuration"),
    "other facts": (set_in("facts", 0, "num_train", value=1), unchanged, "configuration"),
    "facts of no graph": (
        set_in("facts", 0, "num_train", value=10**6),
        set_in("public", "num_train", value=10**6),
        "configuration",
    ),
    "no date": (set_in("date", value="yesterday"), unchanged, "configuration"),
    **{
        f"a figure of its own in {name}": (set_in(name, value=f"x\n{FIGURE}"), unchanged, "configuration")
        for name in ("data", "purpose", "issuer", "ledger")
    },
    "words of an issuer without end": (set_in("issuer", value="x" * 501), unchanged, "configuration"),
    "a text as a version": (set_in("versions", "torch", value="Ann knows Bob"), unchanged, "configuration"),
    "a text as a package": (set_in("versions", "Ann knows Bob", value="1"), unchanged, "configuration"),
    "another size": (unchanged, set_in("public", "num_nodes", value=10**6), "configuration"),
    # what the plan does not say
    "another coverage": (
        lambda c: c.update(covers=coverage("weights"), duties=duties_of("weights")),
        unchanged,
        "plan",
    ),
    "another parameter": (unchanged, set_in("params", "hops", value=3), "plan"),
    "an unknown parameter": (unchanged, set_in("params", "hoops", value=3), "plan"),
    "a parameter of another type": (unchanged, set_in("params", "hops", value="many"), "plan"),
    "another event": (set_in("stages", 0, "event", value=LAPLACE), unchanged, "plan"),
    "an event of no kind": (set_in("stages", 0, "event", value={"kind": "Unknown"}), unchanged, "plan"),
    "more noise": (scale("stages", 0, "event", "noise_multiplier", factor=1.01), unchanged, "plan"),
    "noise that is not that of the event": (scale("stages", 0, "noise", "std", factor=1.001), unchanged, "plan"),
    "another sensitivity": (scale("stages", 0, "sensitivity", factor=0.5), unchanged, "plan"),
    "more runs": (set_in("stages", 0, "runs", value=2), unchanged, "plan"),
    "a stage less": (lambda c: c["stages"].pop(), unchanged, "plan"),
    "another mechanism": (set_in("stages", 0, "mechanism", value="dpsgd"), unchanged, "plan"),
    "another proof": (set_in("stages", 0, "proof", value="published proof"), unchanged, "plan"),
    "another sampler": (set_in("stages", 0, "noise", "sampler", value="dice"), unchanged, "plan"),
    "other notes": (set_in("notes", value=["nothing to add"]), unchanged, "plan"),
    "a parent of what extends none": (set_in("parent", value={"digest": "none\n- ε = 0.1"}), unchanged, "plan"),
    "accounting that nobody asked for": (set_in("accounting", value="as-published"), unchanged, "plan"),
    # what does not add up
    "a smaller epsilon": (scale("epsilon", factor=0.999), unchanged, "epsilon"),
    "a larger bound of another accountant": (scale("epsilon_by_accountant", "pld", factor=2.0), unchanged, "epsilon"),
    "a smaller bound": (scale("epsilon_by_accountant", "pld", factor=0.5), unchanged, "epsilon"),
}


def coverage(name: str) -> dict[str, str]:
    from discreet.privacy.coverage import COVERAGE

    return {"name": name, "means": COVERAGE[name]}


def duties_of(covers: str) -> list[str]:
    from discreet.privacy.certificate import duties

    return duties(covers, EdgeLevel())


@pytest.mark.parametrize("name", FORGED)
def test_a_forgery_with_right_hashes_is_refused(release: Path, name: str) -> None:
    certificate, config, check = FORGED[name]
    if name == "a hash that is none":
        stated = json.loads((release / "certificate.json").read_text()) | {"digest": "x"}
        (release / "certificate.json").write_bytes(json_bytes(stated))
        assert "digest" in sentence(release)
        return
    try:
        forge(release, certificate, config)
    except (KeyError, TypeError, ValueError):  # the card cannot be rendered from this: then without a new one
        stated = json.loads((release / "certificate.json").read_text())
        certificate(stated)
        (release / "certificate.json").write_bytes(json_bytes({**stated, "digest": digest(stated)}))
    assert failed(release) <= {check, "accounting"}
    assert check in failed(release)
    with pytest.raises(CertificateError):
        load_release(release)


def test_a_card_that_says_something_else_is_refused(release: Path) -> None:
    card = release / "card.md"
    card.write_text(card.read_text().replace("ε = 2", "ε = 0.1"))
    reseal(release)
    assert "card.md" in sentence(release)


def downgraded(content: dict[str, Any]) -> None:
    """The claim of a thousandth of the ε, in the form of an older certificate that has fewer checks."""
    content["schema"] = 1
    for stage in content["stages"]:
        stage["event"]["noise_multiplier"] *= 1000
    event = events.compose(Stage.from_json(stage).event for stage in content["stages"])
    content["epsilon_by_accountant"] = spend(event, content["delta"])
    content["epsilon"] = min(content["epsilon_by_accountant"].values())


def downgraded_to_a_search(content: dict[str, Any]) -> None:
    downgraded(content)
    content["trial_stages"] = []
    content["budget"]["epsilon"] = 0.1


@pytest.mark.parametrize("change", [downgraded, downgraded_to_a_search])
@pytest.mark.parametrize("made_by", ["0.1.0.dev0", "0.2.0.dev0"])
def test_an_older_schema_does_not_switch_off_checks(release: Path, change: Change, made_by: str) -> None:
    def forged(content: dict[str, Any]) -> None:
        change(content)
        content["versions"]["discreet"] = made_by

    forge(release, forged)
    assert failed(release) & {"plan", "configuration"}


def test_an_older_schema_does_not_hide_other_words(release: Path) -> None:
    """Of schema 1 no word can be compared: a version that did not write it is refused, one that did is warned of."""

    def other_words(content: dict[str, Any]) -> None:
        content["schema"] = 1
        content["level"]["relation"] = "everything about everybody"

    forge(release, other_words)
    assert "wrote no certificates of schema 1" in sentence(release)
    forge(release, lambda content: content["versions"].update(discreet="0.1.0.dev0"))
    assert "WORDING WAS NOT COMPARED" in examine(release).warnings[0]


def test_a_trial_of_a_search_has_no_more_than_the_budget(release: Path) -> None:
    forge(release, lambda c: c.update(trial_stages=[], budget={**c["budget"], "epsilon": 0.1}))
    assert failed(release) == {"configuration"}


@pytest.mark.parametrize("made_by", ["9.9", "0.2.0.dev0 ", "v0.2.0.dev0", "0.1.0", "1!0", "0.2.0.dev0+x", "", None])
def test_a_version_that_cannot_be_is_refused(release: Path, made_by: str | None) -> None:
    if made_by is None:
        forge(release, lambda c: c["versions"].pop("discreet"))
    else:
        forge(release, lambda c: c["versions"].update(discreet=made_by))
    assert "version" in sentence(release)


def test_an_older_version_is_read_with_a_warning(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.release.consistency.version", lambda name: "7.0")
    card = release / "card.md"
    card.write_text(card.read_text().replace("## What is promised", "## The promise"))
    reseal(release)
    found = examine(release)
    assert found.passed
    assert "WORDING WAS NOT COMPARED" in found.warnings[0]


@pytest.mark.parametrize(
    ("words", "others"),
    [
        ("ε = 2", "ε = 0.1"),
        ("δ = ", "δ = 0.0"),
        ("- **Protected**: ", "- **Protected**: all people, and "),
        ("\n", "\nε = 0\n"),
    ],
)
def test_the_guarantee_on_a_card_of_an_older_version_is_compared(
    release: Path, monkeypatch: pytest.MonkeyPatch, words: str, others: str
) -> None:
    monkeypatch.setattr("discreet.release.consistency.version", lambda name: "7.0")
    card = release / "card.md"
    card.write_text(card.read_text().replace(words, others))
    reseal(release)
    assert "card.md does not state the guarantee" in sentence(release)


def test_only_noise_has_the_tolerance_of_a_calibration() -> None:
    planned = {"noise_multiplier": 2.0, "noise_std": 1.0, "sampling_probability": 0.1, "events": [{"epsilon": 0.5}]}
    assert _alike({**planned, "noise_multiplier": 2.003, "noise_std": 1.001}, planned)
    assert not _alike({**planned, "sampling_probability": 0.0999}, planned)
    assert not _alike({**planned, "events": [{"epsilon": 0.4999}]}, planned)
    assert _alike({**planned, "sampling_probability": 0.1 * (1 + 1e-12)}, planned)


def test_what_was_examined_is_what_a_signature_is_checked_on(release: Path, tmp_path: Path) -> None:
    public = new_key(tmp_path / "key")
    sign(release, tmp_path / "key")
    signed = (release / "certificate.json").read_bytes()
    forge(release, lambda c: c.update(issuer="somebody else"))
    found = examine(release)
    (release / "certificate.json").write_bytes(signed)  # put back between the two checks
    assert [check.name for check in found.checks if not check.passed] == ["signature"]
    assert not check_signature(found.files, public).passed
    assert check_signature(examine(release).files, public).passed


def test_what_is_signed_is_what_was_examined(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    public = new_key(tmp_path / "key")
    good = (release / "certificate.json").read_bytes()

    def replaced_after(folder: Path) -> Examined:
        found = examine(folder)
        forge(release, lambda c: c.update(issuer="somebody else"))
        return found

    monkeypatch.setattr("discreet.release.signature.examine", replaced_after)
    sign(release, tmp_path / "key")
    signature = (release / "certificate.sig").read_bytes()
    assert check_signature({"certificate.json": good, "certificate.sig": signature}, public).passed
    assert not check_signature(examine(release).files, public).passed


def test_a_new_digest_is_needed(release: Path) -> None:
    path = release / "certificate.json"
    path.write_bytes(json_bytes(json.loads(path.read_text()) | {"issuer": "somebody else"}))
    assert failed(release) == {"digest"}


def test_test_noise_and_unpaid_tuning_fail_and_load(release: Path) -> None:
    forge(release, lambda c: c["noise"].update(for_release=False, source=FIXED))
    assert failed(release) == {"noise"}
    forge(release, lambda c: c.update(tuning="tuning not accounted: 3 settings"))
    assert failed(release) == {"noise", "tuning"}
    load_release(release)


def test_the_schema_of_tables_may_be_missing_and_must_be_one(release: Path) -> None:
    forge(release, config=lambda c: c.pop("schema"))
    assert failed(release) == set()
    forge(release, config=lambda c: c.update(schema={"more": 1}))
    assert "schema" in sentence(release)


def test_what_no_fit_at_the_level_takes_is_refused(release: Path) -> None:
    """Columns that were read off private features, and a split that looked at private labels."""
    config = json.loads((release / "config.json").read_text())
    columns = [{"names": ["x"], "kind": "as-is", "measured": True}]
    for change in ({"split": {"by": "20/5/5", "seed": 0}}, {"schema": {**config["schema"], "columns": columns}}):
        _check_columns({**config, **change}, EdgeLevel())
        with pytest.raises(CertificateError, match="which the level protects"):
            _check_columns({**config, **change}, NodeLevel(3))


@pytest.mark.parametrize("name", ["../outside", "a\x00b", "edges.csv", ""])
def test_a_certificate_that_lists_a_strange_file_is_refused(release: Path, name: str) -> None:
    stated = json.loads((release / "certificate.json").read_text())
    stated["files"][name] = "0" * 64
    (release / "certificate.json").write_bytes(json_bytes({**stated, "digest": digest(stated)}))
    assert "certificate" in sentence(release)


# -------------------------------------------------------------------- weights


def with_weights(folder: Path, content: bytes) -> None:
    (folder / "weights.safetensors").write_bytes(content)
    reseal(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_refused(release: Path, value: float) -> None:
    arrays = load((release / "weights.safetensors").read_bytes())
    name = next(key for key, array in arrays.items() if array.dtype.kind == "f")
    arrays[name] = arrays[name].copy()
    arrays[name].flat[0] = value
    with_weights(release, save(arrays))
    assert "finite" in sentence(release)


def test_text_beside_the_arrays_is_refused(release: Path) -> None:
    arrays = load((release / "weights.safetensors").read_bytes())
    with_weights(release, save(arrays, metadata={"edges": "1,2"}))
    assert "text" in sentence(release)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"{", b'{"\\u005f_metadata__":{"edges":"1,2"},'),
        (b'"dtype"', b'"edges":"1,2","dtype"'),
        (b'{"', b'{ "'),
        (b".", b"\\u002e"),
        (b"}", b"}" + b" " * 8),
    ],
    ids=["escaped metadata", "a key in an entry", "a space", "an escaped name", "spaces at the end"],
)
def test_text_in_the_header_of_weights_is_refused(release: Path, old: bytes, new: bytes) -> None:
    """Readers of arrays skip what they do not know, and read what is escaped."""
    content = (release / "weights.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    at_end = new.startswith(b"}")
    header = content[8 : 8 + size] + b" " * 8 if at_end else content[8 : 8 + size].replace(old, new, 1)
    with_weights(release, len(header).to_bytes(8, "little") + header + content[8 + size :])
    load((release / "weights.safetensors").read_bytes())
    assert "text beside its arrays" in sentence(release)


LONGER = {
    "one row more": lambda a: np.concatenate([a, a[:1]]),
    "one column more": lambda a: np.concatenate([a, a[..., :1]], axis=-1),
    "one dimension more": lambda a: a[None],
    "double precision": lambda a: a.astype(np.float64),
    "half precision": lambda a: a.astype(np.float16),
    "bytes": lambda a: a.astype(np.uint8)[..., None],
}


@pytest.mark.parametrize("how", LONGER)
@pytest.mark.parametrize("name", ["cache.0.1", "key.0", "encoder.layers.0.weight"])
def test_arrays_in_another_form_are_refused(release: Path, name: str, how: str) -> None:
    """More rows than there are nodes, or more bits than the model reads, would be a place for private data."""
    arrays = load((release / "weights.safetensors").read_bytes())
    with_weights(release, save({**arrays, name: np.ascontiguousarray(LONGER[how](arrays[name]))}))
    assert "weights.safetensors" in sentence(release)


@pytest.mark.parametrize(
    ("method", "level", "added"),
    [
        ("dp-gnn", "edge", {"outputs": "numbers"}),
        ("gcon-ssp", "edge", {"encoder.edges": "numbers"}),
        (
            "hop-bayes",
            "edge",
            {f"{name}.1": f"{name}.0" for name in ("cache", "receivers", "key", "hubs")},
        ),
        ("hop-bayes", "edge", {"class_weights": "links.chance"}),
        ("lpgnn", "local", {"cache.1": "cache.0", "key.1": "key.0"}),
    ],
)
def test_what_no_stage_paid_for_is_refused(method: str, level: str, added: dict[str, str], tmp_path: Path) -> None:
    """Arrays under names that the method has in other configurations: another graph's cache among them."""
    model = load_method(find_method(method))(Privacy(parse_level(level), 4.0))
    if level == "local":
        model.set_params(feature_range=(-9.0, 9.0), outside="clip")
    model = cheap(model, kept={} if level == "edge" else {"feature_range": (-9.0, 9.0), "outside": "clip"})
    release = model.fit(small_graph(np.random.default_rng(0))).save(tmp_path / "release")
    assert examine(release).passed
    arrays = load((release / "weights.safetensors").read_bytes())
    numbers = np.zeros((model.public_.num_nodes, model.public_.num_classes))
    with_weights(release, save({**arrays, **{new: arrays.get(old, numbers) for new, old in added.items()}}))
    assert "weights.safetensors" in sentence(release)


def test_weights_of_another_model_are_refused(release: Path) -> None:
    arrays = load((release / "weights.safetensors").read_bytes())
    with_weights(release, save({"edges": np.zeros((2, 2), dtype=np.float32)}))
    assert "does not fit" in sentence(release)
    with_weights(release, save({**arrays, "edges": np.zeros((2, 2), dtype=np.float32)}))
    assert "edges" in sentence(release)
    with_weights(release, b"\xff" * 64)
    assert "arrays" in sentence(release)


# -------------------------------------------------------------------- warnings


def test_it_warns_of_what_is_not_protected(release: Path) -> None:
    (warning,) = examine(release).warnings
    assert "FEATURES AND LABELS ARE NOT PROTECTED" in warning


def test_it_warns_of_a_large_budget(tmp_path: Path) -> None:
    graph = small_graph(np.random.default_rng(0))
    model = GAP(Privacy(EdgeLevel(), 12.0, 0.5), hops=1, epochs=1, hidden=4).fit(graph)
    found = examine(model.save(tmp_path / "release"))
    assert found.passed
    assert [word in " ".join(found.warnings) for word in ("epsilon is 12", "above 1/n")] == [True, True]
