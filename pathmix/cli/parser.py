"""The commands and what they take. Nothing here loads JAX: help and wrong arguments are told at once."""

import argparse
import ast
import json
from typing import Any, NoReturn

from pathmix.cli import exits
from pathmix.version import __version__

_MODEL = "the model: a Python file and the name of a function in it, model.py:model"
_STATUS = (
    "exit status: 0 fitted, and the verdict is ok; 1 an error; 2 wrong usage; "
    "3 fitted, but the verdict is not ok; 130 interrupted"
)


class _Parser(argparse.ArgumentParser):
    """Errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(exits.USAGE, f"{self.prog}: {message}. See {self.prog} --help.\n")


def make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "pathmix",
        description="Bayesian inference on programs whose structure is random.",
        epilog=_STATUS,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pathmix {__version__}")
    _add_debug(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def command(name: str, help: str) -> argparse.ArgumentParser:
        found = commands.add_parser(name, help=help, description=f"{help}.", allow_abbrev=False)
        _add_debug(found)
        return found

    _fit(command("fit", "Fit a model to data and keep the result in a folder"))
    _resume(command("resume", "Go on with a run that was ended, or train a finished one further"))
    _report(command("report", "Write a page about a run, for a browser"))
    _paths(command("paths", "List the paths of a model, their prior mass, and the lines that decide them"))
    _demo(command("demo", "Fit a polynomial of unknown degree"))
    return parser


def _fit(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _STATUS
    _add_model(parser)
    parser.add_argument("--out", metavar="FOLDER", required=True, help="a folder for the run")
    parser.add_argument("--budget", type=_count, metavar="N", help="iterations for all paths (100000)")
    parser.add_argument(
        "--seconds", type=_positive, metavar="S", help="train in rounds, for about so long, instead of once"
    )
    parser.add_argument("--guide", metavar="NAME", help="auto, fullrank, meanfield, lowrank or flow")
    parser.add_argument("--weights", metavar="NAME", help="evidence, elbo or stacking")
    parser.add_argument(
        "--option",
        type=_assignment,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another option of pathmix.SDVI, such as starts=12 or smc_evaluations=10_000_000",
    )
    _add_label(parser)
    parser.add_argument(
        "--restart", action="store_true", help="start over, if the folder has a run: what is there is lost"
    )
    _add_quiet(parser)


def _resume(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _STATUS
    parser.add_argument("run", metavar="FOLDER", help="the --out of a fit")
    parser.add_argument(
        "--budget", type=_count, metavar="N", help="further iterations, for a run that has come to its end"
    )
    _add_quiet(parser)


def _report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="FOLDER", help="the --out of a fit, or a file of posterior.save")
    parser.add_argument("--out", metavar="FILE", help="the page (FOLDER/report.html)")


def _paths(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    _add_label(parser)
    parser.add_argument("--rows", type=_count, default=20, metavar="N", help="paths to show at most (20)")
    _add_quiet(parser)


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="FOLDER", help="leave model.py, data.csv and the run here, to go on from"
    )
    _add_quiet(parser)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=_MODEL)
    parser.add_argument(
        "--data",
        metavar="FILE",
        help="what fills the model's parameters, by name: the columns of a .csv, the arrays of a .npz, the "
        "keys of a .json object",
    )
    parser.add_argument(
        "--column",
        type=_column,
        action="append",
        default=[],
        metavar="NAME[=COLUMN]",
        help="take only these columns (arrays, keys) from the data, for the parameters of these names",
    )
    parser.add_argument(
        "--set",
        type=_assignment,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a single parameter of the model: a number, anything else in JSON or Python, or a text",
    )
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help="of all random numbers (0)")
    discovery = parser.add_mutually_exclusive_group()
    discovery.add_argument(
        "--cover",
        type=_positive,
        metavar="SHARE",
        help="enumerate paths, most probable first, to this share of the prior mass (Enumeration)",
    )
    discovery.add_argument(
        "--prior-runs",
        type=_count,
        metavar="N",
        help="find paths by so many prior runs (PriorDiscovery)",
    )


def _add_label(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--label", metavar="NAME", help="a function in the model's file that names paths")


def _add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="no progress, only results")


def _add_debug(parser: argparse.ArgumentParser) -> None:
    # A default of the command would hide what stands before it.
    parser.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )


def _count(text: str) -> int:
    number = int(text.replace("_", "").replace(",", ""))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def _seed(text: str) -> int:
    number = int(text)
    if not 0 <= number < 2**32:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 2**32")
    return number


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, _value(value)


def _value(text: str) -> Any:
    """JSON, or as Python writes it (10_000, True), or a text."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text


def _column(text: str) -> tuple[str, str]:
    name, equals, column = text.partition("=")
    if not name.isidentifier() or (equals and not column):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME or NAME=COLUMN")
    return name, column or name


_count.__name__, _seed.__name__, _positive.__name__ = "whole number", "whole number", "number"  # for messages
