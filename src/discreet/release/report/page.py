"""The page of a release: all that its template shows, from the certificate and from what is laid beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dp_accounting.dp_event import DpEvent
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from discreet.errors import CertificateError, DiscreetError, PrivacyError
from discreet.files import from_json
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.ledger import Ledger
from discreet.privacy.levels import Level, parse_level
from discreet.privacy.loss_curve import LossCurve, for_units, surest
from discreet.privacy.plan import Stage
from discreet.privacy.release_folder import read_certificate
from discreet.privacy.totals import Total, totals
from discreet.privacy.tradeoff import TradeOff
from discreet.release.report.accuracy import FIGURES, Paid
from discreet.release.report.inputs import Attack, Attacks, number, sweep_lines
from discreet.release.report.pictures import Axis, Bar, Line, bar_chart, belief, line_chart
from discreet.release.report.policy import Evidence, Policy, judge, rule_in_words, verdict
from discreet.release.report.words import Names, promise_of
from discreet.release.verify import SIGNED, Examined, examine

BELIEFS = (0.01, 0.1, 0.5)
"""How sure somebody may have been before: examples, from a guess to an even bet."""
DOUBLINGS = (0, 1, 2, 3)
"""Groups of one, two, four and eight units: where there is a rule for two, it doubles."""
MORE, NO_BOUND = "more", "no bound is known"
NOTHING_LEFT = 20.0
"""ε at which odds may grow 485 million fold: what still larger groups lose is not computed, for that takes seconds."""
# Ticks of an axis from nothing to all.
SHARES = [(0.0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %")]


@dataclass(frozen=True)
class Beside:
    """What is laid beside a release; what was not given is None or empty."""

    attacks: Attacks | None = None
    audit: Mapping[str, Any] | None = None
    sweep: Sequence[Mapping[str, str]] = ()
    ledger: Ledger | None = None
    paid: Paid | None = None
    names: Names = field(default_factory=Names)
    policy: Policy = field(default_factory=Policy)


def render_report(folder: Path, beside: Beside) -> str:
    """The page of a release as one HTML text that needs nothing else."""
    certificate = read_certificate(folder)
    examined = examine(folder)
    try:
        context = _context(certificate, beside)
    except (KeyError, TypeError, ValueError, AttributeError, DiscreetError) as error:
        raise CertificateError(f"the certificate of {folder} cannot be shown: {error!r:.200}") from None
    broken = [f"{check.name}: {check.detail}" for check in examined.checks if not check.passed]
    evidence = _evidence(certificate, context, broken, beside)
    findings = judge(evidence, beside.policy)
    context |= {
        "checks": examined.checks,
        "signature": _signature(examined),
        "warnings": examined.warnings,
        "findings": findings,
        "verdict": verdict(findings),
        "rule": rule_in_words(beside.policy),
    }
    return environment().get_template("report.html").render(context)


def _signature(examined: Examined) -> str:
    """Whether somebody signed this, and with which key, in words."""
    found = next((check for check in examined.checks if check.name == SIGNED), None)
    if found is None:
        return "not signed: nothing shows who made this release"
    detail = found.detail.replace("`", "")  # a page has no backquotes
    return f"signed {detail}" if found.passed else f"THE SIGNATURE IS WRONG: {detail}"


def environment() -> Environment:
    """Templates in which everything is escaped, and a name that does not exist is an error."""
    made = Environment(
        loader=PackageLoader("discreet.release.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    made.filters |= {"figure": figure, "percent": percent, "chance": chance}
    made.globals |= {"inline": _inline, "surest": surest, "infinite": math.inf}
    return made


def _inline(name: str) -> Markup:
    """A style or script of ours, as it is."""
    return Markup((Path(__file__).parent / "templates" / name).read_text(encoding="utf-8"))


# -------------------------------------------------------------------- numbers in words


def figure(value: Any) -> str:
    """A number for people; texts as they are."""
    value = from_json(value)
    if value is None:
        return "–"
    if isinstance(value, bool | str):
        return str(value)
    return "infinite" if math.isinf(value) else f"{value:.4g}"


def percent(share: float | None) -> str:
    """A share in per cent, never rounded to certainty or to nothing."""
    if share is None:
        return "–"
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    if share > 0.9995:
        return "more than 99.9 %"
    return "less than 0.1 %" if share < 0.0005 else f"{100 * share:.3g} %"


def chance(probability: float) -> str:
    """A small probability as one in so many, rounded towards the more probable."""
    if probability <= 0:
        return "never"
    if probability >= 0.1:
        return f"with probability {percent(probability)}"
    size = 1 / probability
    digits = 10 ** max(0, len(str(int(size))) - 2)
    return f"once in {int(size // digits * digits):,}"


# -------------------------------------------------------------------- what is shown


def _context(certificate: Mapping[str, Any], beside: Beside) -> dict[str, Any]:
    level = parse_level(certificate["level"]["spec"])
    event = events.compose(
        events.repeat(stage.event, stage.runs) for stage in map(Stage.from_json, certificate["stages"])
    )
    delta = float(certificate["delta"])
    proved = math.inf if level.kind == "none" else _proved(event, delta)
    curve, trade_off = LossCurve(event), TradeOff.of(event)
    promise = promise_of(level, beside.names)
    failing = 0.0 if delta == 0 else min(1.0, max(delta, curve.exceeds(proved))) if math.isfinite(proved) else 1.0
    groups = _groups(event, delta, level)
    return {
        "certificate": certificate,
        "facts": (certificate.get("facts") or [None])[0],
        "names": beside.names,
        "level": level,
        "promise": promise,
        "epsilon": proved,
        "claimed": certificate["accounting"] != "rigorous",
        "delta": delta,
        "failing": failing,
        "odds": [(before, surest(proved, before)) for before in BELIEFS],
        "belief": belief(0.5, surest(proved, 0.5), "One hundred dots: fifty filled for how sure somebody was before"),
        "groups": groups,
        "trade_off": _trade_off([(group.units, group.event) for group in groups if group.event is not None]),
        "power": [(share, trade_off.true_positive_rate(share)) for share in (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)],
        "attacks": beside.attacks,
        "attack_picture": _attack_picture(beside.attacks),
        "paid": beside.paid,
        "figures": FIGURES,
        "paid_picture": _paid_picture(beside.paid),
        "sweep_picture": _sweep_picture(beside.sweep),
        "audit": beside.audit,
        "ledger": _ledger_of(beside.ledger, certificate, level),
        "exact": _is_exact(certificate),
    }


class Group(NamedTuple):
    """Units that change at once, and what is proved for them; no event where no bound is known or computed."""

    units: int
    event: DpEvent | None
    epsilon: float
    words: str


def _groups(event: DpEvent, delta: float, level: Level) -> list[Group]:
    """For 1, 2, 4 and 8 units at once, at the same δ. A larger group never loses less than a smaller one."""
    if level.kind == "none":
        return []
    found: list[Group] = []
    for doublings in DOUBLINGS:
        if found and found[-1].epsilon > NOTHING_LEFT:
            known = found[-1].event is not None or found[-1].words == MORE
            found.append(Group(2**doublings, None, math.inf, MORE if known else NO_BOUND))
            continue
        made = for_units(event, doublings)
        epsilon = math.inf if made is None else _proved(made, delta)
        found.append(Group(2**doublings, made, epsilon, NO_BOUND if made is None else figure(epsilon)))
    return found


def _proved(event: DpEvent, delta: float) -> float:
    """The least ε that is proved; infinite where no accountant knows the event."""
    try:
        return epsilon_of(event, delta)
    except PrivacyError:
        return math.inf


def _trade_off(made: Sequence[tuple[int, DpEvent]]) -> Markup:
    shares = [0.0, *np.geomspace(1e-4, 0.1, 25).tolist(), *np.linspace(0.12, 1.0, 45).tolist()]
    lines = [Line("guessing blindly", [(0.0, 0.0), (1.0, 1.0)], 0, dashed=True)]
    for number_, (count, event) in enumerate(made):
        curve = TradeOff.of(event)
        name = "one unit" if count == 1 else f"{count} units together"
        hits = curve.true_positive_rates(np.array(shares))
        lines.append(Line(name, list(zip(shares, hits.tolist(), strict=True)), number_ + 1))
    x, y = Axis("false alarms", 0, 1, SHARES), Axis("hits", 0, 1, SHARES)
    return line_chart("The largest share of hits that any attack can reach for each share of false alarms", x, y, lines)


def _attack_picture(attacks: Attacks | None) -> Markup | None:
    if attacks is None or not attacks.rows:
        return None
    bars = [
        Bar(
            f"{row.kind}, {'one unit in or out' if row.ceiling else row.against}",
            row.auc,
            1 if row.against == "release" else 2,
            row.interval,
            row.ceiling.get("auc"),
        )
        for row in _strongest(attacks.rows)[:40]
    ]
    title = "How well each attack tells true from false: 0.5 is guessing, 1 is certainty"
    return bar_chart(title, bars, 0.0, 1.0, [(0.0, "0"), (0.5, "0.5 guessing"), (1.0, "1")])


def _strongest(rows: Sequence[Attack]) -> list[Attack]:
    """The attack with the largest area of each kind against each model, and every game that has a ceiling."""
    best: dict[tuple[str, str], Attack] = {}
    for row in rows:
        at = (row.kind, row.against)
        if not row.ceiling and (at not in best or row.auc > best[at].auc):
            best[at] = row
    return [*best.values(), *(row for row in rows if row.ceiling)]


def _paid_picture(paid: Paid | None) -> Markup | None:
    rows = [] if paid is None else [row for row in paid.rows if row.figures.get("accuracy") is not None]
    if not rows:
        return None
    bars = [Bar(row.name, row.figures["accuracy"] or 0.0, 1 if row.name == "this release" else 2) for row in rows]
    return bar_chart("Accuracy on the test nodes", bars, 0.0, 1.0, [(0.0, "0"), (0.5, "0.5"), (1.0, "1")])


def _sweep_picture(rows: Sequence[Mapping[str, str]]) -> Markup | None:
    curves = sweep_lines(rows)
    return sweep_chart(dict(list(curves.items())[:6])) if curves else None


def sweep_chart(curves: Mapping[str, Sequence[tuple[float, float]]]) -> Markup:
    """Curves over ε, which is on a logarithmic axis."""
    points = [point for line in curves.values() for point in line]
    epsilons = sorted({e for e, _ in points if e > 0})
    low, high = min(m for _, m in points), max(m for _, m in points)
    margin = 0.05 * (high - low or 1.0)
    y_marks = [(v, f"{v:.3g}") for v in np.linspace(low, high, 5)]
    x = Axis("ε", math.log(epsilons[0]), math.log(epsilons[-1]) + 1e-9, _spread(epsilons))
    y = Axis("mean", low - margin, high + margin, y_marks)
    lines = [
        Line(name, [(math.log(e), m) for e, m in line if e > 0], index + 1)
        for index, (name, line) in enumerate(curves.items())
    ]
    return line_chart("The measured mean for each ε", x, y, lines)


_MOST_TICKS = 6
"""Numbers that stand under an axis without touching."""


def _spread(epsilons: Sequence[float]) -> list[tuple[float, str]]:
    step = max(1, math.ceil(len(epsilons) / _MOST_TICKS))
    return [(math.log(e), f"{e:g}") for e in epsilons[::step]]


def _ledger_of(ledger: Ledger | None, certificate: Mapping[str, Any], level: Level) -> dict[str, Any] | None:
    """The entries of the same people; without an entry of this release nobody knows which they are."""
    if ledger is None:
        return None
    found = next(
        (e for e in ledger.entries() if certificate["digest"] == e.certificate or certificate.get("ledger") == e.id),
        None,
    )
    if found is None:
        return {"known": False, "total": None, "entries": []}
    theirs: list[Total] = [t for t in totals(ledger) if t.population == found.population]
    mine = next(total for total in theirs if total.relation == level.relation)
    return {"known": True, "total": mine, "entries": ledger.entries(found.population), "this": found.id}


def _is_exact(certificate: Mapping[str, Any]) -> bool:
    return not any("floating point" in str(caveat) for caveat in certificate["caveats"])


def _evidence(
    certificate: Mapping[str, Any], context: Mapping[str, Any], broken: list[str], beside: Beside
) -> Evidence:
    facts, ledger = context["facts"], context["ledger"]
    total = None if ledger is None else ledger["total"].total if ledger["known"] else math.inf
    return Evidence(
        broken=broken,
        level=context["level"].spec,
        level_kind=context["level"].kind,
        epsilon=context["epsilon"],
        delta=context["delta"],
        nodes=None if facts is None else int(number(facts["num_nodes"]) or 0),
        covers=str(certificate["covers"]["name"]),
        exact=context["exact"],
        stated=bool(certificate.get("purpose") and certificate.get("issuer")),
        audited=None if beside.audit is None else _is_of(beside.audit, certificate) and bool(beside.audit["passed"]),
        refuted=None if beside.attacks is None else beside.attacks.verdict,
        total=total,
    )


def _is_of(audit: Mapping[str, Any], certificate: Mapping[str, Any]) -> bool:
    """Whether an audit is about this release; one of a bare method says nothing of it, and passes."""
    about = audit.get("release")
    return not isinstance(about, Mapping) or about.get("certificate") == certificate["digest"]
