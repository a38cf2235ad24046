"""How figures look: one colour and marker per method in every figure, one dash per coverage, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.bench.summary import CLAIMED

Dash = str | tuple[int, tuple[float, ...]]

# In print too, neighbours in a legend differ in lightness; markers carry the difference where colour does not.
METHODS = {
    "hop-bayes": "#0072b2",
    "gap": "#d55e00",
    "dpdgc": "#009e73",
    "progap": "#7b61ff",
    "lpgnet": "#66a61e",
    "dpgcn": "#b2182b",
    "gcon": "#7f3c8d",
    "gcon-ssp": "#cc79a7",
    "dpar": "#a05a00",
    "dp-gnn": "#e69f00",
    "dp-sage": "#b8a000",
    "dp-mlp": "#6b6b6b",
    "mlp": "#9a9a9a",
    "gcn": "#3d3d3d",
    "sage": "#8c564b",
    "gat": "#17a2b8",
    "lpgnn": "#2b6cb0",
    "simgat": "#e7298a",
}
OTHER = "#444444"
MARKERS = "osD^vP<>Xp*hd8"
# Lines of one method in one figure are shades of its colour: towards white (positive) or black (negative).
SHADES = (0.0, 0.45, -0.35, 0.7, -0.6, 0.25, 0.58)
DASHES: dict[str, Dash] = {
    "weights+predictions": "-",
    "weights+others-predictions": (0, (6, 2)),
    "own-prediction": (0, (1.2, 1.4)),
    "weights": (0, (5, 1.5, 1.2, 1.5)),
    CLAIMED: (0, (1, 4)),
}
NO_PRIVACY = "no privacy"


@dataclass(frozen=True)
class Theme:
    """Paper and ink of a figure; ``suffix`` tells its files apart."""

    suffix: str
    paper: str
    ink: str
    grid: str
    lighten: float

    def settings(self) -> Any:
        """For matplotlib; the same figure is the same file every time, and its text stays text."""
        colours = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "axes.titlecolor")
        return {
            **dict.fromkeys(colours, self.ink),
            "figure.facecolor": self.paper,
            "axes.facecolor": self.paper,
            "savefig.facecolor": self.paper,
            "grid.color": self.grid,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "font.size": 9,
            "svg.hashsalt": "discreet",
            "svg.fonttype": "none",
        }

    def colour(self, method: str, variant: int = 0) -> str:
        """The method's colour, as a shade where a figure has several lines of the method."""
        shade = SHADES[variant % len(SHADES)]
        mixed = _mixed(METHODS.get(method, OTHER), "#ffffff" if shade > 0 else "#000000", abs(shade))
        return _mixed(mixed, "#ffffff", self.lighten)


LIGHT = Theme("", "#ffffff", "#1f2328", "#d8dee4", 0.0)
DARK = Theme("-dark", "#0d1117", "#e6edf3", "#30363d", 0.28)
THEMES = (LIGHT, DARK)


def markers(methods: Sequence[str]) -> list[tuple[str, int]]:
    """Marker and shade of each line, given its method: no two lines of a figure have both the same."""
    known = list(METHODS)
    seen: dict[str, int] = {}
    looks = []
    for method in methods:
        variant = seen[method] = seen.get(method, -1) + 1
        first = known.index(method) if method in known else len(known)
        looks.append((MARKERS[(first + variant) % len(MARKERS)], variant))
    return looks


def dash(covers: str) -> Dash:
    """The line style of a coverage; of the first where seeds differ."""
    return DASHES.get(covers.partition(" / ")[0], "-")


def _mixed(colour: str, other: str, part: float) -> str:
    pairs = zip(_parts(colour), _parts(other), strict=True)
    return "#" + "".join(f"{round(one + (two - one) * part):02x}" for one, two in pairs)


def _parts(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
