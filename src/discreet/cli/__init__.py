"""The command. Thin: it reads options, calls the library, and prints. Nothing heavy is imported for --help.

One file per command; what several commands read is in ``options``, what they print with is in ``output``.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_type_hints

import typer

from discreet.cli import (
    attack,
    audit,
    bench,
    data,
    doctor,
    evaluate,
    export,
    extend,
    ledger,
    methods,
    plan,
    predict,
    report,
    sign,
    train,
    tune,
    verify,
)
from discreet.cli.boundary import bugs_named, exit_code
from discreet.cli.logs import logging_to_stderr
from discreet.cli.options import Debug, LogJson, LogLevel

app = typer.Typer(
    name="discreet",
    help="Learn on private graphs: say what is protected and how much, see the plan, train, release, verify.",
    epilog="Start with: discreet train --data csbm --level edge --epsilon 4 --out release",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
OF_ALL = (("debug", False, Debug), ("log_level", "info", LogLevel), ("log_json", False, LogJson))
_COMMANDS = (
    train.train,
    plan.plan,
    methods.methods,
    data.data,
    predict.predict,
    evaluate.evaluate,
    extend.extend,
    verify.verify,
    doctor.doctor,
    audit.audit,
    attack.attack,
    bench.bench,
    tune.tune,
    ledger.ledger,
    sign.sign,
    report.report,
    export.export,
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


def _flat(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: a parameter whose type is a dataclass of options stands for its fields.

    Every command has the options of ``OF_ALL``.
    A field that two groups share (``seed``) is one option, and both get its value; the later group declares it.
    """
    parameters = _parameters(command)
    options: dict[str, inspect.Parameter] = {}
    of_all = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, default, annotation in OF_ALL
    ]
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
    return [p.replace(kind=p.KEYWORD_ONLY, annotation=hints[p.name]) for p in found]


for _command in _COMMANDS:
    app.command()(_flat(_command))
