"""Inputs that once ended in a traceback: each is one sentence and exit code 2 now, and nothing is written."""

from __future__ import annotations

import ctypes
import importlib
import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.cli import data as data_command
from discreet.cli import main
from discreet.cli.boundary import exit_code
from discreet.cli.output import check_places
from discreet.files import home_folder, remove_unfinished, whole, write_whole
from discreet.graph import csbm
from discreet.graph.datasets import data_roots
from discreet.graph.graph import NamedSplit
from discreet.graph.io import save_npz
from discreet.methods.base import NodeClassifier
from discreet.release import evaluate
from tests.cli.helpers import QUICK, refused, run

DIGITS = "9" * 5000
BRACKETS = "[" * 3000
OPTIONS = [
    *(["--seed", seed] for seed in ("-1", str(2**64), DIGITS)),
    *(["--delta", delta] for delta in ("1e-300", "0", "1", "nan", "inf", "-1", DIGITS, "1e400")),
    *(["--epsilon", epsilon] for epsilon in ("1e5", "1e300", "1e-300", "0", "-1", "nan", "1e400", "inf")),
    *(["--set", f"learning_rate={rate}"] for rate in ("1e300", "-1", "NaN", "inf", "0")),
    *(["--set", f"layers={layers}"] for layers in (2**31, 0, DIGITS, 10**30)),
    *(["--set", f"hidden={hidden}"] for hidden in (2**31, 2**63, "1e300", BRACKETS, "true", '"4"', "null", "[]")),
    *(["--set", f"hops={hops}"] for hops in (10**6, 0, "1.5")),
    *(["--set", f"epochs={epochs}"] for epochs in (10**12, "-1", "inf")),
    *(["--set", f"random_state={seed}"] for seed in (-1, 2**64, "1.0")),
    *(["--set", text] for text in ("hidden", "=1", "\0=1", "noise=\x1b[2J", f"nothing={BRACKETS}")),
    *(["--level", f"node:owned,max_degree={bound}"] for bound in (10**400, 10**12, 0, -1, "", DIGITS)),
    *(["--level", text] for text in (f"neighbor:{10**400}", "neighbor:1e9", "node:thinned,d_max=9,p=1e-320,p=nan")),
    *(["--level", f"node:thinned,d_max=9,p={p}"] for p in ("nan", "0", "2", "1e-320")),
    *(["--device", device] for device in ("ve", "cuda:99", "meta", "", "cpu:-1", "\0")),
    *(["--threads", threads] for threads in ("100000", "0", "-1", DIGITS)),
    *(["--split", split] for split in (f"{DIGITS}/0/0", "1e2/0/0", "100/0/0/0", "0/0/100", "geom-gcn:" + DIGITS, "//")),
    *(
        ["--data", data]
        for data in ("\0", "x" * 5000, "/", "/dev/null", "no/such", "fb100:", f"fb100:A:{DIGITS}", "..")
    ),
    *(["--split", split] for split in ("٣/3/3", "geom-gcn:٣")),
    *(["--data", data] for data in ("fb100:A:²", "fb100:A:٣", "fb100:A:0")),
    *(["--column", text] for text in ("id", "=x", "colour=red")),
    *(["--method", method] for method in ("", "gapp", "\0")),
]


@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: " ".join(options)[:40].encode("unicode_escape").decode()
)
def test_plan_refuses(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    method = ["--method", "dp-mlp"] if options[0] == "--level" else []
    refused(capsys, "plan", *method, *options)


SEARCHES = [
    *("hidden=01..2", "hidden=1..1e400", f"hidden=1..{DIGITS}", "hidden=2..1", f"hidden={BRACKETS}", "hidden", "=1"),
    *("hidden=0..1:log", "hidden=", "hidden=1..9223372036854775808", "hiden=1,2", "hidden=a,b", "epsilon=1,2"),
]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search[:30])
def test_tune_refuses(search: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "tune", "--search", search)


@pytest.mark.parametrize("trials", ["nan", "inf", "0", "-1", "1e300"])
def test_tune_refuses_a_number_of_trials(trials: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "tune", "--search", "hidden=4,6", "--trials", trials)
    refused(capsys, "tune", "--method", "mlp", "--search", "hidden=4,6", "--trials", trials)


TEXTS = {
    "not UTF-8": b"\xff\xfe\x00",
    "nested": b"x = " + b"[" * 5000,
    "nested tables": b"[" + b".".join([b"a"] * 5000) + b"]",
    "a long number": b"[search]\nhidden = [" + DIGITS.encode() + b"]",
    "a NUL": b"x = \0",
    "empty": b"",
    "cut": b"[search",
    "wrong types": b"search = 1\ncases = 1\ntitle = []",
    "dates": b"title = 'x'\n[search]\nhidden = [1979-05-27]\n[[cases]]\nmethod = 1979-05-27",
}


@pytest.mark.parametrize("content", TEXTS.values(), ids=TEXTS)
def test_toml_of_any_kind(content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("it.toml").write_bytes(content)
    refused(capsys, "tune", "--space", "it.toml")
    refused(capsys, "bench", "it.toml", "--out", "results")


@pytest.mark.parametrize("name", ["missing.toml", "folder", "\0.toml"])
def test_toml_that_is_no_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("folder").mkdir()
    refused(capsys, "tune", "--space", name)
    refused(capsys, "bench", name, "--out", "results")


# -------------------------------------------------------------------- .npz files

SMALL = csbm(num_nodes=12, num_features=3, average_degree=3, phi=0.2, epsilon=0.5)
SPOILT = {
    "format": [np.array([1, 2]), np.array("other")],
    "version": [np.array([1, 1]), np.array("one"), np.array(2)],
    "num_classes": [np.array([2, 2]), np.array(-1), np.array(10**6), np.array("two"), np.array(1), np.array(np.nan)],
    "directed": [np.array([True, False]), np.array("yes"), np.array(2)],
    "labels": [np.zeros((12, 2), np.int64), np.zeros(3, np.int64), np.full(12, 99), np.array("x"), np.full(12, -5)],
    "features": [np.zeros(12), np.zeros((12, 3, 1)), np.full((12, 3), np.nan), np.array("x"), np.zeros((0, 3))],
    "indptr": [np.zeros(3), np.array(5), np.full(13, 2**62), np.array(["a"] * 13), np.zeros((13, 1), np.int64)],
    "indices": [np.array([99]), np.array(5), np.zeros((2, 2)), np.array([-1])],
    "train_mask": [np.zeros(3, bool), np.array(7.5), np.array("x"), np.zeros((12, 2), bool)],
    "name": [np.array([1, 2])],
    "node_ids": [np.zeros(12, np.int64), np.arange(3), np.zeros((12, 2)), np.array(4)],
    "class_names": [np.array(3), np.array(["a"]), np.array([["a", "b"]])],
    "split_names": [np.array(["a"]), np.array(3)],
    "split_parts": [np.zeros((1, 3)), np.array(3), np.full((1, 12), 9)],
}
CASES = [(field, value) for field, values in SPOILT.items() for value in values]


@pytest.mark.parametrize(("field", "value"), CASES, ids=lambda value: str(value)[:12].replace("\n", " "))
def test_fields_of_the_wrong_shape(field: str, value: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    save_npz(SMALL, "graph.npz")
    with np.load("graph.npz") as stored:
        arrays = {key: stored[key] for key in stored.files}
    named = {"split_names": np.array(["a"])} if field == "split_parts" else {}
    np.savez("graph.npz", **{**arrays, **named, field: value})
    refused(capsys, "plan", "--data", "graph.npz", *QUICK)


def _zip_of(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


HEADER = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }"
FILES = {
    "empty": b"",
    "text": b"hello",
    "a bare array": b"\x93NUMPY",
    "half a zip": _zip_of("format.npy", b"x" * 100)[:60],
    "an empty array": _zip_of("format.npy", b""),
    "an array that claims a terabyte": _zip_of("format.npy", (HEADER % b"1000000000000,").ljust(127) + b"\n"),
    "a header of nonsense": _zip_of("format.npy", (HEADER % b"'x',").ljust(127) + b"\n"),
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_files_that_hold_no_graph(content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("graph.npz").write_bytes(content)
    refused(capsys, "plan", "--data", "graph.npz", *QUICK)


def test_arrays_that_nobody_needs_are_not_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_npz(SMALL, "graph.npz")
    with zipfile.ZipFile("graph.npz", "a") as archive:
        archive.writestr("extra.npy", b"not an array, and never looked at")
    assert run(capsys, "plan", "--data", "graph.npz", *QUICK)[0] == 0


# -------------------------------------------------------------------- a fit that would be lost


def _no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeClassifier, "fit", lambda *_, **__: pytest.fail("a private query would have been asked"))


@pytest.mark.parametrize(
    "command",
    [["train"], ["tune", "--search", "hidden=4,6"], ["audit", "--pairs", "1", "--fits", "0", "--samples", "0"]],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize("out", ["file/release", "n" * 300, "a\0b", "taken"])
def test_outputs_are_checked_before_the_fit(
    command: list[str], out: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("file").write_text("x")
    Path("taken").mkdir()
    _no_fit(monkeypatch)
    refused(capsys, *command, "--out", out)


@pytest.mark.parametrize("search", [[], ["--not-accounted"], ["--metric", "roc-auc", "--method", "mlp"]])
def test_metrics_are_checked_before_the_fit(
    search: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = np.repeat(np.array([[1, 2, 3]], dtype=np.int8), 4, axis=1)
    labels = np.where(parts[0] == 2, -1 if "roc-auc" not in search else 0, SMALL.labels)
    save_npz(replace(SMALL, labels=labels, named_splits=(NamedSplit("own:0", parts[0]),)), "graph.npz")
    _no_fit(monkeypatch)
    options = ["--data", "graph.npz", "--split", "own:0", "--search", "hidden=4,6"]
    assert "validation node" in refused(capsys, "tune", *options, *search)


@pytest.mark.parametrize("command", [["train"], ["tune", "--search", "hidden=4,6"]], ids=lambda command: command[0])
def test_a_release_is_saved_before_anything_is_measured(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "figures_of_fit", lambda *_, **__: _raises(RuntimeError("no figures")))
    quick = ["--trials", "1.1", "--set", "epochs=1"] if command[0] == "tune" else QUICK
    assert run(capsys, *command, *quick, "--out", "release")[0] == 70
    assert run(capsys, "verify", "release")[0] == 0


# -------------------------------------------------------------------- the boundary itself


def _raises(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize(
    "error", [TypeError("a secret"), EOFError(), RecursionError(), AssertionError(), KeyError("x")]
)
def test_a_bug_is_named_and_reported(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_command, "print_rows", lambda *_: _raises(error))
    code, out, err = run(capsys, "data")
    assert (code, out) == (70, "")
    assert err.count("\n") == 1
    assert "bug" in err
    assert "SECURITY.md" in err
    assert "secret" not in err
    code, _, err = run(capsys, "data", "--debug")
    assert code == 70
    assert "Traceback" in err


def test_what_the_machine_lacks_is_no_bug(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: …")):
        monkeypatch.setattr(data_command, "print_rows", lambda *_, error=error: _raises(error))
        assert "memory" in refused(capsys, "data")
    monkeypatch.setattr(data_command, "print_rows", lambda *_: _raises(PermissionError(13, "Permission denied", "x")))
    assert "Permission denied: x" in refused(capsys, "data")


def test_a_sentence_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    err = refused(capsys, "plan", "--method", "a\nb\x1b[2Jc" + "d" * 5000)
    assert "\x1b" not in err
    assert len(err) < 1000


def test_interrupts_have_codes_of_their_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_command, "print_rows", lambda *_: _raises(KeyboardInterrupt()))
    assert main(["data"]) == 130
    monkeypatch.setattr(data_command, "print_rows", lambda *_: _raises(BrokenPipeError()))
    monkeypatch.setattr("discreet.cli.boundary._unread", lambda: 141)
    assert main(["data"]) == 141


def test_what_an_interrupt_left_is_removed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One that arrives as a block ends is raised before the block's own cleaning up."""
    with exit_code() as ending:
        block = whole(tmp_path / "release")
        (block.__enter__() / "weights").parent.mkdir()
        raise KeyboardInterrupt
    assert ending.code == 130
    assert list(tmp_path.iterdir()) == []
    del block


def test_what_another_process_writes_is_left_alone(tmp_path: Path) -> None:
    with whole(tmp_path / "release") as temporary:
        temporary.mkdir()
        child = os.fork()
        if not child:
            remove_unfinished()
            os._exit(0)
        os.waitpid(child, 0)
        assert temporary.is_dir()


def test_a_closed_terminal_ends_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it would be ignored, and stay so
    try:
        with exit_code() as ending:
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(30)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert ending.code == 129
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_under_nohup_survives_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with exit_code() as ending:
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert ending.code == 0


def test_the_command_alone_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    assert (code, out) == (2, "")
    assert "\nCommands:\n" in err


def test_an_interrupt_within_a_callback_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing can be raised out of a callback from C, as compilers make them: the interpreter prints and goes on."""
    within = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGTERM))

    began = time.monotonic()
    with exit_code() as ending:
        within()
        time.sleep(30)
    assert ending.code == 143
    assert time.monotonic() - began < 20
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_an_interrupt_within_an_import_comes_after_it(
    number: signal.Signals, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Extensions in C make an ImportError of it, as numba did: it would have been reported as a bug."""
    content = f"import os, time\nos.kill(os.getpid(), {int(number)})\ntime.sleep(0.3)\nwhole = True\n"
    (tmp_path / f"slow_{number.name}.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with exit_code() as ending:
            module = importlib.import_module(f"slow_{number.name}")
            time.sleep(30)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ending.code == 128 + number
    assert module.whole
    assert capsys.readouterr().err.count("\n") == 1


def test_an_interrupt_within_a_compilation_comes_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Objects of the compiler that are half made end in a fault, or in a traceback of their own."""
    compiler: dict[str, Any] = {"__name__": "llvmlite.binding.ffi", "os": os, "time": time}
    exec("def build(number):\n os.kill(os.getpid(), number)\n time.sleep(0.3)\n return True\n", compiler)
    whole_object = False
    with exit_code() as ending:
        whole_object = compiler["build"](signal.SIGTERM)
        time.sleep(30)
    assert ending.code == 143
    assert whole_object
    assert capsys.readouterr().err.count("\n") == 1


def test_what_an_interrupt_turned_into_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    with exit_code() as ending:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(30)
        except KeyboardInterrupt:
            raise ImportError("cannot import name 'x'") from None
    assert ending.code == 143
    assert capsys.readouterr().err.count("\n") == 1


# -------------------------------------------------------------------- places


@pytest.mark.parametrize(
    "command",
    [
        ["train", *QUICK, "--out", "o", "--ledger", "o/l.db", "--dataset", "d"],
        ["train", *QUICK, "--out", "o", "--save-config", "o/c.toml"],
        ["train", *QUICK, "--out", "o", "--save-config", "./o"],
        ["train", *QUICK, "--save-config", "c.toml", "--data", "\udcff.npz"],
        ["train", *QUICK, "--out", "release/inner"],
        ["report", "release", "--out", "release/page.html"],
        ["predict", "release", "--data", "csbm", "--out", "release/p.csv"],
        ["report", "release", "--out", "release/../release/page.html"],
        ["extend", "release", "--data", "csbm", "--epsilon", "1", "--out", "file/below"],
        ["evaluate", "release", "--data", "csbm", "--epsilon", "1", "--out", "file/below"],
        ["sign", "--new-key", "release/key"],
        ["bench", "smoke", "--out", "release"],
        ["bench", "smoke", "--out", "pipe"],
        ["bench", "smoke", "--out", "device"],
    ],
    ids=lambda command: " ".join(command)[:60].encode("unicode_escape").decode(),
)
def test_outputs_that_would_be_lost_or_spoil_a_release(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("release").mkdir()
    Path("release/certificate.json").write_text("{}")
    Path("file").write_text("")
    for name in ("pipe", "device"):
        Path(name).mkdir()
    os.mkfifo("pipe/results.jsonl")
    Path("device/results.jsonl").symlink_to("/dev/zero")
    refused(capsys, *command)


def test_a_place_beside_a_release_is_free(tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "certificate.json").write_text("{}")
    check_places(tmp_path / "release" / ".." / "page.html", tmp_path / "o", beside=tmp_path / "l\0.db")


@pytest.mark.parametrize("place", ["~nobody-here", "~nobody-here/g.npz"])
def test_a_home_that_nobody_has(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "plan", "--data", place)
    refused(capsys, "plan", "--data", "csbm", "--schema", place)


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    def nobody(_: object) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.raises(OSError):
        write_whole(home_folder() / "x", "")
    assert [place.is_dir() for place in data_roots()] in ([False], [True, False])


# -------------------------------------------------------------------- standard streams


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """The line in bash, with ``$discreet`` for a command that needs no torch."""
    command = f"{sys.executable} -m discreet.cli"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "discreet": command}
    return subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_output_that_cannot_be_written() -> None:
    full = shell("PYTHONUNBUFFERED= $discreet methods > /dev/full")
    assert full.returncode == 2
    assert full.stderr.startswith("discreet: ")
    assert full.stderr.endswith("No space left on device\n")
    assert full.stderr.count("\n") == 1


def test_output_that_nobody_reads() -> None:
    unread = shell("export PYTHONUNBUFFERED=; (sleep 0.1; exec $discreet methods) | true; echo ${PIPESTATUS[0]}")
    assert (unread.stdout, unread.stderr) == ("141\n", "")


CLOSED = """
import os
from discreet.cli.boundary import exit_code
from discreet.cli.output import progress_bars
with exit_code() as ending:
    with progress_bars():
        print("to nobody")
os.write(3, f"{ending.code} {os.open(os.devnull, os.O_RDONLY)}".encode())
"""


def test_streams_that_are_closed(tmp_path: Path) -> None:
    """They lead nowhere; no file of ours gets their numbers."""
    done = shell(f"{sys.executable} -c '{CLOSED}' <&- >&- 2>&- 3> {tmp_path}/said")
    code, number = (tmp_path / "said").read_text().split()
    assert (done.returncode, code) == (0, "0")
    assert int(number) > 3


def test_surprises_while_options_are_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.files.parse_toml", lambda *_: [][0])
    Path("c.toml").write_text("")
    code, out, err = run(capsys, "plan", "--config", "c.toml")
    assert (code, out, err.count("\n")) == (70, "", 1)
    assert "IndexError" in err
