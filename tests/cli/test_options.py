"""What commands share: the same options, and one rule for splits."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from discreet.cli import app
from discreet.cli.options import ComputeOptions, DataOptions, GraphOptions, MethodOptions
from discreet.errors import DiscreetError
from discreet.graph import splits
from discreet.privacy.levels import parse_level
from tests.cli.helpers import refused, run

GRAPH = {
    *("--data", "--data-root", "--column", "--schema", "--directed", "--undirected", "--edges-until"),
    "--trust-download",
}
SPLIT = {"--split", "--seed"}
METHOD = {"--method", "--level", "--epsilon", "--delta", "--set", "--seed"}
COMPUTE = {"--device", "--threads"}
SHARED = {
    "train": GRAPH | SPLIT | METHOD | COMPUTE,
    "plan": GRAPH | SPLIT | METHOD | COMPUTE,
    "tune": GRAPH | SPLIT | METHOD | COMPUTE,
    "predict": GRAPH | COMPUTE,  # a release brings its method and its guarantee
    "evaluate": GRAPH | SPLIT | COMPUTE,
    "extend": GRAPH | COMPUTE,
    "audit": METHOD | COMPUTE,  # on graphs of its own
    "bench": {"--data-root"},  # a suite brings the rest
    "data": {"--data-root", "--column", "--schema", "--directed", "--edges-until", "--level"},
    "doctor": {"--data-root"},
    "methods": set(),
    "verify": set(),
    "attack": GRAPH | SPLIT | METHOD | COMPUTE,
    "ledger": set(),
    "report": set(),
    "sign": set(),
    "export": set(),
}
METHODS = {"none": "mlp", "edge": "mlp", "neighbor": "dp-mlp", "node": "dp-mlp", "local": "lpgnn"}
LEVELS = [
    *("none", "edge", "edge:directed", "neighbor:2", "neighbor:2,max_degree=5", "node", "node:owned,max_degree=5"),
    *("local", "local:features", "local:labels"),
]


def names(command: str) -> dict[str, Any]:
    """The options of a command with what says how each is read."""
    found = typer.main.get_command(app).commands[command].params  # type: ignore[attr-defined]
    return {name: option for option in found for name in (*option.opts, *option.secondary_opts)}


def test_every_command_is_in_the_table() -> None:
    assert set(SHARED) == set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", SHARED)
def test_commands_take_the_shared_options(command: str) -> None:
    assert SHARED[command] | {"--json"} <= names(command).keys()


def test_shared_options_have_one_type() -> None:
    train = names("train")
    for command, shared in SHARED.items():
        for option in shared:
            assert names(command)[option].bare_type() == train[option].bare_type(), (command, option)


def test_groups_read_what_they_name() -> None:
    assert GraphOptions("csbm").read().num_nodes == 2000
    assert DataOptions(split="50/25/25").load(parse_level("edge")).mask("train").sum() == 1000
    assert ComputeOptions("cpu", 1).prepare().threads == 1
    options = MethodOptions("mlp", "edge", 2.0, "1e-6", ["hidden=7"], seed=5)
    estimator = options.estimator()
    assert estimator.get_params(deep=False)["hidden"] == 7
    assert estimator.random_state == 5
    assert estimator.privacy is not None
    assert (estimator.privacy.epsilon, estimator.privacy.delta) == (2.0, 1e-6)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("command", ["train", "plan", "tune"])
def test_a_split_that_reads_labels_is_refused_where_they_are_private(
    command: str, level: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(*_: object) -> None:
        raise DiscreetError("the split was made")

    monkeypatch.setattr(splits, "split", made)  # far enough: what comes after is not about the rule
    parsed = parse_level(level)
    options = ["--method", METHODS[parsed.kind], "--level", level, "--epsilon", "inf" if level == "none" else "2"]
    searched = ["--search", "hidden=4,6"] if command == "tune" else []
    code, out, err = run(capsys, command, *options, *searched, "--split", "20/100/100")
    assert out == ""
    if "labels" in parsed.private:
        assert (code, "looking at labels" in err) == (2, True), err
    else:
        assert (code, "the split was made" in err) == (1, True), err
    assert run(capsys, command, *options, *searched, "--split", "75/10/15")[0] == 1


def test_which_levels_protect_labels() -> None:
    assert [level for level in LEVELS if "labels" in parse_level(level).private] == [
        *("neighbor:2", "neighbor:2,max_degree=5", "node", "node:owned,max_degree=5", "local", "local:labels")
    ]


def test_values_that_the_parser_refuses_are_explained_in_plain_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert "'--epsilon': it must be a number" in refused(capsys, "plan", "--epsilon", "2,5")
    assert "'--seed': it must be a whole number" in refused(capsys, "plan", "--seed", "one")
    assert "'--seed': it must be greater than or equal to 0" in refused(capsys, "plan", "--seed", "-1")
