"""Arrays of a ``.npz`` file that somebody else may have written: read when asked for, plain, and no larger than said.

Guarantee: nothing is unpickled; an array that nobody asks for is never unpacked; an array whose header and stored size
disagree, or that would make the whole larger than ``limits.ARRAY_BYTES``, is refused before it is unpacked.
"""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from discreet.errors import DataNotFoundError, GraphError
from discreet.limits import ARRAY_BYTES

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


_LOCAL_HEADER, _LARGE_SIZES = 30, 20
"""Bytes that stand before the name of an entry, and those of an extra field that holds sizes in 64 bits."""
_ALIGNMENT, _PADDING = 64, 0xD935
"""Numbers begin at a multiple of this, so that they can be read in place; the id of an extra field of zeros."""


def write_arrays(file: IO[bytes], arrays: Mapping[str, np.ndarray]) -> None:
    """A ``.npz`` file as ``np.savez`` writes it, whose arrays are aligned: they can be read in place."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            begins = file.tell() + _LOCAL_HEADER + len(entry.filename.encode()) + _LARGE_SIZES + 4
            short = -begins % _ALIGNMENT
            entry.extra = struct.pack("<HH", _PADDING, short) + bytes(short)
            with archive.open(entry, "w", force_zip64=True) as stored:
                np.lib.format.write_array(stored, array, allow_pickle=False)


class PlainArrays(Mapping[str, np.ndarray]):
    """The arrays of a file by name."""

    def __init__(self, path: Path) -> None:
        """Read the list of arrays, and none of them."""
        if not path.is_file():
            raise DataNotFoundError(f"there is no file {path}")
        self._path, self._left = path, ARRAY_BYTES
        try:
            with zipfile.ZipFile(path) as archive:
                found = archive.infolist()
        except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, RuntimeError):
            raise GraphError(f"{path} is not a .npz file of plain arrays") from None
        self._entries = {info.filename.removesuffix(".npy"): info for info in found}

    def __getitem__(self, key: str) -> np.ndarray:
        """The array, unpacked."""
        if key not in self._entries:
            raise GraphError(f"{self._path} lacks the array {key!r}")
        info = self._entries[key]
        if info.file_size > self._left:
            raise GraphError(f"{self._path}: with {key!r} its arrays take more than {ARRAY_BYTES >> 30} GiB unpacked")
        self._left -= info.file_size
        try:
            with zipfile.ZipFile(self._path) as archive, archive.open(info) as stored:
                self._check_header(key, stored, info.file_size)
            with zipfile.ZipFile(self._path) as archive, archive.open(info) as stored:
                return np.lib.format.read_array(stored, allow_pickle=False)
        except GraphError:
            raise
        except Exception:  # damaged files raise nearly anything, from zlib to the tokenizer of headers
            raise GraphError(f"{self._path}: the array {key!r} is damaged") from None

    def on_disk(self, key: str) -> np.ndarray:
        """The array, left in the file and read as it is needed; an error where the file is compressed."""
        info = self._entries.get(key)
        if info is None or info.compress_type != zipfile.ZIP_STORED:
            raise GraphError(f"{self._path} holds no {key!r} that could be left on disk: save the graph with save_npz")
        try:
            with zipfile.ZipFile(self._path) as archive, archive.open(info) as stored:
                shape, columns_first, dtype = self._check_header(key, stored, info.file_size)
                header = stored.tell()
            with self._path.open("rb") as file:  # the name and the extra field stand between an entry and its bytes
                file.seek(info.header_offset + 26)
                name, extra = struct.unpack("<HH", file.read(4))
            start = info.header_offset + _LOCAL_HEADER + name + extra + header
            if start % max(dtype.itemsize, 1) or columns_first:
                raise GraphError(f"{self._path}: {key!r} is not stored so that it could be left on disk: save it anew")
            return np.memmap(self._path, dtype=dtype, mode="r", offset=start, shape=shape)
        except GraphError:
            raise
        except Exception:
            raise GraphError(f"{self._path}: the array {key!r} is damaged") from None

    def _check_header(self, key: str, stored: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        """Shape, order and type, where the array is plain and as large as it says."""
        read = _HEADERS.get(np.lib.format.read_magic(stored))
        if read is None:
            raise GraphError(f"{self._path}: the array {key!r} has an unknown version")
        shape, columns_first, dtype = read(stored)
        if dtype.hasobject:
            raise GraphError(f"{self._path} stores {key!r} as pickled objects, which are not read")
        if stored.tell() + math.prod(shape) * dtype.itemsize != size:
            raise GraphError(f"{self._path}: the array {key!r} is not as large as it says")
        return shape, columns_first, dtype

    def __contains__(self, key: object) -> bool:
        """Whether there is an array of that name, without unpacking it."""
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._entries)

    def __len__(self) -> int:
        """How many arrays there are."""
        return len(self._entries)
