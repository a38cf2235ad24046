"""Run the commands of this folder's README, one after the other, in a new folder.

python examples/payments/run.py --out runs/demo
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def commands() -> list[str]:
    """The lines of the first block of commands."""
    block = re.search(r"```console\n(.*?)```", (HERE / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    return block.group(1).splitlines()


def fresh_folder(wanted: Path) -> Path:
    """The folder asked for, or the next free name beside it: a release is never overwritten."""
    candidates = (wanted if number == 0 else wanted.with_name(f"{wanted.name}-{number}") for number in range(10_000))
    return next(folder for folder in candidates if not folder.exists())


def run(line: str, folder: Path) -> int:
    """Show a command and run it, with the Python and the package that run this script."""
    print(f"\n$ {line}", flush=True)
    program, *arguments = shlex.split(line)
    if program == "discreet":
        command = [sys.executable, "-m", "discreet.cli", *arguments]
    else:
        command = [sys.executable, str(HERE / Path(arguments[0]).name), *arguments[1:]]
    return subprocess.run(command, cwd=folder, check=False, env=os.environ).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    folder = fresh_folder(parser.parse_args().out)
    folder.mkdir(parents=True)
    for line in commands():
        code = run(line, folder)
        if code:
            return code
    print(f"\nEverything is in {folder}: the tables, two releases with their certificates, and suspects.csv.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
