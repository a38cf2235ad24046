"""What worker processes of a test draw: in a file that imports little, for a spawned worker imports it anew."""

from __future__ import annotations

import numpy as np

from discreet.mechanisms.curator import Curator
from discreet.mechanisms.noise import NoiseSource
from discreet.privacy import events
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel
from discreet.privacy.plan import Plan, Stage, make_plan


def gaussian_plan(stages: int = 1) -> Plan:
    """Stages of six numbers each."""
    event = events.GaussianDpEvent(1.0)
    drafts = [Stage(f"s{i}", "q", "gaussian", 1.0, "l2", "w", event, (3, 2)) for i in range(stages)]
    return make_plan("m", Privacy(EdgeLevel(), 1.0, 1e-3), 100, drafts, "weights")


def first_numbers(_: int = 0) -> bytes:
    """What a curator of this process draws first."""
    return Curator(gaussian_plan(), NoiseSource()).measure("s0", np.zeros((3, 2))).tobytes()
