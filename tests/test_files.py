"""Files: whole or not at all, nothing left behind, the umask obeyed, and infinity in JSON."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import discreet
from discreet.errors import OutputExistsError, OutputUnusableError
from discreet.files import PARTIAL, check_free, check_output, from_json, to_json, write_folder, write_whole

FILES = {"a.txt": b"one", "b.bin": b"\x00\xff"}
Write = Callable[[Path], None]


def one_file(path: Path) -> None:
    write_whole(path, "content")


def one_folder(path: Path) -> None:
    write_folder(path, FILES)


def full_disk(*_: object) -> None:
    raise OSError(28, "No space left on device")


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture(params=[0o022, 0o027, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_content_arrives_as_it_is(tmp_path: Path) -> None:
    write_whole(tmp_path / "deep" / "text", "ε\r\n")
    assert (tmp_path / "deep" / "text").read_bytes() == "ε\r\n".encode()
    write_whole(tmp_path / "deep" / "text", b"\xff")
    assert (tmp_path / "deep" / "text").read_bytes() == b"\xff"
    write_folder(tmp_path / "new" / "folder", FILES)
    assert {path.name: path.read_bytes() for path in (tmp_path / "new" / "folder").iterdir()} == FILES
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.txt", "b.bin", "deep", "folder", "new", "text"]


def test_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    for name in ("n" * 255, "ε" * 127):
        write_whole(tmp_path / name, "x")
        assert (tmp_path / name).read_text() == "x"


@pytest.mark.parametrize("write", [one_file, one_folder])
@pytest.mark.parametrize("failing", ["os.replace", "os.fsync", "pathlib.Path.write_bytes"])
@pytest.mark.parametrize(("fault", "error"), [(full_disk, OSError), (interrupt, KeyboardInterrupt)])
def test_nothing_is_left_behind(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Write,
    failing: str,
    fault: Callable[..., None],
    error: type[BaseException],
) -> None:
    monkeypatch.setattr(failing, fault)
    with pytest.raises(error):
        write(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", [full_disk, interrupt])
def test_a_write_that_stops_midway_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[..., None]
) -> None:
    real = Path.write_bytes

    def half(self: Path, content: bytes) -> int:
        real(self, content[: len(content) // 2])
        fault()
        return 0

    (tmp_path / "kept").write_text("before")
    monkeypatch.setattr(Path, "write_bytes", half)
    for write, name in ((one_file, "kept"), (one_folder, "folder")):
        with pytest.raises((OSError, KeyboardInterrupt)):
            write(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept").read_text() == "before"


def test_modes_follow_the_umask(tmp_path: Path, umask: int) -> None:
    write_whole(tmp_path / "file", b"")
    write_folder(tmp_path / "folder", FILES)
    assert mode(tmp_path / "file") == mode(tmp_path / "folder" / "a.txt") == 0o666 & ~umask
    assert mode(tmp_path / "folder") == 0o777 & ~umask


def test_content_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut after the move may not leave a name without its content, nor one before it a moved folder."""
    done: list[str] = []
    flush, move = os.fsync, os.replace

    def flushed(opened: int) -> None:
        done.append(Path(os.readlink(f"/proc/self/fd/{opened}")).name)
        flush(opened)

    def moved(source: Path, target: Path) -> None:
        done.append("moved")
        move(source, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", moved)
    write_folder(tmp_path / "folder", FILES)
    assert sorted(done[:2]) == sorted(FILES)
    assert done[2].endswith(PARTIAL)
    assert done[3:] == ["moved", tmp_path.name]


def test_the_temporary_name_is_new_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, names = os.replace, []

    def watched(source: Path, target: Path) -> None:
        names.append(Path(source))
        real(source, target)

    monkeypatch.setattr(os, "replace", watched)
    write_whole(tmp_path / "file", "1")
    write_whole(tmp_path / "file", "2")
    assert len({path.name for path in names}) == 2
    assert {path.parent for path in names} == {tmp_path}


def test_a_taken_path_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "folder", "link"):
        with pytest.raises(OutputExistsError, match=name):
            check_free(tmp_path / name)
        with pytest.raises(OutputExistsError, match=name):
            write_folder(tmp_path / name, FILES)
    check_free(tmp_path / "free")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "link"]


def test_infinity_in_json() -> None:
    value = {"a": math.inf, "b": [1.5, -math.inf, {"c": math.inf}], "d": "text", "e": None, "f": True, "g": 3}
    written = json.dumps(to_json(value), allow_nan=False)
    assert json.loads(written) == {**value, "a": "infinite", "b": [1.5, "-infinite", {"c": "infinite"}]}
    assert from_json(json.loads(written)) == value
    assert to_json((1.0, math.inf)) == [1.0, "infinite"]
    assert from_json(to_json(math.inf)) == math.inf


def test_a_place_that_cannot_be_written_is_found_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for bad in ("file/below", "n" * 300, f"new/{'n' * 300}", f"{'n' * 300}/new", "a\0b"):
        with pytest.raises(OutputUnusableError, match="nothing can be written"):
            check_output(tmp_path / bad)
    with pytest.raises(OutputUnusableError, match="nothing can be written"):
        check_output(Path("/proc/nowhere/release"))
    with pytest.raises(OutputExistsError):
        check_output(tmp_path / "file")
    check_output(tmp_path / "new" / "deep" / "release")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_home_folders_are_found_in_one_place() -> None:
    """Path.expanduser and Path.home raise RuntimeError where nobody has that home; expand_home does not."""
    package = Path(discreet.__file__).parent
    texts = {path: path.read_text() for path in package.rglob("*.py") if path.name != "files.py"}
    assert [path for path, text in texts.items() if ".expanduser(" in text or "Path.home(" in text] == []
