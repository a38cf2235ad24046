"""``discreet plan``: what training would ask of private data, before any of it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.cli.config import Config
from discreet.cli.declared import Also, Json
from discreet.cli.options import DataOptions, MethodOptions, prepare, read_like
from discreet.cli.output import print_json

if TYPE_CHECKING:
    from discreet.graph.graph import Graph
    from discreet.privacy.plan import Plan


def plan(
    data: DataOptions, method: MethodOptions, also: Also = None, config: Config = None, as_json: Json = False
) -> None:
    """Show what training would ask of private data, with sensitivities, noise and ε; train nothing."""
    graph, estimator, recommendation = prepare(data, method, _outline(data, method))
    extra = [read_like(graph, data, name) for name in also or ()]
    made = estimator.plan_for(graph, extra)
    cost = estimator.cost_of(made, graph)
    if as_json:
        chosen = {} if recommendation is None else {"recommendation": recommendation.to_json()}
        print_json(chosen | _as_json(made) | {"estimate": None if cost is None else cost.to_json()})
        return
    print(made if recommendation is None else f"{recommendation}\n\n{made}")
    print(f"\nestimate: {cost or 'none for this method'} (see docs/guides/scaling.md)")


def _outline(data: DataOptions, method: MethodOptions) -> Outline | None:
    """For a graph in partitions, unless an option says how its edges are to be read."""
    from discreet.files import expand_home
    from discreet.graph.datasets import is_path
    from discreet.graph.partitions import has_partitions
    from discreet.graph.splits import OGB, OWN, reads_labels

    plain = data.directed is None and not data.columns and data.schema is None and data.edges_until is None
    if data.mmap or not plain or not is_path(data.data) or not has_partitions(expand_home(data.data)):
        return None
    labels = method.threshold is not None or (data.split is not None and reads_labels(data.split))
    return Outline(labels, masks=data.split in (None, OWN, OGB))


@dataclass(frozen=True)
class Outline:
    """Reads of a graph in partitions what a plan needs: the manifest, and labels where something is chosen by them."""

    labels: bool
    masks: bool

    def read(self, data: str) -> Graph:
        """The graph without its edges and features."""
        from discreet.graph.partitions import PartitionedGraph

        return PartitionedGraph(data, check=False).outline(labels=self.labels, masks=self.masks)


def _as_json(made: Plan) -> dict[str, Any]:
    from discreet.release.evaluate import spent_by

    return {
        "method": made.method,
        "level": made.privacy.level.spec,
        "epsilon": made.privacy.epsilon,
        "delta": made.delta,
        **spent_by(made),
        "epsilon_by_accountant": made.spend(),
        "covers": made.covers,
        "stages": [{**stage.to_json(), "noise_std": stage.noise_std} for stage in made.stages],
        "notes": list(made.notes),
    }
