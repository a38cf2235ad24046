"""Tables as text: for the terminal, as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence

from discreet.bench.summary import Cell
from discreet.bench.tables import Layout, Text


def terminal(layout: Layout) -> str:
    """Aligned text; the best is starred."""
    texts = [[cell.text + ("*" if cell.best else "") for cell in row] for row in layout.rows]
    widths = [max(len(line[place]) for line in [layout.heads, *texts]) for place in range(len(layout.heads))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in [layout.heads, *texts]
    ]
    starred = ["* best: its interval lies apart from all others of its level, budget and coverage"]
    notes = layout.notes + (starred if any(cell.best for row in layout.rows for cell in row) else [])
    return "\n".join([layout.title, "", *lines, "", *notes]) + "\n"


def markdown(layout: Layout) -> str:
    """A Markdown table; the best is bold."""
    rows = ["| " + " | ".join(_bold(cell, "**{}**") for cell in row) + " |" for row in layout.rows]
    head = "| " + " | ".join(layout.heads) + " |"
    return (
        "\n".join(
            [
                f"**{layout.title}**",
                "",
                head,
                "|" + "---|" * len(layout.heads),
                *rows,
                "",
                "; ".join(layout.notes) + ".",
            ]
        )
        + "\n"
    )


def latex(layout: Layout) -> str:
    """A booktabs table."""
    lines = [
        " & ".join(_bold(Text(_tex(cell.text), cell.best), "\\textbf{{{}}}") for cell in row) + r" \\"
        for row in layout.rows
    ]
    columns = "l" * len(layout.heads)
    return (
        "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{_tex(layout.title)}. {_tex('; '.join(layout.notes))}.}}",
                rf"\begin{{tabular}}{{{columns}}}",
                r"\toprule",
                " & ".join(_tex(head) for head in layout.heads) + r" \\",
                r"\midrule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
            ]
        )
        + "\n"
    )


def cells_csv(found: Sequence[Cell]) -> str:
    """One line per cell, everything in it: for spreadsheets and for drawing."""
    axes = list(dict.fromkeys(key for cell in found for key in cell.at))
    numbers = [
        "mean",
        "low",
        "high",
        "deviation",
        "seeds",
        "failed",
        "paper",
        "covers",
        "epsilon_spent",
        "seconds",
        "peak_rss_mb",
        "made_by",
    ]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*axes, *numbers])
    for cell in found:
        mean, half = cell.mean, cell.half
        values = [mean, mean - half, mean + half, cell.deviation]
        costs = [cell.spent, cell.average("seconds"), cell.average("peak_rss_mb")]
        writer.writerow(
            [
                *(cell.at.get(key, "") for key in axes),
                *map(_number, values),
                len(cell.values),
                len(cell.reasons),
                "" if cell.paper is None else cell.paper,
                cell.covers,
                *map(_number, costs),
                cell.made_by,
            ]
        )
    return out.getvalue()


FORMATS: dict[str, Callable[[Layout], str]] = {"terminal": terminal, "markdown": markdown, "latex": latex}


def _bold(cell: Text, form: str) -> str:
    return form.format(cell.text) if cell.best else cell.text


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


_TEX = {
    "±": r"$\pm$",
    "ε": r"$\varepsilon$",
    "∞": r"$\infty$",
    "δ": r"$\delta$",
    "φ": r"$\varphi$",
    "α": r"$\alpha$",
    "×": r"$\times$",
}


def _tex(text: str) -> str:
    escaped = "".join(f"\\{char}" if char in "%&_#{}$" else char for char in text.replace("\\", "/"))
    return "".join(_TEX.get(char, char) for char in escaped)
