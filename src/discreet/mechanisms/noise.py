"""Where privacy noise comes from: cryptographic streams under a 256-bit key, one key for each fit."""

from __future__ import annotations

import hashlib
import os
import secrets
from typing import NoReturn

from discreet.errors import PlanViolationError
from discreet.mechanisms.bits import BitStream


class NoiseSource:
    """Independent random streams, each named by purpose and run, each handed out once.

    Guarantee: the key is 256 bits from the operating system unless ``insecure_seed`` is given; distinct
    (purpose, run) pairs get distinct subkeys by BLAKE2b; a stream is never handed out twice; the source
    cannot be pickled, copied or carried across a fork, so no two workers can draw the same noise.

    Each stream is ChaCha20 under its own subkey (``mechanisms.bits``).
    """

    def __init__(self, *, insecure_seed: int | None = None) -> None:
        """Take a fresh key, or derive it from a seed that is for tests only."""
        if insecure_seed is None:
            self._key = secrets.token_bytes(32)
        else:
            self._key = hashlib.blake2b(str(insecure_seed).encode(), digest_size=32).digest()
        self.secure = insecure_seed is None
        self._used: set[tuple[str, int]] = set()
        self._process = os.getpid()

    def describe(self) -> str:
        """For the certificate."""
        if self.secure:
            return "ChaCha20 streams keyed with 256 bits of operating-system entropy, fresh for this fit"
        return "FIXED TEST SEED: the noise can be reproduced, so this is NOT FOR RELEASE"

    def stream(self, purpose: str, run: int = 0) -> BitStream:
        """The stream of that name; asking for it a second time is an error."""
        if os.getpid() != self._process:
            raise PlanViolationError("a noise source does not cross into another process: make one there")
        if (purpose, run) in self._used:
            raise PlanViolationError(f"the noise for {purpose!r}, run {run}, was already drawn")
        self._used.add((purpose, run))
        message = f"{purpose}\x00{run}".encode()
        return BitStream(hashlib.blake2b(message, key=self._key, digest_size=32).digest())

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise PlanViolationError("a noise source cannot be pickled or copied: the copy would repeat its noise")
