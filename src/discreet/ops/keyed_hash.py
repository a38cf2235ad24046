"""A keyed hash of (node, node) pairs: SipHash-2-4 over arrays (Aumasson and Bernstein, 2012).

What a node keeps of its edges must depend on nothing but the key, the node and the edge itself; and where
the *randomness* of the choice is part of a guarantee (thinned edges) the hash must be as good as random to
whoever lacks the key. SipHash is a pseudo-random function with a 128-bit key, and cheap on arrays.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from discreet.arrays import IntArray

HashArray = npt.NDArray[np.uint64]
State = tuple[HashArray, HashArray, HashArray, HashArray]

_CHUNK = 1 << 14  # four state words of a chunk stay in the cache
# SipHash's: "somepseudorandomlygeneratedbytes" as four words, and the length of a message in its last byte.
_INITIAL = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_LENGTH_WORD = np.uint64(16 << 56)  # two words of eight bytes


def derive_key(secret: bytes, purpose: str) -> bytes:
    """A 16-byte key for one purpose, from a secret of any length."""
    return hashlib.blake2b(purpose.encode(), key=hashlib.blake2b(secret).digest(), digest_size=16).digest()


def hash_pairs(key: bytes, first: IntArray, second: IntArray) -> HashArray:
    """64 bits for each pair; a function of the 16-byte key and the pair alone, in this order."""
    if len(key) != 16:
        raise ValueError(f"the key must have 16 bytes, not {len(key)}")
    words = np.frombuffer(key, dtype="<u8")
    hashed = np.empty(len(first), dtype=np.uint64)
    for start in range(0, len(first), _CHUNK):
        part = slice(start, start + _CHUNK)
        hashed[part] = _siphash(words, first[part].astype(np.uint64), second[part].astype(np.uint64))
    return hashed


def _siphash(key: HashArray, first: HashArray, second: HashArray) -> HashArray:
    shape = first.shape
    v0, v1, v2, v3 = (
        np.full(shape, np.uint64(initial) ^ key[i % 2], dtype=np.uint64) for i, initial in enumerate(_INITIAL)
    )
    for word in (first, second, np.full(shape, _LENGTH_WORD)):
        v3 = v3 ^ word
        v0, v1, v2, v3 = _round(*_round(v0, v1, v2, v3))
        v0 = v0 ^ word
    state = (v0, v1, v2 ^ np.uint64(0xFF), v3)
    for _ in range(4):
        state = _round(*state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _round(v0: HashArray, v1: HashArray, v2: HashArray, v3: HashArray) -> State:
    v0 = v0 + v1
    v2 = v2 + v3
    v1 = _rotate(v1, 13) ^ v0
    v3 = _rotate(v3, 16) ^ v2
    v0 = _rotate(v0, 32)
    v2 = v2 + v1
    v0 = v0 + v3
    v1 = _rotate(v1, 17) ^ v2
    v3 = _rotate(v3, 21) ^ v0
    return v0, v1, _rotate(v2, 32), v3


def _rotate(word: HashArray, bits: int) -> HashArray:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))
