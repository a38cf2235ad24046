"""A method may refuse a graph; that it refuses one of two neighbours and takes the other tells them apart."""

from __future__ import annotations

from collections.abc import Callable

from discreet.errors import DiscreetError, GraphError


class OneSidedRefusalError(DiscreetError):
    """A method refuses one of two neighbouring graphs and takes the other."""

    def __init__(self, reason: GraphError) -> None:
        """``reason`` is what the method said."""
        super().__init__(f"one of two neighbouring graphs is refused ({reason}) and the other is not")


class PastTheRefusalError(Exception):
    """The first fit was refused before it asked for what the second asks for."""


def refusal(attempt: Callable[[], object]) -> GraphError | None:
    """The error with which a graph is refused, or None where it is taken."""
    try:
        attempt()
    except GraphError as error:
        return error
    except PastTheRefusalError:
        return None
    return None


def check_refusals(one: GraphError | None, two: GraphError | None) -> None:
    """Raise the method's own error where both sides are refused, :class:`OneSidedRefusalError` where one is."""
    if one is not None and two is not None:
        raise one
    reason = one or two
    if reason is not None:
        raise OneSidedRefusalError(reason) from reason
