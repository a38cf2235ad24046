"""Splits into training, validation and test nodes, from one short text.

==================  ======================================================================================
``75/10/15``        per cent of all nodes (train/val/test): any three numbers that sum to 100
``20/500/1000``     training labels *per class*, then validation and test nodes: any three whole numbers
                    that do not sum to 100
``80/20:inductive`` per cent of all nodes (train/test), edges between the two parts removed, no validation
``public``          the split that Planetoid published
``ogb``             the split of the Open Graph Benchmark, by time or by rank
``geom-gcn:0``      one of the ten that geom-gcn published, up to ``geom-gcn:9``
``own``             the masks that the graph brings: a column ``split`` of its table, masks of a ``Data``
any other name      a published split that the graph came with (``graph.named_splits``)
==================  ======================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np

from discreet.arrays import IntArray
from discreet.errors import GraphError, ParameterError, UnsupportedError
from discreet.graph.clean import UNLABELLED
from discreet.graph.convert import GraphLike, as_graph
from discreet.graph.given import as_generator
from discreet.graph.graph import OWN_SPLIT as OWN
from discreet.graph.graph import Graph, SplitBy
from discreet.limits import SEED

USUAL = "75/10/15"
OGB = "ogb"
"""The split of the Open Graph Benchmark, which its graphs come with: by time or by rank of sales, never by labels."""
FORMS = f"{USUAL}, 20/500/1000, 80/20:inductive, public, {OGB}, geom-gcn:0 to geom-gcn:9, {OWN}"
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"  # not \d, which is every digit of Unicode
_THREE = re.compile(rf"({_NUMBER})/({_NUMBER})/({_NUMBER})")
_INDUCTIVE = re.compile(rf"({_NUMBER})/({_NUMBER}):inductive")
_PUBLISHED = re.compile(rf"public|{OGB}|[a-z][a-z-]*:[0-9]+")


def split(graph: GraphLike, spec: str, seed: int = 0) -> Graph:
    """The same graph with train, validation and test masks as ``spec`` says (see the table above).

    A ``torch_geometric.data.Data`` is read by ``from_pyg`` first.

    A split by per cent depends on the seed and the number of nodes alone (unlabelled nodes are in it, and
    skipped by training and scoring). So many labels per class looks at the labels, and so did those who published
    splits: these are public only where labels are. The graph remembers it, and levels that protect labels refuse it.
    Where rounding leaves a node over, it goes to the test set.
    """
    if not isinstance(spec, str):
        raise ParameterError(f"a split is a text like {FORMS}, not {spec!r}")
    spec = spec.strip()
    known = graph if isinstance(graph, Graph) else as_graph(graph)
    if spec == OWN:
        return _with_own_masks(known)
    masked = _masked(known, spec, as_generator(seed))
    return masked._derive(split_reads_labels=reads_labels(spec), split_by=_noted(spec, seed))


def _noted(spec: str, seed: object) -> SplitBy | None:
    """What makes the same masks again; nothing where the seed is no number that a file could hold."""
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    return SplitBy(spec, int(seed)) if whole and SEED.low <= int(seed) <= SEED.high else None  # type: ignore[call-overload]


def usual_split(graph: Graph) -> str:
    """The split of a graph for which nobody names one: its own, or its benchmark's, where it brings one."""
    if graph.train_mask is not None:
        return OWN
    return OGB if OGB in _names(graph) else USUAL


def _with_own_masks(graph: Graph) -> Graph:
    if graph.train_mask is None:
        brought = f"it came with {', '.join(_names(graph))}" if graph.named_splits else f"name one, {USUAL} for example"
        raise GraphError(f"{graph.name} brings no split of its own (a column split, say): {brought}")
    return graph


def _names(graph: Graph) -> list[str]:
    return [named.name for named in graph.named_splits]


def _masked(graph: Graph, spec: str, rng: np.random.Generator) -> Graph:
    if match := _THREE.fullmatch(spec):
        return _into_three(graph, spec, [float(number) for number in match.groups()], rng)
    if match := _INDUCTIVE.fullmatch(spec):
        return _inductive(graph, spec, [float(number) for number in match.groups()], rng)
    if spec in _names(graph) or _PUBLISHED.fullmatch(spec):
        return graph.with_masks(*graph.named_split(spec))
    raise ParameterError(f"unknown split {spec!r}: use one of {FORMS}")


def reads_labels(spec: str) -> bool:
    """Whether a split of this form is chosen by looking at labels: so many per class, and published ones but OGB's.

    Of its own masks a graph says it itself (``split_reads_labels``).
    """
    match = _THREE.fullmatch(spec.strip())
    if match is None:
        return spec.strip() not in (OWN, OGB) and _INDUCTIVE.fullmatch(spec.strip()) is None
    return abs(sum(float(number) for number in match.groups()) - 100) >= 1e-9


def check_public(spec: str, private: Collection[str]) -> None:
    """Refuse a split that is chosen by looking at labels where ``private`` holds them (see ``level.private``)."""
    if "labels" in private and reads_labels(spec):
        raise UnsupportedError(
            f"the split {spec} is chosen by looking at labels, and this level protects labels: use per cent"
        )


def check_split(spec: str) -> None:
    """Refuse a text that is no split, before there is a graph; a name is taken to be a published split."""
    stripped = spec.strip()
    if match := _THREE.fullmatch(stripped) or _INDUCTIVE.fullmatch(stripped):
        numbers = [float(number) for number in match.groups()]
        if abs(sum(numbers) - 100) >= 1e-9 and (len(numbers) == 2 or not all(n.is_integer() for n in numbers)):
            raise ParameterError(f"the split {spec!r} must sum to 100 per cent, not {sum(numbers):g}")
    elif stripped != OWN and not _PUBLISHED.fullmatch(stripped):
        raise ParameterError(f"unknown split {spec!r}: use one of {FORMS}")


def _into_three(graph: Graph, spec: str, numbers: list[float], rng: np.random.Generator) -> Graph:
    if abs(sum(numbers) - 100) < 1e-9:
        return _by_share(graph, spec, numbers, rng)
    if not all(number.is_integer() for number in numbers):
        raise ParameterError(f"the split {spec!r} must sum to 100 per cent, not {sum(numbers):g}")
    per_class, num_val, num_test = (int(number) for number in numbers)
    return _by_class(graph, per_class, num_val, num_test, rng)


def _by_share(graph: Graph, spec: str, shares: list[float], rng: np.random.Generator) -> Graph:
    """Shares of *all* nodes: a split that looked at which nodes are labelled would give a record away."""
    if shares[0] == 0:
        raise ParameterError(f"the split {spec!r} leaves nothing to train on")
    _refuse_without_classes(graph)
    order = rng.permutation(graph.num_nodes)
    ends = [round(len(order) * share / 100) for share in (shares[0], shares[0] + shares[1])]
    parts = np.split(order, ends)
    for name, share, part in zip(("training", "validation", "test"), shares, parts, strict=True):
        if share > 0 and len(part) == 0:
            raise GraphError(f"{len(order)} nodes are too few for {spec}: the {name} set is empty")
    return graph.with_masks(*parts)


def _by_class(graph: Graph, per_class: int, num_val: int, num_test: int, rng: np.random.Generator) -> Graph:
    if per_class == 0:
        raise ParameterError("a split needs at least one training label per class")
    labelled = rng.permutation(_labelled(graph))
    train = []
    for label in range(graph.num_classes):
        members = labelled[graph.labels[labelled] == label]
        if len(members) < per_class:
            raise GraphError(f"class {_class_name(graph, label)} has {len(members)} nodes, {per_class} are asked for")
        train.append(members[:per_class])
    chosen = np.concatenate(train)
    rest = labelled[~np.isin(labelled, chosen)]
    if len(rest) < num_val + num_test:
        raise GraphError(
            f"{num_val} validation and {num_test} test nodes are asked for, but {len(rest)} labelled nodes are left"
        )
    return graph.with_masks(chosen, rest[:num_val], rest[num_val : num_val + num_test])


def _inductive(graph: Graph, spec: str, shares: list[float], rng: np.random.Generator) -> Graph:
    if abs(sum(shares) - 100) > 1e-9:
        raise ParameterError(f"the split {spec!r} must sum to 100 per cent, not {sum(shares):g}")
    _refuse_without_classes(graph)
    order = rng.permutation(graph.num_nodes)
    num_train = round(graph.num_nodes * shares[0] / 100)
    if not 0 < num_train < graph.num_nodes:
        raise GraphError(f"{graph.num_nodes} nodes are too few for {spec}: one part is empty")
    in_train = np.zeros(graph.num_nodes, dtype=np.bool_)
    in_train[order[:num_train]] = True
    source, target = graph.edges()
    inside = in_train[source] == in_train[target]
    return graph.with_edges(source[inside], target[inside]).with_masks(in_train, None, ~in_train)


def refuse_unlabelled(graph: Graph, purpose: str) -> None:
    """Refuse a graph without a label where labels are wanted; ``purpose`` ends the sentence."""
    if (graph.labels != UNLABELLED).any():
        return
    hint = ""
    if graph.schema is not None and graph.schema.label is None:
        hint = ": the table has no column label, class or y; name another (--column label=NAME, or in schema.toml)"
    elif graph.schema is not None:
        hint = f": column {graph.schema.label!r}, which is to hold them, is empty or not in the table"
    raise GraphError(f"{graph.name} has no labels, so there is nothing to {purpose}{hint}")


def _refuse_without_classes(graph: Graph) -> None:
    """Refuse a graph without a label by its number of classes alone: where these are declared, whether anybody has a
    label may be private, and the one who does would give themselves away.
    """
    if graph.num_classes == 0:
        refuse_unlabelled(graph, "split")


def _labelled(graph: Graph) -> IntArray:
    refuse_unlabelled(graph, "split")
    return np.flatnonzero(graph.labels != UNLABELLED)


def _class_name(graph: Graph, label: int) -> str:
    return repr(graph.class_names[label]) if graph.class_names is not None else str(label)
