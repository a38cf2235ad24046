"""What can be said of a method before torch is imported: one record beside its class, read by everyone else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DISCREET = "discreet"
"""The preset that every method has: our own defaults."""
DIVIDES_BY_DEGREES = "it divides by degrees, and a mean over weights of 0.001 and 1 moves twice as far as one without"
"""Why a method that averages refuses weights of edges."""


@dataclass(frozen=True)
class Preset:
    """A set of values for parameters that are not given.

    ``differs`` says, one line each, where it departs from what its paper does, and why; ``sound`` the same of what is
    needed for the guarantee, and is not done with ``accounting="as-published"``. ``levels`` maps a level's kind to the
    level that the paper uses: its figures are for that one.
    """

    settings: Mapping[str, Any] = field(hash=False)
    differs: tuple[str, ...] = ()
    sound: tuple[str, ...] = ()
    levels: Mapping[str, str] = field(default_factory=dict, hash=False)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"settings": dict(self.settings), "differs": [*self.sound, *self.differs], "levels": dict(self.levels)}


@dataclass(frozen=True)
class Declaration:
    """A method: its name, where its class is (``module:Class``), and what it covers at each level that it supports.

    ``covers`` maps a level's kind (``none``, ``edge``, ``neighbor``, ``node``, ``local``) to a name of
    ``privacy.coverage``, for the method's default settings. ``variants`` are settings that change it, by level.

    ``why_no_weights`` says why edges with weights are refused; it is empty where the method reads them (or no edge) and
    every bound is proved with them.

    ``paper`` says where the method was published, if it was. ``presets`` holds the presets beside ``discreet``, by
    name: ``paper`` has the settings of that paper.
    """

    name: str
    target: str
    covers: Mapping[str, str] = field(hash=False)
    summary: str
    paper: str = ""
    why_no_weights: str = "it reads every edge as a whole one"
    variants: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict, hash=False)
    presets: Mapping[str, Preset] = field(default_factory=dict, hash=False)

    @property
    def levels(self) -> tuple[str, ...]:
        """The kinds of level that the method supports."""
        return tuple(self.covers)
