"""``accounting="as-published"``: the noise that a paper claims to suffice, where that cannot be proved.

The plan then states a claim, covers nothing, and fails verification; see docs/guarantees.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from discreet.privacy import events
from discreet.privacy.calibration import calibrate
from discreet.privacy.plan import Stage

Accounting = Literal["rigorous", "as-published"]
AS_PUBLISHED = "as-published"


def with_claimed_noise(
    drafts: Sequence[Stage], epsilon: float, delta: float, claimed: Mapping[str, float]
) -> list[Stage]:
    """The drafts with the noise that would spend ε if each stage moved by ``claimed[name]`` times what it does move by.

    Sensitivities stay the true ones, so that a plan says beside the claim what the noise proves.
    """
    whole = events.compose([events.repeat(stage.event, stage.runs) for stage in drafts])
    factor = calibrate(whole, epsilon, delta)
    return [stage.scaled(factor * claimed.get(stage.name, 1.0)) for stage in drafts]
