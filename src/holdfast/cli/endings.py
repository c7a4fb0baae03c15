"""How a command ends: one message and a documented exit code, whatever happened.

Our own errors are printed as they are. After Ctrl-C or SIGTERM every cleanup runs; then the message says what the ledger itself has
recorded. An exception that nobody foresaw becomes one sentence without its text, which may quote the data; `--debug` shows the
traceback. Under `--json` each of these is one JSON object on standard output instead.

Once a release is published, nothing makes the command look like a failed one: a message that cannot be written, or a fault after that, ends
with a code of its own.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import typer

from holdfast.cli.parts import showing_steps
from holdfast.cli.streams import StandardStream, open_missing
from holdfast.errors import (
    AfterPublication,
    HoldfastError,
    HoldfastWarning,
    InternalError,
    MessageNotWritten,
    OutOfMemory,
    Stopped,
    Terminated,
    WrongUse,
)
from holdfast.wording.endings import (
    LAST_LINE,
    LAST_LINE_PUBLISHED,
    MEMORY,
    NOTHING_BEGUN,
    PUBLISHED,
    STOPPED_AFTER,
    UNKNOWN,
    UNTOLD,
    WHAT_TO_DO,
    Stands,
    after_sentences,
    fault_sentence,
)

PATIENCE = 1.0
"""Seconds after a signal in which another one is not raised again, so that cleanups finish."""

AGAIN = 0.02
"""Seconds after which a signal is raised that came while a module was loaded."""

UNREAD = 128 + signal.SIGPIPE
"""The exit code where the reader of a pipe closed it, as other commands have it."""

_SETTINGS = ("--verbose", "--debug")

Standing = Callable[[], Stands]


class _Ending:
    """What is known about the running command when it ends."""

    def __init__(self, arguments: list[str]) -> None:
        self.arguments = arguments
        self.standing: Standing | None = None
        self.is_published = False
        self.signals: list[int] = []
        self._last = -PATIENCE
        self._told_before = sys.unraisablehook

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Note the signal and raise it. It is noted because libraries may turn what is raised here into errors of their own.

        While a module is loaded nothing is raised: compiled packages crash then. A clock asks again until it is loaded.
        """
        if number != signal.SIGALRM:
            self.signals.append(number)
        if _is_importing(frame):
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
        elif time.monotonic() - self._last >= PATIENCE:
            self._last = time.monotonic()
            raise KeyboardInterrupt if self.signals[-1] == signal.SIGINT else SystemExit(Terminated.exit_code)

    def on_ignored(self, ignored: sys.UnraisableHookArgs) -> None:
        """A signal that was raised where Python cannot pass exceptions on, such as in a callback, is raised again soon after."""
        if self.signals and issubclass(ignored.exc_type, KeyboardInterrupt | SystemExit):
            self._last = -PATIENCE
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
        else:
            self._told_before(ignored)

    def stands(self) -> Stands:
        """What is true of ledger and disk now."""
        try:
            return Stands(NOTHING_BEGUN) if self.standing is None else self.standing()
        except Exception:
            return Stands(f"{PUBLISHED} {UNKNOWN}", True) if self.is_published else Stands(UNKNOWN)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


_current = _Ending([])


def stands(standing: Standing) -> None:
    """From here on, `standing` says what the ledger has recorded if the command is stopped."""
    _current.standing = standing


def mark_published() -> None:
    """The release of this command is published and its entry closed: from here on nothing makes it look like a failed one."""
    _current.is_published = True


def show_log(verbose: bool) -> None:
    """What takes a while is announced on standard error; with `verbose` every step is. No message holds anything confidential.

    What other packages log could: it is not shown. (Python shows their warnings where no handler is set.)
    """
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.NullHandler())
    logger = logging.getLogger("holdfast")
    for handler in [handler for handler in logger.handlers if isinstance(handler, _ToTerminal)]:
        logger.removeHandler(handler)
    logger.addHandler(_ToTerminal())
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)


class _ToTerminal(logging.StreamHandler[Any]):
    """Our own handler, told apart from one that a user of the library has added. It prints no times: a draw's are confidential."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("holdfast: %(message)s"))


def run_command(app: typer.Typer) -> NoReturn:
    """Run the command that sys.argv asks for, and end."""
    global _current
    open_missing()
    _current = ending = _Ending(sys.argv[1:])
    before = sys.stdout, sys.stderr, sys.unraisablehook
    shown = warnings.showwarning
    warnings.showwarning = partial(_show_warning, shown)
    sys.stdout = out = StandardStream(sys.stdout)
    sys.stderr = StandardStream(sys.stderr)
    sys.unraisablehook = ending.on_ignored
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, ending.on_signal)
        error = _outcome(app, ending)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):  # what is to be told is known, and is told whole
            signal.signal(number, signal.SIG_IGN)
        sys.unraisablehook = before[2]
        raise SystemExit(_end(error, ending, out)) from None
    finally:
        sys.stdout, sys.stderr, sys.unraisablehook = before
        warnings.showwarning = shown


def _show_warning(others: Callable[..., None], message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Ours without a line of code, which is no use to whoever typed a command."""
    if issubclass(category, HoldfastWarning):
        print(f"holdfast: Warning: {message}", file=sys.stderr)
    else:
        others(message, category, *place, **more)


@cache
def _command(app: typer.Typer) -> Any:
    """The commands of an app. A program that runs many, as tests do, makes them once."""
    made = typer.main.get_command(app)
    _hide_types_of_flags(made)
    return made


def _hide_types_of_flags(command: Any) -> None:
    """Help shows `--json` and not `--json <bool>`: it takes no value."""
    for option in command.get_params(typer.Context(command)):
        if getattr(option, "is_bool_flag", False):
            option.metavar = ""
    for part in getattr(command, "commands", {}).values():
        _hide_types_of_flags(part)


def _outcome(app: typer.Typer, ending: _Ending) -> BaseException | None:
    """Run the command; what it raised, which is SystemExit where all went well, or None where Typer met Ctrl-C itself."""
    arguments = ending.arguments
    try:
        show_log("--verbose" in arguments)
        settings = [part for part in _SETTINGS if part in arguments]  # they may stand anywhere; Typer wants them first
        rest = [part for part in arguments if part not in _SETTINGS]
        with showing_steps():
            code = _command(app)(args=[*settings, *rest], prog_name="holdfast", standalone_mode=False)
        if not (ending.signals and code):  # Typer returns 130 where it met Ctrl-C itself
            return SystemExit(code if isinstance(code, int) else 0)
        return None
    except BaseException as raised:
        return raised


def _end(error: BaseException | None, ending: _Ending, out: StandardStream) -> int:
    """Say how the command ended; its exit code. Where even that fails, a sentence that was ready is said."""
    arguments = ending.arguments
    try:
        told = _ending_error(error, ending, out)
        if isinstance(told, SystemExit):
            return told.code if isinstance(told.code, int) else 0
        as_json = "--json" in arguments
        _print(told, as_json and not out.lost)
        if not out.finish() and as_json:
            _print(told, False)
        if isinstance(told, InternalError | AfterPublication) and "--debug" in arguments and error is not None:
            print("The traceback may quote confidential values: read it before you send it.", file=sys.stderr)
            traceback.print_exception(error)  # it shows no variables
        return told.exit_code
    except Exception:
        os.write(2, LAST_LINE_PUBLISHED if ending.is_published else LAST_LINE)
        return AfterPublication.exit_code if ending.is_published else InternalError.exit_code


_JARGON = {
    "Input should be a valid integer, unable to parse string as an integer": "write a whole number in digits, such as 1000",
    "Input should be a valid number, unable to parse string as a number": "write a number, such as 0.95",
    "Value error, ": "",
}
"""What libraries say of a wrong option, and what is said instead."""


def _plain(text: str) -> str:
    for jargon, plain in _JARGON.items():
        text = text.replace(jargon, plain)
    return text


def _ending_error(error: BaseException | None, ending: _Ending, out: StandardStream) -> HoldfastError | SystemExit:
    """What to tell about the end."""
    if isinstance(error, SystemExit) and not error.code:  # it was done before a signal could stop it
        if not out.finish() and out.unread and ending.standing is None:  # a reader that has enough is no failure
            return SystemExit(UNREAD)
        return _untold(ending) if out.lost else error
    is_stop = bool(ending.signals) or isinstance(error, KeyboardInterrupt)
    if ending.is_published:
        failed = STOPPED_AFTER if is_stop else _fault(error, published=True)
        return AfterPublication(after_sentences(failed, ending.stands().sentence))
    if is_stop:
        kind = Terminated if signal.SIGTERM in ending.signals else Stopped
        return kind(f"stopped. {ending.stands().sentence}")
    if isinstance(error, HoldfastError | SystemExit):
        return error
    message = getattr(error, "format_message", None)
    if message is not None:  # Typer's errors of use come from Click, which it brings along or not
        context = getattr(error, "ctx", None)
        path = "holdfast" if context is None else context.command_path
        text = message().rstrip(".")
        if not text or "Usage:" in text:  # a command without arguments: its help was shown
            return SystemExit(WrongUse.exit_code)
        field = getattr(error, "option_name", None) or getattr(getattr(error, "param", None), "name", None)
        text = _plain(" ".join(text.split()))
        arguments = [one.name for one in getattr(getattr(context, "command", None), "params", ()) if one.param_type_name == "argument"]
        if text.startswith("Missing argument") and len(arguments) > 1:
            text += f". It takes {', then '.join(arguments)}"
        stop = "" if text.endswith("?") else "."
        return WrongUse(f"{text}{stop} See: {path} --help", field=field)
    failed, stands = _fault(error), ending.stands()
    if stands.published:
        return AfterPublication(after_sentences(_fault(error, published=True), stands.sentence))
    return (OutOfMemory if _is_memory(error) else InternalError)(f"{failed} {stands.sentence}")


def _untold(ending: _Ending) -> HoldfastError:
    """All was done, and standard output could not be written."""
    if ending.is_published:
        return AfterPublication(after_sentences(UNTOLD, ending.stands().sentence))
    return MessageNotWritten(UNTOLD if ending.standing is None else f"{UNTOLD} {ending.stands().sentence}")


def _fault(error: BaseException | None, published: bool = False) -> str:
    """What is said of an error that nobody foresaw, or that came too late. What its frames hold is given back: memory may be short."""
    if error is None or isinstance(error, HoldfastError):
        return str(error)
    place = _place(error)
    traceback.clear_frames(error.__traceback__)
    return MEMORY if _is_memory(error) else fault_sentence(type(error).__name__, place, published)


def _is_memory(error: BaseException | None) -> bool:
    """Whether memory ran out. Libraries have errors of their own for it; a library that cannot be loaded for it says so in its text."""
    if isinstance(error, ImportError) and ("failed to map" in str(error) or "allocate memory" in str(error)):
        return True
    return isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__ or getattr(error, "errno", None) == errno.ENOMEM


def _place(error: BaseException) -> str | None:
    """The innermost line of ours."""
    package = Path(__file__).parent
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(package)]
    return f"{Path(ours[-1].filename).relative_to(package).as_posix()}, line {ours[-1].lineno}" if ours else None


def _print(error: HoldfastError, as_json: bool) -> None:
    if not as_json:
        print(f"holdfast: {error}", file=sys.stderr)
        return
    fields: dict[str, object] = {"code": error.code, "exit_code": error.exit_code, "message": str(error), "field": error.field}
    known = (kind.code for kind in type(error).__mro__ if issubclass(kind, HoldfastError) and kind.code in WHAT_TO_DO)
    fields["what_to_do"] = WHAT_TO_DO[next(known)]  # an error of another package shares the advice of its base
    if error.details is not None:
        fields["details"] = dict(error.details)
    print(json.dumps(fields, indent=2))
