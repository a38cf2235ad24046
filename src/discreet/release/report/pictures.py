"""Pictures of a page as inline SVG: every text escaped, every colour from the page's own style, a title for readers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

# Of a picture in points, and the margins in which its numbers and names stand.
WIDTH, HEIGHT = 420, 290
LEFT, RIGHT, TOP, BOTTOM = 62, 22, 14, 44


class Line(NamedTuple):
    """A curve: its name, points within the axes, and the number of its colour."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: int
    dashed: bool = False


class Axis(NamedTuple):
    """An axis: its title, ends, and marks with their texts."""

    title: str
    low: float
    high: float
    marks: Sequence[tuple[float, str]]

    def place(self, value: float, start: float, end: float) -> float:
        """Where a value lies between two pixels."""
        share = (value - self.low) / (self.high - self.low or 1.0)
        return start + min(1.0, max(0.0, share)) * (end - start)


def line_chart(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> Markup:
    """Curves over two axes, with a legend below."""

    def at(point: tuple[float, float]) -> tuple[float, float]:
        return x.place(point[0], LEFT, WIDTH - RIGHT), y.place(point[1], HEIGHT - BOTTOM, TOP)

    parts = [*_frame(x, y)]
    for line in lines:
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in map(at, line.points))
        dashes = Markup(' stroke-dasharray="5 5"') if line.dashed else ""
        parts.append(Markup('<polyline class="line c{}" points="{}"{}/>').format(line.colour, path, dashes))
        if not line.dashed and len(line.points) <= 12:
            parts += [
                Markup('<circle class="dot c{}" cx="{:.1f}" cy="{:.1f}" r="3.5"/>').format(line.colour, *at(p))
                for p in line.points
            ]
    keys = [Markup('<li><span class="key k{}"></span>{}</li>').format(line.colour, line.name) for line in lines]
    legend = Markup('<ul class="legend">{}</ul>').format(Markup("").join(keys))
    return _figure(title, HEIGHT, parts) + legend


class Bar(NamedTuple):
    """A bar: its name, value, an interval of confidence and a mark (a ceiling) where there are such."""

    name: str
    value: float
    colour: int
    interval: tuple[float, float] | None = None
    mark: float | None = None


def bar_chart(title: str, bars: Sequence[Bar], low: float, high: float, marks: Sequence[tuple[float, str]]) -> Markup:
    """Bars from left to right, one below the other, each with its name above it."""
    row, right = 46, WIDTH - 56
    height = TOP + row * len(bars) + 28
    axis = Axis("", low, high, marks)
    parts: list[Markup] = []
    for value, text in marks:
        place = axis.place(value, 8, right)
        parts.append(
            Markup('<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>').format(place, TOP, height - 24)
        )
        parts.append(
            Markup('<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
                place, height - 8, text
            )
        )
    for number, bar in enumerate(bars):
        top = TOP + row * number
        end = axis.place(bar.value, 8, right)
        parts.append(Markup('<text class="name" x="8" y="{}">{}</text>').format(top + 12, bar.name))
        parts.append(
            Markup('<rect class="bar b{}" x="8" y="{}" width="{:.1f}" height="16" rx="3"/>').format(
                bar.colour, top + 18, max(1.0, end - 8)
            )
        )
        parts.append(
            Markup('<text class="value" x="{:.1f}" y="{}">{}</text>').format(right + 8, top + 31, f"{bar.value:.2f}")
        )
        if bar.interval is not None:
            a, b = (axis.place(v, 8, right) for v in bar.interval)
            parts.append(
                Markup('<line class="range" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>').format(a, b, top + 26, top + 26)
            )
        if bar.mark is not None:
            place = axis.place(bar.mark, 8, right)
            parts.append(
                Markup('<line class="mark" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>').format(
                    place, top + 15, top + 37
                )
            )
    return _figure(title, height, parts)


def belief(before: float, after: float, title: str) -> Markup:
    """A hundred dots: how sure before (filled), how sure after at most (half filled besides)."""
    parts = []
    for number in range(100):
        kind = (
            "sure" if number < round(100 * before) else "surer" if number < math.ceil(100 * after - 1e-9) else "unsure"
        )
        parts.append(
            Markup('<circle class="{}" cx="{}" cy="{}" r="6"/>').format(
                kind, 14 + 18 * (number % 20), 14 + 18 * (number // 20)
            )
        )
    return _svg(title, 372, 100, parts)


def _frame(x: Axis, y: Axis) -> list[Markup]:
    parts = []
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value, text in y.marks:
        place = y.place(value, bottom, TOP)
        parts.append(
            Markup('<line class="grid" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/>').format(LEFT, right, place)
        )
        parts.append(
            Markup('<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(LEFT - 6, place + 4, text)
        )
    for value, text in x.marks:
        place = x.place(value, LEFT, right)
        parts.append(
            Markup('<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
                place, bottom + 16, text
            )
        )
    parts.append(
        Markup('<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>').format(
            (LEFT + right) / 2, HEIGHT - 8, x.title
        )
    )
    parts.append(
        Markup('<text class="tick" transform="translate(11 {}) rotate(-90)" text-anchor="middle">{}</text>').format(
            (TOP + bottom) / 2, y.title
        )
    )
    return parts


def _figure(title: str, height: int, parts: Sequence[Markup]) -> Markup:
    return _svg(title, WIDTH, height, parts)


def _svg(title: str, width: int, height: int, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}" preserveAspectRatio="xMinYMin meet">{}</svg>'
    ).format(width, height, escape(title), Markup("").join(parts))
