"""Arguments of any type to estimators and to what works with them: refused before a private query, or stored right."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import discreet
from discreet import GAP, EdgeLevel, NodeLevel, Privacy
from discreet.errors import DiscreetError, ParameterError, PrivacyError

PRIVACY = Privacy(EdgeLevel(), 2.0)


@pytest.fixture(scope="module")
def graph() -> discreet.Graph:
    made = discreet.csbm(num_nodes=30, num_features=4, average_degree=4, phi=0.2, epsilon=0.5)
    return discreet.split(made, "50/25/25")


def small(**settings: Any) -> GAP:
    return GAP(PRIVACY, **{"hidden": 4, "epochs": 1, **settings})


@pytest.fixture(scope="module")
def fitted(graph: discreet.Graph) -> GAP:
    return small().fit(graph)


def test_a_fit_with_numbers_of_numpy_can_be_saved(graph: discreet.Graph, tmp_path: Path) -> None:
    """A fit whose settings a release cannot hold would be paid for and lost."""
    weight = {"0": np.float32(2)}
    model = small(learning_rate=np.float32(0.01), hidden=np.int64(4), class_weight=weight, random_state=np.uint64(1))
    folder = model.fit(graph).save(tmp_path / "release")
    again = discreet.load_release(folder)
    assert np.array_equal(again.predict(graph), model.predict(graph))
    assert type(model.learning_rate) is float
    assert again.learning_rate == float(np.float32(0.01))


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": Decimal("0.01")},
        {"learning_rate": torch.tensor(0.01)},
        {"learning_rate": np.array(0.01)},
        {"class_weight": {"0": Decimal(2)}},
        {"class_weight": np.array([1.0, 2.0])},
        {"preset": []},
        {"preset": np.array(["paper", "discreet"])},
        {"compute": discreet.Compute(device=b"x")},  # type: ignore[arg-type]
        {"compute": discreet.Compute(device=1.5)},  # type: ignore[arg-type]
    ],
)
def test_settings_that_no_release_can_hold(settings: dict[str, Any], graph: discreet.Graph) -> None:
    with pytest.raises(DiscreetError):
        small(**settings).fit(graph)


@pytest.mark.parametrize("directed", ["undirected", "", 1, None, [True]])
def test_a_word_is_no_direction(directed: Any) -> None:
    """``EdgeLevel("undirected")`` would have been directed, with the smaller sensitivity."""
    with pytest.raises(PrivacyError, match="True or False"):
        EdgeLevel(directed)


@pytest.mark.parametrize("option", ["public", "uncovered"])
@pytest.mark.parametrize("given", ["no", 1, None, [0]])
def test_a_word_opens_no_guarantee(option: str, given: Any, fitted: GAP, graph: discreet.Graph) -> None:
    with pytest.raises(ParameterError, match="True or False"):
        fitted.predict(graph, **{option: given})


BUDGETS: list[dict[str, Any]] = [{"epsilon": 10**400}, {"epsilon": 1.0, "delta": np.array([1, 2])}]


@pytest.mark.parametrize("budget", BUDGETS)
def test_budgets_that_are_none(budget: dict[str, Any]) -> None:
    with pytest.raises(PrivacyError):
        Privacy(EdgeLevel(), **budget)


@pytest.mark.parametrize("words", [{"edges": np.array(["owned", "x"])}, {"change": []}])
def test_words_of_levels(words: dict[str, Any]) -> None:
    with pytest.raises(PrivacyError):
        NodeLevel(5, **words)


@pytest.mark.parametrize(
    "call",
    [
        lambda model, graph: small().fit(graph, extra_graphs=3),
        lambda model, graph: small().fit(graph, progress="x"),
        lambda model, graph: model.extend(graph, None),
        lambda model, graph: model.save(None),
        lambda model, graph: model.save("a\0b"),
        lambda model, graph: model.save("release", statement="x"),
        lambda model, graph: model.predict(graph, audience=np.array(["owner", "anyone"])),
        lambda model, graph: discreet.evaluate(None, graph),
        lambda model, graph: discreet.evaluate(model, None),
        lambda model, graph: discreet.evaluate(model, graph, np.array([1, 2])),
        lambda model, graph: discreet.certified_figures(model, graph, 1.0, bins="x"),
        lambda model, graph: discreet.certified_figures(model, graph, 1.0, bins=10**9),
        lambda model, graph: discreet.certified_figures(model, graph, 1.0, insecure_noise_seed="x"),
        lambda model, graph: discreet.tune("gap", [{"hidden": 4}], graph),
        lambda model, graph: discreet.tune(small(), [{"hidden": 4}], graph, trials="x"),
        lambda model, graph: discreet.tune(small(), [{"hidden": 4}], graph, trials=10**400),
        lambda model, graph: discreet.tune(small(), [{"hidden": 4}], graph, score_noise="x"),
        lambda model, graph: discreet.tune(small(), [{"hidden": 4}], graph, reserve=3),
        lambda model, graph: discreet.tune(small(), [{"hidden": 4}], graph, accounted="no"),
        lambda model, graph: discreet.replay_audit(None, lambda rng: graph, pairs=1),
        lambda model, graph: discreet.replay_audit(small(), graph, pairs=1),
        lambda model, graph: discreet.replay_audit(small(), lambda rng: 3, pairs=1),
        lambda model, graph: discreet.replay_audit(small(), lambda rng: graph, pairs="x"),
    ],
)
def test_calls_that_take_no_such_thing(
    call: Callable[[GAP, discreet.Graph], Any], fitted: GAP, graph: discreet.Graph
) -> None:
    with pytest.raises(DiscreetError):
        call(fitted, graph)


def test_more_features_than_memory_are_refused_before_the_fit() -> None:
    import scipy.sparse as sp

    masks = {"train_mask": [0, 1], "val_mask": [2], "test_mask": [3]}
    wide = discreet.Graph.from_edges(
        [0], [1], sp.csr_array((4, 2**40)), [0, 1, 0, 1], directed=False, num_classes=2, **masks
    )
    with pytest.raises(DiscreetError, match="GiB"):
        small().fit(wide)
