"""hop-bayes at edge level for everyone to see: what nodes hear is released in two halves, then read.

The first half tells receivers what their neighbours are. What the second asks for depends on what the first released,
see ``second_evidence``. Both are the same operation on messages of the same norm, so they cost the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.methods.base import Arrays
from discreet.methods.evidence_reader import Reader
from discreet.methods.evidence_stages import evidence_name, gaussian_stage, second_name
from discreet.methods.evidence_weights import START, blocks, combined, fit_weights
from discreet.methods.hop_bayes_private import receiver_mask
from discreet.methods.hub_head import head_logits, train_head, zero_head
from discreet.methods.networks import module_state, restore_module
from discreet.methods.second_evidence import UNEXPLAINED, hub_messages, unexplained
from discreet.methods.training import Progress
from discreet.ops.evidence import heard, heard_sensitivity, message_bound
from discreet.privacy.levels import EdgeLevel
from discreet.privacy.plan import Plan, Stage

if TYPE_CHECKING:
    from discreet.methods.hop_bayes import HopBayes

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Ask = Callable[[str, FloatArray], FloatArray]
_HALF = 0.5


@dataclass(frozen=True)
class Heard:
    """What is known of one graph: sums of what neighbours tell, one row a node, and of what hubs tell, if asked."""

    sums: FloatArray
    hubs: FloatArray | None

    def at(self, ids: IntArray) -> Heard:
        """The rows of these nodes."""
        return Heard(self.sums[ids], None if self.hubs is None else self.hubs[ids])


# -------------------------------------------------------------------- plan


def evidence_stages(model: HopBayes, public: Sequence[PublicFacts], level: EdgeLevel, share: float) -> list[Stage]:
    """One query a graph, or two of half the budget each where the second may ask for hubs."""
    stages = []
    for number, facts in enumerate(public):
        sensitivity, why = heard_sensitivity(level, message_bound(facts.num_classes))
        shape = (facts.num_nodes, facts.num_classes)
        queries = [(evidence_name(number), "sum of what the neighbours of each node tell it")]
        if model.hubs is not False:
            again = "" if model.hubs else "the same again, or "
            queries.append((second_name(number), f"{again}sum of what each node's neighbours have heard themselves"))
        part = share / len(public) / len(queries)
        stages += [gaussian_stage(name, query, sensitivity, why, part, shape) for name, query in queries]
    return stages


def second_note(model: HopBayes) -> Sequence[str]:
    """How it is decided what the second half asks for, in words."""
    if model.hubs is not None:
        return ()
    return (
        "the second half of the evidence is averaged with the first, or goes through hubs: decided from the answers to "
        "the table and the first half, at the same sensitivity",
    )


def evidence_noise(plan: Plan) -> float:
    """The standard deviation of what receivers hear if both halves ask for the same."""
    names = {evidence_name(0), second_name(0)}
    stages = [stage for stage in plan.stages if stage.name in names]
    return float(stages[0].noise_std / len(stages) ** 0.5)


# -------------------------------------------------------------------- fit


def learn_evidence(
    model: HopBayes, graphs: Sequence[Graph], curator: Curator, progress: Progress | None = None
) -> None:
    """Release what nodes of all graphs hear; then learn to read it, from released values and public labels."""
    first_std = curator.plan.stage(evidence_name(0)).noise_std
    model.first_std_ = first_std
    model.through_hubs_ = bool(model.hubs)
    for number, graph in enumerate(graphs):
        found = release_heard(model, graph, curator.measure, number, deciding=number == 0 and model.hubs is None)
        if number == 0:
            everything = found
        receivers = np.flatnonzero(receiver_mask(model, graph))
        model.receivers_.append(receivers)
        model.caches_.append(found.sums[receivers])
        model.hub_caches_ += [] if found.hubs is None else [found.hubs[receivers]]
    model.noise_std_ = first_std if model.through_hubs_ or model.hubs is False else first_std * _HALF**0.5
    model.head_, model.reader_, model.weights_ = None, Reader.none(graphs[0].num_classes), START
    if model.combiner == "trained":
        _learn_to_read(model, graphs[0], everything, progress)


def _learn_to_read(model: HopBayes, graph: Graph, found: Heard, progress: Progress | None) -> None:
    """Through hubs a head, learnt at training ids; else a few weights, fitted to validation labels."""
    if found.hubs is not None:
        model.head_ = train_head(model, graph, found.sums, found.hubs, progress)
        return
    taught = _labelled(graph, graph.train_mask)
    model.reader_ = Reader.fit(found.sums[taught], graph.labels[taught], graph.num_classes, model.noise_std_)
    model.weights_ = _fit_weights(model, graph)


def release_heard(model: HopBayes, graph: Graph, ask: Ask, number: int = 0, *, deciding: bool = False) -> Heard:
    """Both halves; ``ask`` gives a query's answer. Deciding sets ``through_hubs_``, from the first half's answer."""
    receivers, bound = receiver_mask(model, graph), message_bound(graph.num_classes)
    told = model._told(graph) - 1 / graph.num_classes
    first = ask(evidence_name(number), heard(graph, told, receivers, bound))
    if model.hubs is False:
        return Heard(first, None)
    if deciding:
        model.through_hubs_ = _asks_for_hubs(model, graph, first, told, receivers)
    messages = hub_messages(first, model.first_std_, bound) if model.through_hubs_ else told
    second = ask(second_name(number), heard(graph, messages, receivers, bound))
    return Heard(first, second) if model.through_hubs_ else Heard(_HALF * (first + second), None)


def _asks_for_hubs(
    model: HopBayes, graph: Graph, first: FloatArray, told: FloatArray, receivers: npt.NDArray[np.bool_]
) -> bool:
    """From the released first half, the released table, and public labels."""
    ids = _labelled(graph, graph.train_mask)
    energies = (told**2).sum(axis=1)
    if not graph.directed:  # see ops.evidence.heard: training ids hear one another at 1/√2, and no receiver
        energies = np.where(receivers == receivers[ids].any(), energies / 2, 0.0)
    energy = float(energies.mean())
    return unexplained(first[ids], graph.labels[ids], model.first_std_, model.links_, energy) > UNEXPLAINED


def _fit_weights(model: HopBayes, graph: Graph) -> FloatArray:
    """Fit the (public) labels of validation ids, which the node model has not seen, from the *noisy* evidence."""
    chosen = np.zeros(graph.num_nodes, dtype=np.bool_)
    chosen[_labelled(graph, graph.val_mask)] = True
    if graph.train_mask is not None:
        chosen &= ~graph.train_mask
    ids, found = _cached(model, graph)
    parts = _blocks(model, graph, ids, found)
    return fit_weights(parts[chosen[ids]], graph.labels[ids][chosen[ids]])


def _labelled(graph: Graph, mask: npt.NDArray[np.bool_] | None) -> IntArray:
    return np.empty(0, dtype=np.int64) if mask is None else np.flatnonzero(mask & (graph.labels >= 0))


# -------------------------------------------------------------------- predict


def evidence_logits(model: HopBayes, graph: Graph) -> tuple[IntArray, FloatArray]:
    """The receivers, and logits from all that is known of each."""
    ids, found = _cached(model, graph)
    if model.head_ is None or found.hubs is None:
        return ids, combined(model.weights_, _blocks(model, graph, ids, found))
    own = np.exp(model._log_prior(graph)[ids])
    return ids, head_logits(model, model.head_, own, found.sums, found.hubs)


def _blocks(model: HopBayes, graph: Graph, ids: IntArray, found: Heard) -> FloatArray:
    """What is known of each receiver: see ``evidence_weights.blocks``."""
    read = model.reader_.scores(found.sums, model.noise_std_)
    return blocks(model._log_prior(graph)[ids], found.sums, model.noise_std_, model.links_, found.hubs, read)


def _cached(model: HopBayes, graph: Graph) -> tuple[IntArray, Heard]:
    """The receivers and what was released for them; without noise only on a graph that no guarantee covers."""
    key = model._key(graph)
    if key in model.keys_:
        number = model.keys_.index(key)
        return model.receivers_[number], Heard(
            model.caches_[number], model.hub_caches_[number] if model.through_hubs_ else None
        )
    ids = np.flatnonzero(receiver_mask(model, graph))
    return ids, release_heard(model, graph, lambda _, value: value).at(ids)


# -------------------------------------------------------------------- release


def state_of(model: HopBayes) -> Arrays:
    """Everything that :func:`restore` reads. Which arrays there are, and their shapes, does not depend on noise."""
    arrays = {
        "weights": model.weights_,
        "evidence.numbers": np.array([model.first_std_, model.through_hubs_, model.head_ is not None], dtype=float),
        "reader": model.reader_.head,
    }
    if model.hubs is False:
        return arrays
    arrays |= module_state("head", zero_head(model) if model.head_ is None else model.head_)
    hubs = model.hub_caches_ if model.through_hubs_ else [np.zeros_like(rows) for rows in model.caches_]
    return arrays | {f"hubs.{number}": rows for number, rows in enumerate(hubs)}


def restore(model: HopBayes, state: Mapping[str, npt.NDArray[Any]]) -> None:
    """What :func:`state_of` gave."""
    model.weights_, model.reader_ = state["weights"], Reader(state["reader"])
    model.first_std_, through_hubs, with_head = map(float, state["evidence.numbers"])
    model.through_hubs_ = bool(through_hubs)
    model.head_ = restore_module("head", zero_head(model), state) if with_head else None
    model.hub_caches_ = [state[f"hubs.{number}"] for number in range(len(model.caches_))] if through_hubs else []
