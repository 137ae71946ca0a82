"""The command line: one command, one exit status, and errors of one line."""

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from pathmix.cli import exits
from pathmix.cli.parser import make_parser
from pathmix.errors import PathmixError, PathmixWarning


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, and say how it ended; see `exits`."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help(sys.stderr)
        return exits.USAGE
    debug = getattr(args, "debug", False)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal may not know every letter
            getattr(stream, "reconfigure")(errors="backslashreplace")
    with warnings.catch_warnings():
        warnings.showwarning = _shown
        try:
            status = import_module(f"pathmix.cli.{args.command}").run(args)
            print(end="", flush=True)  # so that a broken pipe is noticed here
            return status
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to be flushed
            return exits.BROKEN_PIPE
        except KeyboardInterrupt as error:
            return _failed(str(error) or "Interrupted.", exits.INTERRUPTED, debug=debug)
        except PathmixError as error:
            return _failed(str(error), exits.ERROR, debug=debug)
        except Exception as error:
            return _failed(_unexpected(error), exits.ERROR, debug=debug)


def _failed(message: str, status: int, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    else:
        print(f"pathmix: {' '.join(message.split())}", file=sys.stderr)
    return status


def _unexpected(error: Exception) -> str:
    """Of the user's program, mostly: errors that it raises itself are passed on."""
    from pathmix.program.source import raised_at

    source = raised_at(error)
    where = "" if source.line == 0 else f" at {source}"
    return f"{type(error).__name__}{where}: {error} (--debug shows the traceback)"


_show = warnings.showwarning


def _shown(message: Any, category: type[Warning], filename: str, lineno: int, *rest: Any) -> None:
    if issubclass(category, PathmixWarning):
        print(f"Warning: {' '.join(str(message).split())}", file=sys.stderr)
    else:
        _show(message, category, filename, lineno, *rest)
