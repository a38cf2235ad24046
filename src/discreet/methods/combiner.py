"""A trained combination of what a node model says and what noisy evidence says; it starts from Bayes' rule."""

from __future__ import annotations

import torch

from discreet.methods.gap import Head
from discreet.methods.networks import Activation, Linear, widths_of


def build_combiner(
    classes: int, hidden: int, layers: int, activation: Activation, dropout: float, generator: torch.Generator
) -> Head:
    """A head over three blocks of one number a class: log prior, evidence, and damped sums.

    Before training it adds the first two, which is Bayes' rule where the model of the evidence is right;
    training corrects it where it is not.
    """
    head = Head(widths_of(3 * classes, hidden, layers, classes), activation, dropout, generator)
    last = head.network.layers[-1]
    assert isinstance(last, Linear)
    with torch.no_grad():
        last.weight.zero_()
        head.linear.weight.zero_()
        for block in range(2):
            head.linear.weight[block * classes : (block + 1) * classes] = torch.eye(classes)
    return head
