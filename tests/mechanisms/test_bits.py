"""The stream of bits: ChaCha20's own words, and choices whose law is exact in them."""

from __future__ import annotations

import copy
import itertools
import math
import multiprocessing
import pickle
import struct
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from discreet.arrays import BoolArray, IntArray
from discreet.errors import ParameterError, PlanViolationError
from discreet.mechanisms import bits
from discreet.mechanisms.bits import BitStream, exp_bounds

FALSE_ALARM = 1e-6


def stream(number: int = 0) -> BitStream:
    """A stream that is the same in every run."""
    return BitStream(number.to_bytes(32, "little"))


class Scripted(BitStream):
    """A stream whose first words a test chooses."""

    def __init__(self, words: Any) -> None:
        super().__init__(bytes(32))
        self._script = np.array(words, dtype=np.uint64).reshape(-1).view(np.uint8)

    def fill(self, buffer: Any) -> None:
        target = buffer.reshape(-1).view(np.uint8)
        count = min(len(self._script), len(target))
        target[:count], self._script = self._script[:count], self._script[count:]
        super().fill(target[count:])


def p_value(drawn: IntArray, law: dict[int, float]) -> float:
    """χ² of whole numbers against their law; values that are rare, or that the law does not name, share a cell."""
    common = [value for value, chance in law.items() if chance * len(drawn) >= 10]
    seen = np.array([int((drawn == value).sum()) for value in common])
    due = np.array([law[value] * len(drawn) for value in common])
    if (rest := len(drawn) - due.sum()) >= 5:
        seen, due = np.append(seen, len(drawn) - seen.sum()), np.append(due, rest)
    elif seen.sum() < len(drawn) - 30:
        return 0.0
    return float(stats.chi2.sf(((seen - due) ** 2 / due).sum(), len(due) - 1))


# -------------------------------------------------------------------- bits


def chacha20_block(key: bytes, counter: int) -> bytes:
    """RFC 8439, section 2.3, with nonce zero: written out, to compare with."""
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<8I", key), counter, 0, 0, 0]
    state = list(start)

    def rotated(value: int, by: int) -> int:
        return (value << by | value >> (32 - by)) & 0xFFFFFFFF

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = (state[x] + state[y]) & 0xFFFFFFFF
            state[z] = rotated(state[z] ^ state[x], by)

    for _ in range(10):
        for column in range(4):
            quarter(column, column + 4, column + 8, column + 12)
        for column in range(4):
            quarter(column, (column + 1) % 4 + 4, (column + 2) % 4 + 8, (column + 3) % 4 + 12)
    return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(start, state, strict=True)))


def test_words_are_those_of_rfc_8439() -> None:
    # Appendix A.1, test vectors 1 and 2: key and nonce zero, blocks 0 and 1.
    first = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7da41597c5157488d7724e03fb8d84a37"
    second = "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
    drawn = BitStream(bytes(32)).bytes(128)
    assert drawn[:48].hex() == first
    assert drawn[64:96].hex() == second


def test_words_go_on_across_calls_and_chunks() -> None:
    key = bytes(range(32))
    source = BitStream(key)
    pieces = [source.bytes(5), source.bytes(3), source.words(8191).tobytes(), source.words((3, 40)).tobytes()]
    pieces.append(struct.pack("=Q", source.word()))
    whole = b"".join(pieces)
    for block in (0, 1, 77, 1022, 1023, 1024, 1030):
        assert whole[64 * block : 64 * block + 64] == chacha20_block(key, block)


def test_same_key_same_bits() -> None:
    assert np.array_equal(stream(3).words(50), stream(3).words(50))
    assert not np.array_equal(stream(3).words(50), stream(4).words(50))
    with pytest.raises(ParameterError, match="32 bytes"):
        BitStream(b"short")


@pytest.mark.parametrize("carry", [pickle.dumps, copy.copy, copy.deepcopy])
def test_cannot_be_copied(carry: Any) -> None:
    with pytest.raises(PlanViolationError, match="copied"):
        carry(stream())


def _in_child(source: BitStream, out: Any) -> None:
    try:
        source.word()
    except PlanViolationError as error:
        out.put(str(error))
    else:
        out.put("drawn")


def test_cannot_cross_a_fork() -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(stream(), queue))
    child.start()
    assert "process" in queue.get(timeout=300)
    child.join()


def test_ends_before_the_counter_does() -> None:
    source = stream()
    source._left = 24
    source.words(3)
    with pytest.raises(PlanViolationError, match="256 GiB"):
        source.bytes(1)


def test_fills_no_copy_by_mistake() -> None:
    with pytest.raises(ParameterError, match="contiguous"):
        stream().fill(np.zeros((4, 4), dtype=np.uint64)[:, 1])


def test_nothing_asked_nothing_given() -> None:
    source = stream()
    empties = [source.words(0), source.integers(3, 0), source.permutation(0), source.uniform((0, 2))]
    empties += [source.choice_without_replacement(5, 0), source.choice_without_replacement(0, 0)]
    empties += [source.geometric(2, (3, 0))]
    assert all(empty.size == 0 for empty in empties)
    assert source.bytes(0) == b""
    assert source.words(2).tobytes() == stream().words(2).tobytes()
    assert source.coins(0.5, (0, 3)).shape == (0, 3)


# -------------------------------------------------------------------- coins


class GenerousCoins(Scripted):
    """Planted fault: a word that equals the threshold is heads."""

    def coins(self, probability: Any, size: Any) -> BoolArray:
        return self.words(size) <= np.uint64(int(Fraction(probability) * 2**64))


class SingleCoins(Scripted):
    """Planted fault: coins of single precision."""

    def coins(self, probability: Any, size: Any) -> BoolArray:
        return super().coins(float(np.float32(probability)), size)


def chance_by_first_word(kind: type[Scripted], probability: float) -> Fraction:
    """The share of first words that are heads, found by halving: heads are the words below some threshold."""
    low, high = 0, 1 << 64  # so many words are surely heads, and so many at most
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if kind([middle]).coins(probability, 1)[0] else (low, middle)
    return Fraction(low, 1 << 64)


DYADIC_ENOUGH = [0.5, 0.25, 0.1, 1 / 3, 2.0**-60, 3 * 2.0**-62, 1 - 2.0**-53, 0.0, 0.9999, 2.0**-11]


@pytest.mark.parametrize("probability", DYADIC_ENOUGH)
def test_coins_have_the_very_probability(probability: float) -> None:
    assert chance_by_first_word(Scripted, probability) == Fraction(probability)


def test_coins_end_where_they_should() -> None:
    assert Scripted([2**64 - 1, 0]).coins(1.0, 2).all()
    assert not Scripted([2**64 - 1, 0]).coins(0.0, 2).any()
    for wrong in (-1e-9, 1 + 1e-9, float("nan")):
        with pytest.raises(ParameterError, match="between 0 and 1"):
            stream().coins(wrong, 3)
    with pytest.raises(ParameterError, match="shape"):
        stream().coins(np.array([0.5, 0.5]), 1)


@pytest.mark.parametrize("fault", [GenerousCoins, SingleCoins])
def test_planted_coins_are_seen(fault: type[Scripted]) -> None:
    assert chance_by_first_word(fault, 0.1) != Fraction(0.1)


@pytest.mark.parametrize("probability", [1.75 * 2.0**-66, 0.7 * 2.0**-64, 2.0**-13 * (1 + 2.0**-52)])
def test_coins_take_further_words_on_a_tie(probability: float) -> None:
    """The word that equals the threshold is heads with the chance that is left, and no other word is in doubt."""
    scaled = Fraction(probability) * 2**64
    whole, rest = int(scaled), float(scaled - int(scaled))
    ties = Scripted([whole] * 20_000).coins(probability, 20_000)
    assert stats.binomtest(int(ties.sum()), 20_000, rest).pvalue > FALSE_ALARM
    assert not Scripted([whole + 1] * 100).coins(probability, 100).any()
    assert whole == 0 or Scripted([whole - 1] * 100).coins(probability, 100).all()


def test_coins_move_the_stream_alike_whatever_their_chances() -> None:
    """Ties and certainties included, so that a private probability leaves no trace in later draws."""
    after = set()
    for chances in (0.5, 0.0, 1.0, 2.0**-70, np.full(3, 5e-324)):
        source = Scripted([0, 2**63, 0])
        source.coins(chances, 3)
        after.add(source.word())
    assert len(after) == 1


def test_coins_of_different_chances() -> None:
    chances = np.repeat([0.1, 0.5, 0.93], 40_000).reshape(3, -1)
    heads = stream().coins(chances, chances.shape).sum(axis=1)
    for count, chance in zip(heads, (0.1, 0.5, 0.93), strict=True):
        assert stats.binomtest(int(count), 40_000, chance).pvalue > FALSE_ALARM


# -------------------------------------------------------------------- choices


class WrappedIntegers(BitStream):
    """Planted fault: remainders without drawing again."""

    def integers(self, bound: int, size: Any) -> IntArray:
        return (self.words(size) % np.uint64(bound)).astype(np.int64)


def thirds(source: BitStream) -> float:
    """p of numbers below 3·2⁶¹ by thirds; remainders of words would give the first two half as much again."""
    drawn = source.integers(3 << 61, 30_000) >> 61
    return p_value(drawn, dict.fromkeys(range(3), 1 / 3))


def test_integers_are_uniform() -> None:
    for bound in (2, 7, 100):
        assert p_value(stream().integers(bound, 50_000), dict.fromkeys(range(bound), 1 / bound)) > FALSE_ALARM
    assert not stream().integers(1, 50).any()
    assert thirds(stream()) > FALSE_ALARM
    assert thirds(WrappedIntegers(bytes(32))) < FALSE_ALARM  # the planted fault is seen
    assert stream().integers(1 << 63, 1000).min() >= 0
    assert Scripted([2**64 - 1, 5]).integers(3, 1)[0] == 2  # the one word above the last multiple of three goes
    for wrong in (0, -1, 2**63 + 1):
        with pytest.raises(ParameterError, match="2\\^63"):
            stream().integers(wrong, 1)


class NaiveShuffle(BitStream):
    """Planted fault: every place is swapped with any place."""

    def permutation(self, n: int) -> IntArray:
        order = np.arange(n)
        for place in range(n):
            other = int(self.integers(n, 1)[0])
            order[[place, other]] = order[[other, place]]
        return order


def order_p_value(source: BitStream) -> float:
    ranks = {order: rank for rank, order in enumerate(itertools.permutations(range(4)))}
    drawn = np.array([ranks[tuple(source.permutation(4).tolist())] for _ in range(6000)])
    return p_value(drawn, dict.fromkeys(range(24), 1 / 24))


def test_orders_are_uniform() -> None:
    assert order_p_value(stream()) > FALSE_ALARM
    assert order_p_value(NaiveShuffle(bytes(32))) < FALSE_ALARM
    assert np.array_equal(np.sort(stream().permutation(1000)), np.arange(1000))


def test_equal_keys_are_drawn_again() -> None:
    assert Scripted([7, 7, 9, 3, 1, 2]).permutation(3).tolist() == [1, 2, 0]


class NeverTheLast(BitStream):
    """Planted fault: an off-by-one in the range."""

    def integers(self, bound: int, size: Any) -> IntArray:
        return super().integers(max(1, bound - 1), size)


def subset_p_value(source: BitStream, n: int, k: int) -> float:
    ranks = {subset: rank for rank, subset in enumerate(itertools.combinations(range(n), k))}
    drawn = np.array([ranks[tuple(source.choice_without_replacement(n, k).tolist())] for _ in range(4000)])
    return p_value(drawn, dict.fromkeys(range(len(ranks)), 1 / len(ranks)))


@pytest.mark.parametrize(("n", "k"), [(6, 2), (6, 3), (6, 5), (5, 4)])
def test_subsets_are_uniform(n: int, k: int) -> None:
    assert subset_p_value(stream(), n, k) > FALSE_ALARM
    assert subset_p_value(NeverTheLast(bytes(32)), n, k) < FALSE_ALARM


@pytest.mark.parametrize(("n", "k"), [(100_000, 10), (1000, 500), (1000, 990), (7, 7), (1, 1)])
def test_subsets_are_subsets(n: int, k: int) -> None:
    chosen = stream().choice_without_replacement(n, k)
    assert len(set(chosen.tolist())) == k
    assert (np.diff(chosen) > 0).all()
    assert chosen[0] >= 0
    assert chosen[-1] < n
    with pytest.raises(ParameterError, match="can be chosen"):
        stream().choice_without_replacement(n, n + 1)


def test_uniform_numbers_lie_strictly_inside() -> None:
    assert Scripted([0, 2**64 - 1]).uniform(2).tolist() == [2.0**-53, 1 - 2.0**-53]
    assert stats.kstest(stream().uniform(50_000), "uniform").pvalue > FALSE_ALARM


# -------------------------------------------------------------------- noise on whole numbers


def geometric_law(scale: float) -> dict[int, float]:
    q = math.exp(-1 / scale)
    return {x: (1 - q) * q**x for x in range(math.ceil(40 * scale) + 1)}


class NoLastBit(BitStream):
    """Planted fault: the last bit is never set."""

    def geometric(self, scale: Any, size: Any) -> IntArray:
        return super().geometric(scale, size) // 2 * 2


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, Fraction(22, 3), 16.0])
def test_geometric_noise_has_its_law(scale: float | Fraction) -> None:
    law = geometric_law(float(scale))
    assert p_value(stream().geometric(scale, 200_000), law) > FALSE_ALARM
    assert p_value(NoLastBit(bytes(32)).geometric(scale, 200_000), law) < FALSE_ALARM


@pytest.mark.parametrize("scale", [1.3 * 2**20, 1e9 / 3, 2.0**44])
def test_wide_geometric_noise(scale: float) -> None:
    drawn = stream(1).geometric(scale, 100_000)
    assert stats.kstest(drawn / scale, "expon").pvalue > FALSE_ALARM
    assert p_value(drawn & 15, dict.fromkeys(range(16), 1 / 16)) > FALSE_ALARM
    assert stats.binomtest(int((drawn > 8 * scale).sum()), 100_000, math.exp(-8)).pvalue > FALSE_ALARM


def test_geometric_coins_go_beyond_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """With enclosures as wide as can be, every coin asks for further places, and the law stays."""

    def wide(gamma: Fraction, places: int) -> tuple[int, int]:
        return exp_bounds(gamma, places) if places > 66 else (0, 1 << places)

    monkeypatch.setattr(bits, "_public_exp_bounds", wide)
    assert p_value(stream().geometric(2.5, 3000), geometric_law(2.5)) > FALSE_ALARM


@pytest.mark.parametrize("scale", [0.0, -1.0, 2.0**45, float("nan"), float("inf")])
def test_geometric_noise_refuses_scales(scale: float) -> None:
    with pytest.raises(ParameterError, match="scale"):
        stream().geometric(scale, 1)


GAMMAS = [
    Fraction(0),
    Fraction(1, 2**60),
    Fraction(1, 3),
    Fraction(1),
    Fraction(17, 2),
    Fraction(700),
    Fraction(10**6, 7),
]


@pytest.mark.parametrize("gamma", GAMMAS)
def test_exponentials_are_enclosed(gamma: Fraction) -> None:
    with mpmath.workdps(250):
        exponent = mpmath.mpf(gamma.numerator) / gamma.denominator
        for places in (8, 64, 200, 500):
            for bounds, truth in (
                (exp_bounds, mpmath.exp(-exponent)),
                (bits._logistic_bounds, 1 / (1 + mpmath.exp(exponent))),
            ):
                low, high = bounds(gamma, places)
                assert low <= truth * mpmath.mpf(2) ** places <= high
                assert high - low <= 3
