"""What can be said of a method before torch is imported: one record beside its class, read by everyone else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DISCREET = "discreet"
"""The preset that every method has: our own defaults."""
EDGE = ("edge",)
NOISY_STEPS = ("neighbor", "node")
"""The kinds of level at which networks are trained by noisy steps."""
NO_NOISY_STEPS = ("none", "edge")
"""... and those at which methods with both train without noise."""
PROTECTED = (*EDGE, *NOISY_STEPS)
DIVIDES_BY_DEGREES = "it divides by degrees, and a mean over weights of 0.001 and 1 moves twice as far as one without"
"""Why a method that averages refuses weights of edges."""
STEPS_OF_CHIEN = (
    "every noisy step uses all training nodes: 300 steps, at a rate that falls from 0.01 to 0, and the weights of a "
    "network (not W of dpdgc) are averaged over the last half. The paper has 100 epochs in batches of 64 at a rate of "
    "0.001. With 1,900 training nodes weights can move half as far in all as they can there, with 5,600 a sixth"
)
"""How presets with the settings of Chien et al. 2023 take noisy steps."""
BATCHES_OF_CHIEN = (
    "training without noise makes at most 2,000 updates, at a rate that falls along a cosine. Batches have 64 nodes, "
    "and more from 1,300 training nodes on. The paper has batches of 64 (256 on Facebook and PubMed) or none"
)
"""... and how they train without noise."""
UNIT_OF_CHIEN = (
    "a node owns its outgoing edges here, so that a friendship belongs to both friends. In the paper to replace a node "
    "is to replace the edges that point to it too (level option edges=promised)"
)
"""... and what one unit is there."""
KEYED_EDGES = (
    "each node keeps those of its edges that a secret key picks, so that no node decides what others keep. The paper "
    "samples edges in a way that does not bound this"
)
"""How degrees are bounded."""
NULL_ROWS = (
    "with change=null a removed node leaves a row of zeros, and the number of nodes is public. In the paper the row "
    "goes away"
)
"""How the number of nodes stays public."""


@dataclass(frozen=True)
class Difference:
    """Where a preset departs from its paper, and why, in one line.

    ``about`` names the parameters that the line speaks of: it is true while they have the preset's values. ``levels``
    are the kinds of level at which it is; all if not given.
    """

    text: str
    about: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preset:
    """A set of values for parameters that are not given.

    ``differs`` says where it departs from what its paper does; ``sound`` the same of what is needed for the guarantee,
    and is not done with ``accounting="as-published"``. ``levels`` maps a level's kind to the level that the paper uses:
    its figures are for that one.
    """

    settings: Mapping[str, Any] = field(hash=False)
    differs: tuple[Difference, ...] = ()
    sound: tuple[Difference, ...] = ()
    levels: Mapping[str, str] = field(default_factory=dict, hash=False)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        differs = [difference.text for difference in (*self.sound, *self.differs)]
        return {"settings": dict(self.settings), "differs": differs, "levels": dict(self.levels)}


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
