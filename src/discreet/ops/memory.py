"""How much memory is free, so that what cannot fit is refused before it starts."""

from __future__ import annotations

import os
from pathlib import Path

GIB = 1 << 30  # bytes
_MEMINFO = Path("/proc/meminfo")


def free_bytes() -> int:
    """What the system says it can give; where it does not say, all that the machine has."""
    if _MEMINFO.exists():
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
