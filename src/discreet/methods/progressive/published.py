"""The networks of ProGAP and of LPGNet as their papers have them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from discreet.methods.progressive.stages import NoisyStageNetworks, PublicTraining, StageNetworks
from discreet.ops.sparse import SparseMatrix, feature_tensor, select_rows
from discreet.training.descent import train, train_on_features, train_on_rows, training_rows
from discreet.training.networks import ACTIVATIONS, MLP, Activation, Dropout, Linear

# -------------------------------------------------------------------- ProGAP


class Base(nn.Module):
    """What a stage makes of its rows: linear maps, each followed by layer normalisation, an activation and dropout."""

    def __init__(
        self, inputs: int, hidden: int, layers: int, activation: Activation, dropout: float, gen: torch.Generator
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Linear(inputs if i == 0 else hidden, hidden, gen) for i in range(layers))
        self._activation, self._dropout = ACTIVATIONS[activation], Dropout(dropout, gen)

    def forward(self, x: Tensor | SparseMatrix) -> Tensor:
        """Hidden rows."""
        rows: Tensor | SparseMatrix = x
        for layer in self.layers:
            hidden = layer(rows)
            rows = self._dropout(self._activation(nn.functional.layer_norm(hidden, hidden.shape[-1:])))
        assert isinstance(rows, Tensor)
        return rows


class JumpingStage(nn.Module):
    """A stage of ProGAP: the bases of all stages up to it, side by side, and its head on top (jumping knowledge)."""

    def __init__(self, bases: Sequence[Base], head: Linear, widths: Sequence[int]) -> None:
        """``widths`` are those of the rows that arrived before each base but the first."""
        super().__init__()
        self.bases, self.head, self._widths = nn.ModuleList(bases), head, list(widths)

    def combined(self, features: Tensor | SparseMatrix, arrived: Tensor | None = None) -> Tensor:
        """What all bases make of a node, side by side."""
        read = [features] if arrived is None else [features, *torch.split(arrived, self._widths, dim=1)]
        return torch.cat([base(rows) for base, rows in zip(self.bases, read, strict=True)], dim=1)

    def forward(self, features: Tensor | SparseMatrix, arrived: Tensor | None = None) -> Tensor:
        """Logits."""
        logits: Tensor = self.head(self.combined(features, arrived))
        return logits


class _Combined(nn.Module):
    """What a stage makes of a node before its head."""

    def __init__(self, stage: JumpingStage) -> None:
        super().__init__()
        self.stage = stage

    def forward(self, features: Tensor | SparseMatrix, arrived: Tensor | None = None) -> Tensor:
        """One row per node."""
        return self.stage.combined(features, arrived)


class JumpingStages(NoisyStageNetworks):
    """ProGAP's: a base for each stage, a head on all bases so far; a node tells what its bases make of it.

    A stage has bases of its own, which begin as the stage before left its: so what was told before can be told again
    of a further graph. ``frozen`` says that only the newest is trained, else all are.
    """

    def __init__(self, stages: Sequence[JumpingStage], *, frozen: bool) -> None:
        self._stages, self._frozen = list(stages), frozen
        for stage in self._stages:
            for base in stage.bases[:-1]:
                base.requires_grad_(not frozen)

    def modules(self) -> dict[str, nn.Module]:
        """``stage 0``, ``stage 1``, …"""
        return {f"stage {i}": stage for i, stage in enumerate(self._stages)}

    def network(self, stage: int) -> nn.Module:
        """The stage itself."""
        return self._stages[stage]

    def telling(self, stage: int) -> nn.Module:
        """It without its head."""
        return _Combined(self._stages[stage])

    def noisy_steps(self, stage: int) -> tuple[nn.Module, nn.Module | None]:
        """The whole stage, on features as they are."""
        return self._stages[stage], None

    @torch.no_grad()
    def begin(self, stage: int) -> None:
        """Begin where the stage before left its bases."""
        if stage > 0:
            for base, before in zip(self._stages[stage].bases, self._stages[stage - 1].bases, strict=False):
                base.load_state_dict(before.state_dict())

    def train(self, stage: int, beside: Tensor | None, given: PublicTraining) -> None:
        """All of a stage together."""
        self.begin(stage)
        network, part, device = self._stages[stage], given.part, given.generator.device
        features = feature_tensor(part.features, device)
        labels = torch.tensor(part.labels, device=device)

        def forward(batch: Tensor) -> Tensor:
            shown = select_rows(features, batch)
            logits: Tensor = network(shown) if beside is None else network(shown, beside.index_select(0, batch))
            return logits

        rows = torch.tensor(training_rows(part), device=device)
        title = f"stage {stage}"
        train(network, forward, labels, rows, given.options, given.generator, title=title, progress=given.progress)


# -------------------------------------------------------------------- LPGNet


class _Stacked(nn.Module):
    """A stage of LPGNet, after the first: the logits of every earlier stage beside all that has arrived."""

    def __init__(self, networks: Sequence[MLP], classes: int) -> None:
        super().__init__()
        self.networks, self._classes = nn.ModuleList(networks), classes

    def read(self, features: Tensor | SparseMatrix, arrived: Tensor) -> Tensor:
        """What the last network is shown."""
        shown: Tensor = self.networks[0](features)
        for number, counts in enumerate(torch.split(arrived, self._classes, dim=1)):
            said = [] if number == 0 else [self.networks[number](shown)]
            shown = torch.cat([shown, *said, counts], dim=1)
        return shown

    def forward(self, features: Tensor | SparseMatrix, arrived: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.networks[-1](self.read(features, arrived))
        return logits


class StackedStages(StageNetworks):
    """LPGNet's: the network of a stage reads the logits of every earlier one and all counts; earlier ones stay."""

    def __init__(self, networks: Sequence[MLP], classes: int) -> None:
        self._networks, self._classes = list(networks), classes

    def modules(self) -> dict[str, nn.Module]:
        """``stage 0``, ``stage 1``, …"""
        return {f"stage {i}": network for i, network in enumerate(self._networks)}

    def network(self, stage: int) -> nn.Module:
        """The first network, or a stack that ends in the stage's."""
        return self._networks[0] if stage == 0 else self._stack(stage)

    def telling(self, stage: int) -> nn.Module:
        """The same: logits."""
        return self.network(stage)

    def train(self, stage: int, beside: Tensor | None, given: PublicTraining) -> None:
        """The stage's own network, on what the others say of training nodes."""
        part, device, title = given.part, given.generator.device, f"stage {stage}"
        network = self._networks[stage]
        if beside is None:
            train_on_features(network, part, given.options, given.generator, title=title, progress=given.progress)
            return
        rows = torch.tensor(training_rows(part), device=device)
        labels = torch.tensor(part.labels, device=device)[rows]
        features = select_rows(feature_tensor(part.features, device), rows)
        with torch.no_grad():
            shown = self._stack(stage).read(features, beside[rows])
        train_on_rows(
            network,
            lambda batch: shown.index_select(0, batch),
            labels,
            torch.arange(len(rows), device=device),
            given.options,
            given.generator,
            title=title,
            progress=given.progress,
            steady=True,
        )

    def _stack(self, stage: int) -> _Stacked:
        return _Stacked(self._networks[: stage + 1], self._classes)
