"""``discreet methods``: what there is to train, and the parameters of a method."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.declared import Json
from discreet.cli.output import aligned, print_json, print_rows
from discreet.files import to_json

if TYPE_CHECKING:
    from discreet.methods.base import NodeClassifier
    from discreet.methods.declaration import Declaration

COLUMNS, INDENT = 110, " " * 4  # of the text about parameters
NOT_SET_HERE = ("privacy", "compute", "random_state", "insecure_noise_seed", "preset")
"""Parameters that commands have options of their own for."""


def methods(
    name: Annotated[str | None, typer.Argument(metavar="[METHOD]", help="The parameters of this one.")] = None,
    as_json: Json = False,
) -> None:
    """List the methods, the levels that each supports, and what its guarantee covers.

    With METHOD, show its parameters: their defaults, their values in presets, and what they mean.
    """
    from discreet.methods.registry import broken_methods, find_method, list_methods

    if name is not None:
        _show(find_method(name), as_json)
        return
    rows, broken = [_row(declared, as_json) for declared in list_methods().values()], broken_methods()
    if as_json:
        print_json({"rows": rows, "broken": broken})
        return
    print_rows(rows, as_json)
    for name, reason in broken.items():
        print(f"broken: {name}: {reason}")


def _row(declared: Declaration, as_json: bool) -> dict[str, Any]:
    """A method as a person reads it, or as JSON with the coverage of each level and the paper that it is from."""
    row: dict[str, Any] = {
        "method": declared.name,
        "levels": list(declared.levels),
        "covers": dict(declared.covers) if as_json else _grouped(declared.covers),
        "summary": declared.summary,
    }
    if not as_json:
        return row
    if declared.presets:
        row["presets"] = {name: preset.to_json() for name, preset in declared.presets.items()}
    return {**row, "paper": declared.paper} if declared.paper else row


def _grouped(covers: Mapping[str, str]) -> str:
    """``none, edge: weights+predictions; node: weights``; the coverage alone where all levels have the same."""
    by_coverage: dict[str, list[str]] = {}
    for level, coverage in covers.items():
        by_coverage.setdefault(coverage, []).append(level)
    if len(by_coverage) == 1:
        return next(iter(by_coverage))
    return "; ".join(f"{', '.join(levels)}: {coverage}" for coverage, levels in by_coverage.items())


# -------------------------------------------------------------------- one method


def _show(declared: Declaration, as_json: bool) -> None:
    from discreet.methods.registry import load_method

    kind = load_method(declared)
    values = {name: _values(kind, name) for name in ("discreet", *declared.presets)}
    about = _documented(kind)
    if as_json:
        parameters = {
            name: {"default": default, **{preset: values[preset][name] for preset in declared.presets}}
            for name, default in values["discreet"].items()
        }
        texts = {name: text for names, text in about for name in names if name in parameters}
        print_json({**_row(declared, as_json), "parameters": parameters, "about": texts})
        return
    print(f"{declared.name}: {declared.summary}\ncovers: {_grouped(declared.covers)}")
    if declared.paper:
        print(f"paper: {declared.paper}")
    print("\nTo set one: --set NAME=VALUE, or the keyword argument NAME in Python, where null is None.\n")
    heads = ["parameter", "default", *(f"--preset {preset}" for preset in declared.presets)]
    print(aligned([heads, *([name, *(_cell(values[of][name]) for of in values)] for name in values["discreet"])]))
    for names, text in about:
        if own := [name for name in names if name in values["discreet"]]:
            print(
                f"\n{', '.join(own)}\n{textwrap.fill(text, COLUMNS, initial_indent='    ', subsequent_indent='    ')}"
            )


def _values(kind: Callable[..., NodeClassifier], preset: str) -> dict[str, Any]:
    """What a preset gives every parameter, in the order in which they are declared."""
    found = kind(preset=preset).get_params()
    return {name: found[name] for name in inspect.signature(kind).parameters if name not in NOT_SET_HERE}


def _cell(value: Any) -> str:
    """As ``--set`` takes it: a word, or JSON."""
    return value if isinstance(value, str) else json.dumps(to_json(value), ensure_ascii=False)


def _documented(kind: type) -> list[tuple[list[str], str]]:
    """Names and what is said of them, by a class and those that it builds on; what comes first counts."""
    found: list[tuple[list[str], str]] = []
    said: set[str] = set()
    for owner in kind.__mro__:
        for listed, text in _entries(inspect.cleandoc(vars(owner).get("__doc__") or "")):
            if names := [name for name in listed if name not in said]:
                found.append((names, text))
                said |= set(names)
    return found


def _entries(docstring: str) -> list[tuple[list[str], str]]:
    """The entries below ``Parameters``: a line of names, and indented lines about them."""
    _, heading, below = docstring.partition("Parameters\n----------\n")
    entry = re.compile(r"^([a-z_]+(?:, [a-z_]+)*)\n((?:(?: {4}.*)?\n)+)", re.M)
    plain = [(names.split(", "), " ".join(text.split())) for names, text in entry.findall(below + "\n")]
    return [(names, text.replace("``", "")) for names, text in plain] if heading else []
