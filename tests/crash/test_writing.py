"""Writing under fire: kills at any time, a full disk, two processes at one place; a folder is whole or absent."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from discreet.files import PARTIAL
from tests.fuzz.records import SUITE

KILLS, MOST_KILLS = 8, 100
"""How often a process is killed while it writes: more often, until a kill meets a folder that is not whole."""
FILES = 3
SIZE = 200_000
# Writes folders one after the other; a folder with fewer than all of its files, or a shorter one, is torn.
WRITER = f"""
import sys
from pathlib import Path
from discreet.files import write_folder
place, content = Path(sys.argv[1]), b"x" * {SIZE}
print("ready", flush=True)
for number in range(10**6):
    write_folder(place / str(number), {{str(i): content for i in range({FILES})}})
"""
# One folder, with files that may have this many bytes; prints what became of it.
LIMITED = f"""
import resource, signal, sys
from pathlib import Path
from discreet.cli.boundary import exit_code
from discreet.files import write_folder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
with exit_code() as ending:
    write_folder(Path(sys.argv[1]), {{str(i): b"x" * {SIZE} for i in range({FILES})}})
sys.exit(ending.code)
"""


def torn(place: Path) -> list[str]:
    """Folders that are neither whole nor called by a temporary name."""
    return [
        path.name
        for path in place.iterdir()
        if not path.name.endswith(PARTIAL) and [f.stat().st_size for f in path.iterdir()] != [SIZE] * FILES
    ]


def script(text: str, *arguments: str, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", text, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_kills_tear_nothing(tmp_path: Path) -> None:
    rng, left = random.Random(0), 0
    for run in range(MOST_KILLS):
        place = tmp_path / str(run)
        place.mkdir()
        process = script(WRITER, str(place))
        assert process.stdout is not None
        process.stdout.readline()
        while not any(place.iterdir()):  # however busy the machine is
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert torn(place) == []
        left += sum(path.name.endswith(PARTIAL) for path in place.iterdir())
        if left and run + 1 >= KILLS:
            break
    assert left, "no kill met a folder while it was written: the test shows nothing"


def test_a_full_disk_leaves_nothing_and_blocks_nothing(tmp_path: Path) -> None:
    for room, code in ((1000, 2), (SIZE - 1, 2), (SIZE, 0)):
        process = script(LIMITED, str(tmp_path / "out"), str(room))
        _, err = process.communicate(timeout=300)
        assert process.returncode == code, err
        assert "Traceback" not in err
        assert [path.name for path in tmp_path.iterdir()] == (["out"] if code == 0 else [])


# Fills a file system of 256 KiB, then writes what the commands write; prints what is left of each.
FULL = """
import os, sys
from pathlib import Path
from discreet.bench.store import Store, read_rows
from discreet.files import write_folder, write_whole
from discreet.privacy.events import GaussianDpEvent
from discreet.privacy.ledger import Ledger, Run
place = Path(sys.argv[1])
run = Run("train", "gap", "edge", GaussianDpEvent(4.0), 1e-5)
row = {"id": "1", "status": "ok", "trial": {}, "text": "x" * 9000}
ledger = Ledger(place / "ledger.db")
write_whole(place / "kept", "before")
entries = []
def failing(write):
    try:
        while True:
            write()
    except Exception as error:
        assert isinstance(error, OSError) or "full" in str(error), error
entries.append(ledger.reserve(run, "data"))
with Store(place / "bench") as store:
    failing(lambda: store.append(row))
failing(lambda: entries.append(ledger.reserve(run, "data")))
failing(lambda: write_folder(place / "folder", {"a": b"x" * 100_000, "b": b"x" * 200_000}))
failing(lambda: write_whole(place / "kept", "after" * 100_000))
assert sorted(path.name for path in place.iterdir()) == ["bench", "kept", "ledger.db"], list(place.iterdir())
assert (place / "kept").read_text() == "before"
assert all(row["text"] == "x" * 9000 for row in read_rows(place / "bench").values())
(place / "bench" / "results.jsonl").unlink()
assert entries and [entry.id for entry in ledger.entries()] == entries
ledger.reserve(run, "data")
"""


def on_small_disk(place: Path, text: str, *arguments: str) -> None:
    """Run a script on a file system of 256 KiB in a name space of its own, where the machine permits one."""
    mount = f"mount -t tmpfs -o size=256k tmpfs {place}"
    inside = ["unshare", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*inside, mount], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let a test mount a file system")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [*inside, f'{mount} && exec "$0" -c "$@"', sys.executable, text, str(place), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_full_file_system_tears_nothing(tmp_path: Path) -> None:
    on_small_disk(tmp_path, FULL)


# Every command that writes a file or a folder, with room for nothing, for a part of it, and at last for all of it.
COMMANDS_ON_FULL_DISK = """
import io, os, sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from discreet.cli import main
place, inputs = Path(sys.argv[1]), Path(sys.argv[2])
data, release = ["--data", str(inputs / "graph.npz")], str(inputs / "gap-edge")
commands = {
    "out": ["data", "convert", str(inputs / "graph.npz"), "--partitions", "3"],
    "out.json": ["evaluate", str(inputs / "gap-node"), *data, "--epsilon", "1"],
    "out.html": ["report", release],
    "out.yaml": ["export", release, "--registry"],
    "out.csv": ["predict", release, *data],
    "out.parquet": ["predict", release, *data],
}
for name, command in commands.items():
    for room in (0, 4096, None):
        if room is not None:
            with open(place / "filler", "wb") as file:
                try:
                    while os.write(file.fileno(), bytes(4096)):
                        pass
                except OSError:
                    pass
                file.truncate(os.fstat(file.fileno()).st_size - room)
        said, before = io.StringIO(), sorted(os.listdir(place))
        with redirect_stdout(io.StringIO()), redirect_stderr(said):
            code = main([*command, "--out", str(place / name)])
        new = sorted(set(os.listdir(place)) - set(before))
        sentences = [line for line in said.getvalue().splitlines() if line.startswith("discreet: ")]
        assert (code, new) in ((0, [name]), (2, [])), (name, room, code, new, said.getvalue())
        assert "Traceback" not in said.getvalue() and len(sentences) == (code == 2), said.getvalue()
        assert room != 0 or code == 2, (name, "was written where there is no room")
        assert room is not None or code == 0, (name, said.getvalue())
        for path in (place / name, place / "filler"):
            if path.is_dir():
                for inner in path.iterdir():
                    inner.unlink()
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
"""


def test_commands_on_a_full_file_system_leave_nothing(tmp_path: Path) -> None:
    on_small_disk(tmp_path, COMMANDS_ON_FULL_DISK, str(Path(__file__).parents[1] / "release" / "stored"))


def test_of_two_processes_at_one_place_one_wins(tmp_path: Path) -> None:
    processes = [script(LIMITED, str(tmp_path / "out"), str(10**6)) for _ in range(4)]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 2, 2, 2]
    assert all("exists already" in error or "made meanwhile" in error for error in errors if error)
    assert not any("Traceback" in error for error in errors)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert torn(tmp_path) == []


# Every command that writes, at a place that can be read and not written; what is there stays.
ON_READ_ONLY_DISK = """
import io, os, subprocess, sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from discreet.cli import main
from discreet.files import temporary_name
from discreet.privacy.events import GaussianDpEvent
from discreet.privacy.ledger import Ledger, Run
place, inputs = Path(sys.argv[1]), Path(sys.argv[2])
ledger, suite = place / "ledger.db", place / "suite.toml"
Ledger(ledger).reserve(Run("train", "gap", "edge", GaussianDpEvent(4.0), 1e-5), "data")
left = place / temporary_name(Path("out"))
left.write_text("half")
os.utime(left, (0, 0))
suite.write_text(sys.argv[3])
before = sorted(os.listdir(place))
subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
data, release, out = ["--data", str(inputs / "graph.npz")], str(inputs / "gap-edge"), ["--out", str(place / "out")]
for command in (
    ["train", *data, *out],
    ["train", *data, "--ledger", str(ledger), "--dataset", "data", "--out", str(place.parent / "never")],
    ["tune", *data, "--search", "hidden=4,6", "--trials", "1", *out],
    ["audit", *out],
    ["attack", *data, *out],
    ["bench", str(suite), *out],
    ["extend", release, *data, "--epsilon", "1", *out],
    ["data", "convert", data[1], "--partitions", "2", *out],
    ["evaluate", str(inputs / "gap-node"), *data, "--epsilon", "1", *out],
    ["report", release, "--out", str(place / "out.html")],
    ["export", release, "--registry", *out],
    ["predict", release, *data, "--out", str(place / "out.csv")],
    ["sign", "--new-key", str(place / "key")],
    ["doctor", str(place), "--clean"],
):
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        code = main(command)
    sentences = [line for line in said.getvalue().splitlines() if line.startswith("discreet: ")]
    assert code == 2 and len(sentences) == 1 and "Traceback" not in said.getvalue(), (command, code, said.getvalue())
    assert "bug" not in sentences[0], sentences
    assert sorted(os.listdir(place)) == before and not (place.parent / "never").exists(), command
"""


def test_commands_at_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    stored = Path(__file__).parents[1] / "release" / "stored"
    on_small_disk(tmp_path / "disk", ON_READ_ONLY_DISK, str(stored), SUITE)
