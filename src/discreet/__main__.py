"""``python -m discreet``: the command, where its folder is not on the path."""

from __future__ import annotations

import sys

from discreet.cli import main

if __name__ == "__main__":
    sys.exit(main())
