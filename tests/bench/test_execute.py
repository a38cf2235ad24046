"""A benchmark goes through the same doors as ``train`` and ``predict``."""

from __future__ import annotations

import pytest

from discreet.bench.execute import execute
from discreet.bench.trials import Trial, expand
from discreet.errors import UnsupportedError
from tests.bench.helpers import suite

NODE = "node:owned,max_degree=3"
LOOKS = ("public", "geom-gcn:3", "20/500/1000")


def trial(method: str, level: str, split: str, **settings: object) -> Trial:
    graph = "csbm:num_nodes=60,num_features=4,average_degree=4"
    return Trial(graph, split, method, level, 2.0, 1e-3, {"hidden": 4, **settings}, 0)


@pytest.mark.parametrize("split", LOOKS)
@pytest.mark.parametrize("level", [NODE, "neighbor:2,max_degree=3", "local", "local:labels"])
def test_splits_that_look_at_labels_are_refused_before_anything_runs(level: str, split: str) -> None:
    method = "lpgnn" if level.startswith("local") else "dp-mlp"
    ranged = "settings = { feature_range = [0.0, 1.0] }" if method == "lpgnn" else ""
    text = f"""
        title = "doors"
        datasets = ["cora"]
        split = "{split}"
        [[cases]]
        method = "{method}"
        level = "{level}"
        epsilon = 1
        {ranged}
    """
    with pytest.raises(UnsupportedError, match="looking at labels"):
        expand(suite(text, "doors"))
    assert expand(suite(text.replace(level, "edge").replace(method, "mlp").replace(ranged, ""), "doors"))


def test_such_a_trial_fails_where_it_is_run_past_the_check() -> None:
    """The graph remembers how it was split, whoever made the trial."""
    row = execute(trial("dp-mlp", NODE, "5/10/10", steps=1), None)
    assert (row["status"], row.get("metrics")) == ("failed", None)
    assert "looking at labels" in row["reason"]


def test_a_model_for_other_graphs_gives_a_row_of_scores_and_nothing_else() -> None:
    """With disjoint inference no prediction on the training graph is covered: none leaves, and the row says so."""
    row = execute(trial("dp-gnn", NODE, "50/25/25", inference="disjoint", steps=1), None)
    assert (row["status"], row["covers"]) == ("ok", "weights"), row["reason"]
    assert all(isinstance(figure, float) for scores in row["metrics"].values() for figure in scores.values())
