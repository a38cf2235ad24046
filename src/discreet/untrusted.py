"""Reading what others may have made: regular files up to a size, and JSON that means one thing.

Nothing here follows a link, waits for a pipe, reads without a limit, or recurses as deep as a file says.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any, NoReturn

from discreet.errors import InvalidInputError
from discreet.limits import JSON_LEVELS, RELEASE_FILES

LONGEST_NUMBER = 400
"""Characters of a number; double precision needs fewer."""
PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def list_plain(folder: Path) -> list[str]:
    """The names in a folder, sorted; refused where there are many, or one that no release would have."""
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(names) == RELEASE_FILES:
                raise InvalidInputError(f"{folder} holds more than {RELEASE_FILES} files")
            if not PLAIN_NAME.fullmatch(entry.name):
                raise InvalidInputError(f"{folder} holds a file whose name is not plain: {entry.name!r:.80}")
            names.append(entry.name)
    return sorted(names)


def read_regular(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most ``limit`` bytes, read once; a link, a pipe or a device is refused."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if path.is_symlink():
        raise InvalidInputError(f"{path} is a link, and links are not followed here")
    try:
        opened = os.open(path, flags)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a name of a file"
        raise InvalidInputError(f"{path} cannot be read: {reason}") from None
    with open(opened, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise InvalidInputError(f"{path} is not a regular file")
        if found.st_size > limit:
            raise InvalidInputError(f"{path} is larger than {limit:,} bytes")
        try:
            content = file.read(found.st_size + 1)
        except (MemoryError, OverflowError):
            raise InvalidInputError(f"{path} does not fit into memory") from None
    if len(content) != found.st_size:
        raise InvalidInputError(f"{path} changed while it was read")
    return content


# -------------------------------------------------------------------- JSON


def strict_json(content: bytes, name: str) -> Any:
    """What a JSON text says, where it says one thing: no repeated key, no NaN or infinity, no deep nesting."""
    try:
        value = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_no_repeats,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except _RefusedError as error:
        raise InvalidInputError(f"{name} {error}") from None
    except (ValueError, RecursionError):
        raise InvalidInputError(f"{name} is not valid JSON") from None
    try:
        _walk(value, JSON_LEVELS)
    except _RefusedError as error:
        raise InvalidInputError(f"{name} {error}") from None
    return value


class _RefusedError(Exception):
    """What is wrong with the JSON, without its name."""


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _RefusedError(f"has the key {key!r:.80} twice")
        found[key] = value
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise _RefusedError(f"holds {word}, which is no number in JSON")


def _finite(text: str) -> float:
    if len(text) > LONGEST_NUMBER or not math.isfinite(number := float(text)):
        raise _RefusedError("holds a number that double precision does not have")
    return number


def _whole(text: str) -> int:
    if len(text) > len(str(1 << 64)) or abs(number := int(text)) >= 1 << 64:
        raise _RefusedError("holds a whole number of more than 64 bits")
    return number


def _walk(value: Any, levels: int) -> None:
    if isinstance(value, str) and not _is_text(value):
        raise _RefusedError("holds a text with characters that no text has")
    if not isinstance(value, dict | list):
        return
    if levels == 0:
        raise _RefusedError(f"is nested more than {JSON_LEVELS} levels deep")
    for item in value if isinstance(value, list) else (*value, *value.values()):
        _walk(item, levels - 1)


def _is_text(value: str) -> bool:
    """No NUL, and no half of a pair of surrogates, which UTF-8 cannot write."""
    return "\x00" not in value and not any("\ud800" <= character <= "\udfff" for character in value)
