"""``python -m tests.release.flips [NAME]…``: a bit of every byte of four releases, which everything must notice.

Two releases of schema 1 as version 0.1 wrote them, and two fresh ones that are signed, one of them with an encoder in
words, weights of classes and a purpose. ``verify`` and ``predict`` (which loads it) have to refuse each.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

from discreet.audit.small_graphs import small_graph
from discreet.cli import main
from discreet.methods.dp_gnn.estimator import DPGNN
from discreet.methods.gap.estimator import GAP
from discreet.privacy.budget import Privacy
from discreet.privacy.certificate import Statement
from discreet.privacy.levels import EdgeLevel, NodeLevel
from discreet.release.signature import new_key, sign
from discreet.release.verify import examine

STORED = Path(__file__).parent / "stored"


def noticed_by_verify(folder: Path) -> bool:
    """A check failed, and each that did says so in one line."""
    failed = [check for check in examine(folder).checks if not check.passed]
    return bool(failed) and all("\n" not in check.detail for check in failed)


def noticed_by_all(folder: Path) -> bool:
    """It does not verify, nothing predicts with it, and nothing is written."""
    said, out = io.StringIO(), folder.with_name("predictions.csv")
    with redirect_stderr(said), redirect_stdout(said):
        code = main(["predict", str(folder), "--data", str(STORED / "graph.npz"), "--out", str(out)])
    refused = code in (1, 2) and "this is not a sound release" in said.getvalue() and not out.exists()
    return refused and noticed_by_verify(folder)


def flips(
    folder: Path, name: str, step: int = 1, noticed: Callable[[Path], bool] = noticed_by_verify
) -> Iterator[tuple[int, bool]]:
    """Each place of a file, and whether a flip there is noticed; which bit goes round."""
    content = (folder / name).read_bytes()
    for place in range(0, len(content), step):
        spoilt = bytearray(content)
        spoilt[place] ^= 1 << (place // step % 8)
        (folder / name).write_bytes(spoilt)
        yield place, noticed(folder)
    (folder / name).write_bytes(content)


def _gap(folder: Path) -> Path:
    graph = small_graph(np.random.default_rng(0))
    return GAP(Privacy(EdgeLevel(), 2.0), hops=2, epochs=1, hidden=4).fit(graph).save(str(folder))


def _dp_gnn(folder: Path) -> Path:
    graph = small_graph(np.random.default_rng(0))
    model = DPGNN(
        Privacy(NodeLevel(max_degree=2), 2.0),
        encoder=("linear 3", "relu"),
        class_weight={"0": 2.0},
        steps=2,
        hidden=3,
    )
    return model.fit(graph).save(str(folder), statement=Statement(purpose="a test", issuer="tests"))


def _signed(folder: Path) -> Path:
    key = folder.with_name(f"{folder.name}.key")
    new_key(key)
    sign(folder, key)
    return folder


RELEASES: dict[str, Callable[[Path], Path]] = {
    "gap-edge": lambda folder: shutil.copytree(STORED / "gap-edge", folder),
    "gap-node": lambda folder: shutil.copytree(STORED / "gap-node", folder),
    "gap-signed": lambda folder: _signed(_gap(folder)),
    "dp-gnn-signed": lambda folder: _signed(_dp_gnn(folder)),
}


def flip_all(names: list[str]) -> int:
    """A row for each file; 1 where a flip passed."""
    total = missed = 0
    with tempfile.TemporaryDirectory(prefix="flips-") as place:
        for name in names:
            folder = RELEASES[name](Path(place) / name)
            assert examine(folder).passed, f"{name} fails as it is, so that flips would show nothing"
            for path in sorted(folder.iterdir()):
                found = list(flips(folder, path.name, noticed=noticed_by_all))
                passed = [spot for spot, noticed in found if not noticed]
                print(f"{name:16} {path.name:20} {len(found):>6} bytes, passed: {passed or 'none'}", flush=True)
                total, missed = total + len(found), missed + len(passed)
    print(f"{total} flips, {missed} passed")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(flip_all(sys.argv[1:] or list(RELEASES)))
