"""What a level protects and what it does not, in words that need no knowledge of differential privacy."""

from __future__ import annotations

from typing import NamedTuple

from discreet.privacy.levels import Level, LocalLevel, NeighborLevel, NodeLevel


class Names(NamedTuple):
    """What the data calls a node and an edge."""

    node: str = "person"
    edge: str = "link"


class Promise(NamedTuple):
    """The protected unit in a few words, who is protected, and who or what is not."""

    unit: str
    protected: list[str]
    exposed: list[str]


def promise_of(level: Level, names: Names) -> Promise:
    """What the level promises, and what it does not."""
    node, edge = names
    whatever = (
        f"What follows from general patterns: if {edge}s usually join alike {node}s, that can be learnt, and applied "
        f"to {node}s that are not in the data at all."
    )
    if level.kind == "none":
        return Promise("nothing", [], ["Everything: the model may repeat any part of the data that it was trained on."])
    if level.kind == "edge":
        return Promise(
            f"one {edge}",
            [f"Whether any one {edge} between two {node}s is in the data."],
            [
                f"The features of every {node} (amounts, ages, texts, all columns): taken as public here.",
                f"The label of every {node}: taken as public too.",
                f"Who is in the data: the list of {node}s is taken as public.",
                f"A pattern of many {edge}s: the promise is for one {edge}, and weaker for several of the same {node} "
                "(see the table below).",
                whatever,
            ],
        )
    if isinstance(level, LocalLevel):
        return _local(level, names, whatever)
    owned = getattr(level, "edges", "") == "owned"
    mine = f"outgoing {edge}s" if owned else f"{edge}s"
    if isinstance(level, NeighborLevel):
        what = f"one {node}'s features and label, and up to {level.k} of their {mine}"
        more = [f"More than {level.k} {edge}s of one {node} at once: the promise is weaker then."]
    else:
        what, more = f"one {node}: features, label and {mine}", []
    if owned:
        more.append(
            f"One {edge} seen from both ends: it stands with each of its two {node}s, so for both together the promise "
            "is weaker (the certificate's notes say how much)."
        )
    if isinstance(level, NodeLevel) and level.edges != "owned":
        more.append(
            f"Graphs in which one {node} has more {edge}s than was promised: the promise speaks of no other graph."
        )
    return Promise(
        what,
        [f"Everything about {what}. It is hard to tell whether it was there at all, or was different."],
        [
            f"How many {node}s there are, and which of their numbers were used for training.",
            "The names of the columns and of the classes.",
            *more,
            f"Several {node}s together (a household): the promise is for one, and weaker for more (see below).",
            whatever,
        ],
    )


def _local(level: LocalLevel, names: Names, whatever: str) -> Promise:
    node, edge = names
    part = {"both": "features and label", "features": "features", "labels": "label"}[level.protects]
    exposed = [f"Who is linked with whom: every {edge} is taken as public."]
    if level.protects != "both":
        other = "label" if level.protects == "features" else "features"
        exposed.append(f"The {other} of every {node}: taken as public.")
    return Promise(
        f"one {node}'s {part}",
        [f"The {part} of every {node}: noise is added before they leave the {node}, so nobody has to be trusted."],
        [*exposed, "The range of the features and the list of classes.", whatever],
    )
