"""How much: a level together with ε and δ."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import Literal

from discreet.errors import PrivacyError
from discreet.limits import DELTA, EPSILON, shown
from discreet.privacy.levels import Level, NoPrivacy


@dataclass(frozen=True)
class Privacy:
    """A level and the budget under it.

    ``delta="auto"`` is resolved from the public number of nodes alone, see :func:`auto_delta`.
    """

    level: Level = field(default_factory=NoPrivacy)
    epsilon: float = math.inf
    delta: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        """Refuse a budget that means nothing, and an ε that contradicts the level."""
        if not isinstance(self.level, Level):
            raise PrivacyError(f"level must be a Level such as EdgeLevel(), not {shown(self.level)}")
        for name in ("epsilon", "delta"):
            given = getattr(self, name)
            if isinstance(given, Real) and not isinstance(given, int | float):  # NumPy's own, from a loop over an array
                object.__setattr__(self, name, float(given))
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, int | float) or not self.epsilon > 0:
            raise PrivacyError(f"epsilon must be a positive number, not {shown(self.epsilon)}")
        if self.epsilon != math.inf:
            EPSILON.check("epsilon", self.epsilon, PrivacyError)
        if not isinstance(self.delta, str) or self.delta != "auto":
            if not isinstance(self.delta, int | float) or not 0 < self.delta < 1:
                raise PrivacyError(f"delta must lie strictly between 0 and 1, or be 'auto', not {shown(self.delta)}")
            DELTA.check("delta", self.delta, PrivacyError)
        if isinstance(self.level, NoPrivacy) != math.isinf(self.epsilon):
            raise PrivacyError(
                f"level {self.level.spec} and epsilon {self.epsilon} contradict each other: "
                "an infinite epsilon goes with level none, and level none with nothing else"
            )

    @classmethod
    def none(cls) -> Privacy:
        """No guarantee, said out loud."""
        return cls(NoPrivacy(), math.inf)

    def resolve_delta(self, num_nodes: int) -> float:
        """The δ that the guarantee is stated at."""
        if self.delta == "auto":
            return auto_delta(self.level, num_nodes)
        return float(self.delta)


def delta_reason(privacy: Privacy, num_nodes: int) -> str:
    """Why δ is what it is, in words."""
    if privacy.delta != "auto":
        return "given by the caller"
    if privacy.level.kind == "local":
        return "zero: every report is private without a delta"
    bound = "1/(10n)" if privacy.level.kind == "edge" else "1/n"
    return f"the largest power of ten below {bound} for the public number of nodes n = {num_nodes}"


def auto_delta(level: Level, num_nodes: int) -> float:
    """The largest power of ten strictly below 1/(10n) at edge level and below 1/n elsewhere; 0 at level local.

    It depends on the public n alone: a δ read from a private count (of edges, say) would itself leak. What leaves an
    owner is private without any δ, unless a mechanism that needs one is asked for, and then δ must be given.
    """
    if level.kind == "local":
        return 0.0
    bound = 10 * num_nodes if level.kind == "edge" else num_nodes
    # 10^-k < 1/bound means 10^k > bound: the number of decimal digits, exact in integers.
    return float(f"1e-{len(str(bound))}")
