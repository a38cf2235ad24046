"""What can be said of a method before torch is imported: one record beside its class, read by everyone else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Declaration:
    """A method: its name, where its class is (``module:Class``), and what it covers at each level that it supports.

    ``covers`` maps a level's kind (``none``, ``edge``, ``neighbor``, ``node``, ``local``) to a name of
    ``privacy.coverage``, for the method's default settings. ``variants`` are settings that change it, by level.
    ``paper`` says where the method was published, if it was.
    """

    name: str
    target: str
    covers: Mapping[str, str] = field(hash=False)
    summary: str
    paper: str = ""
    variants: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict, hash=False)

    @property
    def levels(self) -> tuple[str, ...]:
        """The kinds of level that the method supports."""
        return tuple(self.covers)
