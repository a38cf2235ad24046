"""The command. Thin: it reads options, calls the library, and prints. Nothing heavy is imported for --help.

One file per command; what several commands read is in ``options``, what they print with is in ``output``.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperGroup

from discreet.cli.boundary import bugs_named, exit_code

SUMMARIES = {
    "train": "Train a model within a budget, and release it.",
    "plan": "Show what training would ask of private data.",
    "methods": "List the methods, or the parameters of one.",
    "data": "List the datasets, or say what would be read of one.",
    "predict": "Predict the class of every node of a graph.",
    "evaluate": "Measure a release on labelled data.",
    "extend": "Pay for one more graph to predict on.",
    "verify": "Check a release: files, stages, budget, signature.",
    "doctor": "Report versions, devices, and what is missing.",
    "audit": "Try to refute a guarantee.",
    "attack": "Attack a model: links, members, attributes.",
    "bench": "Run a suite of trials and print its tables.",
    "tune": "Search a method's parameters within a budget.",
    "ledger": "Show what all releases from one graph have spent.",
    "sign": "Sign a release that verifies.",
    "report": "Write one HTML page about a release.",
    "export": "Write the public record of a release.",
}
"""The commands in the order of --help, which imports none of them: each is the function of its name in the file of its
name."""


KINDS = {str: "TEXT", Path: "PATH", int: "NUMBER", float: "NUMBER"}
"""What --help calls what an option takes, by its type; a list is of texts."""


class _Commands(MutableMapping[str, Any]):
    """Every command by its name, imported when it is asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            if name not in SUMMARIES:
                raise KeyError(name)
            self[name] = _command(name)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(SUMMARIES)

    def __len__(self) -> int:
        return len(SUMMARIES)


class _Group(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The summaries, without the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))


app = typer.Typer(
    name="discreet",
    cls=_Group,
    help="Learn on private graphs: say what is protected and how much, see the plan, train, release, verify.",
    epilog="Start with: discreet train --data csbm --level edge --epsilon 4 --out release",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"discreet {version('discreet')}")
        raise typer.Exit


@app.callback()
def _options_of_the_command_itself(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> int:
    """Run the command; ``boundary`` says what the exit codes mean."""
    with exit_code() as ending:
        code = app(args=arguments, prog_name="discreet", standalone_mode=False)
        ending.code = code if isinstance(code, int) else 0
    return ending.code


def _command(name: str) -> Any:
    """A command as typer makes it of its function."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    alone.command(name)(_flat(getattr(import_module(f"discreet.cli.{name}"), name)))
    command = typer.main.get_command(alone)
    for option in command.params:
        if option.name == "config":
            option.callback = _take_config
        if option.param_type_name == "argument":
            _show_plainly(option)
    return command


def _show_plainly(argument: Any) -> None:
    """RELEASE where one is wanted, [SUITE] where it may be left out, and no type beside it."""
    several = "..." if argument.nargs != 1 and argument.metavar is None else ""
    name = argument.metavar or argument.name.upper()
    argument.metavar = f"{name}{several}"
    usage = argument.metavar if argument.required or name.startswith("[") else f"[{argument.metavar}]"
    argument.get_usage_pieces = lambda _: [usage]
    argument.display_type_rich = lambda ctx: None


def _take_config(context: Any, _: Any, path: str | None) -> str | None:
    """What a file of options says, where one is given: the defaults of all options that are read after it."""
    if path is not None:
        from discreet.cli.config import load_config

        load_config(context, Path(path))
    return path


def _flat(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: a parameter whose type is a dataclass of options stands for its fields.

    Every command has the options of ``cli.declared.OF_ALL``.
    A field that two groups share (``seed``) is one option, and both get its value; the later group declares it.
    """
    from discreet.cli.declared import OF_ALL
    from discreet.cli.output import logging_to_stderr

    parameters = _parameters(command)
    options: dict[str, inspect.Parameter] = {}
    of_all = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, default, annotation in OF_ALL
    ]
    for parameter in of_all:
        _name_kind(parameter.annotation)
    for parameter in parameters:
        found = _parameters(parameter.annotation) if _is_group(parameter) else [parameter]
        options |= {option.name: option for option in found}

    def run(debug: bool, log_level: str, log_json: bool, **values: Any) -> None:
        with bugs_named(debug), logging_to_stderr(log_level, log_json):
            command(**{p.name: _filled(p.annotation, values) if _is_group(p) else values[p.name] for p in parameters})

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature([*options.values(), *of_all])  # type: ignore[attr-defined]
    return run


def _is_group(parameter: inspect.Parameter) -> bool:
    return dataclasses.is_dataclass(parameter.annotation)


def _filled(group: type, values: Mapping[str, Any]) -> Any:
    return group(**{field.name: values[field.name] for field in dataclasses.fields(group)})


def _parameters(callable_: Callable[..., object]) -> list[inspect.Parameter]:
    """The parameters of a command, or the fields of a dataclass; by keyword, so that any of them may be required."""
    hints = get_type_hints(callable_, include_extras=True)
    found = inspect.signature(callable_).parameters.values()
    for name in (p.name for p in found):
        _name_kind(hints[name])
    return [p.replace(kind=p.KEYWORD_ONLY, annotation=hints[p.name]) for p in found]


def _name_kind(annotation: Any) -> None:
    """Say in plain words what an option takes."""
    for declared in getattr(annotation, "__metadata__", ()):
        if isinstance(declared, typer.models.OptionInfo) and declared.metavar is None:
            taken = get_args(annotation)[0]
            kinds = [KINDS[kind] for kind in (get_args(taken) or (taken,)) if kind in KINDS]
            declared.metavar = next(iter(kinds), None if bool in (taken, *get_args(taken)) else KINDS[str])
