"""What the second half of the evidence's budget asks for: decided from what the first half released.

Where classes explain who links to whom, nothing is better than to hear the same again, under other noise. Where the
neighbours of a node agree with each other more than its own class explains, a node is a *hub* that stands for
something, and to hear which hubs one is linked to says more: nodes that share a hub share a class.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from discreet.methods.link_model import LinkModel

FloatArray = npt.NDArray[np.float64]

UNEXPLAINED = 0.15
"""Hubs are asked for where more than this part of the agreement between neighbours is not explained by classes."""
_SURE = 3.0
"""... and where what is not explained stands out of its noise by so many standard deviations."""
_FULL_AT = 1.0
"""A hub speaks in full from this many standard deviations of its noise (and as many neighbours) on."""


def unexplained(
    rows: FloatArray, labels: npt.NDArray[np.int64], noise_std: float, links: LinkModel, message_energy: float
) -> float:
    """The part of the agreement between a node's neighbours that its class does not explain; 0 where noise may be all.

    ``rows`` are noisy sums of messages at nodes whose ``labels`` are public, ``message_energy`` the mean square norm
    of a message. A sum's energy is that of each pair of messages, of each message with itself, and of noise. The last
    two are known on average and taken off, evenly in every direction. What is left along the direction that links
    give a node's class is explained, what is left across is not. Released and public values alone.
    """
    rows = rows - rows.mean(axis=1, keepdims=True)
    count, across = len(rows), rows.shape[1] - 2
    if count == 0 or across < 1:
        return 0.0
    expected = links.given - 1 / rows.shape[1]
    directions = expected / np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-12)
    along = float(((rows * directions[labels]).sum(axis=1) ** 2).sum())
    by_chance = count * (noise_std**2 + links.mean_degree * message_energy / (across + 1))
    rest = float((rows**2).sum()) - along - across * by_chance
    if rest <= _SURE * noise_std**2 * math.sqrt(2 * count * across):
        return 0.0
    return rest / (rest + max(along - by_chance, 0.0))


def hub_messages(rows: FloatArray, noise_std: float, bound: float) -> FloatArray:
    """What each node tells of its neighbours: the direction of its row, shorter where that does not stand out.

    Rows of norm at most ``bound``, from released values alone.
    """
    centred = rows - rows.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.asarray(centred * (bound / np.maximum(norms, _FULL_AT * (1 + noise_std))))
