"""Gradients of small networks, worked out one operation after another.

On a few hundred rows autograd takes longer to write operations down, and to walk back through them, than they take.
For public or released rows: gradients of private records are clipped (``ops.clipping``).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from discreet.ops.rows import product_slopes, row_product, weight_slope
from discreet.ops.sparse import SparseMatrix
from discreet.training.networks import MLP, Dropout, Head, Linear

_aten = torch.ops.aten
_MEAN, _IGNORED = 1, -100  # how torch numbers a mean over rows, and the label that it leaves out
_TINY = 1e-5  # what layer_norm adds to a variance
Rows = Tensor | SparseMatrix


class DirectGradients:
    """Of the mean cross-entropy of a network's logits with respect to its parameters, in their order.

    Guarantee: what autograd finds on a processor from the same draws of dropout, up to rounding; to the same bits where
    hidden widths are multiples of ``ops.rows.TILE``. Rows are dense or sparse, and have no gradient themselves.
    """

    def __init__(self, network: MLP | Head, class_weights: Tensor | None = None) -> None:
        """``class_weights`` as ``cross_entropy`` takes them."""
        body = network.network if isinstance(network, Head) else network
        self._beside = network.linear if isinstance(network, Head) else None
        self._layers = [layer for layer in body.layers if isinstance(layer, Linear)]
        self._dropout = body.dropout
        self._class_weights = class_weights
        self._one = torch.ones(())

    @torch.no_grad()
    def __call__(self, rows: Rows, labels: Tensor) -> list[Tensor]:
        """One gradient for each parameter."""
        read: list[Rows] = [rows]
        units = []
        for layer in self._layers[:-1]:
            units.append(_Unit(_affine(layer, read[-1]), self._dropout))
            read.append(units[-1].shown)
        logits = _affine(self._layers[-1], read[-1])
        if self._beside is not None:
            logits += _affine(self._beside, rows)
        slope = self._slope_of_loss(logits, labels)
        of_bias = slope.sum(0)
        found = [] if self._beside is None else [_data_slope(rows, slope), of_bias]
        for depth in range(len(units), 0, -1):
            of_weight, below = product_slopes(units[depth - 1].shown, self._layers[depth].weight, slope)
            found = [of_weight, of_bias, *found]
            slope = units[depth - 1].slope_before(below)
            of_bias = slope.sum(0)
        return [_data_slope(rows, slope), of_bias, *found]

    def _slope_of_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        logs, weights = torch.log_softmax(logits, 1), self._class_weights
        _, total = _aten.nll_loss_forward(logs, labels, weights, _MEAN, _IGNORED)
        slope = _aten.nll_loss_backward(self._one, logs, labels, weights, _MEAN, _IGNORED, total)
        of_logits: Tensor = _aten._log_softmax_backward_data(slope, logs, 1, logs.dtype)
        return of_logits


def direct_gradients(network: nn.Module, class_weights: Tensor | None) -> DirectGradients | None:
    """Those of a network that :class:`DirectGradients` knows, on a processor; None for every other."""
    if isinstance(network, nn.Sequential) and [type(part) for part in network] == [MLP, nn.Identity]:
        network = network[0]
    if not isinstance(network, MLP | Head):
        return None
    body = network.network if isinstance(network, Head) else network
    known = body.activation is torch.relu and all(p.device.type == "cpu" for p in network.parameters())
    return DirectGradients(network, class_weights) if known else None


class _Unit:
    """What a hidden layer made of its rows: normalised, activated, and some of it dropped."""

    def __init__(self, mapped: Tensor, dropout: Dropout) -> None:
        self._mapped = mapped
        normed, self._mean, self._scale = torch.native_layer_norm(mapped, mapped.shape[-1:], None, None, _TINY)
        self._active = normed.relu_()
        self._mask = dropout.mask(self._active)
        self.shown = self._active if self._mask is None else self._active * self._mask

    def slope_before(self, slope: Tensor) -> Tensor:
        """Of what the rows were mapped to, from the slope of what was shown of them."""
        if self._mask is not None:
            slope = slope * self._mask
        slope = _aten.threshold_backward(slope, self._active, 0)
        mapped, wanted = self._mapped, [True, False, False]
        of_mapped: Tensor = _aten.native_layer_norm_backward(
            slope, mapped, mapped.shape[-1:], self._mean, self._scale, None, None, wanted
        )[0]
        return of_mapped


def _affine(layer: Linear, rows: Rows) -> Tensor:
    product = row_product(rows, layer.weight) if isinstance(rows, Tensor) else rows @ layer.weight
    assert layer.bias is not None  # layers of these networks have one
    return product.add_(layer.bias)


def _data_slope(rows: Rows, slope: Tensor) -> Tensor:
    """Of the weight of a layer that reads the data."""
    return weight_slope(rows, slope) if isinstance(rows, Tensor) else rows.transposed_product(slope)
