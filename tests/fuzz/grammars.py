"""Inputs from a seed: each grammar makes valid inputs too, so that what lies behind the first check is reached.

A section is a function ``(rng) -> (arguments, prepare)``. Options come from the commands' own declarations.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import string
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
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
from discreet.privacy.certificate import CERTIFICATE, seal
from discreet.privacy.release_folder import json_bytes
from tests.fuzz.partitions import partitions
from tests.fuzz.records import SUITE, records
from tests.fuzz.spoil import Case, Prepare, Random, scratch, spoilt
from tests.fuzz.tables import tables

SMALL = csbm(num_nodes=24, num_features=3, average_degree=4, phi=0.2, epsilon=0.5)
NEW = csbm(num_nodes=24, num_features=3, average_degree=4, phi=0.2, epsilon=0.5, seed=1)
QUICK = ["--set", "epochs=1", "--set", "hidden=4"]
OWN_LAYERS = [
    *("--method", "gap", "--level", "edge", "--set", 'encoder=["linear 3", "relu"]'),
    *("--set", 'class_weight={"0": 2.0}', "--threshold", "macro-f1"),
]
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
VALUES = [
    *(*NUMBERS, "null", "true", '"word"', "[]", "[1, 2]", "[[1]]", "{}", "[" * 3000, "word", "", "inf", '"inf"'),
    *("balanced", '{"0": 2.0}', '{"0": -1}', '{"0": "x"}', '{"0": 1e300}', '{"9": 1}', '{"": 1}', "macro-f1"),
    *('["linear 3", "relu"]', '["linear 0"]', '["linear 3", 5]', '["dropout 2"]', '["linear"]', '["x"]', "linear 3"),
]
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
    "edges_until": ["2024-06-30", "2024-06-30T12:00", "5", "x", "99999-01-01", "1e400", "2024-02-30"],
    "threshold": ["balanced-accuracy", "macro-f1", "accuracy"],
    "device": ["cpu", "cuda", "meta", "cpu:0"],
    "delta": ["auto", "1e-5", *REAL],
    "trials": ["1", "1.1", "2", "0.5", "-1", "nan", "inf", "1e6", "x", ""],  # 100,000 would be work, and no mistake
    "config": ["config.toml", "suite.toml", "missing.toml", "fifo", "zero", "."],
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
    "fifo",
    "zero",
    "ledger.db",
    "key",
    "key.pub",
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
        "predict": ["release", *data, "--out", "out.csv"],
        "evaluate": ["release", *data],
        "extend": ["release", "--data", "new.npz", "--epsilon", "1", *out],
        "verify": ["release"],
        "audit": ["--pairs", "1", "--fits", "0", "--samples", "0", *QUICK, *out],
        "attack": [*data, *QUICK, "--shadows", "4", "--fits", "0", "--pairs", "10", "--nodes", "2", "--no-compare"],
        "bench": ["suite.toml", "--tables-only"],
        "report": ["release", "--out", "out.html"],
        "export": ["release", "--registry", *out],
        "sign": ["release", "--key", "key"],
        "ledger": ["ledger.db"],
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

SPACE = """[search]
hidden = [4, 6]
dropout = { low = 0.1, high = 0.5 }
learning_rate = { low = 1e-3, high = 0.1, log = true }
"""
CONFIG = """data = "graph.npz"
method = "mlp"
level = "edge"
epsilon = 1.0
undirected = true
[set]
epochs = 1
hidden = 4
"""
TOKENS = [
    *("[", "]", "{", "}", "=", '"', "'''", "1979-05-27", "nan", "inf", "-1", "1e400", "9" * 5000, "true", "[[cases]]"),
    *("\0", "é", "[" * 2000, "'x'", "low = 1", "epsilon = 0", "grid = { hidden = [1] }", "level = 'node'", "seeds = 0"),
]


def toml(rng: Random) -> Case:
    """A suite, a search space or a configuration with lines moved, tokens put in, or bytes spoilt."""
    kind = rng.choice([SUITE, SUITE, SPACE, SPACE, CONFIG])
    lines = kind.splitlines()
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
    command = {
        SUITE: ["bench", "it.toml", rng.choice(["--list", "--tables-only"]), "--out", "out", "--no-figures"],
        SPACE: ["tune", "--space", "it.toml", "--data", "graph.npz", "--method", "mlp", "--set", "epochs=1"],
        CONFIG: ["plan", "--config", "it.toml"],
    }[kind]

    def prepare(folder: Path) -> None:
        _write(folder / "it.toml", content)
        _workplace(folder)

    return command, prepare


# -------------------------------------------------------------------- release folders


READERS = [
    *(["verify", "release"], ["predict", "release", "--data", "graph.npz", "--out", "out.csv"]),
    *(["report", "release", "--out", "out.html"], ["export", "release", "--registry", "--out", "out"]),
    *(["sign", "release", "--key", "key"], ["verify", "release", "--key", "key.pub"]),
    *(["evaluate", "release", "--data", "graph.npz"], ["report", "release", "--ledger=ledger.db", "--out=out.html"]),
    ["extend", "release", "--data", "new.npz", "--epsilon", "1", "--out", "out"],
]


def release(rng: Random) -> Case:
    """A release with a changed value, name, byte or file, and one of the commands that read releases."""
    how = rng.random()
    change = _changed_file(rng) if how < 0.3 else _changed_json(rng) if how < 0.7 else _changed_folder(rng)
    signed = rng.random() < 0.5
    which = rng.choice(["release", "release", "extended", "layers"])

    def prepare(folder: Path) -> None:
        _workplace(folder, which)
        if signed:  # of the first release, so that it is another's on the others
            shutil.copy(_released() / "certificate.sig", folder / "release")
        change(folder / "release")

    return rng.choice(READERS), prepare


def _changed_file(rng: Random) -> Prepare:
    names = ["weights.safetensors", "certificate.json", "config.json", "card.md", "certificate.sig"]
    name, seed = rng.choice(names), rng.random()

    def change(folder: Path) -> None:
        content = (folder / name).read_bytes() if (folder / name).exists() else b""
        _write(folder / name, spoilt(Random(seed), content))

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
        how = inner.random()
        if how < 0.2:
            del spot[key]
        elif how < 0.4 and isinstance(spot, dict):  # another name for the same thing
            spot[inner.choice(["", "\0", f"{key}\0", "../x", "/etc/passwd", "x" * 5000, "\ud800"])] = spot.pop(key)
        else:
            spot[key] = inner.choice(odd)
        written = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        (folder / name).write_bytes(written.encode("utf-8", "surrogatepass"))
        if inner.random() < 0.5:
            _reseal(folder)

    return change


def _reseal(folder: Path) -> None:
    """Make every hash right again, as somebody would who means it; a certificate that is none stays as it is."""
    with suppress(ValueError, TypeError, AttributeError, LookupError, OSError):
        stated = json.loads((folder / CERTIFICATE).read_text())
        sealed = {name: (folder / name).read_bytes() for name in stated["files"]}
        (folder / CERTIFICATE).write_bytes(json_bytes(seal({**stated, "digest": None}, sealed)))


def _changed_folder(rng: Random) -> Prepare:
    names = ["weights.safetensors", "certificate.json", "config.json", "card.md", "certificate.sig", "audit.json"]
    name = rng.choice([*names, "extra", " ", "\n", "\udcff", "n" * 255])
    make = rng.choice(
        [
            lambda path: None,
            lambda path: path.write_text(""),
            lambda path: path.write_text("[]"),
            lambda path: path.mkdir(),
            lambda path: path.symlink_to("/etc/hostname"),
            lambda path: path.symlink_to("/dev/zero"),
            lambda path: path.symlink_to(path.name),
            lambda path: path.symlink_to(".."),
            os.mkfifo,
            _socket,
            _hole,
        ]
    )

    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return change


def _socket(path: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)


def _hole(path: Path) -> None:
    """A file that says to be large, and is."""
    with path.open("wb") as file:
        file.truncate(2**40)


# -------------------------------------------------------------------- the place of work


@cache
def _released() -> Path:
    """Small releases, made once: of gap, the same extended, and one with layers in words, weights and a decision."""
    folder = scratch() / "released"
    folder.mkdir()
    save_npz(SMALL, folder / "graph.npz")
    save_npz(NEW, folder / "new.npz")
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        ledger = ["--ledger", str(folder / "ledger.db"), "--dataset", "small"]
        data = ["--data", str(folder / "graph.npz")]
        arguments = ["train", *data, "--method", "gap", *QUICK, *ledger, "--out", str(folder / "release")]
        assert main(arguments) == 0
        extended = ["--data", str(folder / "new.npz"), "--epsilon", "1", "--out", str(folder / "extended")]
        assert main(["extend", str(folder / "release"), *extended]) == 0
        assert main(["train", *data, *QUICK, *OWN_LAYERS, "--out", str(folder / "layers")]) == 0
        assert main(["sign", "--new-key", str(folder / "key")]) == 0
        assert main(["sign", str(folder / "release"), "--key", str(folder / "key")]) == 0
    (folder / "release" / "certificate.sig").rename(folder / "certificate.sig")
    return folder


def _workplace(folder: Path, which: str = "release") -> None:
    """What arguments name: a graph in both forms, a release, its ledger, a key, a suite, and files of every kind."""
    shutil.copytree(_released() / which, folder / "release")
    for name in ("graph.npz", "new.npz", "ledger.db", "key", "key.pub"):
        shutil.copy(_released() / name, folder / name)
    os.mkfifo(folder / "fifo")
    (folder / "zero").symlink_to("/dev/zero")
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
    "partitions": partitions,
    "records": records,
}
