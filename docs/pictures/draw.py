"""Draw the idea of every method: python docs/pictures/draw.py writes one SVG file per method beside this one."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
BOX, LINE, GAP_X, GAP_Y, MARGIN, LANE = 164, 17, 44, 18, 16, 12
KINDS = {
    "public": "public",
    "private": "private",
    "noise": "released with noise",
    "network": "trained",
}


@dataclass(frozen=True)
class Picture:
    """Boxes in columns, each ``name: (kind, text)``, and arrows ``from>to`` between their names."""

    title: str
    columns: list[dict[str, tuple[str, str]]]
    arrows: str


PRIVATE_EDGES = ("private", "edges")
PRIVATE_RECORDS = ("private", "features, labels")
PUBLIC_RECORDS = ("public", "features, labels")
CLASS = ("public", "class of\nevery node")

PICTURES = {
    "mlp": Picture(
        "mlp: a network reads the features of each node; no edge is read",
        [{"x": PUBLIC_RECORDS}, {"net": ("network", "network")}, {"y": CLASS}],
        "x>net net>y",
    ),
    "gcn-sage-gat": Picture(
        "gcn, sage, gat: two rounds of messages over the edges, nothing is protected",
        [
            {"x": PUBLIC_RECORDS, "a": ("public", "edges")},
            {"one": ("network", "round 1:\nmix with neighbours")},
            {"two": ("network", "round 2:\nmix with neighbours")},
            {"y": CLASS},
        ],
        "x>one a>one one>two a>two two>y",
    ),
    "gap": Picture(
        "gap: encoded features are summed over the edges once, with noise, and a head reads the sums",
        [
            {"x": PUBLIC_RECORDS, "a": PRIVATE_EDGES},
            {"enc": ("network", "encoder:\none unit row per node")},
            {"sum": ("noise", "sums over neighbours\n+ noise, kept")},
            {"head": ("network", "head")},
            {"y": CLASS},
        ],
        "x>enc enc>sum a>sum sum>head enc>head head>y",
    ),
    "progap": Picture(
        "progap: each stage sums, with noise, what the network of the stage before has learnt",
        [
            {"x": PUBLIC_RECORDS, "a": PRIVATE_EDGES},
            {"one": ("network", "network 1")},
            {"sum": ("noise", "sums over neighbours\n+ noise, kept")},
            {"two": ("network", "network 2")},
            {"again": ("noise", "sums of what network 2\nsays + noise, kept")},
            {"y": ("network", "network 3:\nclass of every node")},
        ],
        "x>one one>sum a>sum sum>two two>again a>again again>y",
    ),
    "lpgnet": Picture(
        "lpgnet: each node learns, with noise, how many of its neighbours are in each class",
        [
            {"x": PUBLIC_RECORDS, "a": PRIVATE_EDGES},
            {"one": ("network", "network on features:\na class per node")},
            {"count": ("noise", "neighbours per class\n+ noise, kept")},
            {"two": ("network", "second network")},
            {"y": CLASS},
        ],
        "x>one one>count a>count count>two one>two two>y",
    ),
    "dpgcn": Picture(
        "dpgcn: a noisy copy of the graph is released, and a graph network is trained on it",
        [
            {"a": PRIVATE_EDGES, "x": PUBLIC_RECORDS},
            {"copy": ("noise", "copy of the graph:\nfalse edges added,\nsome true ones lost")},
            {"net": ("network", "graph network")},
            {"y": CLASS},
        ],
        "a>copy copy>net x>net net>y",
    ),
    "dpdgc": Picture(
        "dpdgc: adjacency rows are embedded with noise, apart from features, and a network reads both",
        [
            {"x": PUBLIC_RECORDS, "a": PRIVATE_EDGES},
            {"w": ("noise", "embedding matrix W:\none noisy step")},
            {"z": ("noise", "rows of A·W\n+ noise, kept")},
            {"net": ("network", "network")},
            {"y": CLASS},
        ],
        "x>w a>w w>z a>z z>net x>net net>y",
    ),
    "dp-mlp": Picture(
        "dp-mlp: a network on features, trained by clipped gradients with noise",
        [
            {"x": PRIVATE_RECORDS},
            {"grad": ("noise", "sum of clipped\ngradients + noise,\nstep by step")},
            {"net": ("network", "network")},
            {"y": ("private", "class, from the\nnode's own features")},
        ],
        "x>grad grad>net net>y",
    ),
    "dp-gnn": Picture(
        "dp-gnn: each example is a node with few neighbours; clipped gradients of such examples get noise",
        [
            {"x": PRIVATE_RECORDS, "a": PRIVATE_EDGES},
            {"ego": ("private", "every node with at\nmost D neighbours")},
            {"grad": ("noise", "sum of clipped\ngradients + noise,\nstep by step")},
            {"net": ("network", "graph network")},
        ],
        "x>ego a>ego ego>grad grad>net",
    ),
    "dpar": Picture(
        "dpar: noisy steps on features; the preset paper also picks neighbours by noisy PageRank",
        [
            {"a": PRIVATE_EDGES, "x": PRIVATE_RECORDS},
            {"pick": ("noise", "preset paper:\npicks by PageRank\n+ noise")},
            {"grad": ("noise", "sum of clipped\ngradients + noise,\nstep by step")},
            {"net": ("network", "network; its outputs\nare averaged over edges")},
        ],
        "a>pick pick>grad x>grad grad>net",
    ),
    "gcon": Picture(
        "gcon: one convex problem on smoothed features; noise falls on its minimiser or on its statistics",
        [
            {"x": PUBLIC_RECORDS, "a": PRIVATE_EDGES},
            {"enc": ("network", "encoder:\none unit row per node")},
            {"walk": ("private", "rows spread over\nedges, with restarts")},
            {"fit": ("noise", "linear map + noise")},
            {"y": ("private", "class, from the\nnode's own edges")},
        ],
        "x>enc enc>walk a>walk walk>fit fit>y",
    ),
    "hop-bayes": Picture(
        "hop-bayes: how classes link, and what neighbours suggest; both noisy, both weighed by their noise",
        [
            {"x": PUBLIC_RECORDS, "a": PRIVATE_EDGES},
            {"net": ("network", "network on features:\nclass probabilities")},
            {
                "table": ("noise", "class × class table\nof links + noise"),
                "heard": ("noise", "what neighbours\nsuggest + noise, kept"),
            },
            {"bayes": ("network", "Bayes' rule, with\nthe known noise")},
            {"y": CLASS},
        ],
        "x>net net>table net>heard a>table a>heard table>bayes heard>bayes bayes>y",
    ),
    "lpgnn": Picture(
        "lpgnn: every node randomises its own record; the server averages reports over public edges",
        [
            {"x": ("private", "record, on its\nowner's device"), "a": ("public", "edges")},
            {"rep": ("noise", "report: random signs\nand a random label")},
            {"prop": ("public", "averages over\nneighbours")},
            {"net": ("network", "graph network")},
            {"y": CLASS},
        ],
        "x>rep rep>prop a>prop prop>net a>net net>y",
    ),
    "simgat": Picture(
        "simgat: as lpgnn, and the last average runs over nodes in similar places of the graph",
        [
            {"x": ("private", "record, on its\nowner's device"), "a": ("public", "edges")},
            {"rep": ("noise", "report: random signs\nand a random label")},
            {"prop": ("public", "averages over\nneighbours")},
            {"sim": ("public", "average over\nsimilar nodes")},
            {"net": ("network", "graph network:\nclass of every node")},
        ],
        "x>rep rep>prop a>prop prop>sim a>sim sim>net",
    ),
}

STYLE = """
text{font:13px system-ui,sans-serif;fill:#1f2933}.small{font-size:12px;fill:#52606d}
rect{stroke-width:1.5}.public{fill:#f5f7fa;stroke:#9aa5b1}.private{fill:#fde8e8;stroke:#c53030}
.noise{fill:#e3f9e5;stroke:#2f8132}.network{fill:#e6f0ff;stroke:#2b6cb0}path{stroke:#52606d;stroke-width:1.5;fill:none}
@media (prefers-color-scheme:dark){text{fill:#e4e7eb}.small,path{fill:#cbd2d9}path{stroke:#cbd2d9;fill:none}
.public{fill:#323f4b;stroke:#9aa5b1}.private{fill:#5c2b2b;stroke:#fc8181}.noise{fill:#22543d;stroke:#68d391}
.network{fill:#2a4365;stroke:#63b3ed}}
""".replace("\n", "")


def height_of(text: str) -> int:
    """Of a box with that text."""
    return LINE * (text.count("\n") + 1) + 18


def placed(picture: Picture) -> tuple[dict[str, tuple[int, int, int]], int]:
    """Left, top and height of every box by name, and the height that all need."""
    tallest = max(sum(height_of(t) + GAP_Y for _, t in column.values()) - GAP_Y for column in picture.columns)
    places = {}
    for number, column in enumerate(picture.columns):
        used = sum(height_of(text) + GAP_Y for _, text in column.values()) - GAP_Y
        top = MARGIN + (tallest - used) // 2
        for name, (_, text) in column.items():
            places[name] = MARGIN + number * (BOX + GAP_X), top, height_of(text)
            top += height_of(text) + GAP_Y
    return places, tallest


def box(place: tuple[int, int, int], kind: str, text: str) -> str:
    """A rectangle with its lines of text in the middle."""
    left, top, height = place
    lines = "".join(
        f'<text x="{left + BOX // 2}" y="{top + 22 + number * LINE}" text-anchor="middle">{escape(line)}</text>'
        for number, line in enumerate(text.split("\n"))
    )
    return f'<rect class="{kind}" x="{left}" y="{top}" width="{BOX}" height="{height}" rx="6"/>{lines}'


def arrow(start: tuple[int, int, int], end: tuple[int, int, int], below: int) -> str:
    """From the right side of one box to the left side of another; a long one runs below the boxes between them."""
    x, y = start[0] + BOX, start[1] + start[2] // 2
    to_x, to_y = end[0] - 2, end[1] + end[2] // 2
    bend = GAP_X // 2
    if end[0] - start[0] <= BOX + GAP_X:
        return f'<path marker-end="url(#head)" d="M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"/>'
    over = f"C{x + bend} {y} {x + bend - 8} {below} {x + GAP_X} {below}L{to_x - GAP_X} {below}"
    return f'<path marker-end="url(#head)" d="M{x} {y}{over}C{to_x - bend + 8} {below} {to_x - bend} {to_y} {to_x} {to_y}"/>'


def svg(picture: Picture) -> str:
    """The whole picture with a legend of the kinds that it uses."""
    places, tallest = placed(picture)
    boxes = {name: found for column in picture.columns for name, found in column.items()}
    pairs = [pair.split(">") for pair in picture.arrows.split()]
    long = [a for a, b in pairs if places[b][0] - places[a][0] > BOX + GAP_X]
    lanes = {a: MARGIN + tallest + LANE * (number + 1) for number, a in enumerate(dict.fromkeys(long))}
    legend_y = MARGIN + tallest + LANE * len(lanes) + 22
    width = max(2 * MARGIN + len(picture.columns) * (BOX + GAP_X) - GAP_X, 560)
    kinds = [kind for kind in KINDS if any(found[0] == kind for found in boxes.values())]
    legend, x = "", MARGIN
    for kind in kinds:
        legend += f'<rect class="{kind}" x="{x}" y="{legend_y}" width="14" height="14" rx="3"/>'
        legend += f'<text class="small" x="{x + 20}" y="{legend_y + 12}">{KINDS[kind]}</text>'
        x += 44 + 7 * len(KINDS[kind])
    arrows = "".join(arrow(places[a], places[b], lanes.get(a, 0)) for a, b in pairs)
    drawn = "".join(box(places[name], *found) for name, found in boxes.items())
    height = legend_y + 14 + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(picture.title)}"><title>{escape(picture.title)}</title><style>{STYLE}</style>'
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8"/></marker></defs>'
        f"{arrows}{drawn}{legend}</svg>\n"
    )


if __name__ == "__main__":
    for name, picture in PICTURES.items():
        (HERE / f"{name}.svg").write_text(svg(picture), encoding="utf-8")
