"""Random bits from a cryptographic generator, exact choices that are made of them, and the source of it all.

Every law here is exact in the words drawn: it is proved for words that are independent and uniform on 0 … 2⁶⁴ − 1,
with no rounding anywhere, and ChaCha20's words cannot be told from such by anyone who cannot break ChaCha20. The one
method without that claim, :meth:`BitStream.uniform`, says so.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from discreet.arrays import Array, BoolArray, FloatArray, IntArray
from discreet.errors import ParameterError, PlanViolationError

WordArray: TypeAlias = npt.NDArray[np.uint64]
Size: TypeAlias = int | tuple[int, ...]
Bounds: TypeAlias = Callable[[int], tuple[int, int]]
"""What encloses a number p: for any ``bits``, whole numbers (low, high) with low ≤ 2^bits·p ≤ high."""

KEY_BYTES = 32
"""ChaCha20's."""
WORD = 1 << 64
"""Random words are of 64 bits."""
ROUNDED_UP = 1 + 2.0**-48
"""Times a probability or a sensitivity that took a few roundings to compute: never below its true value."""
SMALLEST_SCALE, LARGEST_SCALE = Fraction(1, 1 << 10), Fraction(1 << 44)
"""Of a geometric law, in steps: what its whole numbers are sure to hold and its loops to end in."""
_MOST_BYTES = 1 << 38  # 2³² blocks of 64 bytes: all that ChaCha20's counter numbers (RFC 8439)
_CHUNK = 1 << 10
"""Numbers at once, so that a table of their bits stays in cache."""
_ZEROS = memoryview(bytes(1 << 16))
"""What is enciphered, so much at once: the cipher of zeros is its key stream."""


class BitStream:
    """The keystream of ChaCha20 (RFC 8439, nonce zero, from block 0), under a 256-bit key that is for it alone.

    Guarantee: no bit is handed out twice: what one call has drawn, no later call sees, and a stream cannot be
    pickled, copied or carried across a fork. The same key and the same calls give the same bits; words have the
    byte order of the machine. A stream is for one thread at a time.
    """

    def __init__(self, key: bytes, purpose: str | None = None) -> None:
        """Start at the first block of the key; a key is never used for two streams. ``purpose`` is for audits."""
        if len(key) != KEY_BYTES:
            raise ParameterError(f"a stream's key has {KEY_BYTES} bytes, not {len(key)}")
        self.purpose = purpose
        for register in _REGISTERS:
            register.append((hashlib.blake2b(key, digest_size=16).digest(), self))
        self._cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._left = _MOST_BYTES
        self._process = os.getpid()

    # ---------------------------------------------------------------- bits

    @property
    def bytes_read(self) -> int:
        """How far the stream was read: its bytes from 0 to this were handed out, each once."""
        return _MOST_BYTES - self._left

    def fill(self, buffer: Array) -> None:
        """Overwrite a C-contiguous array with the next bytes of the stream."""
        if not buffer.flags.c_contiguous:
            raise ParameterError("random bits fill C-contiguous arrays alone")
        if os.getpid() != self._process:
            raise PlanViolationError("a stream of random bits does not cross into another process: make one there")
        if buffer.nbytes > self._left:
            raise PlanViolationError("a stream of random bits ends after 256 GiB: use a stream for each run")
        self._left -= buffer.nbytes
        if not buffer.nbytes:
            return
        target = buffer.reshape(-1).view(np.uint8).data
        for start in range(0, len(target), len(_ZEROS)):
            part = target[start : start + len(_ZEROS)]
            self._cipher.update_into(_ZEROS[: len(part)], part)

    def words(self, size: Size) -> WordArray:
        """The next 64-bit words, in an array of that size."""
        drawn = np.empty(size, dtype=np.uint64)
        self.fill(drawn)
        return drawn

    def word(self) -> int:
        """The next word."""
        return int(self.words(1)[0])

    def bytes(self, count: int) -> bytes:
        """The next bytes."""
        drawn = np.empty(count, dtype=np.uint8)
        self.fill(drawn)
        return drawn.tobytes()

    # ---------------------------------------------------------------- coins

    def coins(self, probability: float | FloatArray, size: Size) -> BoolArray:
        """Independent coins, each True with exactly the probability given, which is the very double and not near it.

        Guarantee: P(True) = p as a rational number, for every double from 0 to 1, subnormal ones and both ends
        included. How far the stream moves depends on ``size`` alone, so p may be private: coins of neighbours stay
        in step.

        *Proof.* Write 2⁶⁴p = whole + rest. Both are exact in doubles: scaling by a power of two and splitting off
        the fraction round nothing. A word below ``whole`` is heads, and one that equals it (probability 2⁻⁶⁴) tosses
        another coin for ``rest``, which is again a double below 1 with 64 places less, so that 17 rounds end all.
        P(heads) = whole/2⁶⁴ + rest/2⁶⁴ = p. ∎ Those further tosses come from a stream of their own, keyed by 32
        bytes that are drawn whether or not they are needed.
        """
        chance = np.asarray(probability, dtype=np.float64)
        if not ((chance >= 0) & (chance <= 1)).all():
            raise ParameterError("a coin's probability must lie between 0 and 1")
        drawn, reserve = self.words(size), self.bytes(KEY_BYTES)
        certain = chance == 1  # the one value whose 2⁶⁴p does not fit a word
        scaled = np.ldexp(np.where(certain, 0.0, chance), 64)
        whole = np.floor(scaled)
        heads: BoolArray = (drawn < whole.astype(np.uint64)) | certain
        rest = scaled - whole
        if heads.shape != drawn.shape:
            raise ParameterError(f"probabilities of shape {chance.shape} are more than coins of shape {drawn.shape}")
        if rest.any():
            tied = (drawn == whole.astype(np.uint64)) & (rest > 0)
            if tied.any():
                further = np.broadcast_to(rest, tied.shape)[tied]
                heads[tied] = BitStream(reserve).coins(further, further.size)
        return heads

    def below(self, word: int, bounds: Bounds) -> bool:
        """Whether a uniform number whose first 64 binary places are ``word`` lies below what ``bounds`` encloses.

        Guarantee: over a uniform word and the stream, True with probability exactly min(max(p, 0), 1), provided that
        bounds close in on p. *Proof.* The number lies in [w, w + 1)/2^bits; w < low puts all of that at or below p,
        and w ≥ high puts it at or above p. Otherwise 64 further places are drawn; the chance that they do not settle
        it goes to zero. ∎
        """
        bits = 64
        while True:
            low, high = bounds(bits)
            if word < low:
                return True
            if word >= high:
                return False
            word, bits = word << 64 | self.word(), bits + 64

    def coins_within(self, bounds: Bounds, count: int) -> BoolArray:
        """Independent coins of exactly the probability that ``bounds`` encloses, strictly between 0 and 1."""
        low, high = bounds(64)
        drawn = self.words(count)
        heads = drawn < np.uint64(low)
        for at in np.flatnonzero(~heads & (drawn <= np.uint64(min(high, WORD) - 1))):  # nearly never any
            heads[at] = self.below(int(drawn[at]), bounds)
        return heads

    # ---------------------------------------------------------------- choices

    def integers(self, bound: int, size: Size) -> IntArray:
        """Independent whole numbers, uniform on 0 … bound − 1, for a bound of at most 2⁶³.

        Guarantee: exactly uniform. *Proof.* Words at or above the largest multiple of the bound are drawn again; on
        those below it every remainder has as many words as any other. ∎
        """
        if not 1 <= bound <= 1 << 63:
            raise ParameterError(f"a bound of whole numbers must lie between 1 and 2^63, not {bound!r}")
        drawn = self.words(size)
        surplus = WORD % bound
        if surplus:
            while (again := drawn >= np.uint64(WORD - surplus)).any():
                drawn[again] = self.words(int(again.sum()))
        return (drawn % np.uint64(bound)).astype(np.int64)

    def permutation(self, n: int) -> IntArray:
        """0 … n − 1 in uniformly random order.

        Guarantee: exactly uniform. *Proof.* The order of n independent words, given that no two are equal, is
        uniform by symmetry; where two are equal, all are drawn again. ∎
        """
        while True:
            keys = self.words(n)
            order = np.argsort(keys)
            keys = keys[order]
            if not (keys[1:] == keys[:-1]).any():
                return order.astype(np.int64)

    def choice_without_replacement(self, n: int, k: int) -> IntArray:
        """k different numbers out of 0 … n − 1, in rising order; every subset of k is equally likely, exactly.

        *Proof.* The first k different values of independent uniform draws: given those found so far, the next new one
        is uniform on the rest. Of more than half, the complement is drawn. ∎ Memory grows with k, or with n where k
        is more than half of it.
        """
        if not 0 <= k <= n:
            raise ParameterError(f"between 0 and {n} can be chosen out of {n}, not {k!r}")
        if 2 * k > n:
            left_out = self.choice_without_replacement(n, n - k)
            return np.delete(np.arange(n), left_out)
        drawn = self.integers(n, k + k // 2 + 8) if k else np.empty(0, dtype=np.int64)
        while True:
            _, first = np.unique(drawn, return_index=True)
            if len(first) >= k:
                return np.sort(drawn[np.sort(first)[:k]])
            drawn = np.concatenate([drawn, self.integers(n, k)])

    # ---------------------------------------------------------------- noise on whole numbers

    def geometric(self, scale: float | Fraction, size: Size) -> IntArray:
        """Independent whole numbers x ≥ 0 with P(x) ∝ exp(−x/scale), for a scale from 2⁻¹⁰ to 2⁴⁴ steps.

        Guarantee: the exact law, of the very double or rational given. *Proof.* For x = Σᵢ bᵢ2ⁱ + 2ᵐh with bits bᵢ
        below 2ᵐ, exp(−x/s) = Πᵢ exp(−bᵢ2ⁱ/s) · exp(−h2ᵐ/s): so bits and h are independent, bᵢ is a coin of
        1/(1 + exp(2ⁱ/s)), and h counts the heads of exp(−2ᵐ/s) before the first tail. Both are enclosed by rationals
        as narrowly as a toss needs. ∎ m is the least with 2ᵐ ≥ s, so that heads are at most 1/e. (A number beyond
        int64, with probability below exp(−2¹⁸), would wrap around, as would the sum that it is a term of: a function
        of the exact sum.)
        """
        table = _geometric_table(_checked_scale(scale))
        count = math.prod(size) if isinstance(size, tuple) else size
        found = self._heads_in_a_row(table.heads, count) << len(table.bits)
        for start in range(0, count, _CHUNK):
            found[start : start + _CHUNK] |= self._low_bits(table, min(_CHUNK, count - start))
        return found.reshape(size)

    def _low_bits(self, table: _GeometricTable, count: int) -> IntArray:
        """Whole numbers below 2ᵐ, of m coins each."""
        drawn = self.words((len(table.bits), count))
        heads = drawn < table.low
        tied = drawn - table.low <= table.high - table.low  # in words, so what is below ``low`` wraps around
        if tied.any():  # nearly never
            for bit, at in np.argwhere(tied):
                heads[bit, at] = self.below(int(drawn[bit, at]), table.bits[bit])
        return np.asarray(np.where(heads, table.places, 0).sum(axis=0))

    def _heads_in_a_row(self, bounds: Bounds, count: int) -> IntArray:
        """How often each of ``count`` players tosses heads before a tail."""
        heads, playing = np.zeros(count, dtype=np.int64), np.arange(count)
        while playing.size:
            playing = playing[self.coins_within(bounds, playing.size)]
            heads[playing] += 1
        return heads

    # ---------------------------------------------------------------- not exact

    def uniform(self, size: Size) -> FloatArray:
        """Numbers strictly between 0 and 1: the odd multiples of 2⁻⁵³, each equally likely.

        No exactness is claimed for what is computed from them. Symmetric about ½, so 1 − u has the same law.
        """
        return np.asarray(((self.words(size) >> np.uint64(11)) | np.uint64(1)).astype(np.float64) * 2.0**-53)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise PlanViolationError("a stream of random bits cannot be pickled or copied: the copy would repeat its bits")


StreamRegister: TypeAlias = "list[tuple[bytes, BitStream]]"
"""Every stream that was made, with a digest of its key: for audits."""
_REGISTERS: list[StreamRegister] = []


@contextmanager
def registered_streams() -> Iterator[StreamRegister]:
    """Note every stream that is made while the block runs, in whatever thread: which key, whose, and how far read."""
    register: StreamRegister = []
    _REGISTERS.append(register)
    try:
        yield register
    finally:
        _REGISTERS[:] = [other for other in _REGISTERS if other is not register]


def _checked_scale(scale: float | Fraction) -> Fraction:
    """As a rational, which every finite double is."""
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise ParameterError(f"the scale of noise on whole numbers must lie between 2^-10 and 2^44, not {scale!r}")
    return scale if isinstance(scale, Fraction) else Fraction(float(scale))


# -------------------------------------------------------------------- exponentials in whole numbers


def exp_bounds(gamma: Fraction, bits: int) -> tuple[int, int]:
    """Whole numbers with low ≤ 2^bits·exp(−γ) ≤ high, for a rational γ ≥ 0; they are at most 2 apart.

    *Proof.* t = γ/2ʰ is at most ½, so the terms of Σ(−t)ᵏ/k! fall and alternate in sign: exp(−t) lies between any two
    partial sums in a row. Terms are rounded down on one side and up on the other; the h squarings that lead back to
    exp(−γ) as well. No step leaves whole numbers. The distance is not relied on: a caller to whom it is too wide asks
    again with more bits. ∎
    """
    halvings = math.ceil(gamma).bit_length() + 1
    precision = bits + 2 * halvings + 16
    one = 1 << precision
    t = gamma / (1 << halvings)
    t_low, t_high = _floor_and_ceiling(t * one)
    low = high = term_low = term_high = one
    k = 0
    while term_high > 1:
        k += 1
        term_low, term_high = (term_low * t_low >> precision) // k, -((-term_high * t_high >> precision) // k)
        low, high = (low - term_high, high - term_low) if k % 2 else (low + term_low, high + term_high)
    low, high = low - term_high, high + term_high  # what follows is shorter than the last term
    for _ in range(halvings):
        low, high = low * low >> precision, -(-high * high >> precision)
    return low >> (precision - bits), -(-high >> (precision - bits))


# Remembered where γ follows from a public scale; where it follows from a sample it must not be.
_public_exp_bounds = lru_cache(maxsize=256)(exp_bounds)


def _logistic_bounds(gamma: Fraction, bits: int) -> tuple[int, int]:
    """The same for 1/(1 + exp(γ)) = r/(1 + r), which rises with r = exp(−γ)."""
    low, high = _public_exp_bounds(gamma, bits + 2)
    one = 1 << (bits + 2)
    return (low << bits) // (one + low), -(-(high << bits) // (one + high))


@dataclass(frozen=True)
class _GeometricTable:
    """The coins of a geometric law: heads in a row, and one for each low bit, whose first 64 places are in arrays."""

    heads: Bounds
    bits: tuple[Bounds, ...]
    low: WordArray
    high: WordArray
    places: IntArray


@lru_cache(maxsize=64)
def _geometric_table(steps: Fraction) -> _GeometricTable:
    """For a public scale; bits are below ½, so that ``high`` fits a word."""
    low_bits = max(0, math.ceil(steps) - 1).bit_length()
    bits = tuple(partial(_logistic_bounds, (1 << bit) / steps) for bit in range(low_bits))
    ends = np.array([bound(64) for bound in bits], dtype=np.uint64).reshape(low_bits, 2)
    heads = partial(_public_exp_bounds, (1 << low_bits) / steps)
    return _GeometricTable(heads, bits, ends[:, :1], ends[:, 1:], np.left_shift(1, np.arange(low_bits))[:, None])


def _floor_and_ceiling(number: Fraction) -> tuple[int, int]:
    return math.floor(number), math.ceil(number)


# -------------------------------------------------------------------- where a test fixes the randomness


Randomness: TypeAlias = "BitStream | np.random.Generator"


def bits_of(randomness: Randomness) -> BitStream:
    """The stream itself; of a NumPy generator, which fixes the randomness of a test, a stream that it keys."""
    if isinstance(randomness, BitStream):
        return randomness
    return BitStream(randomness.bytes(KEY_BYTES))


# -------------------------------------------------------------------- one key for each fit


FRESH = "ChaCha20 streams keyed with 256 bits of operating-system entropy, fresh for this fit"
FIXED = "FIXED TEST SEED: the noise can be reproduced, so this is NOT FOR RELEASE"


class NoiseSource:
    """Independent random streams, each named by purpose and run, each handed out once.

    Guarantee: the key is 256 bits from the operating system unless ``insecure_seed`` is given; distinct
    (purpose, run) pairs get distinct subkeys by BLAKE2b; a stream is never handed out twice; the source
    cannot be pickled, copied or carried across a fork, so no two workers can draw the same noise.

    Each stream is ChaCha20 under its own subkey (``mechanisms.bits``).
    """

    def __init__(self, *, insecure_seed: int | None = None) -> None:
        """Take a fresh key, or derive it from a seed that is for tests only."""
        if insecure_seed is None:
            self._key = secrets.token_bytes(32)
        else:
            self._key = hashlib.blake2b(str(insecure_seed).encode(), digest_size=32).digest()
        self.secure = insecure_seed is None
        self._used: set[tuple[str, int]] = set()
        self._process = os.getpid()

    def describe(self) -> str:
        """For the certificate."""
        return FRESH if self.secure else FIXED

    def stream(self, purpose: str, run: int = 0) -> BitStream:
        """The stream of that name; asking for it a second time is an error."""
        if os.getpid() != self._process:
            raise PlanViolationError("a noise source does not cross into another process: make one there")
        if (purpose, run) in self._used:
            raise PlanViolationError(f"the noise for {purpose!r}, run {run}, was already drawn")
        self._used.add((purpose, run))
        message = f"{purpose}\x00{run}".encode()
        return BitStream(hashlib.blake2b(message, key=self._key, digest_size=32).digest(), f"{purpose}, run {run}")

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise PlanViolationError("a noise source cannot be pickled or copied: the copy would repeat its noise")
