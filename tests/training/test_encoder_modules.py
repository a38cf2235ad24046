"""Encoders that users bring: what is read of them, what is refused, and that what is built computes the same."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from discreet import Residual
from discreet.errors import InvalidInputError, ParameterError
from discreet.limits import LAYERS
from discreet.ops.clipping import ClipRule, clipped_sum, trainable
from discreet.training.encoder_layers import MOST_ITEMS, EncoderLayers
from discreet.training.encoder_modules import build_encoder, read_encoder

WORDS = (
    "dropout 0.1", "linear 6", "layer-norm", "gelu", ("linear 5 no-bias", "silu", "linear 6"), "layer-norm no-affine",
    "dropout 0.3", "leaky-relu 0.2", "elu", "selu", "tanh", "sigmoid", "relu", "linear 4",
)  # fmt: skip


def module():
    return nn.Sequential(
        nn.Dropout(0.1), nn.Linear(7, 6), nn.LayerNorm(6), nn.GELU(),
        Residual(nn.Linear(6, 5, bias=False), nn.SiLU(), nn.Sequential(nn.Linear(5, 6), nn.Identity())),
        nn.LayerNorm(6, elementwise_affine=False), nn.Dropout(0.3), nn.LeakyReLU(0.2), nn.ELU(), nn.SELU(), nn.Tanh(),
        nn.Sigmoid(), nn.ReLU(inplace=True), nn.Linear(6, 4),
    )  # fmt: skip


def built(encoder, outputs=None, *, dropout=False, seed=0):
    return build_encoder(read_encoder(encoder), 7, outputs, torch.Generator().manual_seed(seed), dropout=dropout)


def test_a_module_is_its_layers_in_words():
    assert read_encoder(module()).to_words() == WORDS
    assert EncoderLayers.from_words(list(WORDS)) == EncoderLayers(read_encoder(module()).layers)
    assert read_encoder(module()).inputs == 7
    assert read_encoder(module()).outputs() == 4


def test_an_activation_may_stand_twice():
    relu = nn.ReLU()
    words = read_encoder(nn.Sequential(nn.Linear(7, 4), relu, nn.Linear(4, 4), relu)).to_words()
    assert words == ("linear 4", "relu", "linear 4", "relu")


def with_torchs_weights(theirs):
    """Ours with the weights of the user's module."""
    ours = built(theirs)
    given = iter([p.T if p.ndim == 2 else p for p in theirs.parameters()])
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.copy_(next(given))
    return ours


def test_what_is_built_computes_what_the_module_would():
    torch.manual_seed(0)
    theirs = module().eval()
    for layer in theirs.modules():
        if isinstance(layer, nn.LayerNorm) and layer.elementwise_affine:
            nn.init.normal_(layer.weight)
            nn.init.normal_(layer.bias)
    rows = 3 * torch.randn(50, 7)
    torch.testing.assert_close(with_torchs_weights(theirs)(rows), theirs(rows), rtol=1e-4, atol=1e-5)


def test_weights_are_drawn_afresh_from_the_generator():
    encoder = module()
    one, two, other = built(encoder), built(encoder), built(encoder, seed=1)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.layers[0].weight, other.layers[0].weight)
    assert not torch.equal(one.layers[0].weight, encoder[1].weight.T)


def test_dropout_is_there_on_public_data_alone():
    rows = torch.ones(20, 7)
    public, private = built(module(), dropout=True).train(), built(module(), dropout=False).train()
    assert not torch.equal(public(rows), public(rows))
    assert torch.equal(private(rows), private(rows))


def test_gradients_of_single_examples():
    """Clipped sums against autograd, one example at a time."""
    encoder = built(module(), outputs=3)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    rows, labels = torch.randn(9, 7), torch.arange(9) % 3

    def losses(chosen=slice(None)):
        return nn.functional.cross_entropy(encoder(rows[chosen]), labels[chosen], reduction="none")

    expected = torch.zeros(sum(p.numel() for p in trainable(encoder)))
    for i in range(9):
        gradient = torch.autograd.grad(losses(slice(i, i + 1)).sum(), trainable(encoder))
        flat = torch.cat([g.flatten() for g in gradient])
        expected += flat * min(1.0, 0.4 / float(flat.norm()))
    found = clipped_sum(encoder, losses, ClipRule.flat(0.4), terms=True)
    torch.testing.assert_close(found.flat.float(), expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(found.terms.sum(0), found.flat)
    assert float(found.terms.norm(dim=1).max()) <= 0.4


# -------------------------------------------------------------------- refusals


class OwnForward(nn.Linear):
    def forward(self, x):
        raise AssertionError("foreign code ran")


def with_hook():
    layer = nn.Linear(7, 4)
    layer.register_forward_hook(lambda *_: None)
    return layer


def with_own_forward():
    layer = nn.Linear(7, 4)
    layer.forward = lambda x: x
    return layer


def shared():
    layer = nn.Linear(7, 7)
    return nn.Sequential(layer, nn.ReLU(), layer)


def frozen():
    return nn.Linear(7, 4).requires_grad_(False)


REFUSED = {
    "mixes the nodes of a batch": lambda: nn.Sequential(nn.Linear(7, 4), nn.BatchNorm1d(4)),
    "has hooks": with_hook,
    "a forward of its own": with_own_forward,
    "no layer OwnForward": lambda: OwnForward(7, 4),
    "no layer Conv1d": lambda: nn.Sequential(nn.Linear(7, 4), nn.Conv1d(1, 1, 1)),
    "no layer PReLU": lambda: nn.Sequential(nn.Linear(7, 4), nn.PReLU()),
    "share their parameters": shared,
    "does not know its width": lambda: nn.LazyLinear(4),
    "is frozen": frozen,
    "hooks": lambda: nn.utils.weight_norm(nn.Linear(7, 4)),
    "ParametrizedLinear": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(7, 4)),
    "reads 5 columns, and the layer before gives 4": lambda: nn.Sequential(nn.Linear(7, 4), nn.Linear(5, 2)),
    "LayerNorm of the encoder reads 3": lambda: nn.Sequential(nn.Linear(7, 4), nn.LayerNorm(3)),
    "torch's own eps": lambda: nn.Sequential(nn.Linear(7, 4), nn.LayerNorm(4, eps=1.0)),
    "weight and bias": lambda: nn.Sequential(nn.Linear(7, 4), nn.LayerNorm(4, bias=False)),
    "approximate='none'": lambda: nn.Sequential(nn.Linear(7, 4), nn.GELU("tanh")),
    "alpha=1": lambda: nn.Sequential(nn.Linear(7, 4), nn.ELU(2.0)),
    "begins with a linear layer": lambda: nn.Sequential(nn.LayerNorm(7), nn.Linear(7, 4)),
    "1 to 32 linear layers, not 0": lambda: nn.Sequential(nn.ReLU()),
    "adds rows of width 4 and 3": lambda: nn.Sequential(nn.Linear(7, 4), Residual(nn.Linear(4, 3))),
    "from 1 to 4096, not 5000": lambda: nn.Linear(7, 5000),
    "between 0 and 0.99, not 1.0": lambda: nn.Sequential(nn.Linear(7, 4), nn.Dropout(1.0)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("says", REFUSED)
def test_a_module_is_refused_with_one_sentence(says):
    with pytest.raises(InvalidInputError) as caught:
        read_encoder(REFUSED[says]())
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        5, None, "linear 4", [], {}, ["linear"], ["linear 4 4"], ["linear x"], ["linear 0"], ["linear 1e3"],
        ["linear 99999999999999999999"], ["linear 4", "relu 1"], ["linear 4", "dropout"], ["linear 4", "dropout nan"],
        ["linear 4", "leaky-relu 2"], ["linear 4", 3], ["linear 4", ""], ["linear 4", None], [["linear 4"]],
        ["linear 4", ["linear 3"]], ["linear 4", []], ["linear 4"] * (LAYERS.high + 1),
        ["linear 4", *["relu"] * MOST_ITEMS],
    ],
)  # fmt: skip
def test_words_are_refused_with_one_sentence(words):
    if words == ["linear 4", []]:  # x + x is a sum too
        assert read_encoder(words).outputs() == 4
        return
    with pytest.raises(ParameterError) as caught:
        read_encoder(words)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_lists_in_lists_have_an_end():
    words = ["linear 4"]
    for _ in range(1000):
        words = ["linear 4", words]
    with pytest.raises(ParameterError, match="at most"):
        read_encoder(words)


def test_another_width_than_the_graph_has():
    with pytest.raises(ParameterError, match="reads 7 columns, and the graph has 9 features"):
        build_encoder(read_encoder(module()), 9, None, torch.Generator(), dropout=False)
