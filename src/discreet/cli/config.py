"""One configuration file: every option of a command as a line of TOML. What the command line says wins.

data = "mygraph"
undirected = true
level = "edge"
epsilon = 1.0

[set]
hops = 2
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.errors import ParameterError

LEFT_OUT = ("config", "save_config", "out", "as_json", "debug", "log_level", "log_json", "help")
"""What a file of options does not hold: where it lies itself, where a run writes, and how it speaks."""

OF_A_RELEASE = (
    *("engine", "scheduler", "workers", "beside-mlp", "private-figures"),
    *("data-name", "purpose", "issuer", "ledger", "dataset", "population", "limit"),
)
"""Options of ``train`` on which no plan and no search depends: ``plan`` and ``tune`` pass over those that they lack, so
that one file serves all three."""


def load_config(context: typer.Context, path: Path) -> None:
    """Make the options of a file the defaults of this command."""
    from discreet.files import parse_toml, read_text

    context.default_map = {
        **(context.default_map or {}),
        **_defaults(context, parse_toml(read_text(path, "configuration"), str(path)), path),
    }


Config = Annotated[
    Path | None,
    typer.Option(help="A TOML file with options of this command; the command line wins.", is_eager=True),
]
"""It is read before any other option: see ``cli.__init__``."""
SaveConfig = Annotated[Path | None, typer.Option(help="Write the options of this run to this new TOML file.")]


def config_text(context: typer.Context, **settled: Any) -> str:
    """Every option of this run that has a value, given or ``settled`` since, so that ``--config`` repeats it."""
    lines, values = [], {**context.params, **settled}
    for flag, (name, stands_for) in _flags(context).items():
        value = values.get(name)
        if stands_for is not None and value is stands_for:
            lines.append(f"{flag} = true")
        elif stands_for is None and value is not None and value not in ([], ()):
            lines.append(f"{flag} = {_toml(value)}")
    text = "\n".join(lines) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ParameterError("--save-config cannot hold a name that is not text in UTF-8") from None
    return text


def _flags(context: typer.Context) -> dict[str, tuple[str, bool | None]]:
    """The parameter behind each option as it is written (without dashes), and the value that a switch stands for."""
    found: dict[str, tuple[str, bool | None]] = {}
    for parameter in context.command.params:
        if parameter.name is None or parameter.param_type_name != "option" or parameter.name in LEFT_OUT:
            continue
        switch = bool(getattr(parameter, "is_flag", False))
        for value, options in ((True, parameter.opts), (False, parameter.secondary_opts)):
            found |= {option.lstrip("-"): (parameter.name, value if switch else None) for option in options}
    return found


def _defaults(context: typer.Context, content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    flags = _flags(context)
    defaults = {}
    for key, value in content.items():
        flag = key.replace("_", "-")
        if flag not in flags and flag in OF_A_RELEASE:
            continue
        if flag not in flags:
            near = difflib.get_close_matches(flag, flags, n=1)
            hint = f"did you mean {near[0]}?" if near else f"`discreet {context.info_name} --help` lists them"
            raise ParameterError(f"{path}: {context.info_name} has no option {key!r}: {hint}")
        name, stands_for = flags[flag]
        defaults[name] = _value(path, key, value, stands_for)
    return defaults


def _value(path: Path, key: str, value: Any, stands_for: bool | None) -> Any:
    """A switch set to false is its opposite; a table is KEY=VALUE texts."""
    if stands_for is not None:
        if not isinstance(value, bool):
            raise ParameterError(f"{path}: {key} is a switch, true or false, not {value!r}")
        return value is stands_for
    if isinstance(value, dict):
        return [f"{name}={item if isinstance(item, str) else _json(path, key, item)}" for name, item in value.items()]
    if isinstance(value, list):
        return [str(item) for item in value]
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        return value
    raise ParameterError(f"{path}: {key} cannot be {value!r}")


def _json(path: Path, key: str, value: Any) -> str:
    try:
        return json.dumps(value)
    except TypeError:  # a date or a time
        raise ParameterError(f"{path}: {key} cannot hold {value!r}") from None


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    written = json.dumps(value if isinstance(value, int | float) else str(value), ensure_ascii=False)
    return written.replace("\x7f", "\\u007f")  # which JSON may hold as it is, and TOML may not
