"""Options that cannot affect privacy: where and how the arithmetic runs."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from discreet.errors import ParameterError


@dataclass(frozen=True)
class Compute:
    """Device, threads, and how many examples a private step takes at once.

    Results agree across settings up to floating-point rounding.
    """

    device: str = "cpu"
    threads: int | None = None
    micro_batch: int = 4096

    def prepare(self) -> torch.device:
        """Check the device and set the thread count, where one is asked for."""
        try:
            device = torch.device(self.device)
        except RuntimeError:
            raise ParameterError(f"device {self.device!r} is not known: use cpu or cuda") from None
        if device.type == "cuda" and not torch.cuda.is_available():
            raise ParameterError("device cuda was asked for, but torch sees no CUDA device here")
        if self.micro_batch < 1:
            raise ParameterError(f"micro_batch must be at least 1, not {self.micro_batch}")
        if self.threads is not None:
            if self.threads < 1:
                raise ParameterError(f"threads must be at least 1, not {self.threads}")
            torch.set_num_threads(self.threads)
        return device
