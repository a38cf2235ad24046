"""Figures of a suite: one line per method with its 95 % interval, as SVG and PNG, light and dark."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.bench.figure_style import DASHES, NO_PRIVACY, THEMES, Theme, dash, markers
from discreet.bench.points import Point, chosen_points
from discreet.bench.suite import SCORES, Figure
from discreet.bench.tables import shown
from discreet.files import write_whole

LABELS = {"epsilon": "ε", "phi": "φ", "alpha": "α", "x_steps": "K", "max_degree": "D"}
ACROSS = 3  # panels side by side, at most
FORMATS = ("svg", "png")
DOTS_PER_INCH = 144  # two for each point
APART = 0.25
"""The part of the space between two values of x over which lines are spread, so that their intervals stand apart."""
MOST_TICKS = 9  # with more, their numbers run into one another
MOST_COLUMNS = 4  # of a legend
ROW_OF_LEGEND = 0.19  # inches
FINE = (0, (1, 1))  # dots close together: lines of methods without privacy
Key = tuple[str, ...]


@dataclass(frozen=True)
class Look:
    """Of one line: everything but its dash, which says what its guarantee covers."""

    marker: str
    colour: str


def draw(figure: Figure, points: Iterable[Point], stem: Path, formats: Sequence[str] = FORMATS) -> list[str]:
    """Write ``stem`` as .svg and .png, and the same with ``-dark``; their names, none if there is nothing to draw."""
    found = chosen_points(points, figure)
    if not found:
        return []
    import matplotlib

    matplotlib.use("agg")
    written = []
    for theme in THEMES:
        with matplotlib.rc_context(theme.settings()):
            drawing = _drawing(figure, found, theme)
            written += save(drawing, stem.with_name(stem.name + theme.suffix), formats)
    return written


def save(drawing: Any, stem: Path, formats: Sequence[str] = FORMATS) -> list[str]:
    """A drawing in these formats, each whole or not at all; it is closed."""
    import matplotlib.pyplot as plt

    for suffix in formats:
        drawn, metadata = io.BytesIO(), {"Date": None} if suffix == "svg" else {}
        drawing.savefig(drawn, format=suffix, metadata=metadata, bbox_inches="tight", dpi=DOTS_PER_INCH)
        write_whole(stem.with_name(f"{stem.name}.{suffix}"), drawn.getvalue())
    plt.close(drawing)
    return [f"{stem.name}.{suffix}" for suffix in formats]


def _drawing(figure: Figure, found: Sequence[Point], theme: Theme) -> Any:
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys(_key(point, figure.panel) for point in found))
    looks = looks_of(figure, found, theme)
    across = _panels_across(panels)
    down = math.ceil(len(panels) / across)
    width = max(3.6 * across, 6.0)
    named = legend_columns([", ".join(name) for name in looks], found, width)
    height = 2.5 * down + 0.7 + ROW_OF_LEGEND * named.rows
    drawing, axes = plt.subplots(down, across, figsize=(width, height), squeeze=False, layout="constrained")
    for axis, panel in itertools.zip_longest(axes.flat, panels):
        if panel is None:
            axis.set_visible(False)
            continue
        draw_panel(axis, figure, [point for point in found if _key(point, figure.panel) == panel], looks)
        axis.set_title(", ".join(panel), fontsize=9.5, loc="left")
    for row in axes:
        row[0].set_ylabel(_metric_label(figure))
    add_legend(drawing, axes.flat, named, theme)
    drawing.suptitle(figure.title, fontsize=11, fontweight="bold")
    return drawing


def _panels_across(panels: Sequence[Key]) -> int:
    """One column per value of the last coordinate where panels have several; else as square as it gets."""
    last = len({panel[-1] for panel in panels if len(panel) > 1})
    if 2 <= last <= ACROSS and len(panels) > last:
        return last
    return 2 if len(panels) == 4 else min(ACROSS, len(panels))


# -------------------------------------------------------------------- one panel


def draw_panel(axis: Any, figure: Figure, found: Sequence[Point], looks: Mapping[Key, Look]) -> None:
    """All lines of a panel, with x at the values that there are."""
    words = any(isinstance(point.at.get(figure.x), str) for point in found)
    lines = {name: [p for p in found if line_key(p, figure) == name] for name in looks}
    moving = {name: line for name, line in lines.items() if line and not _is_level_line(line, figure)}
    places = list(dict.fromkeys(shown(point.at.get(figure.x)) for line in moving.values() for point in line))
    values = [float(i) for i in range(len(places))] if words else sorted(map(float, places))
    shifts = _shifts(values, len(moving), figure.log_x and not words)
    for name, line in lines.items():
        if not line:
            continue
        look, label = looks[name], ", ".join(name)
        if name not in moving:
            axis.axhline(line[0].mean, label=label, color=look.colour, **_stroke(line[0]))
            continue
        shift = shifts[list(moving).index(name)]
        at = [places.index(shown(p.at[figure.x])) if words else float(p.at[figure.x]) for p in line]
        order = sorted(range(len(at)), key=at.__getitem__)
        axis.errorbar(
            [at[i] * shift if figure.log_x and not words else at[i] + shift for i in order],
            [line[i].mean for i in order],
            yerr=[0.0 if math.isnan(line[i].half) else line[i].half for i in order],
            label=label,
            color=look.colour,
            marker=look.marker,
            ms=4.5,
            **_stroke(line[0]),
            elinewidth=0.9,
            capsize=1.5,
        )
    _axis_of_x(axis, figure, values, places if words else None)
    axis_of_y(axis, found, figure.metric in SCORES)
    axis.grid(axis="y", lw=0.6)
    axis.set_axisbelow(True)


def _stroke(point: Point) -> dict[str, Any]:
    """Dash and width: what is covered, or that nothing is protected."""
    return {"lw": 1.0, "ls": FINE} if point.no_privacy else {"lw": 1.5, "ls": dash(point.covers)}


def _is_level_line(line: Sequence[Point], figure: Figure) -> bool:
    """Whether one figure stands for every ε."""
    return figure.x == "epsilon" and all(point.any_epsilon for point in line)


def _shifts(values: Sequence[float], lines: int, log_x: bool) -> list[float]:
    """How far each line is moved along x: a summand, or a factor on a logarithmic scale."""
    scale = [math.log(value) for value in values] if log_x else list(values)
    gap = min((two - one for one, two in itertools.pairwise(scale)), default=0.0)
    moved = [APART * gap * ((place + 0.5) / lines - 0.5) for place in range(lines)]
    return [math.exp(by) for by in moved] if log_x else moved


def _axis_of_x(axis: Any, figure: Figure, values: Sequence[float], words: Sequence[str] | None) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    if figure.log_x and words is None:
        axis.set_xscale("log")
        axis.xaxis.set_minor_locator(NullLocator())
    if words is not None:
        slanted = {"rotation": 25, "ha": "right"} if max(map(len, words)) > 8 else {}
        axis.set_xticks(values, words, **slanted)
    elif values:
        ticks = _ticks(values, figure.log_x)
        axis.xaxis.set_major_locator(FixedLocator(ticks))
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xlabel(figure.x_label or LABELS.get(figure.x, figure.x.replace("_", " ")))


def _ticks(values: Sequence[float], log_x: bool) -> list[float]:
    """Values of x that are far enough apart for their numbers to be read."""
    scale = [math.log(value) if log_x else value for value in values]
    least = (scale[-1] - scale[0]) / MOST_TICKS
    kept = [0]
    for place in range(1, len(values)):
        if scale[place] - scale[kept[-1]] >= least:
            kept.append(place)
    return [values[place] for place in kept]


def axis_of_y(axis: Any, found: Sequence[Point], per_cent: bool) -> None:
    """Room for the means and for usual intervals; those of two or three seeds may leave the panel."""
    low, high = min(p.mean for p in found), max(p.mean for p in found)
    room = max(0.5 * (high - low), 0.05 * abs(high))
    halves = [p.half for p in found if not math.isnan(p.half)]
    pad = min(max(halves, default=0.0), room) + 0.06 * (high - low) + 0.002 * abs(high) + 1e-9
    least, most = (0.0, 101.0) if per_cent else (-math.inf, math.inf)
    axis.set_ylim(max(low - pad, least), min(high + pad, most))


# -------------------------------------------------------------------- legend and looks


@dataclass(frozen=True)
class LegendPlan:
    """What a legend names, and in how many columns: planned before the figure, whose height it decides."""

    lines: list[str]
    covered: list[str]
    columns: int

    @property
    def rows(self) -> int:
        """Of the lines and of the dashes together."""
        return math.ceil(len(self.lines) / self.columns) + math.ceil(len(self.covered) / self.columns)


def legend_columns(lines: Sequence[str], found: Sequence[Point], width: float, most: int = MOST_COLUMNS) -> LegendPlan:
    """As many columns as fit the width."""
    covered = [f"covers {name}" for name in DASHES if any(p.covers == name and not p.no_privacy for p in found)]
    if any(p.no_privacy for p in found):
        covered.append(NO_PRIVACY)
    widest = max(map(len, [*lines, *covered]))
    fitting = int(width / (0.7 + 0.068 * widest))
    return LegendPlan(list(lines), covered, max(1, min(most, max(len(lines), len(covered)), fitting)))


def add_legend(drawing: Any, axes: Iterable[Any], plan: LegendPlan, theme: Theme) -> None:
    """One legend below: each line once, and under the lines what each dash covers."""
    from matplotlib.lines import Line2D

    handles: dict[str, Any] = {}
    for axis in axes:
        found, labels = axis.get_legend_handles_labels()
        handles = {**dict(zip(labels, found, strict=True)), **handles}
    dashes: dict[str, Any] = {f"covers {name}": style for name, style in DASHES.items()} | {NO_PRIVACY: FINE}
    for label in plan.covered:
        handles[label] = Line2D([], [], color=theme.ink, lw=1.2, ls=dashes[label])
    empty = Line2D([], [], ls="none")
    drawing.legend(
        [handles.get(label, empty) for label in _by_column(plan)],
        _by_column(plan),
        loc="outside lower center",
        ncols=plan.columns,
        fontsize=8.5,
        frameon=False,
        handlelength=3.2,
    )


def _by_column(plan: LegendPlan) -> list[str]:
    """Labels row by row, lines before dashes, in the order in which matplotlib fills columns; empty ones fill up."""
    rows = [
        [*part[at : at + plan.columns], *[""] * (plan.columns - len(part[at : at + plan.columns]))]
        for part in (plan.lines, plan.covered)
        for at in range(0, len(part), plan.columns)
    ]
    return [row[column] for column in range(plan.columns) for row in rows]


def looks_of(figure: Figure, found: Sequence[Point], theme: Theme) -> dict[Key, Look]:
    """A line's colour is its method's; lines of one method differ in shade and marker."""
    methods: dict[Key, str] = {}
    for point in found:
        methods.setdefault(line_key(point, figure), str(point.at.get("method", "")))
    plainest_first = sorted(methods, key=lambda name: name[:1] != (methods[name],))
    made = zip(plainest_first, markers([methods[name] for name in plainest_first]), strict=True)
    looks = {name: Look(marker, theme.colour(methods[name], variant)) for name, (marker, variant) in made}
    return {name: looks[name] for name in methods}


def line_key(point: Point, figure: Figure) -> Key:
    """Which line of a figure the point is on."""
    return _key(point, figure.line)


def _key(point: Point, keys: Sequence[str]) -> Key:
    return tuple(
        shown(point.at.get(key))
        if key in ("name", "dataset", "level")
        else f"{LABELS.get(key, key)} = {shown(point.at.get(key))}"
        for key in keys
        if point.at.get(key) is not None
    )


def _metric_label(figure: Figure) -> str:
    return f"{figure.mask} {figure.metric}, %" if figure.metric in SCORES else figure.metric.replace("_", " ")
