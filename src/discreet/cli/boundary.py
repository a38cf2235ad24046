"""The boundary of the command: whatever happens inside, one sentence and an exit code come out.

0 done · 1 a check failed, or a trial · 2 something that the caller can mend: input, place, memory · 70 a bug of ours ·
129 the terminal was closed · 130 Ctrl-C · 141 nobody reads the output any more · 143 SIGTERM. A traceback appears with
``--debug`` alone: it may hold private values, which is also why a bug is reported by its kind and its place, not by its
message.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import typer

from discreet.cli.output import printable
from discreet.errors import (
    DiscreetError,
    InterruptedRunError,
    InvalidInputError,
    NotFittedError,
    PlanViolationError,
    UncoveredReleaseError,
)
from discreet.files import remove_unfinished

# Exit codes: a check that failed, what a user can mend, and EX_SOFTWARE of sysexits.h, which is ours to mend.
FAILED, MENDABLE, BUG = 1, 2, 70
# As shells count: 128 and the signal. 13 is SIGPIPE, which not every system names.
INTERRUPTED, UNREAD, TERMINATED = 128 + signal.SIGINT, 128 + 13, 128 + signal.SIGTERM
LONGEST = 600
"""Characters of a sentence on standard error: a file name or a value in it may be of any length."""
REPORT = "please report it as SECURITY.md says, with the output of `discreet doctor`; --debug shows the traceback"
_PACKAGE = Path(__file__).parents[1]
LONGEST_WAIT = 10.0
"""Seconds that an interrupt waits for the end of an import or of a compilation; importing torch takes three."""
_ENDING_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""A request to end, and a terminal that was closed; Ctrl-C is Python's own."""
# Promises of our own code that our own code broke.
_OURS = (PlanViolationError, NotFittedError)


# How refusals of the library name what to do, and how the command does.
_OPTIONS = {
    "uncovered=True predicts": "--uncovered predicts",
    "public=True": "--public-graph",
    "audience='owner'": "--audience owner",
    "again=True": "--again",
    **{f"decide_by {does}": f"--threshold {does}" for does in ("reads", "would choose", "chooses")},
    "pass it to fit as one of extra_graphs": "give it to train with --also",
    "or extend the release": "or use discreet extend",
}


def _as_options(sentence: str) -> str:
    for python, option in _OPTIONS.items():
        sentence = sentence.replace(python, option)
    return sentence


class InternalError(DiscreetError):
    """A bug of ours, or of a package that we use."""


@contextmanager
def bugs_named(debug: bool) -> Iterator[None]:
    """Around a command: what nobody foresaw becomes an :class:`InternalError` with its place.

    It has to be here, inside typer, which would take an ``EOFError`` for a person who pressed Ctrl-D.
    """
    try:
        yield
    except (typer.TyperException, typer.Abort, typer.Exit, OSError):
        raise
    except Exception as error:
        if debug and not isinstance(error, InvalidInputError):
            traceback.print_exc()
        if isinstance(error, MemoryError) or _is_out_of_memory(error):
            raise InvalidInputError("this needs more memory than there is: use a smaller graph or network") from None
        if isinstance(error, DiscreetError) and not isinstance(error, _OURS):
            raise
        raise _bug(error) from None


def _bug(error: Exception) -> InternalError:
    return InternalError(f"this is a bug in Discreet ({type(error).__name__} {_place(error)}): {REPORT}")


@dataclass
class Ending:
    """How the command line ended; what runs inside :func:`exit_code` may set its own code."""

    code: int = 0


@contextmanager
def exit_code() -> Iterator[Ending]:
    """Around the command line: how it ended, with one sentence on standard error where it was not well."""
    _open_standard_streams()
    _never_fail_to_print()
    ending = Ending()
    with _signals_raise() as received:
        try:
            yield ending
        except (KeyboardInterrupt, typer.Abort, InterruptedRunError) as error:
            ending.code = _interrupted(received, str(error) if isinstance(error, DiscreetError) else "")
        except (DiscreetError, typer.TyperException, OSError) as error:
            ending.code = _interrupted(received, "") if received else _failed(error)
        except Exception as error:  # outside the command: while its options were read
            ending.code = _interrupted(received, "") if received else _failed(_bug(error))
        else:
            if ending.code == INTERRUPTED:  # what typer makes of Ctrl-C
                ending.code = _interrupted(received, "")
    remove_unfinished()
    ending.code = _after_the_last_words(ending.code)


def _failed(error: Exception) -> int:
    if isinstance(error, InternalError):
        return _fail(str(error), BUG)
    if isinstance(error, UncoveredReleaseError | InvalidInputError):
        return _fail(_as_options(str(error)), MENDABLE)
    if isinstance(error, DiscreetError):
        return _fail(str(error), FAILED)
    if type(error).__name__ == "NoArgsIsHelpError":  # `discreet` alone: its message is the help
        print(str(error), file=sys.stderr)
        return MENDABLE
    if isinstance(error, typer.TyperException):
        return _fail(_in_plain_words(error.format_message()), MENDABLE)
    if isinstance(error, BrokenPipeError):
        return _unread()
    assert isinstance(error, OSError)
    return _fail(_os_sentence(error), MENDABLE)


def _in_plain_words(sentence: str) -> str:
    """What the parser of options says of a value, without the words of its library."""
    sentence = re.sub(r", unable to parse string as an? \w+", "", sentence)
    sentence = sentence.replace("Value must be an iterable.", "it must be a list, in brackets.")
    sentence = sentence.replace("Input should be a valid integer", "it must be a whole number")
    return sentence.replace("Input should be a valid number", "it must be a number").replace("Input should", "it must")


def one_line(text: str) -> str:
    """A text that cannot break out of its line, move the cursor, or fill the screen."""
    plain = printable(" ".join(text.split()))
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}…"


def _fail(sentence: str, code: int) -> int:
    with suppress(OSError):
        print(f"discreet: {one_line(sentence)}", file=sys.stderr)
    return code


def _interrupted(received: list[int], sentence: str) -> int:
    code = 128 + received[-1] if received else INTERRUPTED
    return _fail(sentence or "interrupted; what was not finished was not written", code)


def _unread() -> int:
    """Nobody reads on (``discreet methods | head``): end in silence."""
    _drop_output()
    return UNREAD


def _drop_output() -> None:
    """What is still to be written goes nowhere, so that the interpreter's last flush says nothing."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _after_the_last_words(code: int) -> int:
    """The code, once all output is written; where that fails, it is not done."""
    try:
        if not sys.stdout.closed:
            sys.stdout.flush()
    except BrokenPipeError:
        return _unread() if code == 0 else code
    except OSError as error:
        _drop_output()
        return _fail(f"the output cannot be written: {_os_sentence(error)}", MENDABLE) if code == 0 else code
    return code


def _os_sentence(error: OSError) -> str:
    where = error.filename if isinstance(error.filename, str | bytes | Path) else None
    return f"{error.strerror or error}: {os.fsdecode(where)}" if where else f"{error.strerror or error}"


def _is_out_of_memory(error: Exception) -> bool:
    """Torch says it in words: a ``RuntimeError`` of its allocator."""
    return isinstance(error, RuntimeError) and ("can't allocate memory" in str(error) or "out of memory" in str(error))


def _place(error: Exception) -> str:
    """The innermost line of ours: ``at graph/io.py:12``."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(_PACKAGE)]
    inner = [f for f in frames if Path(f.filename) not in (Path(__file__), _PACKAGE / "cli" / "__init__.py")]
    if not inner:
        return "at a place outside the package"
    return f"at {Path(inner[-1].filename).relative_to(_PACKAGE)}:{inner[-1].lineno}"


def _open_standard_streams() -> None:
    """Streams that the caller has closed lead nowhere; else a file of ours would get their number, and words of others.

    The lowest free number is the one that is given out next.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the life of the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _never_fail_to_print() -> None:
    """A terminal that cannot show ε, or a file name that is no text, is shown an escape instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextmanager
def _signals_raise() -> Iterator[list[int]]:
    """SIGTERM and SIGHUP unwind the stack as Ctrl-C does: temporary files and workers go. Gives what was received.

    A signal that meets an import or a compilation comes again after it: extensions in C make another error of an
    interrupt, and a compiler whose objects are half made ends in a fault.
    """
    received: list[int] = []
    depth, deadline = _fragile_depth(sys._getframe()), float("inf")
    again: list[threading.Timer] = []

    def raise_(number: int, frame: FrameType | None) -> None:
        nonlocal deadline
        deadline = min(deadline, time.monotonic() + LONGEST_WAIT)
        if _fragile_depth(frame) > depth and time.monotonic() < deadline:
            _send_again(number, again)
            return
        received.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    # `nohup` has SIGHUP ignored, which stays so.
    numbers = [number for number in _ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, raise_) for number in numbers}
    try:
        with _interrupts_not_lost(received, again):
            yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _interrupts_not_lost(received: list[int], again: list[threading.Timer]) -> Iterator[None]:
    """An interrupt that meets a callback of a compiler, out of which nothing can be raised, comes again soon.

    ``again`` are the signals that are still to come, which nobody needs at the end.
    """
    before = sys.unraisablehook

    def notice(lost: sys.UnraisableHookArgs) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)
            return
        _send_again(received[-1] if received else signal.SIGINT, again)

    sys.unraisablehook = notice
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in again:
            timer.cancel()


def _send_again(number: int, again: list[threading.Timer]) -> None:
    """The same signal to this process, soon."""
    again.append(threading.Timer(0.05, os.kill, (os.getpid(), number)))
    again[-1].daemon = True
    again[-1].start()


def _fragile_depth(frame: FrameType | None) -> int:
    """How many calls are under way, one inside the other, that an interrupt would break: imports, the compiler's."""
    found = 0
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        found += frame.f_code.co_name == "_find_and_load" or module.startswith(("numba.", "llvmlite."))
        frame = frame.f_back
    return found
