"""``dp-sage``: the preset of ``dp-gnn`` that the DPDGC paper compares with."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from discreet.methods import dp_gnn
from discreet.methods.dp_gnn.estimator import DPGNN, Inference
from discreet.methods.dp_gnn.networks import Convolution
from discreet.privacy.levels import Level


@dataclass(eq=False, repr=False)
class DPSAGE(DPGNN):
    """GraphSAGE by noisy clipped gradients, whose outputs are released once with noise.

    The parameters and the guarantee of ``dp-gnn``, with ``convolution="sage"`` and ``inference="noisy"``: predictions
    read released outputs, so all of them are covered.
    """

    declaration = dp_gnn.DP_SAGE

    _: KW_ONLY
    convolution: Convolution = "sage"
    inference: Inference = "noisy"

    def _has_claim(self, level: Level) -> bool:
        return False
