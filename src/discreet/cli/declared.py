"""How options that several commands share are written: names, types and help. ``options`` reads them in groups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.limits import SEED, THREADS

Data = Annotated[
    str,
    typer.Option(help="A dataset by name (see `discreet data`), a .npz file, or a folder with tables or partitions."),
]
DataRoot = Annotated[Path | None, typer.Option("--data-root", help="Where datasets are looked for first.")]
TrustDownload = Annotated[
    bool, typer.Option("--trust-download", help="Download files of a named dataset whose checksum is not known.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="For tables: ROLE=NAME with role source, target, time, weight, id, label, split, features, ignore or "
        "classes; the last three take NAME,NAME,…. full_weight=NUMBER is the weight of a whole edge. Repeatable.",
    ),
]
Threshold = Annotated[
    str | None,
    typer.Option(
        "--threshold",
        help="Decide so that validation nodes do best by balanced-accuracy or macro-f1; where labels are public and "
        "predictions covered.",
    ),
]
Also = Annotated[
    list[str] | None,
    typer.Option(help="Another private graph to predict on, read as --data is; its edges are charged. Repeatable."),
]
BesideMlp = Annotated[
    bool,
    typer.Option(
        "--beside-mlp", help="Fit mlp too, on public features alone, and print its figures beside the model's."
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", help="What columns of tables mean. Default: schema.toml in their folder, if any."),
]
EdgesUntil = Annotated[
    str | None,
    typer.Option("--edges-until", help="For tables: only edges up to this moment, 2024-06-30 for example."),
]
Directed = Annotated[
    bool | None, typer.Option("--directed/--undirected", help="Read edges with their directions, or both ways.")
]
Mmap = Annotated[
    bool, typer.Option("--mmap", help="Leave dense features of a .npz file on disk: they may be larger than memory.")
]
SPLITS = "75/10/15 (per cent), 20/500/1000 (per class, val, test), 80/20:inductive, public, ogb, geom-gcn:0, own."
Split = Annotated[
    str | None,
    typer.Option(
        help=f"{SPLITS} Default: own, where the data bring a split (a column split, say); ogb for graphs of "
        "OGB; else 75/10/15."
    ),
]
SplitOfTraining = Annotated[str | None, typer.Option("--split", help=f"{SPLITS} Default: the split of training.")]
SeedOfTraining = Annotated[
    int | None,
    typer.Option("--seed", min=SEED.low, max=SEED.high, help="Seeds the split. Default: the seed of training."),
]
Seed = Annotated[
    int, typer.Option(min=SEED.low, max=SEED.high, help="Seeds the split and the training, never the privacy noise.")
]
Method = Annotated[str, typer.Option(help="One of `discreet methods`, or auto: see docs/recommend.md.")]
LevelSpec = Annotated[
    str, typer.Option("--level", help="What is protected: none, edge, edge:directed, neighbor:K, node:…, local.")
]
Epsilon = Annotated[float | None, typer.Option(help="Privacy budget. Default: 4, or inf at --level none.")]
Delta = Annotated[str, typer.Option(help="A number, or auto: from the public number of nodes.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="A parameter of the method, KEY=VALUE. Repeatable.")]
Preset = Annotated[
    str, typer.Option(help="Whose defaults: discreet, or paper (for a method that is named after a paper).")
]
Device = Annotated[str, typer.Option(help="cpu or cuda.")]
Threads = Annotated[
    int | None,
    typer.Option(min=THREADS.low, max=THREADS.high, help="Threads that torch may use. Default: torch decides."),
]
Workers = Annotated[int, typer.Option(min=0, max=THREADS.high, help="Worker processes; 0 works in this one.")]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output, everything else on standard error.")
]
DataName = Annotated[str | None, typer.Option("--data-name", help="What to call the data in the certificate.")]
Purpose = Annotated[str | None, typer.Option(help="What the release is for, in one line, for the certificate.")]
Issuer = Annotated[str | None, typer.Option(help="Who answers for the release, for the certificate.")]
PrivateFigures = Annotated[
    bool,
    typer.Option("--private-figures", help="Measure on private labels too: for the holder's eyes, not covered."),
]
Metric = Annotated[
    str,
    typer.Option(help="accuracy, balanced-accuracy, micro-f1, macro-f1, roc-auc or pr-auc: see docs/evaluating.md."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks; they may hold private values.")]
LogLevel = Annotated[
    str, typer.Option("--log-level", help="What to say on standard error: debug, info, warning or error.")
]
LogJson = Annotated[bool, typer.Option("--log-json", help="Log lines as JSON objects.")]
OF_ALL = (("debug", False, Debug), ("log_level", "info", LogLevel), ("log_json", False, LogJson))
"""The options of every command, with their defaults."""
Release = Annotated[Path, typer.Argument(help="A folder that `discreet train --out` wrote.")]
