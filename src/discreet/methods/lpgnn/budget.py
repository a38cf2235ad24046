"""How one ε is shared between the features and the label of a record, and what is left without protection."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.errors import PrivacyError
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import LocalLevel

_SIMULATED = (
    "devices were simulated: the process that made this saw every record, and the guarantee is for what it released"
)
_RECEIVED = (
    "reports were made by their owners: this run drew none of their noise, and the guarantee rests on "
    "their having used discreet.local with these settings"
)


@dataclass(frozen=True)
class LocalBudget:
    """ε of the report of features and of the label; None where that part is not reported with noise."""

    features: float | None
    labels: float | None


def narrowed(privacy: Privacy, epsilon_x: float | None, epsilon_y: float | None) -> Privacy:
    """The privacy that these settings really give: an infinite ε for one part leaves that part out of the level.

    So a plan, a certificate or an audit never claims ε for something that is published as it is.
    """
    level = privacy.level
    if not isinstance(level, LocalLevel):
        return privacy
    open_x, open_y = (value == math.inf for value in (epsilon_x, epsilon_y))
    if open_x and open_y:
        raise PrivacyError(
            "epsilon_x and epsilon_y are both infinite, so nothing is protected: say level none (--level none "
            "--epsilon inf) where that is meant"
        )
    if not (open_x or open_y):
        return privacy
    protected, name = ("features", "epsilon_y") if open_y else ("labels", "epsilon_x")
    if level.protects not in ("both", protected):
        raise PrivacyError(
            f"level {level.spec} contradicts {name} = inf, which leaves unprotected what this level protects"
        )
    return Privacy(LocalLevel(protected), privacy.epsilon, privacy.delta)  # type: ignore[arg-type]


def split_budget(
    privacy: Privacy, epsilon_x: float | None, epsilon_y: float | None, *, reads_features: bool
) -> LocalBudget:
    """What each report may cost, in all never more than ``privacy.epsilon``.

    Without instructions both halves are equal; where features are not read, or are public, the label has it all.
    """
    level, total = privacy.level, float(privacy.epsilon)
    if not isinstance(level, LocalLevel):
        return LocalBudget(None, None)
    if not reads_features and epsilon_x is not None:
        raise PrivacyError(f"epsilon_x is {epsilon_x:g}, but no feature is read: leave epsilon_x out")
    wants_x = reads_features and level.protects != "labels"
    wants_y = level.protects != "features"
    if wants_x and wants_y:
        return _shared(total, epsilon_x, epsilon_y)
    for name, given, wanted in (("epsilon_x", epsilon_x, wants_x), ("epsilon_y", epsilon_y, wants_y)):
        if given is not None and math.isfinite(given) and (not wanted or not math.isclose(given, total, rel_tol=1e-9)):
            raise PrivacyError(
                f"{name} is {given:g}, but at level {level.spec} with epsilon {total:g} it can only be "
                + (f"{total:g}" if wanted else "left out or infinite")
            )
    return LocalBudget(total if wants_x else None, total if wants_y else None)


def budget_notes(level: LocalLevel, budget: LocalBudget, *, devices_simulated: bool) -> list[str]:
    """Sentences for the plan: what each report may cost, what is not protected, and who drew the noise."""
    notes = ["the graph itself is public: nothing is promised about edges"]
    parts = (("features", "epsilon_x", budget.features), ("labels", "epsilon_y", budget.labels))
    for name, setting, epsilon in parts:
        if name not in level.private:
            notes.insert(0, f"{name.upper()} ARE NOT PROTECTED: they are used as they are, and epsilon is not for them")
        elif epsilon is None:
            notes.append(f"{name} are not read at all")
        else:
            notes.append(f"{setting} = {epsilon:g} for the {name} of a node")
    return [*notes, _SIMULATED if devices_simulated else _RECEIVED]


def _shared(total: float, epsilon_x: float | None, epsilon_y: float | None) -> LocalBudget:
    if epsilon_x is None:
        epsilon_x = total / 2 if epsilon_y is None else total - epsilon_y
    rest = total - epsilon_x
    if not (epsilon_x > 0 and rest > 0):
        raise PrivacyError(
            f"epsilon is the total over features and labels, {total:g} here: epsilon_x and epsilon_y must be positive "
            "and make it up together"
        )
    if epsilon_y is not None and not math.isclose(epsilon_y, rest, rel_tol=1e-9):
        raise PrivacyError(
            f"epsilon_x {epsilon_x:g} and epsilon_y {epsilon_y:g} make {epsilon_x + epsilon_y:g}, "
            f"but epsilon is {total:g}: the total must be their sum"
        )
    while epsilon_x + rest > total:  # a rounding error at most
        rest = math.nextafter(rest, 0.0)
    return LocalBudget(epsilon_x, rest)
