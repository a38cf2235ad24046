"""A method may refuse a graph; that it refuses one of two neighbours and takes the other tells them apart, and so do
two refusals in different words.
"""

from __future__ import annotations

from collections.abc import Callable

from discreet.errors import CertificateError, DiscreetError, PlanViolationError


class OneSidedRefusalError(DiscreetError):
    """A method refuses one of two neighbouring graphs and takes the other, or refuses both in different words."""


class PastTheRefusalError(Exception):
    """The first fit was refused before it asked for what the second asks for."""


def refusal(attempt: Callable[[], object]) -> Exception | None:
    """The error with which a graph is refused, or None where it is taken.

    That a fit left its plan is no refusal, and is raised.
    """
    try:
        attempt()
    except PastTheRefusalError:
        return None
    except (PlanViolationError, CertificateError):
        raise
    except Exception as error:  # whatever it is, it must be the same on both sides
        return error
    return None


def check_refusals(one: Exception | None, two: Exception | None) -> None:
    """Raise the method's own error where both sides are refused alike, :class:`OneSidedRefusalError` otherwise."""
    if one is None and two is None:
        return
    if one is None or two is None:
        reason = one or two
        raise OneSidedRefusalError(
            f"one of two neighbouring graphs is refused ({reason}) and the other is not"
        ) from reason
    if (type(one), str(one)) != (type(two), str(two)):
        raise OneSidedRefusalError(f"two neighbouring graphs are refused in different words ({one}; {two})") from one
    raise one
