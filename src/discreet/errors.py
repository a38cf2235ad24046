"""One exception tree: each message says what is wrong, the value given, and what to do."""

from __future__ import annotations


class DiscreetError(Exception):
    """Base of every error that this package raises on purpose."""


class InvalidInputError(DiscreetError, ValueError):
    """What the caller gave cannot be used. The command exits with code 2 on it."""


class GraphError(InvalidInputError):
    """The graph, its features or its labels are malformed."""


class DataNotFoundError(InvalidInputError):
    """A dataset or file is not where it was looked for."""


class ParameterError(InvalidInputError):
    """A parameter has an unknown name, the wrong type, or a value outside its range."""


class PrivacyError(InvalidInputError):
    """A level or a budget is malformed, or cannot be met."""


class UnsupportedError(InvalidInputError):
    """The combination of method, level, graph or task is not supported."""


class CrossValidationError(DiscreetError, RuntimeError):
    """A search or a cross-validation of scikit-learn was given an estimator of ours.

    No ``ValueError``: scikit-learn's pipelines swallow these where they are asked what they are.
    """


class LedgerError(InvalidInputError):
    """A ledger cannot be used, or a run would exceed its limit."""


class OutputExistsError(InvalidInputError):
    """The output path is taken; nothing is ever overwritten."""


class OutputUnusableError(InvalidInputError):
    """Nothing can be written at the output path, or another process is writing there."""


class InterruptedRunError(DiscreetError, RuntimeError):
    """Ctrl-C or SIGTERM; the message says what is kept."""


class EngineError(InvalidInputError, RuntimeError):
    """Workers that were to compute something are gone, or cannot; nothing was released."""


class PlanViolationError(DiscreetError, RuntimeError):
    """A method asked the curator for something that its plan does not hold, or covers less than it says."""


class PrivateDataError(PlanViolationError):
    """Code outside a query reached for private data."""


class UncoveredReleaseError(InvalidInputError, RuntimeError):
    """The caller asked for an output that the guarantee does not cover."""


class CertificateError(DiscreetError, RuntimeError):
    """A certificate does not say what its events and files say."""


class NotFittedError(DiscreetError, ValueError, AttributeError):
    """The estimator has not been fitted; same bases as scikit-learn's error of this name."""
