"""What public facts decide where records are private: shares, and the kind of node model."""

from __future__ import annotations

import pytest

from discreet.errors import UnsupportedError
from discreet.graph.graph import PublicFacts
from discreet.methods.hop_bayes.estimator import HopBayes
from discreet.methods.hop_bayes.stages import NODE_MODEL
from discreet.ops.rows import LENGTH_COLUMNS
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import NodeLevel


def model(epsilon: float = 1.0, **parameters: object) -> HopBayes:
    return HopBayes(Privacy(NodeLevel(), epsilon), **parameters)  # type: ignore[arg-type]


def test_the_split_follows_what_is_public() -> None:
    facts = PublicFacts(10_000, 20, 5, 7000, True, 1000)

    def evidence(degree: int, epsilon: float) -> float:
        found = HopBayes(Privacy(NodeLevel(degree), epsilon))._budget(facts).shares
        assert sum(found.values()) == pytest.approx(1)
        return found.get("evidence", 0.0)

    assert evidence(100, 4) > evidence(10, 4) > evidence(10, 1) > evidence(10, 0.5) == 0
    given = HopBayes(Privacy(NodeLevel(), 1.0), split=(1.0, 3.0))._budget(facts).shares
    assert given["evidence"] == pytest.approx(3 * given[NODE_MODEL])


def test_few_labels_for_many_parameters_get_a_linear_map() -> None:
    few, many = PublicFacts(3000, 1500, 7, 2000, True, 300), PublicFacts(30_000, 50, 3, 20_000, True, 3000)
    for facts, linear, rate in ((few, True, 0.05), (many, False, 0.02)):
        assert model(4.0)._budget(facts).model.is_linear is linear
        assert model(4.0)._budget(facts).learning_rate == rate
        assert model(4.0, linear=not linear)._budget(facts).model.is_linear is not linear
    assert model(step_size=0.3)._budget(few).learning_rate == 0.3
    width = (few.num_features + LENGTH_COLUMNS + 1) * few.num_classes
    assert model().plan(few).stage(NODE_MODEL).shape == (width,)


def test_sums_that_cannot_be_proved_are_refused_at_plan() -> None:
    """The node model's as every network's: over so many training ids rounding could exceed what is set aside."""
    facts = PublicFacts(900_000_000, 20, 5, 800_000_000, True, 0)
    for linear in (True, False):
        with pytest.raises(UnsupportedError, match="fewer training nodes"):
            model(linear=linear).plan(facts)
