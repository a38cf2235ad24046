"""Figures of a suite: one line per method, with its 95 % interval, told apart by marker and dash before colour."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.bench.suite import SCORES, Figure
from discreet.bench.summary import Cell, Row, cells
from discreet.bench.tables import chosen, shown
from discreet.bench.trials import Entry
from discreet.files import write_whole

MARKERS = "os^Dv<>Pp*hX"
DASHES = ("-", "--", "-.", ":")
# Dark to light in print too; the marker and the dash carry the difference.
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#7f3c8d", "#a05a00", "#56b4e9", "#cc79a7", "#666666")
LABELS = {"epsilon": "ε", "phi": "φ", "alpha": "α"}
ACROSS = 3


def draw(figure: Figure, entries: Sequence[Entry], rows: Mapping[str, Row], path: Path) -> bool:
    """Write the figure (the suffix says how: .svg, .pdf, .png); False where there is nothing to draw yet."""
    found = [cell for cell in cells(chosen(entries, figure), rows, figure.metric, figure.mask) if cell.values]
    if not found:
        return False
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys(_key(cell, figure.panel) for cell in found))
    styles = _styles(list(dict.fromkeys(_key(cell, figure.line) for cell in found)))
    across = 2 if len(panels) == 4 else min(ACROSS, len(panels))
    down = math.ceil(len(panels) / across)
    with matplotlib.rc_context({"svg.hashsalt": "discreet", "font.size": 9, "svg.fonttype": "none"}):
        drawing, axes = plt.subplots(
            down, across, figsize=(3.6 * across, 2.7 * down + 0.9), squeeze=False, layout="constrained"
        )
        for axis, panel in itertools.zip_longest(axes.flat, panels):
            if panel is None:
                axis.set_visible(False)
                continue
            _panel(axis, figure, [cell for cell in found if _key(cell, figure.panel) == panel], styles)
            axis.set_title(", ".join(panel), fontsize=9)
        for row in axes:
            row[0].set_ylabel(_metric_label(figure))
        _legend(drawing, axes)
        drawing.suptitle(figure.title, fontsize=10)
        drawn = io.BytesIO()
        drawing.savefig(drawn, format=path.suffix[1:], metadata=_metadata(path), bbox_inches="tight")
        write_whole(path, drawn.getvalue())
        plt.close(drawing)
    return True


def _panel(axis: Any, figure: Figure, found: Sequence[Cell], styles: Mapping[tuple[str, ...], dict[str, Any]]) -> None:
    words = any(isinstance(cell.at.get(figure.x), str) for cell in found)
    places = list(dict.fromkeys(shown(cell.at.get(figure.x)) for cell in found))
    for name in dict.fromkeys(_key(cell, figure.line) for cell in found):
        line = [cell for cell in found if _key(cell, figure.line) == name]
        style, label = styles[name], ", ".join(name)
        if figure.x == "epsilon" and all(cell.case.any_epsilon or math.isinf(cell.at["epsilon"]) for cell in line):
            axis.axhline(line[0].mean, label=label, lw=1, color=style["color"], ls=style["ls"])
            continue
        at = [places.index(shown(c.at[figure.x])) if words else float(c.at[figure.x]) for c in line]
        spread = [0.0 if math.isnan(cell.half) else cell.half for cell in line]
        order = sorted(range(len(at)), key=at.__getitem__)
        axis.errorbar(
            [at[i] for i in order],
            [line[i].mean for i in order],
            yerr=[spread[i] for i in order],
            label=label,
            capsize=2,
            lw=1.1,
            ms=4,
            **style,
        )
    if words:
        slanted = {"rotation": 25, "ha": "right"} if max(map(len, places)) > 8 else {}
        axis.set_xticks(range(len(places)), places, **slanted)
    elif figure.log_x:
        axis.set_xscale("log")
    axis.set_xlabel(figure.x_label or LABELS.get(figure.x, figure.x))
    axis.grid(alpha=0.25, lw=0.5)


def _legend(drawing: Any, axes: Any) -> None:
    """One legend below: a line that is in several panels is named once."""
    named: dict[str, Any] = {}
    for axis in axes.flat:
        handles, labels = axis.get_legend_handles_labels()
        named.update(dict(zip(labels, handles, strict=True)))
    columns = max(1, min(4, len(named), round(drawing.get_figwidth() / 2.2)))
    drawing.legend(named.values(), named.keys(), loc="outside lower center", ncols=columns, fontsize=8, frameon=False)


def _styles(names: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Marker and dash are never both the same."""
    return {
        name: {
            "marker": MARKERS[place % len(MARKERS)],
            "ls": DASHES[(place + place // len(MARKERS)) % len(DASHES)],
            "color": COLOURS[place % len(COLOURS)],
        }
        for place, name in enumerate(names)
    }


def _key(cell: Cell, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        shown(cell.at.get(key))
        if key in ("name", "dataset", "level")
        else f"{LABELS.get(key, key)} = {shown(cell.at.get(key))}"
        for key in keys
        if cell.at.get(key) is not None
    )


def _metric_label(figure: Figure) -> str:
    return f"{figure.mask} {figure.metric}, %" if figure.metric in SCORES else figure.metric.replace("_", " ")


def _metadata(path: Path) -> dict[str, Any]:
    return {"Date": None} if path.suffix == ".svg" else {}
