"""``discreet ledger``: what all releases from the same data have spent together."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.declared import Json
from discreet.cli.output import print_json

if TYPE_CHECKING:
    from discreet.privacy.ledger import Entry
    from discreet.privacy.totals import Total


def ledger(
    file: Annotated[Path, typer.Argument(help="The file that was given as --ledger.")],
    as_json: Json = False,
) -> None:
    """Show every release from the same data, by level, what they spend together, and what a limit leaves."""
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.totals import totals

    found = totals(Ledger(file))
    if as_json:
        print_json({"ledger": str(file), "totals": [_as_json(total) for total in found]})
    elif not found:
        print("the ledger is empty")
    else:
        print("\n\n".join(_as_text(total) for total in found))


def _as_text(total: Total) -> str:
    lines = [f"{total.population}, level {total.relation}"]
    lines += [_line(entry) for entry in total.entries] or ["  no run at this level"]
    if total.entries:
        summed, delta = total.summed
        lines += [
            f"  together     epsilon {_figure(total.alone)} at delta {total.delta:g} if all runs were fixed beforehand",
            f"               epsilon {_figure(summed)} at delta {delta:g} if each was chosen after the last",
        ]
    if total.others:
        levels = ", ".join(sorted({entry.relation for entry in total.others}))
        others = f"{len(total.others)} other runs protect {levels} only"
        lines.append(f"  TOTAL        epsilon infinite at level {total.relation}: {others}")
    if total.limit is not None:
        lines += _limit_lines(total)
    return "\n".join(lines)


def _limit_lines(total: Total) -> list[str]:
    limit, room = total.limit, total.room or 0.0
    assert limit is not None
    left = f"room for a run of about epsilon {room:.4g}" if room > 0 else "no room for a further run"
    lines = [f"  limit        epsilon {limit.filter.epsilon:g} at delta {limit.filter.delta:g}: {left}"]
    if limit.before:
        lines.append(f"               set after {limit.before} runs: it holds if their results did not decide it")
    return lines


def _line(entry: Entry) -> str:
    state = "released" if entry.released else "reserved, no release: counts as spent"
    cost = f"epsilon {_figure(entry.epsilon)}, delta {entry.delta:g}"
    return f"  {entry.reserved[:16]}  {entry.id}  {entry.dataset}: {entry.command} {entry.method}, {cost} ({state})"


def _figure(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.4g}"


def _as_json(total: Total) -> dict[str, Any]:
    limit = total.limit
    return {
        "population": total.population,
        "level": total.relation,
        "epsilon": total.total,
        "epsilon_of_these": total.alone,
        "delta": total.delta,
        "epsilon_summed": total.summed[0],
        "delta_summed": total.summed[1],
        "other_levels": sorted({entry.relation for entry in total.others}),
        "limit": None if limit is None else {"epsilon": limit.filter.epsilon, "delta": limit.filter.delta},
        "room": total.room,
        "entries": [
            {
                "id": entry.id,
                "dataset": entry.dataset,
                "command": entry.command,
                "method": entry.method,
                "level": entry.level,
                "epsilon": entry.epsilon,
                "delta": entry.delta,
                "reserved": entry.reserved,
                "released": entry.released,
                "certificate": entry.certificate,
            }
            for entry in total.entries
        ],
    }
