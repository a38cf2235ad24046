"""``discreet data``: the graphs that have a name."""

from __future__ import annotations

from discreet.cli.options import DataRoot, Json
from discreet.cli.output import print_rows

SHOWN = ("name", "nodes", "edges", "features", "classes", "status")


def data(data_root: DataRoot = None, as_json: Json = False) -> None:
    """List the datasets that have a name, with their statistics, and whether their files are here."""
    from discreet.graph.datasets import available

    print_rows([{key: getattr(row, key) for key in SHOWN} for row in available(data_root)], as_json)
