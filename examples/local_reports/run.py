"""Records that never leave their devices: every device reports once, and a server learns from reports and public edges.

python examples/local_reports/run.py
"""

from __future__ import annotations

import numpy as np

import discreet
from discreet import local

CLASSES, EPSILON_FEATURES, EPSILON_LABEL = 2, 4.0, 2.0


def device(record: np.ndarray, label: int) -> tuple[np.ndarray, int]:
    """What one device sends, once: its noise comes from its own operating system."""
    report = local.encode(record, feature_range=(0, 1), epsilon=EPSILON_FEATURES)
    return report, local.encode_label(label, num_classes=CLASSES, epsilon=EPSILON_LABEL)


def server(sources: np.ndarray, targets: np.ndarray, reports: np.ndarray, labels: np.ndarray) -> discreet.LPGNN:
    """Learn from what arrived. No further noise is drawn, and nothing else is ever read."""
    graph = discreet.Graph.from_edges(sources, targets, reports, labels, directed=False, num_classes=CLASSES)
    graph = discreet.split(graph, "50/25/25", seed=0)
    privacy = discreet.Privacy(discreet.LocalLevel(), epsilon=EPSILON_FEATURES + EPSILON_LABEL)
    model = discreet.LPGNN(privacy, feature_range=(0, 1), epsilon_x=EPSILON_FEATURES, reports="received")
    model.fit(graph)
    print(model.plan_)
    return model


def main() -> None:
    """Play the devices, then the server."""
    people = discreet.csbm(1000, num_features=16, average_degree=12, phi=0.5, seed=1)  # who knows whom is public here
    scores = np.asarray(people.features, dtype=np.float64)
    records = np.clip((scores + 1) / 2, 0, 1)  # every device knows the range [0, 1] beforehand
    sent = [device(record, int(label)) for record, label in zip(records, people.labels, strict=True)]
    edges = people.adjacency.tocoo()
    model = server(edges.row, edges.col, np.stack([row for row, _ in sent]), np.array([label for _, label in sent]))
    print(f"the server's model has {model.public_.num_classes} classes, from {len(sent)} reports")


if __name__ == "__main__":
    main()
