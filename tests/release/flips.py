"""``python -m tests.release.flips``: a bit of every byte of three releases, which ``verify`` must notice.

Two releases of schema 1 as version 0.1 wrote them, and a fresh one that is signed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from discreet.audit.small_graphs import small_graph
from discreet.methods.gap.estimator import GAP
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel
from discreet.release.signature import new_key, sign
from discreet.release.verify import examine

STORED = Path(__file__).parent / "stored"


def flips(folder: Path, name: str, step: int = 1) -> Iterator[tuple[int, bool]]:
    """Each place of a file, and whether a flip there is noticed in one line; which bit goes round."""
    content = (folder / name).read_bytes()
    for place in range(0, len(content), step):
        spoilt = bytearray(content)
        spoilt[place] ^= 1 << (place // step % 8)
        (folder / name).write_bytes(spoilt)
        failed = [check for check in examine(folder).checks if not check.passed]
        yield place, bool(failed) and all("\n" not in check.detail for check in failed)
    (folder / name).write_bytes(content)


def three_releases(place: Path) -> Iterator[Path]:
    """Copies of two stored releases, and a new one."""
    for name in ("gap-edge", "gap-node"):
        yield shutil.copytree(STORED / name, place / name)
    graph = small_graph(np.random.default_rng(0))
    fresh = GAP(Privacy(EdgeLevel(), 2.0), hops=2, epochs=1, hidden=4).fit(graph).save(str(place / "fresh"))
    new_key(place / "key")
    sign(fresh, place / "key")
    yield fresh


def flip_all() -> int:
    """A row for each file; 1 where a flip passed."""
    total = missed = 0
    with tempfile.TemporaryDirectory(prefix="flips-") as place:
        for folder in three_releases(Path(place)):
            assert examine(folder).passed, f"{folder.name} fails as it is, so that flips would show nothing"
            for path in sorted(folder.iterdir()):
                found = list(flips(folder, path.name))
                passed = [spot for spot, noticed in found if not noticed]
                print(f"{folder.name:16} {path.name:20} {len(found):>6} bytes, passed: {passed or 'none'}", flush=True)
                total, missed = total + len(found), missed + len(passed)
    print(f"{total} flips, {missed} passed")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(flip_all())
