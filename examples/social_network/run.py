"""A friendship graph at node level: every person is protected with all that is known of them, and gets a prediction.

python examples/social_network/run.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import discreet

PEOPLE, FRIENDS = 3000, 20.0


def main() -> None:
    """Plan, train, release, verify, and give every person their own prediction."""
    # The graph is generated, so its classes are known beforehand. With tables of your own, schema.toml declares them:
    # at node level nothing about classes, ranges or categories may be read from the data.
    graph = discreet.split(discreet.csbm(PEOPLE, average_degree=FRIENDS, phi=0.75, seed=1), "75/10/15", seed=0)

    # One person: features, label, and the friendships that they declared, at most 20 of which are kept.
    level = discreet.NodeLevel(max_degree=20)
    model = discreet.HopBayes(discreet.Privacy(level, epsilon=8.0))
    print(model.plan(graph.public))

    model.fit(graph)
    with tempfile.TemporaryDirectory() as folder:
        release = Path(folder) / "release"
        model.save(release)
        assert all(check.passed for check in discreet.verify(release))
        print(f"verified: {sorted(path.name for path in release.iterdir())}")

        # A prediction reads the person's own features: it belongs to that person, and to nobody else.
        probabilities = discreet.load_release(release).predict_proba(graph, audience="owner")
    me = int(np.flatnonzero(graph.test_mask)[0])
    print(
        f"person {me} is told: class {int(probabilities[me].argmax())}, with probability {probabilities[me].max():.2f}"
    )


if __name__ == "__main__":
    main()
