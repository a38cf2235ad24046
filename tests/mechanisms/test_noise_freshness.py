"""Noise is drawn from entropy, afresh in every stage, fit, process, fork and worker, whatever random_state says.

Every test of a distribution has a false alarm of 1e-8: there are a hundred of them.
"""

from __future__ import annotations

import multiprocessing
import secrets
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from scipy import stats

from discreet.audit.attacks import attack_on
from discreet.audit.noise_checks import noise_checks
from discreet.audit.small_graphs import small_graph
from discreet.audit.statistical import worst_inputs
from discreet.audit.trials import CuratorTask
from discreet.mechanisms import curator as curators
from discreet.mechanisms.bits import NoiseSource
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.local.stages import FEATURES, feature_stage, label_stage
from discreet.mechanisms.objective.perturbation import draft_event, objective_stage
from discreet.methods.gap.estimator import GAP
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel, LocalLevel, NodeLevel
from discreet.privacy.plan import Plan, Stage, make_plan
from discreet.queries.class_degrees import ClassDegrees
from discreet.queries.edge_cells import FlippedCells, LargestCells
from discreet.queries.pagerank_rows import PageRankRows
from discreet.queries.propagated import PropagatedRows
from discreet.queries.sampled_nodes import NodeSample
from tests.mechanisms.draws import first_numbers, gaussian_plan, private_part
from tests.mechanisms.steps import steps_stage

FALSE_ALARM = 1e-8


def plan_of(kind: str) -> Plan:
    """A plan with one stage of each mechanism that the curator knows."""
    node = Privacy(NodeLevel(1), 2.0, 1e-3)
    if kind == "gaussian":
        return gaussian_plan()
    if kind == "dpsgd":
        return make_plan("m", node, 10, [steps_stage(parameters=4, examples=5, steps=3)], "weights")
    if kind == "objective-on-grid":
        query = PropagatedRows(
            EdgeLevel(),
            0.9,
            (1,),
            True,
            count=8,
            width=3,
            classes=2,
            loss="soft-margin",
            loss_width=1.0,
            ridge=4.0,
            num_nodes=8,
        )
        stage = objective_stage("minimiser", query, draft_event(1.0, 1e-3))
        return Plan("m", Privacy(EdgeLevel(), 1.0, 1e-3), 1e-3, (stage,), "weights")
    if kind.endswith("top-k"):
        rows = PageRankRows(
            node.level, "gm" if kind.startswith("gaussian") else "em1", rows=2, candidates=4, picks=2, clip=0.5,
            sample=NodeSample(1.0), alpha=0.25, rho=1e-4, gamma=1e-4, solver="push", own_entry=False,
        )  # fmt: skip
        return make_plan("m", node, 10, [Stage.of("rows", rows)], "weights")
    edge = Privacy(EdgeLevel(), 2.0, 1e-3)
    if kind == "edge-rand":
        return make_plan("m", edge, 6, [Stage.of("cells", FlippedCells(edge.level, 6, False, 2.0))], "weights")
    if kind == "lap-graph":
        return make_plan("m", edge, 6, [Stage.of("cells", LargestCells(edge.level, 6, False, 0.5))], "weights")
    if kind == "laplace":
        return make_plan("m", edge, 6, [Stage.of("degrees", ClassDegrees(edge.level, 6, 2))], "weights")
    local = Privacy(LocalLevel(), 2.0, 1e-3)
    if kind == "randomized-response":
        return Plan("m", local, 1e-3, (label_stage("labels", 6, 3, 2.0),), "weights")
    stage = feature_stage(
        "features", kind.removeprefix("local "), (6, 3), epsilon=2.0, feature_range=(0.0, 1.0), outside="clip",
        delta=1e-3,
    )  # fmt: skip
    return Plan("m", local, 1e-3, (stage,), "weights")


@pytest.mark.parametrize("kind", [*curators.MECHANISMS, "dpsgd"])
def test_every_mechanism_against_its_formula(kind: str) -> None:
    """Law, scale, independence of entries and trials, and no answer twice, over 500 runs of the real curator."""
    plan = plan_of(kind)
    inputs = worst_inputs(plan)
    assert inputs is not None
    found = CuratorTask(plan, inputs, 1, 500).run()
    for check in noise_checks(plan, found):
        assert check.p_value > FALSE_ALARM, check


def test_every_mechanism_is_known_to_the_audit() -> None:
    for kind in [*curators.MECHANISMS, "dpsgd"]:
        assert attack_on(plan_of(kind).stages[0]) is not None
    assert set(FEATURES) <= set(curators.MECHANISMS)


# -------------------------------------------------------------------- never twice


@pytest.mark.fresh
def test_stages_and_runs_and_fits_differ() -> None:
    plan = gaussian_plan(stages=4)
    drawn = []
    for _ in range(50):
        curator = Curator(plan, NoiseSource(), [private_part()])
        drawn += [curator.ask(stage.name, value=np.zeros((3, 2))).tobytes() for stage in plan.stages]
    assert len(set(drawn)) == 200


@pytest.mark.fresh
@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_workers_differ(start: str) -> None:
    """Workers that are forked from one parent, or spawned, after the parent has drawn."""
    here = [first_numbers() for _ in range(3)]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(start)) as pool:
        there = list(pool.map(first_numbers, range(6)))
    assert len({*here, *there}) == 9


def test_a_curator_does_not_cross_a_fork() -> None:
    """Not even one in the middle of its steps, with noise drawn ahead."""
    stage = steps_stage(parameters=5000, examples=2, steps=3)
    plan = make_plan("m", Privacy(NodeLevel(1), 1.0), 10, [stage], "weights")
    curator = Curator(plan, NoiseSource(), [private_part()])
    curator.ask("steps")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()

    def in_child() -> None:
        try:
            curator.ask("steps")
        except Exception as error:
            queue.put(type(error).__name__)
        else:
            queue.put("drawn")

    child = context.Process(target=in_child)
    child.start()
    assert queue.get(timeout=300) == "PlanViolationError"
    child.join()
    assert np.isfinite(curator.ask("steps")).all()
    assert np.isfinite(curator.ask("steps")).all()
    curator.finish()


# -------------------------------------------------------------------- entropy, and nothing else


@pytest.mark.fresh
def test_entropy_is_asked_for_once_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    real = secrets.token_bytes
    monkeypatch.setattr(secrets, "token_bytes", lambda size: asked.append(size) or real(size))
    graph = small_graph(np.random.default_rng(0), num_nodes=8)
    for _ in range(2):
        GAP(Privacy(EdgeLevel(), 1.0), epochs=0, hidden=4).fit(graph)
    assert asked == [32, 32]


@pytest.mark.fresh
def test_random_state_and_global_seeds_do_not_reach_the_noise() -> None:
    """Same random_state and global seeds: other noise. Their noise over many seeds is uncorrelated with the seed."""
    import torch

    graph = small_graph(np.random.default_rng(0), num_nodes=8)
    releases = []
    for _ in range(3):
        np.random.seed(0)  # noqa: NPY002  (that is what is tested)
        torch.manual_seed(0)
        fitted = GAP(Privacy(EdgeLevel(), 1.0), epochs=0, hidden=4, random_state=0).fit(graph)
        releases.append(fitted._state()["cache.0.1"].tobytes())
    assert len(set(releases)) == 3


@pytest.mark.fresh
def test_no_bit_of_the_key_is_fixed() -> None:
    """Each of 256 bits of 400 keys is fair: the least p-value of 256 binomial tests, corrected."""
    keys = np.array([list(NoiseSource()._key) for _ in range(400)], dtype=np.uint8)
    ones = np.unpackbits(keys, axis=1).sum(axis=0)
    least = min(stats.binomtest(int(count), 400, 0.5).pvalue for count in ones)
    assert least * 256 > FALSE_ALARM
