"""Levels as the command line and the certificate write them: ``edge``, ``node:owned,max_degree=20``."""

from __future__ import annotations

from typing import Any

from discreet.errors import PrivacyError
from discreet.privacy.levels import EdgeLevel, Level, LocalLevel, NeighborLevel, NodeLevel, NoPrivacy

FORMS = (
    "none, edge, edge:directed, neighbor:K[,max_degree=D][,edges=owned|promised], "
    "node[:owned|promised][,max_degree=D][,change=null|replace], node:thinned,d_max=D,p=P, "
    "local[:features|labels]"
)
_WHOLE = {"max_degree", "d_max"}
_REAL = {"p"}
_WORD = {"change", "edges"}


def parse_level(spec: str) -> Level:
    """Read a level; the inverse of ``level.spec``."""
    head, *pairs = (part.strip() for part in spec.strip().split(","))
    kind, _, argument = head.partition(":")
    options = dict(_option(pair, spec) for pair in pairs)
    if kind == "none" and not argument and not options:
        return NoPrivacy()
    if kind == "local" and not options:
        return LocalLevel(argument or "both")  # type: ignore[arg-type]  # the level checks the word
    if kind == "edge" and argument in ("", "directed") and not options:
        return EdgeLevel(directed=argument == "directed")
    if kind == "neighbor" and argument:
        return _build(NeighborLevel, spec, k=_whole("k", argument), **options)
    if kind == "node":
        return _build(NodeLevel, spec, **({"edges": argument} if argument else {}), **options)
    raise PrivacyError(f"level {spec!r} is not known; write one of: {FORMS}")


def _build(kind: type[Level], spec: str, **options: Any) -> Level:
    try:
        return kind(**options)
    except TypeError as error:
        raise PrivacyError(f"level {spec!r} has an option that it does not take; write one of: {FORMS}") from error


def _option(pair: str, spec: str) -> tuple[str, Any]:
    key, equals, value = pair.partition("=")
    if not equals:
        raise PrivacyError(f"level {spec!r}: {pair!r} is not of the form key=value; write one of: {FORMS}")
    if key in _WHOLE:
        return key, _whole(key, value)
    if key in _REAL:
        try:
            return key, float(value)
        except ValueError:
            raise PrivacyError(f"level option {key} must be a number, not {value!r}") from None
    if key in _WORD:
        return key, value
    known = ", ".join(sorted(_WHOLE | _REAL | _WORD))
    raise PrivacyError(f"level {spec!r} has no option {key!r}; the options are {known}")


def _whole(key: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise PrivacyError(f"level option {key} must be a whole number, not {value!r}") from None
