"""Inputs from a seed: each grammar makes valid inputs too, so that what lies behind the first check is reached.

A section is a function ``(rng) -> (arguments, prepare)``. Options come from the commands' own declarations.
"""

from __future__ import annotations

import atexit
import io
import json
import random
import shutil
import string
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import typer

from discreet.cli import app, main
from discreet.graph import csbm
from discreet.graph.io import save_npz
from discreet.methods.parameters import schema
from discreet.methods.registry import list_methods, load_method

Prepare = Callable[[Path], None]
Case = tuple[list[str], Prepare]
Random = random.Random

SMALL = csbm(num_nodes=24, num_features=3, average_degree=4, phi=0.2, epsilon=0.5)
QUICK = ["--set", "epochs=1", "--set", "hidden=4"]
WHOLE = ["0", "1", "2", "3", "-1", str(2**31), str(2**63), str(2**64), "9" * 5000, "1.5", "", "x", "1e3", "0x10", "١"]
REAL = [
    "0",
    "1",
    "0.5",
    "2.5",
    "-1",
    "nan",
    "inf",
    "-inf",
    "1e300",
    "1e-300",
    "1e400",
    "1e5",
    "9" * 400,
    "",
    "x",
    "1_0",
]
WORDS = [
    *("", "x", "auto", "none", "null", "true", "[]", "{}", "a=b", "=", ",", ":", "..", "/", "\0", "\x1b[2J", "\udcff"),
    *("x" * 5000, "[" * 3000, "ε", "%s", "-", "--", "~", "$HOME", "1/2", "a,b", "..:..", "\n", " "),
]
NUMBERS = ["0", "1", "2", "-1", "0.5", "1e300", "-1e300", "NaN", "Infinity", str(2**31), str(2**70), "9" * 5000]
VALUES = [*NUMBERS, "null", "true", '"word"', "[]", "[1, 2]", "[[1]]", "{}", "[" * 3000, "word", "", "inf", '"inf"']
LEVELS = [
    *("none", "edge", "edge:directed", "neighbor:2", "neighbor:2,max_degree=5", "node", "node:owned,max_degree=5"),
    *("node:promised,max_degree=9", "node:thinned,d_max=9,p=0.5", "local", "local:labels", "local:features"),
]
SPLITS = [
    "75/10/15",
    "50/25/25",
    "100/0/0",
    "2/4/4",
    "80/20:inductive",
    "public",
    "geom-gcn:0",
    "0/50/50",
    "33.3/33.3/33.4",
]
# Words that an option of this name takes, beside the hostile ones.
KNOWN: dict[str, list[str]] = {
    "level": LEVELS,
    "split": SPLITS,
    "method": [*list_methods(), "auto"],
    "data": ["graph.npz", "tables", "csbm", "fb100:X", "missing.npz", "file"],
    "device": ["cpu", "cuda", "meta", "cpu:0"],
    "delta": ["auto", "1e-5", *REAL],
    "search": ["hidden=4,6", "hidden=2..5", "dropout=0.1..0.5", "learning_rate=1e-3..1e-1:log", "hidden=01..2"],
    "columns": ["id=id", "label=label", "source=source", "split=x"],
    "distribution": ["logarithmic", "geometric"],
    "metric": ["accuracy", "roc-auc", "macro-f1"],
    "form": ["terminal", "markdown", "latex", "csv"],
    "audience": ["anyone", "owner"],
    "only": ["gap", "level=edge"],
    "suite": ["smoke", "suite.toml", "missing.toml"],
}
PATHS = [
    "graph.npz",
    "tables",
    "file",
    "missing",
    "release",
    "suite.toml",
    "out",
    "file/below",
    "n" * 300,
    "\0",
    "",
    ".",
]
# Tracebacks that are asked for, and hosts that tests do not reach.
LEFT_OUT = ("debug", "trust_download")
RUNS = ("train", "tune", "audit", "attack", "bench")


# -------------------------------------------------------------------- options of every command


def commands() -> dict[str, Any]:
    """Every command as typer knows it."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def options(rng: Random, names: list[str]) -> Case:
    """A command that works on small inputs, with a few options that are valid, odd or hostile."""
    name = rng.choice(names)
    arguments = [name, *_base(name)]
    for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])):
        arguments += _option(rng, rng.choice([o for o in commands()[name].params if o.name not in LEFT_OUT]))
    if rng.random() < 0.05:
        arguments.append(rng.choice(WORDS))
    return arguments, _workplace


def _base(name: str) -> list[str]:
    data, out = ["--data", "graph.npz"], ["--out", "out"]
    return {
        "train": [*data, *QUICK, *out],
        "plan": [*data, *QUICK],
        "tune": [*data, *QUICK, "--search", "hidden=4,6", "--trials", "1.1", *out],
        "predict": ["release", *data, *out],
        "evaluate": ["release", *data],
        "extend": ["release", *data, "--epsilon", "1", *out],
        "verify": ["release"],
        "audit": ["--pairs", "1", "--fits", "0", "--samples", "0", *QUICK, *out],
        "attack": [*data, *QUICK, "--shadows", "4", "--fits", "0", "--pairs", "10", "--nodes", "2", "--no-compare"],
        "bench": ["suite.toml", "--tables-only"],
        "data": [],
        "methods": [],
        "doctor": [],
        "ledger": ["file"],
    }.get(name, [])


def _option(rng: Random, option: Any) -> list[str]:
    value = _value(rng, option)
    if option.param_type_name == "argument":
        return [value]
    flag = rng.choice([*option.opts, *option.secondary_opts])
    if getattr(option, "is_flag", False):
        return [flag]
    return [f"{flag}={value}"] if rng.random() < 0.2 else [flag, value]


def _value(rng: Random, option: Any) -> str:
    kind = option.bare_type()
    if rng.random() < 0.1:
        return rng.choice(WORDS)
    if option.name == "settings":
        return _setting(rng)
    if option.name in ("out", "attach") and rng.random() < 0.7:
        return rng.choice(["out", "out", "deep/out", *PATHS])
    if option.name in KNOWN:
        return rng.choice([*KNOWN[option.name], rng.choice(WORDS)])
    if "int" in kind:
        return rng.choice(WHOLE)
    if "float" in kind:
        return rng.choice(REAL)
    if "Path" in kind:
        return rng.choice(PATHS)
    return rng.choice(WORDS)


def _setting(rng: Random) -> str:
    model = schema(load_method(rng.choice(list(list_methods().values()))))
    key = rng.choice([*model.model_fields, "nothing", ""])
    return f"{key}={rng.choice(VALUES)}"


# -------------------------------------------------------------------- tables


def tables(rng: Random) -> Case:
    """A folder of two tables: sound, then spoilt in a few ways."""
    prefix = rng.choice(["", "p", "é", "0", "-", " "])
    names = [f"{prefix}{i}" for i in range(rng.choice([1, 2, 20, 20, 20]))]
    header = ["id", "label", *(f"f{i}" for i in range(rng.choice([1, 3])))]
    rows = [[name, rng.choice(["a", "b", "c", ""]), *(_cell(rng) for _ in header[2:])] for name in names]
    ends = [[rng.choice(names), rng.choice(names)] for _ in range(rng.choice([0, 1, 20]))]
    nodes = _written(rng, [header, *rows])
    edges = _written(rng, [rng.choice([["source", "target"], ["source", "target"], ["src", "dst"], ["a", "b"]]), *ends])
    suffix = rng.choice([".csv"] * 17 + [".tsv", ".parquet", ".txt"])

    def prepare(folder: Path) -> None:
        (folder / "tables").mkdir()
        (folder / "tables" / f"nodes{suffix}").write_bytes(nodes)
        (folder / "tables" / f"edges{suffix}").write_bytes(edges)

    method = rng.choice([["mlp", "edge"], ["mlp", "edge:directed"], ["dp-mlp", "node"]])
    columns = ["--column", rng.choice(["id=id", "label=label", "source=a", "x=y"])] if rng.random() < 0.2 else []
    return ["plan", "--data", "tables", "--method", method[0], "--level", method[1], *columns], prepare


def _cell(rng: Random) -> str:
    if rng.random() < 0.99:
        return f"{rng.gauss(0, 1):.3f}"
    return rng.choice(["", "nan", "inf", "1e400", "x", "1,5", '"', "9" * 400, "0x1", "NA", "1e-400", "\0", "true"])


def _written(rng: Random, rows: list[list[str]]) -> bytes:
    if rng.random() < 0.2 and len(rows) > 1:
        row = rng.choice(rows)
        rng.choice(
            [lambda: row.append("1"), lambda: row.pop(), lambda: rows.append(row), lambda: rows.insert(0, row)]
        )()
    end = rng.choice(["\n", "\n", "\n", "\r\n", "\r"])
    content = (end.join(",".join(row) for row in rows) + end).encode(
        rng.choice(["utf-8"] * 28 + ["utf-16", "utf-8-sig"])
    )
    return spoilt(rng, content) if rng.random() < 0.3 else content


def spoilt(rng: Random, content: bytes) -> bytes:
    """A few bytes changed, cut, doubled or added."""
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(content) + 1)
        to = min(len(content), at + rng.choice([1, 1, 3, 50]))
        noise = bytes(rng.choice([0, 10, 34, 44, 92, 255, rng.randrange(256)]) for _ in range(rng.choice([1, 2, 9])))
        content = rng.choice([content[:at] + noise + content[at:], content[:at] + content[to:], content[:at]])
        content = content if rng.random() < 0.95 else content * 2
    return content


# -------------------------------------------------------------------- .npz files


def npz(rng: Random) -> Case:
    """A graph file: sound, with odd fields, or with odd bytes."""
    arrays = dict(_arrays())
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        key = rng.choice(list(arrays))
        choice = rng.random()
        if choice < 0.15:
            del arrays[key]
        elif choice < 0.5:
            arrays[key] = _odd_array(rng)
        else:
            arrays[key] = _like(rng, arrays[key])
        if not arrays:
            break
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    content = spoilt(rng, buffer.getvalue()) if rng.random() < 0.2 else buffer.getvalue()
    return ["plan", "--data", "g.npz", "--method", "mlp"], lambda folder: _write(folder / "g.npz", content)


@cache
def _arrays() -> dict[str, np.ndarray]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = save_npz(SMALL, Path(folder) / "g.npz")
        with np.load(path) as stored:
            found = {key: stored[key] for key in stored.files}
    return {**found, "split_names": np.array(["own"]), "split_parts": np.ones((1, SMALL.num_nodes), np.int8)}


def _odd_array(rng: Random) -> np.ndarray:
    shape = rng.choice([(), (0,), (1,), (24,), (25,), (24, 3), (2, 2, 2)])
    kind = rng.choice(["int64", "float64", "bool", "U3", "S2", "complex64", "datetime64[D]", "uint64", "float16", "V4"])
    return np.zeros(shape, dtype=kind)


def _like(rng: Random, array: np.ndarray) -> np.ndarray:
    """The same array with one entry changed, or in another type or shape."""
    if array.dtype.kind in "biuf" and array.size and rng.random() < 0.6:
        changed = array.copy()
        odd: list[Any] = (
            [0, 1, -1, 127, 2**62, -(2**62)] if array.dtype.kind in "iu" else [0, 1, 1e30, np.nan, np.inf, -1]
        )
        with np.errstate(all="ignore"):
            changed.reshape(-1)[rng.randrange(array.size)] = np.array(rng.choice(odd)).astype(array.dtype)
        return changed
    reshaped = [array.reshape(-1), array[None], array.reshape(-1)[:-1], np.concatenate([array.reshape(-1)] * 2)]
    as_text = [array.astype("U8")] if array.dtype.kind in "biufU" else []
    return rng.choice([*reshaped, *as_text])


# -------------------------------------------------------------------- TOML

SUITE = """title = "t"
datasets = ["small"]
seeds = 1
[graphs]
small = "csbm:num_nodes=40,num_features=4"
[[cases]]
method = "mlp"
level = "edge"
epsilon = [1, 2]
settings = { epochs = 1 }
[[tables]]
title = "x"
"""
SPACE = """[search]
hidden = [4, 6]
dropout = { low = 0.1, high = 0.5 }
learning_rate = { low = 1e-3, high = 0.1, log = true }
"""
TOKENS = [
    *("[", "]", "{", "}", "=", '"', "'''", "1979-05-27", "nan", "inf", "-1", "1e400", "9" * 5000, "true", "[[cases]]"),
    *("\0", "é", "[" * 2000, "'x'", "low = 1", "epsilon = 0", "grid = { hidden = [1] }", "level = 'node'", "seeds = 0"),
]


def toml(rng: Random) -> Case:
    """A suite or a search space with lines moved, tokens put in, or bytes spoilt."""
    suite = rng.random() < 0.5
    lines = (SUITE if suite else SPACE).splitlines()
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        at = rng.randrange(len(lines))
        change = rng.randrange(4)
        if change == 0:
            lines.insert(at, rng.choice(TOKENS))
        elif change == 1 and len(lines) > 1:
            del lines[at]
        elif change == 2:
            key = lines[at].split("=")[0]
            lines[at] = f"{key}= {rng.choice([*TOKENS, *VALUES])}"
        else:
            lines.append(rng.choice(lines))
    content = "\n".join(lines).encode("utf-8", "surrogateescape")
    content = spoilt(rng, content) if rng.random() < 0.2 else content
    command = (
        ["bench", "it.toml", rng.choice(["--list", "--tables-only"]), "--out", "release", "--no-figures"]
        if suite
        else ["tune", "--space", "it.toml", "--data", "graph.npz", "--method", "mlp", "--set", "epochs=1"]
    )

    def prepare(folder: Path) -> None:
        _write(folder / "it.toml", content)
        _workplace(folder)

    return command, prepare


# -------------------------------------------------------------------- release folders


def release(rng: Random) -> Case:
    """A release with a changed value, byte or file; verify, predict or audit it."""
    how = rng.random()
    change = _changed_file(rng) if how < 0.3 else _changed_json(rng) if how < 0.7 else _changed_folder(rng)

    def prepare(folder: Path) -> None:
        _workplace(folder)
        change(folder / "release")

    command = rng.choice([["verify", "release"], ["predict", "release", "--data", "graph.npz", "--out", "out"]])
    return command, prepare


def _changed_file(rng: Random) -> Prepare:
    name, seed = rng.choice(["weights.safetensors", "certificate.json", "config.json", "card.md"]), rng.random()

    def change(folder: Path) -> None:
        _write(folder / name, spoilt(Random(seed), (folder / name).read_bytes()))

    return change


def _changed_json(rng: Random) -> Prepare:
    name, seed = rng.choice(["certificate.json", "config.json"]), rng.random()

    def change(folder: Path) -> None:
        inner = Random(seed)
        value = json.loads((folder / name).read_text())
        spot: Any = value
        while True:
            keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
            key = inner.choice(keys)
            if isinstance(spot[key], dict | list) and spot[key] and inner.random() < 0.8:
                spot = spot[key]
                continue
            break
        odd = [None, True, 0, -1, 1e300, 2**80, "", "x", "infinite", "\0", [], {}, [[]], {"a": 1}, "../x", float("nan")]
        if inner.random() < 0.2:
            del spot[key]
        else:
            spot[key] = inner.choice(odd)
        (folder / name).write_text(json.dumps(value))

    return change


def _changed_folder(rng: Random) -> Prepare:
    name = rng.choice(["weights.safetensors", "certificate.json", "config.json", "card.md", "extra", "audit.json"])
    kind = rng.choice(["gone", "empty", "folder", "link", "loop", "json"])

    def change(folder: Path) -> None:
        path = folder / name
        if path.exists():
            path.unlink()
        if kind == "folder":
            path.mkdir()
        elif kind == "link":
            path.symlink_to("/etc/hostname")
        elif kind == "loop":
            path.symlink_to(name)
        elif kind != "gone":
            path.write_text("" if kind == "empty" else "[]")

    return change


# -------------------------------------------------------------------- the place of work


@cache
def _released() -> Path:
    """A small release, made once."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="fuzz-release-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    save_npz(SMALL, folder / "graph.npz")
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        arguments = ["train", "--data", str(folder / "graph.npz"), *QUICK, "--out", str(folder / "release")]
        assert main(arguments) == 0
    return folder


def _workplace(folder: Path) -> None:
    """What arguments name: a graph in both forms, a release, a suite, a file and a folder."""
    shutil.copytree(_released() / "release", folder / "release")
    shutil.copy(_released() / "graph.npz", folder / "graph.npz")
    (folder / "file").write_text("".join(string.ascii_letters))
    (folder / "suite.toml").write_text(SUITE)
    (folder / "tables").mkdir()
    (folder / "tables" / "nodes.csv").write_text("id,label,x\n" + "".join(f"{i},{i % 2},{i}\n" for i in range(20)))
    (folder / "tables" / "edges.csv").write_text("source,target\n0,1\n1,2\n2,3\n")


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _names(running: bool) -> list[str]:
    return [name for name in commands() if (name in RUNS) == running]


SECTIONS: dict[str, Callable[[Random], Case]] = {
    "options": partial(options, names=_names(False)),
    "runs": partial(options, names=_names(True)),
    "tables": tables,
    "npz": npz,
    "toml": toml,
    "release": release,
}
