"""Every limit in one table: ranges of numbers, counts, and sizes of what is read, checked where they come in.

Two reasons. A bound is a statement about what the machine computes: near the ends of double precision squares vanish,
quotients overflow and a margin that is relative on paper is nothing any more. And a size that no machine can hold is a
mistake, which is better said in a sentence at once than by the kernel after an hour. Every limit lies far inside what
the machine holds and far outside what anybody needs; ``docs/reliability.md`` lists them.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import InvalidInputError, ParameterError


@dataclass(frozen=True)
class Limit:
    """The least and the largest value, both allowed."""

    low: float
    high: float

    def check(self, name: str, value: float, error: type[InvalidInputError] = ParameterError) -> float:
        """The value, or an error with one sentence."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not self.low <= value <= self.high:
            raise error(f"{name} must lie between {self.low:g} and {self.high:g}, not {shown(value)}")
        return float(value)


@dataclass(frozen=True)
class Count:
    """The least and the largest whole number, both allowed."""

    low: int
    high: int

    def check(self, name: str, value: int, error: type[InvalidInputError] = ParameterError) -> int:
        """The number, or an error with one sentence."""
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not self.low <= value <= self.high:
            raise error(f"{name} must be a whole number from {self.low} to {self.high}, not {shown(value)}")
        return value


def shown(value: object) -> str:
    """A value in a sentence: one that is long is cut, and a number that is too long to be written is not written."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of more than 4,300 digits
        return "a number of thousands of digits"
    except Exception:  # an object of somebody else's that cannot even be shown
        return type(value).__name__
    most = 60  # characters, so that the sentence stays one
    return text if len(text) <= most else f"{text[:most]}…"


def plain_rule(message: str) -> str:
    """What a value should be, in plain words, of what pydantic says."""
    rule = message.removeprefix("Input ").removeprefix("Value error, ")
    rule = rule.replace("a valid integer", "a whole number").replace("a valid number", "a number")
    return rule.replace("a valid string", "one text").replace("a valid boolean", "true or false")


# -------------------------------------------------------------------- numbers that proofs divide by

NORM = Limit(1e-6, 1e6)
"""Clip norms of gradients and outputs."""
ROW_NORM = Limit(1e-9, 1e6)
"""Norms of embedding rows, by which everything is scaled (published code has 1e-8)."""
SCORE_CLIP = Limit(1e-9, 1.0)
"""Bounds on scores, which are probabilities or less."""
RESTART = Limit(1e-3, 0.999)
"""The restart probability: sensitivities divide by it, and iterations by its logarithm."""
RATE = Limit(1e-9, 100.0)
"""Learning rates and step sizes, of gradients measured in clip norms."""
SHARE = Limit(1e-6, 1e6)
"""Relative shares of a budget."""
MULTIPLIER = Limit(1e-3, 1e6)
"""Noise over clip norm."""
WEIGHT = Limit(1e-3, 1e3)
"""Weights and widths inside a loss or a statistic."""
RIDGE = Limit(1e-9, 1e9)
"""Strong convexity: minimisers divide by it."""
DECAY = Limit(0.0, 1e3)
"""Weight decay; zero is none."""
PROBABILITY = Limit(1e-9, 1.0)
"""A chance that something is not quite left out."""
FRACTION = Limit(1e-3, 0.999)
"""A part of a budget that leaves something for the rest."""

# -------------------------------------------------------------------- the budget

EPSILON = Limit(1e-6, 500.0)
"""A finite ε: accountants take its exponential, which ends at 709; above 20 nothing is promised to speak of."""
REPORT_EPSILON = Limit(1e-9, 500.0)
"""ε of one report of a record or a label, a part of a budget: below it doubles hardly tell chances of a coin apart."""
FEATURE = Limit(-1e15, 1e15)
"""Ends of the public range of features: with noise for the least ε, a report still fits in single precision."""
FEATURE_SPAN = Limit(1e-15, 2e15)
"""From one end of that range to the other."""
DELTA = Limit(1e-100, 0.5)
"""A δ that is given: accountants take its square and divide by it; above one half it promises nothing."""

# -------------------------------------------------------------------- whole numbers that a person sets

SEED = Count(0, 2**63 - 1)
"""Seeds, as torch and NumPy both take them."""
DEGREE = Count(1, 10**9)
"""Degree bounds and numbers of neighbours that a level names."""
WIDTH = Count(1, 4096)
"""Units of a hidden layer, columns of an embedding: a square layer of this width takes 64 MiB."""
LAYERS = Count(1, 32)
"""Layers of a network; with WIDTH, a network takes 2 GiB at most."""
HOPS = Count(1, 100)
"""Stages that are planned one by one: accountants compose each of them."""
ROUNDS = Count(0, 10**6)
"""Epochs, steps and iterations; a million small steps take hours."""
PROPAGATIONS = Count(0, 1000)
"""Products with an adjacency matrix, one after the other; far fewer smooth everything away."""
EXAMPLES = Count(1, 10**9)
"""Nodes in a batch, sources, walks: more than any graph here holds."""
THREADS = Count(1, 1024)
"""Threads and processes: torch crashes when the system gives it no more."""
BINS = Count(0, 10_000)
"""Bins of scores in a noisy table; zero is none."""
SCORE_NOISE = Limit(1e-9, 1e9)
"""Noise on the number of hits by which a search selects."""
TRIALS = Count(1, 100_000)
"""Candidates of a search, seeds of a suite and its trials: each is a fit."""
SAMPLES = Count(0, 10**9)
"""Pairs, fits and runs of an audit."""

# -------------------------------------------------------------------- what is read

NODES = Count(1, 10**9)
"""Nodes of a graph: pairs of node numbers must fit in 64 bits."""
ENTRIES = 2**32
"""Directed edges of a graph, 32 GiB of node numbers: so many the rounding of sums over all edges is proved for."""
CLASSES = Count(0, 10_000)
"""Classes: every node gets a probability for each."""
CELLS = 4 * 10**9
"""Entries of a dense array of one row per node (features, or one column per class): 16 GiB in single precision."""
ARRAY_BYTES = 64 * 2**30
"""Unpacked bytes of all arrays that are read from one file."""
DOWNLOAD_BYTES = 2 * 2**30
"""Bytes of one file that is downloaded; the largest known one has 100 MiB."""
TEXT_BYTES = 16 * 2**20
"""Bytes of a suite, a search space or another text file that is read as a whole."""
PARTITIONS = Count(1, 100_000)
"""Blocks of one graph: the names of their files have five digits."""
LEDGER_ENTRIES = 100_000
"""Entries of a ledger: nobody releases that often, and a file from a stranger must not fill the memory."""
REPORT_ROWS = 20_000
"""Rows of a table that a page shows: a browser sorts them without a pause."""
REPORT_ATTACKS = 200
"""Rows of a report of attacks, which anybody may have made."""

# -------------------------------------------------------------------- a release that somebody else may have made

RELEASE_FILES = 16
"""Files in its folder; a release has four to six."""
JSON_LEVELS = 32
"""Levels of nesting in its JSON; ours has fewer than ten."""
RECORD_BYTES = 64 * 2**20
"""Bytes of its certificate and of its configuration, which holds the schema of a wide table."""
WEIGHTS_BYTES = 8 * 2**30
"""Bytes of its weights and caches: those of ten million nodes."""
STAGES = 10_000
"""Stages, graphs and extensions in its certificate: far above any plan."""
SIGNATURE_BYTES = 2**20
"""Bytes of its signature."""
