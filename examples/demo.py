"""The first two minutes with Discreet: plan, train, compare, release, verify. Needs no data file.

python examples/demo.py --out runs/demo
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import discreet
from discreet.errors import DiscreetError
from discreet.training.descent import Progress


def progress_bar() -> Progress:
    """A line that fills up, on a terminal; nothing elsewhere."""

    def show(title: str, done: int, total: int) -> None:
        if sys.stderr.isatty():
            filled = 30 * done // total
            end = "\n" if done == total else ""
            print(f"\r  {title:10} [{'#' * filled}{' ' * (30 - filled)}]", end=end, file=sys.stderr, flush=True)
        elif done == total:
            print(f"  {title}: {total} epochs", flush=True)

    return show


def fresh_folder(wanted: Path) -> Path:
    """The folder asked for, or the next free name beside it: a release is never overwritten."""
    candidates = (wanted if number == 0 else wanted.with_name(f"{wanted.name}-{number}") for number in range(10_000))
    return next(folder for folder in candidates if not folder.exists())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="csbm", help="a dataset by name; csbm is generated")
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    options = parser.parse_args()

    print("1. A graph whose edges are private: who is linked to whom must not leak.")
    graph = discreet.split(discreet.load(options.data), "75/10/15", options.seed)
    print(f"  {graph}\n")

    print("2. What training will ask of the edges, and what it costs, before it looks at any.")
    privacy = discreet.Privacy(discreet.EdgeLevel(directed=graph.directed), options.epsilon)
    model = discreet.GAP(privacy, random_state=options.seed)
    print(model.plan(graph.public), "\n")

    print("3. Training.")
    model.fit(graph, progress=progress_bar())
    baseline = discreet.MLPClassifier(privacy, random_state=options.seed).fit(graph)
    print(f"  test accuracy: gap {model.score(graph):.3f}, mlp {baseline.score(graph):.3f} (the same split, no edges)")
    print("  (accuracy on private data is a research figure, outside the guarantee)")
    print(f"  epsilon spent: {model.epsilon_spent_:.6g} of {options.epsilon:g} at delta {model.plan_.delta:g}\n")

    print("4. The release, with a certificate that anyone can check.")
    folder = fresh_folder(options.out)
    model.save(str(folder))
    checks = discreet.verify(folder)
    for check in checks:
        print(f"  {'ok  ' if check.passed else 'FAIL'} {check.name:20} {check.detail}")
    print(f"\nThe release is in {folder}; read {folder / 'card.md'}, and check it with: discreet verify {folder}")
    return 0 if all(check.passed for check in checks) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DiscreetError as error:
        sys.exit(f"demo: {error}")
