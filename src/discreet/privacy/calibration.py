"""The least noise, or the most steps, that keep within ε: searched, re-verified, and remembered on disk.

A family of events has one dial, the factor of :func:`events.scale_noise`. :func:`calibrate` returns the
smallest factor (rounded up) at which the certified ε does not exceed the target; :func:`steps_for` turns the
other dial, how often an event may run at the noise that it has.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from pathlib import Path

from dp_accounting.dp_event import DpEvent

from discreet.errors import PrivacyError
from discreet.files import home_folder, write_whole
from discreet.privacy import events
from discreet.privacy.accountants import accountant_versions, epsilon_of, exact_factor, pld_epsilon, rdp_epsilon
from discreet.privacy.events.node_sampling import before_sampling

RELATIVE_TOLERANCE = 1e-3
"""By how much the factor may exceed the least one."""
MOST_STEPS = 10**7
"""More steps than anyone runs: a search that gets here has no bound to find."""
_FORMAT = 4
"""Part of the key of a remembered answer: a new number forgets what older versions found."""


def calibrate(unit: DpEvent, epsilon: float, delta: float) -> float:
    """The noise factor for ``unit`` at (ε, δ).

    Guarantee: ``epsilon_of(scale_noise(unit, factor), delta) <= epsilon``, verified before returning.
    Exact (to rounding) where every event is Gaussian; otherwise at most 0.1 % above the least factor.
    """
    probability, rest = events.split_sampling(unit)
    if rest is not unit:
        return _verified(unit, calibrate(rest, *before_sampling(epsilon, delta, probability)), epsilon, delta)
    exact = exact_factor(unit, epsilon, delta)
    if exact is not None:
        return _verified(unit, exact, epsilon, delta)
    if events.scale_noise(unit, 2.0) == unit:
        return _verified(unit, 1.0, epsilon, delta)
    key = _key("noise", unit, epsilon, delta)
    remembered = _recall(key)
    if remembered is not None:
        return remembered
    factor = _verified(unit, _search(unit, epsilon, delta), epsilon, delta)
    _remember(key, factor)
    return factor


def steps_for(event: DpEvent, epsilon: float, delta: float) -> int:
    """How often ``event`` may run within (ε, δ): the largest such number, or 0 if not even once.

    Guarantee: ``epsilon_of(repeat(event, steps), delta) <= epsilon``, verified on every call, and one step
    more exceeds it (ε never falls as steps are added).
    """
    if epsilon_of(event, delta) > epsilon:
        return 0
    key = _key("steps", event, epsilon, delta)
    remembered = _recall(key)
    if remembered is not None and remembered >= 1 and _runs_within(event, int(remembered), epsilon, delta):
        return int(remembered)
    steps = _search_steps(event, epsilon, delta)
    _remember(key, steps)
    return steps


def _runs_within(event: DpEvent, steps: int, epsilon: float, delta: float) -> bool:
    return epsilon_of(events.repeat(event, steps), delta) <= epsilon


def _search_steps(event: DpEvent, epsilon: float, delta: float) -> int:
    """Double until it is too often, then bisect. The Rényi answer, cheap and never too often, comes first."""
    within = _rdp_steps(event, epsilon, delta)
    beyond = within + max(1, within // 4)
    while _runs_within(event, beyond, epsilon, delta):
        within, beyond = beyond, 2 * beyond
        if beyond > MOST_STEPS:
            raise PrivacyError(
                f"more than {MOST_STEPS} steps keep within epsilon {epsilon}: no bound on steps is needed"
            )
    while beyond - within > 1:
        middle = (within + beyond) // 2
        if _runs_within(event, middle, epsilon, delta):
            within = middle
        else:
            beyond = middle
    return within


def _rdp_steps(event: DpEvent, epsilon: float, delta: float) -> int:
    def within(steps: int) -> bool:
        bound = rdp_epsilon(events.repeat(event, steps), delta)
        return bound is not None and bound <= epsilon

    if not within(1):
        return 1
    low, high = 1, 2
    while within(high) and high <= MOST_STEPS:
        low, high = high, 2 * high
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


def _verified(unit: DpEvent, factor: float, epsilon: float, delta: float) -> float:
    """Walk up by hairs until the certified ε holds; the search may have ended on a rounding error."""
    for step in range(60):
        candidate = factor * (1 + math.ldexp(1e-15, step) if step else 1.0)
        if epsilon_of(events.scale_noise(unit, candidate), delta) <= epsilon:
            return candidate
    raise PrivacyError(f"no noise level keeps epsilon within {epsilon} at delta {delta}")


def _search(unit: DpEvent, epsilon: float, delta: float) -> float:
    """Close a bracket on the factor, starting from the Rényi answer, which is cheap and above."""

    def spent(factor: float) -> float:
        return _search_epsilon(events.scale_noise(unit, factor), delta)

    high = _rdp_factor(unit, epsilon, delta)
    at_high = spent(high)
    while at_high > epsilon:
        high *= 2
        if high > 1e9:
            raise PrivacyError(
                f"no amount of noise brings epsilon down to {epsilon} at delta {delta}: a stage whose cost is "
                "fixed spends more than that"
            )
        at_high = spent(high)
    low, at_low = high, at_high
    while at_low <= epsilon:
        high, at_high, low = low, at_low, low / 2
        if low < 1e-9:
            return high
        at_low = spent(low)
    turn = 0
    while high / low > 1 + RELATIVE_TOLERANCE:
        turn += 1
        middle = _guess(low, at_low, high, at_high, epsilon, turn)
        found = spent(middle)
        if found <= epsilon:
            high, at_high = middle, found
        else:
            low, at_low = middle, found
    return high


def _search_epsilon(event: DpEvent, delta: float) -> float:
    """The certified ε where both accountants know the event, and whatever is known otherwise."""
    bounds = [bound for bound in (pld_epsilon(event, delta), rdp_epsilon(event, delta)) if bound is not None]
    return min(bounds) if bounds else epsilon_of(event, delta)


def _guess(low: float, at_low: float, high: float, at_high: float, epsilon: float, turn: int) -> float:
    """Where ε would be met if it were a power of the factor, a hair to either side in turn; or the middle."""
    middle = math.sqrt(low * high)
    if turn % 4 == 0 or not (0 < at_high < at_low < math.inf):
        return middle
    share = math.log(at_low / epsilon) / math.log(at_low / at_high)
    hair = 1 + RELATIVE_TOLERANCE / 3
    guess = low * (high / low) ** share * (hair if turn % 2 else 1 / hair)
    return guess if low < guess < high else middle


def _rdp_factor(unit: DpEvent, epsilon: float, delta: float) -> float:
    """A starting point: where the Rényi bound meets ε, or 1 where that accountant does not apply."""
    if rdp_epsilon(unit, delta) is None:
        return 1.0

    def bound(factor: float) -> float:
        return rdp_epsilon(events.scale_noise(unit, factor), delta) or 0.0

    high = 1.0
    while bound(high) > epsilon and high < 1e6:
        high *= 2
    low = high / 2
    while bound(low) <= epsilon and low > 1e-6:
        high, low = low, low / 2
    while high / low > 1.3:
        middle = math.sqrt(high * low)
        high, low = (middle, low) if bound(middle) <= epsilon else (high, middle)
    return high


# -------------------------------------------------------------------- remembering


def cache_dir() -> Path:
    """Where calibrations are kept: ``$DISCREET_CACHE``, or ``~/.cache/discreet``."""
    return Path(os.environ.get("DISCREET_CACHE") or home_folder() / ".cache" / "discreet") / "calibration"


def _key(question: str, unit: DpEvent, epsilon: float, delta: float) -> str:
    content = {
        "format": _FORMAT,
        "question": question,
        "event": events.event_to_json(unit),
        "epsilon": epsilon,
        "delta": delta,
        "tolerance": RELATIVE_TOLERANCE,
        "versions": accountant_versions(),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _recall(key: str) -> float | None:
    """A remembered factor; a missing or damaged file is as good as none.

    A file that was tampered with cannot weaken a guarantee: ε is computed again from the events that ran,
    and a plan whose ε exceeds its budget is refused.
    """
    try:
        factor = float(json.loads((cache_dir() / f"{key}.json").read_text())["factor"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return factor if math.isfinite(factor) and factor > 0 else None


def _remember(key: str, factor: float) -> None:
    """Write whole or not at all; a cache that cannot be written is no error."""
    with contextlib.suppress(OSError):
        write_whole(cache_dir() / f"{key}.json", json.dumps({"factor": factor}))
