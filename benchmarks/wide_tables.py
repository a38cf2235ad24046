"""How long a wide node table takes to read, and how much memory: time must grow with the number of cells, no faster.

    python benchmarks/wide_tables.py                    # 10,000 rows × 50,000 columns, within 60 s and 8 GiB
    python benchmarks/wide_tables.py 1000 8000          # rows, columns

Each size is read in a fresh process. The cells are word counts: mostly 0, some with a fraction.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from discreet.graph import load_path


def write_tables(folder: Path, rows: int, columns: int) -> None:
    """A ring of nodes whose features are word counts."""
    rng = np.random.default_rng(0)
    with (folder / "nodes.csv").open("wb") as file:
        file.write(",".join(["id", *(f"w{place}" for place in range(columns)), "label"]).encode() + b"\n")
        for row in range(rows):
            cells = np.full(columns, b"0", dtype="S4")
            cells[rng.integers(0, columns, columns // 50)] = b"1"
            cells[rng.integers(0, columns, columns // 100)] = b"0.25"
            file.write(f"n{row},".encode() + b",".join(cells.tolist()) + f",{'ab'[row % 2]}\n".encode())
    edges = "".join(f"n{row},n{(row + 1) % rows}\n" for row in range(rows))
    (folder / "edges.csv").write_text(f"source,target\n{edges}")


def main() -> None:
    """Write, read in a fresh process, report."""
    if sys.argv[1:2] == ["read"]:
        started = time.perf_counter()
        graph = load_path(sys.argv[2])
        seconds = time.perf_counter() - started
        print(f"{graph}: {seconds:.1f} s, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
        return
    rows, columns = (int(text) for text in sys.argv[1:3]) if len(sys.argv) > 2 else (10_000, 50_000)
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder), rows, columns)
        subprocess.run([sys.executable, __file__, "read", folder], check=True)


if __name__ == "__main__":
    main()
