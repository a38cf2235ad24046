"""The manifest of a graph in partitions: what is known of it without opening any (see ``graph.partitions``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.errors import GraphError, InvalidInputError
from discreet.files import read_text
from discreet.graph.clean import check_edge_count, check_sizes
from discreet.graph.manifest_form import check_manifest

FORMAT, VERSION, MANIFEST = "discreet partitions", 1, "manifest.json"


@dataclass(frozen=True)
class StoredBlock:
    """Nodes ``first`` to ``first + nodes``, how many entries reach them, and the digests of their files."""

    number: int
    first: int
    nodes: int
    entries: int = field(repr=False)  # workers' logs show what they were given, and this is private
    digests: Mapping[str, str] = field(repr=False)

    @property
    def rows(self) -> slice:
        """Where the nodes of the block stand among all."""
        return slice(self.first, self.first + self.nodes)

    @property
    def edges_file(self) -> str:
        """The name of the file with entries."""
        return f"edges-{self.number:05d}.parquet"

    @property
    def nodes_file(self) -> str:
        """The name of the file with nodes."""
        return f"nodes-{self.number:05d}.parquet"


@dataclass(frozen=True)
class Manifest:
    """What is known of a graph in partitions without opening any of them."""

    name: str
    num_nodes: int
    num_features: int
    num_classes: int
    directed: bool
    sparse: bool
    blocks: tuple[StoredBlock, ...]
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    splits: tuple[str, ...] = ()
    inferred: tuple[str, ...] = ()
    split_reads_labels: bool = False
    weighted: bool = False
    schema: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        blocks = [
            {"first": b.first, "nodes": b.nodes, "entries": b.entries, "sha256": dict(b.digests)} for b in self.blocks
        ]
        return {"format": FORMAT, "version": VERSION, **self.__dict__, "blocks": blocks}

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a folder, or one sentence about what is wrong with it."""
        path = folder / MANIFEST
        try:
            given = json.loads(read_text(path, "manifest of partitions"))
        except (ValueError, RecursionError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise GraphError(f"{path} is not valid JSON, which a manifest of partitions is") from None
        if not isinstance(given, dict) or (given.pop("format", None), given.pop("version", None)) != (FORMAT, VERSION):
            raise GraphError(f"{path} is not a manifest of partitions that this release reads")
        check_manifest(given, str(path))
        blocks = tuple(
            StoredBlock(number, b["first"], b["nodes"], b["entries"], b["sha256"])
            for number, b in enumerate(given.pop("blocks"))
        )
        lists = {key: tuple(value) for key, value in given.items() if isinstance(value, list)}
        made = cls(blocks=blocks, **{**given, **lists})
        made._check()
        return made

    def _check(self) -> None:
        """Blocks follow one another and hold all nodes, and scores of them fit into memory."""
        check_sizes(self.num_nodes, self.num_classes)
        check_edge_count(sum(block.entries for block in self.blocks))
        ends = [0, *(block.rows.stop for block in self.blocks)]
        if any(block.first != end for block, end in zip(self.blocks, ends, strict=False)) or ends[-1] != self.num_nodes:
            raise GraphError("the blocks of the manifest do not hold every node once, in order")
