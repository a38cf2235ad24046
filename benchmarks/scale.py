"""Edge-level GAP on a large synthetic graph: seconds and peak memory of each part.

python benchmarks/scale.py --nodes 2400000 --edges 62000000
"""

from __future__ import annotations

import argparse
import resource
import time

import discreet
from discreet.graph.synthetic import scale_free


def report(what: str, started: float) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what:12} {time.perf_counter() - started:8.1f} s   peak {peak:5.1f} GiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=240_000)
    parser.add_argument("--edges", type=int, default=6_200_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=4096)
    options = parser.parse_args()
    started = time.perf_counter()
    graph = scale_free(options.nodes, options.edges, options.features)
    report("generate", started)
    started = time.perf_counter()
    graph = discreet.split(graph, "75/10/15", 0)
    model = discreet.GAP(
        discreet.Privacy(discreet.EdgeLevel(), 1.0), epochs=options.epochs, batch_size=options.batch_size
    )
    model.fit(graph)
    report("fit", started)
    started = time.perf_counter()
    accuracy = model.score(graph)
    report("predict", started)
    print(f"{graph}\ntest accuracy {accuracy:.3f} at epsilon {model.epsilon_spent_:g}")


if __name__ == "__main__":
    main()
