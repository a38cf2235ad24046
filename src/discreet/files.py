"""Files that appear whole or not at all, outputs that are never overwritten, and infinity in JSON."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from discreet.errors import DataNotFoundError, InvalidInputError, OutputExistsError, OutputUnusableError, ParameterError
from discreet.limits import TEXT_BYTES, shown

INFINITE = "infinite"
PARTIAL = ".partial"
_TEMPORARY = re.compile(rf"\..*-[0-9a-f]{{32}}{re.escape(PARTIAL)}", re.DOTALL)

# -------------------------------------------------------------------- whole or not at all


def check_free(path: Path) -> None:
    """Refuse an output path that is taken, be it by a link that leads nowhere."""
    if os.path.lexists(path):
        raise OutputExistsError(f"{path} exists already: choose another output, or remove it")


def check_output(path: Path) -> None:
    """Refuse an output path at which nothing could be written, before the work whose result would be lost.

    A folder with a name that cannot be guessed is made in the nearest folder that exists, and removed: permissions,
    read-only file systems and links are as they are, not as they look.
    """
    try:
        check_free(path)
        nearest = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
        for missing in path.absolute().relative_to(nearest).parts:
            with suppress(FileNotFoundError):
                os.lstat(nearest / missing)  # a name that is too long
        probe = nearest / temporary_name(path)
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        raise OutputUnusableError(f"nothing can be written at {path}: {error.strerror}") from None
    except ValueError as error:
        if isinstance(error, InvalidInputError):
            raise
        raise OutputUnusableError(f"nothing can be written at {path}: no file can have this name") from None


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file, in the place of one that may be there; text is UTF-8, its line ends as given.

    Guarantee: readers see the old file or the whole new one, and an error or an interrupt leaves what was there
    before and nothing beside it. The mode follows the umask. Where nothing may be overwritten, call
    :func:`check_free` first.
    """
    with whole(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a new folder with these files by name; one that exists is refused.

    Guarantee: the folder appears with all of its files, and an error or an interrupt leaves nothing behind. The modes
    follow the umask.
    """
    check_free(folder)
    with whole(folder) as temporary:
        temporary.mkdir()
        for name, content in files.items():
            (temporary / name).write_bytes(content)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A name beside ``path`` that cannot be guessed; what the caller puts there takes the place of ``path`` at the end.

    It is on the same file system, where a move is one step; a name that cannot be guessed is nobody else's. The content
    is on the disk before the move and the move before this returns, so that a power cut tears nothing either.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(temporary_name(path))
    mine = os.getpid(), temporary.absolute()
    _UNFINISHED.add(mine)
    try:
        yield temporary
        _flush(temporary)
        _move(temporary, path)
        _flush_folder(path.parent)
    except BaseException:  # a full disk or Ctrl-C must leave nothing behind
        _remove(temporary)
        _UNFINISHED.discard(mine)
        raise
    _UNFINISHED.discard(mine)


_UNFINISHED: set[tuple[int, Path]] = set()
"""What :func:`whole` has begun, and the process that did: a fork has the list of its parent too."""


def remove_unfinished() -> None:
    """Remove what this process began to write and will not finish.

    A signal can arrive where an exception out of it skips every cleaning up: between a block and its end, or in it.
    """
    for process, temporary in list(_UNFINISHED):
        if process == os.getpid():
            _remove(temporary)
            _UNFINISHED.discard((process, temporary))


def _move(temporary: Path, path: Path) -> None:
    """In one step; a folder takes no other's place."""
    try:
        os.replace(temporary, path)
    except OSError:
        if temporary.is_dir() and os.path.lexists(path):  # another process was first
            raise OutputExistsError(f"{path} was made meanwhile: nothing is written over it") from None
        raise


def _flush(path: Path) -> None:
    """Wait until a file, or a folder with all that it holds, is on the disk; a full one may say so only now."""
    if path.is_dir():
        for inner in path.iterdir():
            _flush(inner)
        _flush_folder(path)
        return
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where its file system can do that."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(opened)
    finally:
        os.close(opened)


def temporary_name(path: Path) -> str:
    """``.NAME-RANDOM.partial``: what a killed run leaves can be found by it."""
    return f".{path.name[:40]}-{secrets.token_hex(16)}{PARTIAL}"  # names have an end: 255 bytes


LATELY = 600.0
"""Seconds: a run that writes touches its files more often, so what is older was left by one that is gone."""


def leftovers(folder: Path, older_than: float = LATELY) -> list[Path]:
    """What killed runs left unfinished in a folder: temporary names of :func:`whole` that nobody has touched lately."""
    found = []
    with suppress(OSError, ValueError):  # ValueError: a NUL in the name
        for path in sorted(folder.iterdir()):
            with suppress(OSError):
                if _TEMPORARY.fullmatch(path.name) and time.time() - path.lstat().st_mtime > older_than:
                    found.append(path)
    return found


def remove_leftover(path: Path) -> None:
    """Remove one of :func:`leftovers`."""
    assert _TEMPORARY.fullmatch(path.name)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _remove(path: Path) -> None:
    """Remove a file or a folder as far as that is possible; the error that led here is the one to report."""
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink(missing_ok=True)


# -------------------------------------------------------------------- the home folder


def expand_home(path: str | os.PathLike[str]) -> Path:
    """The path with ``~`` or ``~NAME`` at its start as that home folder; as it is where nobody has one."""
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise InvalidInputError(f"a path must be a text or a pathlib.Path, not {type(path).__name__}")
    if "\0" in os.fspath(path):
        raise InvalidInputError(f"the path {shown(path)} holds a NUL, which no name of a file can")
    return Path(os.path.expanduser(path))


def home_folder() -> Path:
    """The home folder; for a user without one a place where nothing lies, and where nothing can be written."""
    found = expand_home("~")
    return Path(os.devnull) if found == Path("~") else found


# -------------------------------------------------------------------- texts of others


def read_text(path: Path, what: str) -> str:
    """A text file that somebody wrote, or one sentence about why it cannot be read."""
    try:
        if not path.is_file():  # a folder, a pipe that never ends, or nothing
            raise DataNotFoundError(f"there is no {what} at {path}")
        if path.stat().st_size > TEXT_BYTES:
            raise InvalidInputError(f"{path} is larger than {TEXT_BYTES >> 20} MiB, too large for a {what}")
        return path.read_text(encoding="utf-8-sig")  # editors on Windows begin a file with a mark
    except UnicodeDecodeError:
        raise InvalidInputError(f"{path} is not text in UTF-8") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else "no file can have this name"
        if isinstance(error, InvalidInputError):
            raise
        raise DataNotFoundError(f"the {what} at {path} cannot be read: {reason}") from None


def json_or_text(text: str, option: str) -> Any:
    """A value that was written at an option of the command: JSON, or else the word itself."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ParameterError(f"{option}: {shown(text)} is nested too deeply") from None
    except ValueError:  # a word, or a number of more than 4,300 digits
        return text


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """The content of a TOML text; ``name`` is for the sentence that says what is wrong with it."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ParameterError(f"{name} is nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, or a number of more than 4,300 digits
        raise ParameterError(f"{name} is not valid TOML: {error}") from None


# -------------------------------------------------------------------- infinity, which JSON does not have


def to_json(value: Any) -> Any:
    """The value with every infinity in it, at any depth, as the word ``infinite``; tuples become lists."""
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return INFINITE if value > 0 else f"-{INFINITE}"
    return value


def from_json(value: Any) -> Any:
    """What :func:`to_json` wrote, with its infinities; lists stay lists."""
    if isinstance(value, dict):
        return {key: from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if isinstance(value, str) and value.removeprefix("-") == INFINITE:
        return math.inf if value == INFINITE else -math.inf
    return value
