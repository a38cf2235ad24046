"""The estimator contract: what every method is, does and promises."""

from __future__ import annotations

import copy
import logging
import os
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, asdict, dataclass, fields, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from torch import nn

from discreet import errors
from discreet.arrays import Array, Arrays, IntArray, SingleArray
from discreet.errors import (
    CrossValidationError,
    GraphError,
    ParameterError,
    PlanViolationError,
    PrivacyError,
    UncoveredReleaseError,
    UnsupportedError,
)
from discreet.files import expand_home, to_json
from discreet.graph.convert import GraphLike, as_graph
from discreet.graph.graph import NO_ROWS, OWN_SPLIT, Graph, PublicFacts, SplitBy
from discreet.graph.matching import match_graph
from discreet.graph.parts import EDGES, FEATURES, LABELS, PARTS, PublicPart, refuse_empty_classes
from discreet.graph.schema import Schema
from discreet.limits import shown
from discreet.mechanisms.curator import Curator
from discreet.methods.cost import Cost, estimate_cost
from discreet.methods.decision import DecideBy, check_decision, decided, decision_weights, validation_ids
from discreet.methods.declaration import DISCREET, Declaration
from discreet.methods.extension import Extension, certify, check_parent, plan_of_all
from discreet.methods.metrics import ClassScore, check_metric, class_scores, measure
from discreet.methods.outlook import Outlook, outlook_of
from discreet.methods.parameters import OBJECTS, Compute, Seed, plain_value, stored, validate
from discreet.privacy.budget import Privacy
from discreet.privacy.certificate import Statement, make_certificate
from discreet.privacy.coverage import NOTHING, READS
from discreet.privacy.levels import Level, NoPrivacy, parse_level
from discreet.privacy.notebook import html_table
from discreet.privacy.plan import STAGE_HEAD, Claim, Plan, Stage, make_plan
from discreet.privacy.query import Exposed
from discreet.privacy.release_folder import write_release
from discreet.training.descent import Progress

PresetName = Literal["discreet", "paper"]

EXPOSED = "training"
"""The stage of level ``none`` where a method has none of its own: everything is read, and nothing is promised."""
CLAIMED = "its epsilon is a paper's claim, and no guarantee covers it"


_FITTED_NOW: set[int] = set()
_FITTED_NOW_LOCK = threading.Lock()


@contextmanager
def _fitted_alone(estimator: object) -> Iterator[None]:
    """Refuse a second fit of the same estimator while one runs, in another thread or from within the first.

    Both write to the same attributes: what is released would hold answers of two fits, and its certificate pay for one.
    """
    with _FITTED_NOW_LOCK:
        if id(estimator) in _FITTED_NOW:
            raise UnsupportedError("this estimator is being fitted already: fit another one, sklearn.base.clone(it)")
        _FITTED_NOW.add(id(estimator))
    try:
        yield
    finally:
        _FITTED_NOW.discard(id(estimator))


class NotFittedError(errors.NotFittedError, SklearnNotFittedError):
    """What both we and scikit-learn call so."""


def _read(given: GraphLike) -> Graph:
    """The graph that was given; one of another library is converted."""
    return given if isinstance(given, Graph) else as_graph(given)


def _read_all(graph: GraphLike, extra_graphs: Sequence[GraphLike]) -> list[Graph]:
    """The graph, then the extra ones."""
    if not isinstance(extra_graphs, list | tuple):
        raise ParameterError(f"extra_graphs is a list of graphs, not {type(extra_graphs).__name__}")
    return [_read(given) for given in (graph, *extra_graphs)]


def _checked_rows(nodes: npt.ArrayLike, num_nodes: int) -> IntArray:
    """Rows of a graph: whole numbers from 0, or a mask."""
    rows = np.asarray(nodes)
    if rows.dtype == np.bool_ and rows.shape == (num_nodes,):
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.dtype.kind not in "iu" and len(rows)):
        raise ParameterError("nodes are rows of the graph, whole numbers from 0: ids of tables are in graph.node_ids")
    if len(rows) and not 0 <= rows.min() <= rows.max() < num_nodes:
        raise ParameterError(f"nodes must be rows of the graph, from 0 to {num_nodes - 1}")
    return rows.astype(np.int64)


@dataclass(eq=False, repr=False)
class NodeClassifier(BaseEstimator):
    """Base of every method, with scikit-learn's manners.

    A method is a dataclass (``@dataclass(eq=False, repr=False)``): its annotated fields are its parameters,
    their one declaration and their schema.

    The constructor only stores. ``plan(graph.public)`` says what fitting will do to private data; ``fit``
    does exactly that, through a curator; ``predict`` stays within what the guarantee covers, or raises.

    A subclass writes five things: its annotated fields, :meth:`_stages`, :meth:`_learn`,
    :meth:`_probabilities`, and the pair :meth:`_state` / :meth:`_restore`. It never holds private data: it gets the
    public part of a graph, and a curator that answers the queries of its plan.

    Parameters
    ----------
    privacy
        What is protected and how much.
    random_state
        Seed of everything that is not privacy noise (initialisation, dropout, batches of public data).
    insecure_noise_seed
        Fixes the privacy noise, for tests: the certificate then says *not for release*.
    compute
        Device and threads; cannot affect privacy.
    preset
        Where parameters that are not given come from. ``discreet``: our defaults, those of the signature. ``paper``,
        for methods that bear the name of a paper: that paper's settings; the plan says where they differ from its way
        and why. A parameter that is given in the same call counts, whatever the preset.
    decide_by
        ``balanced-accuracy`` or ``macro-f1``: class probabilities are multiplied by one weight per class, chosen so
        that decisions on validation nodes do best by this metric (for two classes: a threshold). Free, and only where
        labels are public and predictions read released values alone; refused elsewhere.

    Attributes of a fitted estimator: ``plan_``, ``certificate_``, ``public_`` (the graph's public facts),
    ``epsilon_spent_``, ``fit_seconds_``; and as in scikit-learn ``classes_`` (what ``predict`` gives: names of the
    classes, or numbers where they have none or where every name is a number), ``n_features_in_``, and
    ``feature_names_in_`` where features have names.
    ``split_`` says how the graph was split: as ``discreet.split`` was told, or ``own`` where its masks came with it.
    ``schema_`` says how tables are read for this model: pass it on when you read the tables of next month.
    """

    declaration: ClassVar[Declaration]
    method: ClassVar[str]
    levels: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, **options: Any) -> None:
        """Name and levels come from the declaration."""
        super().__init_subclass__(**options)
        declared = cls.__dict__.get("declaration")
        if declared is not None:
            cls.method, cls.levels = declared.name, declared.levels

    privacy: Privacy | None = None
    _: KW_ONLY
    random_state: Seed | None = 0
    insecure_noise_seed: Seed | None = None
    compute: Compute | None = None
    preset: PresetName = "discreet"
    decide_by: DecideBy | None = None

    def __new__(cls, *args: Any, **given: Any) -> Self:
        """Note what is given: the preset decides the rest."""
        made = super().__new__(cls)
        made.__dict__["_given"] = frozenset(given)
        return made

    def __post_init__(self) -> None:
        """Nothing but parameters that are not given is settled here, so clones are equal."""
        self._take_preset(self.__dict__.pop("_given", frozenset()))

    def set_params(self, **params: Any) -> Self:
        """As in scikit-learn; a call with ``preset`` also settles every parameter of a preset that it does not give."""
        if any(name.startswith("privacy__") for name in params):
            raise ParameterError(f"{self.method}: privacy is one value: set_params(privacy=Privacy(level, epsilon))")
        super().set_params(**params)
        if "preset" in params:
            self._take_preset(params.keys())
        return self

    def _take_preset(self, given: Collection[str]) -> None:
        presets = self.declaration.presets if hasattr(type(self), "declaration") else {}
        chosen = presets[self.preset].settings if isinstance(self.preset, str) and self.preset in presets else {}
        decided = {name for preset in presets.values() for name in preset.settings} - set(given)
        for field in fields(self):
            if field.name in decided:
                setattr(self, field.name, chosen.get(field.name, field.default))

    # ---------------------------------------------------------------- what a subclass writes

    @property
    def covers(self) -> str:
        """What the guarantee covers: a name of ``privacy.coverage``; by default what was declared for the level."""
        return self.declaration.covers[self.checked_privacy().level.kind]

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        """The queries to private data, with relative noise; ``public`` holds the graph, then extra graphs."""
        raise NotImplementedError

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        """Fit on the first graph; whatever is private is asked of the curator. Extra graphs follow."""
        raise NotImplementedError

    def _probabilities(self, part: PublicPart) -> SingleArray:
        """Class probabilities of every node, from released values and what ``part`` lets a prediction read."""
        raise NotImplementedError

    def _state(self) -> Arrays:
        """Everything that prediction needs, by name: weights, and noisy caches."""
        raise NotImplementedError

    def _seen(self) -> Arrays:
        """What an adversary sees of the state, for audits: shapes are those of every fit with the same public facts."""
        return self._state()

    def _restore(self, state: Mapping[str, Array]) -> None:
        """Inverse of :meth:`_state`; ``public_`` is set already."""
        raise NotImplementedError

    def _uncovered(self, part: PublicPart) -> str | None:
        """Why predictions on this graph would leave the guarantee, or None."""
        return None

    def _uncovered_on(self, graph: Graph) -> str | None:
        """The same of a whole graph, as the model reads it."""
        return self._uncovered(self.checked_privacy().level.split(graph)[0])

    def _wrong_audience(self, audience: str) -> str | None:
        """Every row is some node's own: where own rows are not covered, each may go to its node alone."""
        if self.covers not in ("own-prediction", "weights+others-predictions") or audience == "owner":
            return None
        return "each prediction is covered only for its own node: pass audience='owner' when it goes to that node alone"

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        """Sentences for the plan and the certificate."""
        return ()

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """What can be learnt under the plan where nodes have about ``degree`` neighbours; for ``methods.recommend``.

        This is for a method that reads no edge; one that does says how clearly.
        """
        return outlook_of(plan)

    def _pinned(self) -> Mapping[str, Any]:
        """Settings that fix what the method would choose by public facts, so that audits see the stages of this model
        on graphs of a few nodes; unfitted, those that ask most of private data.
        """
        return {}

    def _claim(self, public: Sequence[PublicFacts], level: Level) -> Claim | None:
        """What a paper claims for its own noise, where that noise is asked for; None certifies."""
        return None

    def _extension_stages(self, public: PublicFacts, number: int, level: Level) -> list[Stage]:
        """What one more graph has to be asked before the released model can predict on it; see :meth:`extend`."""
        raise UnsupportedError(
            f"{self.method} cannot be extended to another graph: it has no aggregation that could be asked of that "
            "graph alone; train again"
        )

    def _aggregate(self, part: PublicPart, number: int, curator: Curator) -> None:
        """Ask for the stages of :meth:`_extension_stages` and keep what predictions read, in new lists."""
        raise NotImplementedError

    # ---------------------------------------------------------------- plan and fit

    def plan(self, public: PublicFacts | GraphLike, extra: Sequence[PublicFacts] = ()) -> Plan:
        """What ``fit`` will ask of private data and what it will cost, from public facts alone: ``graph.public``.

        A graph that is given instead goes through :meth:`plan_for`, which reads no more of it.
        """
        if not isinstance(public, PublicFacts):
            if extra:
                raise ParameterError(f"{self.method}: plan takes public facts; plan_for takes graphs, extra ones too")
            return self.plan_for(public)
        self._check_parameters()
        privacy = self.checked_privacy()
        level = privacy.level
        if public.num_classes == 0:
            raise GraphError("the graph has no labels, so there is no class to learn")
        for facts in (public, *extra):
            self._check_graph(facts, level)
        drafts = self._stages((public, *extra), level)
        if not drafts and isinstance(level, NoPrivacy):
            drafts = [Stage.of(EXPOSED, Exposed())]
        if self.decide_by is not None:
            check_decision(self.method, level, self.covers)
        largest = max(facts.num_nodes for facts in (public, *extra))
        claim = self._claim((public, *extra), level)
        about = self._preset_notes(level, sound=claim is None)
        notes = (*about, *self._notes(public, level), *weight_notes((public, *extra), level))
        return make_plan(self.method, privacy, largest, drafts, self.covers, notes, claim)

    def _check_parameters(self) -> None:
        """Refuse what is no parameter; NumPy's numbers become Python's, which a release can hold."""
        given = self.get_params(deep=False)
        validate(type(self), self.method, given)
        for name, value in given.items():
            if name not in OBJECTS and (plain := plain_value(value)) is not value:
                setattr(self, name, plain)

    def _check_graph(self, facts: PublicFacts, level: Level) -> None:
        """Refuse a graph that the level does not describe, or whose edges this method cannot read."""
        level.check(facts.directed)
        level.check_size(facts.num_nodes)
        reason = self._why_no_weights() if facts.weighted else ""
        if reason:
            raise UnsupportedError(
                f"{self.method} does not take edges with weights: {reason}; drop the weights (--column weights=ignore, "
                "graph.without_weights() in Python), or use hop-bayes, progap, dpdgc or gap with aggregation=sum"
            )

    def _why_no_weights(self) -> str:
        """Why edges with weights are refused; nothing where they are read."""
        return self.declaration.why_no_weights

    def _preset_notes(self, level: Level, *, sound: bool) -> list[str]:
        """What a preset is, and where it is not what its paper does."""
        if self.preset == DISCREET:
            return []
        preset = self.declaration.presets[self.preset]
        noise = "under our accounting" if sound else "with the noise that it claims to suffice"
        notes = [f"preset {self.preset}: settings of {self.declaration.paper}, {noise}"]
        differs = (*preset.sound, *preset.differs) if sound else preset.differs
        here = [difference for difference in differs if level.kind in (difference.levels or [level.kind])]
        true = [difference for difference in here if all(map(self._is_as_preset, difference.about))]
        notes += [f"differs from the paper: {difference.text}" for difference in true]
        usual = preset.levels.get(level.kind)
        if usual is not None and parse_level(usual).spec != level.spec:
            notes.append(f"differs from the paper: its figures are for level {usual}, and this is {level.spec}")
        return notes

    def _is_as_preset(self, name: str) -> bool:
        """Whether a parameter has the value that the preset gives it."""
        default = next(field.default for field in fields(self) if field.name == name)
        chosen = self.declaration.presets[self.preset].settings
        return bool(getattr(self, name) == chosen.get(name, default))

    def plan_for(self, graph: GraphLike, extra_graphs: Sequence[GraphLike] = ()) -> Plan:
        """The plan for a graph and extra ones, from their public facts as the level sees them."""
        level = self.checked_privacy().level
        self._check_parameters()
        parts = [level.split(given)[0] for given in _read_all(graph, extra_graphs)]
        self._check_settings(parts[0])
        return self.plan(parts[0].facts, [part.facts for part in parts[1:]])

    def _check_settings(self, part: PublicPart) -> None:
        """Refuse settings that the public part of a graph contradicts, before anything is asked or said."""
        refuse_empty_classes(part)
        if self.decide_by is not None and LABELS not in part.private:
            validation_ids(part)

    def cost_of(self, plan: Plan, graph: GraphLike) -> Cost | None:
        """What a fit of this plan will take in time and memory, from public facts; None where it was not measured."""
        given = _read(graph)
        part, dense = self.checked_privacy().level.split(given)[0], isinstance(given.features, np.ndarray)
        features = None if FEATURES in part.private else part.features
        held = None if features is None or isinstance(features, np.ndarray) else features.nnz
        settings, device = self.get_params(deep=False), (self.compute or Compute()).device
        return estimate_cost(self.method, settings, plan, part.facts, dense=dense, stored=held, device=device)

    def fit(
        self,
        graph: GraphLike,
        y: None = None,
        *,
        extra_graphs: Sequence[GraphLike] = (),
        progress: Progress | None = None,
    ) -> Self:
        """Learn from the graph (ours, or a ``Data`` of torch_geometric, see ``discreet.from_pyg``) under the plan.

        ``extra_graphs`` are further private graphs on which ``predict`` will be wanted: methods that read
        edges to predict plan a charged aggregation for each, as if all held the same edges. ``y`` is refused: it is
        there so that scikit-learn's searches, which pass it, get an answer.
        """
        if y is not None:
            raise UnsupportedError(f"labels live on the graph, so fit takes no y: {NO_ROWS}")
        if progress is not None and not callable(progress):
            raise ParameterError(f"{self.method}: progress is a function that is called, not {shown(progress)}")
        level = self.checked_privacy().level
        self._check_parameters()
        split = [level.split(given) for given in _read_all(graph, extra_graphs)]
        parts = [public for public, _ in split]
        (self.compute or Compute()).check_memory(parts[0].facts)
        self._check_settings(parts[0])
        if (doubt := parts[0].unscaled()) is not None:
            logging.getLogger("discreet").warning(doubt)
        plan = self.plan(parts[0].facts, [part.facts for part in parts[1:]])
        private = [private for _, private in split]
        curator = Curator.with_fresh_noise(plan, private, insecure_seed=self.insecure_noise_seed)
        return self._fit_with(parts, curator, progress)

    def _fit_with(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None = None) -> Self:
        """Fit through a given curator; audits enter here."""
        with _fitted_alone(self):
            return self._fit_alone(parts, curator, progress)

    def _fit_alone(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> Self:
        self.__dict__.pop("plan_", None)
        started = time.perf_counter()
        self._prepare()
        self._describe(parts)
        curator.compute_on(str(self._device), (self.compute or Compute()).examples_at_once)
        curator.watch(self._public_state)
        if curator.plan.has(EXPOSED):
            curator.expose(EXPOSED)
        judged = None if self.decide_by is None else validation_ids(parts[0])
        self._learn(parts, curator, progress)
        curator.finish()
        self._check_coverage(parts[0])
        self.decision_weights_ = None
        if self.decide_by is not None and judged is not None:
            seen = self._probabilities(parts[0])[judged]
            self.decision_weights_ = decision_weights(self.decide_by, parts[0].labels[judged], seen)
        self.certificate_ = make_certificate(
            curator.plan,
            [self.public_, *self.extra_public_],
            noise=curator.noise_description,
            for_release=curator.for_release,
            spent=curator.spent,
            versions=versions(),
        )
        self.epsilon_spent_ = curator.plan.epsilon
        self.fit_seconds_ = time.perf_counter() - started
        self.plan_ = curator.plan
        return self

    def _check_coverage(self, part: PublicPart) -> None:
        """What is said to be covered, and what a prediction on the fitted graph may read, must agree."""
        if "prediction" in self.covers and (reason := self._uncovered(part)) is not None:
            raise PlanViolationError(f"{self.method} says that it covers {self.covers}, but {reason}")

    def _describe(self, parts: Sequence[PublicPart]) -> None:
        """Keep what is public of the graphs."""
        self.public_ = parts[0].facts
        self.extra_public_ = [part.facts for part in parts[1:]]
        self.extensions_: list[Extension] = []
        self.split_: SplitBy | None = parts[0].split_by or SplitBy(OWN_SPLIT, 0)
        known = parts[0].schema or Schema()
        self._set_schema(replace(known, classes=parts[0].class_names, features=parts[0].feature_names))

    def _resume(
        self,
        public: PublicFacts,
        extra: Sequence[PublicFacts],
        schema: Schema,
        extensions: Sequence[Extension] = (),
        decision: Sequence[float] | None = None,
        split: SplitBy | None = None,
    ) -> None:
        """Make ready for :meth:`_restore`: a release that is loaded knows its public facts and its columns."""
        self.public_, self.extra_public_, self.extensions_ = public, list(extra), list(extensions)
        self.decision_weights_ = None if decision is None else np.array(decision)
        self.split_ = split
        self._set_schema(schema)
        self._prepare()

    def _set_schema(self, schema: Schema) -> None:
        """Keep what columns and classes mean; it is public, and part of the model."""
        self.schema_, self.classes_ = schema, schema.class_values(self.public_.num_classes)
        self.n_features_in_ = self.public_.num_features
        if schema.features is not None:
            self.feature_names_in_ = np.array(schema.features, dtype=object)

    def _prepare(self) -> None:
        """Device, generator and an empty list of watched modules, for a fit or a restored release."""
        self._watched: dict[str, nn.Module] = {}
        self._device = (self.compute or Compute()).prepare()
        self._generator = self._new_generator()

    def checked_privacy(self) -> Privacy:
        """What is protected and how much; one sentence where nothing is said or this method does not have the level."""
        if self.privacy is None:
            raise PrivacyError(
                "say what is protected: privacy=Privacy(EdgeLevel(), epsilon=4.0), for example, "
                "or Privacy.none() for a model without any guarantee"
            )
        if not isinstance(self.privacy, Privacy):
            raise ParameterError(f"{self.method}: privacy must be a Privacy, not {self.privacy!r}")
        if self.compute is not None and not isinstance(self.compute, Compute):
            raise ParameterError(f"{self.method}: compute must be a Compute, not {self.compute!r}")
        if not isinstance(self.preset, str) or self.preset not in (DISCREET, *self.declaration.presets):
            raise UnsupportedError(f"{self.method} has no preset {shown(self.preset)}: leave it out")
        kind = self.privacy.level.kind
        if kind not in self.levels:
            raise UnsupportedError(f"{self.method} does not support level {kind}: it has {', '.join(self.levels)}")
        return self.privacy

    def _records_are_private(self) -> bool:
        """Whether the level protects features and labels, not edges alone."""
        return FEATURES in self.checked_privacy().level.private

    def _new_generator(self) -> torch.Generator:
        """Randomness for everything that is not privacy noise."""
        generator = torch.Generator(device=self._device)
        if self.random_state is None:
            generator.seed()
        else:
            generator.manual_seed(int(self.random_state))
        return generator

    def _public_state(self) -> Arrays:
        """Parameters and generator state, which must not depend on private data between stages."""
        state = {"generator": self._generator.get_state().numpy()}
        for name, module in self._watched.items():
            for key, value in module.state_dict().items():
                state[f"{name}.{key}"] = value.detach().cpu().numpy().copy()
        return state

    # ---------------------------------------------------------------- one more graph

    def extend(self, graph: GraphLike, privacy: Privacy, *, again: bool = False) -> Self:
        """This released model on one more private graph: weights stay, the graph's aggregation is asked and charged.

        ``privacy`` is the budget of the new graph's aggregation, at the level of the release. The certificate of what
        is returned carries this one's as ``parent``; its ε is for somebody in every graph, and ``extension`` is for
        somebody in the new graph alone.

        A graph is known by its features, or by its node ids where features are private. ``again=True`` is for one that
        was asked before and has other edges by now: they are asked and charged anew, and predictions on it rest on the
        new answers from then on.
        """
        level = self.checked_privacy().level
        alone = self.plan_extension(graph, privacy, again=again)
        part, private = level.split(self._matched(graph))
        curator = Curator.with_fresh_noise(alone, [private], insecure_seed=self.insecure_noise_seed)
        curator.compute_on(str(self._device), (self.compute or Compute()).examples_at_once)
        made = copy.copy(self)
        made._aggregate(part, self._count_graphs(), curator)
        curator.finish()
        made.extensions_ = [*self.extensions_, Extension(part.facts, privacy.epsilon, privacy.delta)]
        whole, certificate = certify(self.certificate_, alone, made._all_facts(), curator, versions())
        made.plan_, made.certificate_, made.epsilon_spent_ = whole, certificate, whole.epsilon
        return made

    def plan_extension(self, graph: GraphLike, privacy: Privacy, *, again: bool = False) -> Plan:
        """What :meth:`extend` would ask of the new graph alone, from its public facts."""
        self._check_fitted()
        level = self.checked_privacy().level
        if not isinstance(privacy, Privacy):
            raise ParameterError(f"{self.method}: privacy must be a Privacy, not {shown(privacy)}")
        if privacy.level != level:
            raise PrivacyError(
                f"the release is of level {level.spec}: an extension at {privacy.level.spec} adds nothing"
            )
        part, _ = level.split(self._matched(graph))
        if self._uncovered(part) is None and not (again and EDGES in level.private):
            raise UnsupportedError(f"predictions on this graph are covered already: {self._why_covered(part)}")
        check_parent(self.certificate_, level.spec)
        return self._extension_plan(part.facts, self._count_graphs(), privacy)

    def _why_covered(self, part: PublicPart) -> str:
        """Why one more graph needs no extension, and what to do where its edges were asked and have changed."""
        try:
            self._extension_stages(part.facts, self._count_graphs(), self.checked_privacy().level)
        except UnsupportedError:
            return "there is nothing to ask and to pay"
        what = "node ids" if FEATURES in part.private else "features"
        return (
            f"a graph with the same {what} was asked, and they rest on its edges as they were then; if these are "
            "others by now, again=True asks them anew"
        )

    def _extension_plan(self, facts: PublicFacts, number: int, privacy: Privacy) -> Plan:
        self._check_graph(facts, privacy.level)
        drafts = self._extension_stages(facts, number, privacy.level)
        return make_plan(self.method, privacy, facts.num_nodes, drafts, self.covers)

    def plans(self) -> list[Plan]:
        """The plan of the fit, and after every graph that it was extended to that of all it ran by then."""
        found, level = [self.plan(self.public_, self.extra_public_)], self.checked_privacy().level
        for place, added in enumerate(self.extensions_, start=1 + len(self.extra_public_)):
            alone = self._extension_plan(added.public, place, Privacy(level, added.epsilon, added.delta))
            found.append(plan_of_all(found[-1].stages, found[-1].delta, alone))
        return found

    def _all_facts(self) -> list[PublicFacts]:
        """The public facts of every graph that was asked, in order."""
        return [self.public_, *self.extra_public_, *(added.public for added in self.extensions_)]

    def _count_graphs(self) -> int:
        return len(self._all_facts())

    # ---------------------------------------------------------------- predict

    def predict_proba(
        self,
        graph: GraphLike,
        *,
        nodes: npt.ArrayLike | None = None,
        audience: str = "anyone",
        public: bool = False,
        uncovered: bool = False,
    ) -> SingleArray:
        """Class probabilities, one row per node (or for each of ``nodes``), one column per class of ``classes_``.

        The graph needs no labels. Where features have names they are matched by these, in any order.

        ``public=True`` states that nothing in ``graph`` is private (another graph than the private one that
        was trained on): the released weights may then be applied to it freely. At level ``none`` nothing is kept back.

        Raises :class:`UncoveredReleaseError` where the guarantee does not cover the answer, unless
        ``uncovered=True``.
        """
        self._check_fitted()
        if not isinstance(audience, str) or audience not in ("anyone", "owner"):
            raise ParameterError(f"audience must be anyone or owner, not {shown(audience)}")
        for option, given in (("public", public), ("uncovered", uncovered)):  # a word such as "no" would count as true
            if not isinstance(given, bool):
                raise ParameterError(f"{option} must be True or False, not {shown(given)}")
        seen = self._matched(graph)
        level = self.checked_privacy().level
        free = uncovered or public or isinstance(level, NoPrivacy)
        part = level.opened(seen, PARTS if free else READS[self.covers])
        claimed = CLAIMED if self.covers == NOTHING else None
        reason = None if free else claimed or self._wrong_audience(audience) or self._uncovered(part)
        if reason is not None:
            raise UncoveredReleaseError(f"{self.method}: {reason}; uncovered=True predicts outside the guarantee")
        rows = None if nodes is None else _checked_rows(nodes, seen.num_nodes)
        found = self._probabilities(part)
        if self.decision_weights_ is not None:
            found = decided(found, self.decision_weights_)
        return found if rows is None else found[rows]

    def predict(self, graph: GraphLike, **options: Any) -> Array:
        """The most probable class, a member of ``classes_`` as in scikit-learn; options as in :meth:`predict_proba`.

        It is the class as tables write it. ``graph.labels`` holds positions in ``classes_``: compare these with
        ``predict_proba(graph).argmax(axis=1)``, or let :meth:`score` compare.
        """
        numbers = self.predict_proba(graph, **options).argmax(axis=1)
        return self.classes_[numbers]

    @overload
    def score(
        self,
        graph: GraphLike,
        mask: str = ...,
        *,
        metric: str = ...,
        by_class: Literal[False] = ...,
        uncovered: bool = ...,
    ) -> float: ...

    @overload
    def score(
        self, graph: GraphLike, mask: str = ..., *, metric: str = ..., by_class: Literal[True], uncovered: bool = ...
    ) -> list[ClassScore]: ...

    def score(
        self,
        graph: GraphLike,
        mask: str = "test",
        *,
        metric: str = "accuracy",
        by_class: bool = False,
        uncovered: bool = False,
    ) -> float | list[ClassScore]:
        """Accuracy (or another of ``methods.metrics.METRICS``) on the labelled nodes of a mask: a research figure,
        outside every guarantee where labels or predictions are. ``by_class=True`` gives how each class fares instead,
        the most frequent first.
        """
        self._check_fitted()
        graph = self._matched(graph)
        wanted = np.flatnonzero(graph.mask(mask) & (graph.labels >= 0))
        if len(wanted) == 0:
            raise ParameterError(f"the {mask} mask holds no labelled node")
        check_metric(metric)
        probabilities = self.predict_proba(graph, nodes=wanted, audience="owner", uncovered=uncovered)
        if by_class:
            return class_scores(graph.labels[wanted], probabilities, [str(name) for name in self.classes_])
        return measure(metric, graph.labels[wanted], probabilities)

    def _matched(self, graph: GraphLike) -> Graph:
        """A graph with the classes and the columns of the fitted model."""
        return match_graph(_read(graph), self.schema_, self.public_)

    def _check_fitted(self) -> None:
        if not hasattr(self, "plan_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of an estimator before anything else; its cross-validation is refused right here, for
        it would wrap the sentence of each fit in a long report of failed ones.
        """
        if _is_cross_validated():
            raise CrossValidationError(f"{self.method}: {NO_ROWS}")
        return super().__sklearn_tags__()

    # ---------------------------------------------------------------- in a notebook

    def _repr_html_(self) -> str:
        """What was promised, and by which stages it was kept; or what would be. No accuracy: it may be private."""
        name = f"{type(self).__name__} ({self.method})"
        if hasattr(self, "plan_"):
            public = self.public_
            size = f"{public.num_nodes} nodes, {public.num_features} features, {public.num_classes} classes"
            fixed = {} if self.certificate_["noise"]["for_release"] else {"noise": "fixed by a seed: not for release"}
            facts = {"graph": size, **self.plan_.facts(), **fixed}
            return html_table(f"{name}, fitted", facts, STAGE_HEAD, self.plan_.stage_rows())
        return html_table(f"{name}, not fitted", {"parameters": repr(self)})

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """As scikit-learn has it, with our table in the place of its diagram."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    # ---------------------------------------------------------------- release

    def save(self, folder: str | os.PathLike[str], statement: Statement | None = None) -> Path:
        """Write a release folder that does not exist yet, whole or not at all.

        ``statement`` is what its issuer says of it: the data's name, a purpose, and so on.
        """
        self._check_fitted()
        if statement is not None and not isinstance(statement, Statement):
            raise ParameterError(f"statement must be a Statement, not {shown(statement)}")
        return write_release(expand_home(folder), self.certificate_, self._state(), self._config(), statement)

    def _config(self) -> dict[str, Any]:
        """Everything that rebuilds the estimator, as plain values."""
        privacy = self.checked_privacy()
        return {
            "format": 1,
            "method": self.method,
            "params": to_json(stored(self.get_params(deep=False))),
            "privacy": {
                "level": privacy.level.spec,
                "epsilon": to_json(privacy.epsilon),
                "delta": privacy.delta,
            },
            "public": asdict(self.public_),
            "extra_public": [asdict(facts) for facts in self.extra_public_],
            "schema": self.schema_.to_json(),
            **({} if self.split_ is None else {"split": {"by": self.split_.spec, "seed": self.split_.seed}}),
            **({} if self.decision_weights_ is None else {"decision": self.decision_weights_.tolist()}),
            **({"extensions": [added.to_json() for added in self.extensions_]} if self.extensions_ else {}),
        }


def _is_cross_validated() -> bool:
    """Whether a search or a cross-validation of scikit-learn is about to fit: it asks whether this is a classifier."""
    asks = sys._getframe(1)
    while asks.f_back is not None and asks.f_code.co_name != "is_classifier":
        if not asks.f_globals.get("__name__", "").startswith((__name__, "sklearn.")):
            return False
        asks = asks.f_back
    asked_by = asks.f_back
    return asked_by is not None and asked_by.f_globals.get("__name__", "").startswith("sklearn.model_selection.")


def weight_notes(graphs: Sequence[PublicFacts], level: Level) -> list[str]:
    """What a reader of the plan has to know of weights of edges, where there are any and edges are private."""
    if EDGES not in level.private or not any(facts.weighted for facts in graphs):
        return []
    return [
        "edges have weights, clipped to [0, 1]: a weight is a part of its private edge, scales what the edge carries, "
        "and leaves every bound as it is; moving the weight of an edge counts as adding or removing that edge"
    ]


@cache  # it reads a file
def versions() -> dict[str, str]:
    """What a certificate says it was made with."""
    return {"discreet": version("discreet"), "torch": torch.__version__, "numpy": np.__version__}
