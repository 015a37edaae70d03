"""The command line: ``empatheia COMMAND``.

Each command lives in a file of its own, imported only when it runs: ``empatheia --help`` knows names and
one-line helps from tables that import nothing. Results go to stdout, all else to stderr. Exit
codes: 0 ok, 1 the input or a model cannot be used, 2 usage or configuration, 3 data, weights or an optional
package are missing, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from empatheia import __version__
from empatheia.cli.output import say, show
from empatheia.errors import EmpatheiaError, MissingDependencyError
from empatheia.registry import nearest

if TYPE_CHECKING:
    from typer._click.core import Command  # what typer makes of a function; its own copy of click has no public name

TABLES = ("empatheia.cli.core_commands:COMMANDS",)
"""Our own tables of commands, in the order of ``empatheia --help``; see :mod:`empatheia.cli.core_commands`."""
GROUP = "empatheia.commands"
HELP_FLAGS = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True, slots=True)
class Entry:
    """A command that is not imported yet.

    Attributes:
        place: ``module:attribute``, a function or a :class:`typer.Typer`.
        help: Its line in ``empatheia --help``; empty = not listed.
        extra: Ours that holds the packages it needs; empty = none.
        package: Of somebody else, who added it; empty = ours.
    """

    place: str
    help: str
    extra: str = ""
    package: str = ""


def own_commands() -> dict[str, Entry]:
    """The commands of this package."""
    tables = (_resolved(place) for place in TABLES)
    return {name: Entry(*entry) for table in tables for name, entry in table.items()}


def listed_commands() -> dict[str, Entry]:
    """Those of our commands that ``empatheia --help`` lists."""
    return {name: entry for name, entry in all_commands().items() if _is_listed(name, entry) and not entry.package}


def _is_listed(name: str, entry: Entry) -> bool:
    return bool(entry.help) and " " not in name


def all_commands() -> dict[str, Entry]:
    """Our own commands, and behind them those of other packages; where two have one name, the first keeps it.

    An entry point of the group :data:`GROUP` is a function under its own name, or a table like ours, which is told by
    a name in capitals: ``mine = "my_package.commands:COMMANDS"``. What cannot be read is told on stderr.
    """
    found = own_commands()
    for point in entry_points(group=GROUP):
        place, _, attribute = point.value.partition(":")
        owner = point.dist.name if point.dist else place.partition(".")[0]
        package = "" if owner == "empatheia" else owner
        if not attribute.isupper():
            found.setdefault(point.name, Entry(point.value, f"A command of {owner}.", "", package))
            continue
        try:
            table = {name: Entry(*entry, package=package) for name, entry in _resolved(point.value).items()}
        except Exception as error:
            say(f"the commands of {owner} ({place}) cannot be read: {type(error).__name__}: {error}. Update it.")
            continue
        found |= {name: entry for name, entry in table.items() if name not in found}
    return found


def _resolved(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute) if attribute else import_module(module)


class LazyGroup(TyperGroup):
    """A group whose commands are entries of a table until one of them is called."""

    def list_commands(self, ctx: typer.Context) -> list[str]:
        """Names in the order of the tables, those of other packages last."""
        return [name for name, entry in all_commands().items() if _is_listed(name, entry)]

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | None:
        """A stand-in that knows its help line; None for an unknown name."""
        if (entry := own_commands().get(cmd_name) or all_commands().get(cmd_name)) is None:
            return None
        return TyperCommand(cmd_name, short_help=entry.help, rich_markup_mode=None)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> tuple[str | None, Command, list[str]]:
        """Imports the command that is about to run."""
        name = args[0]
        own = own_commands().get(name)
        is_own = name.startswith("-") or (own is not None and _is_listed(name, own))
        if not is_own and name not in (known := self.list_commands(ctx)):
            ctx.fail(f"no such command {name!r}.{nearest(name, known)} Known: {', '.join(known)}.")
        name, _, rest = super().resolve_command(ctx, args)
        return name, load_command(str(name)), rest


def load_target(name: str) -> Any:
    """Imports what stands behind a name of the tables.

    Raises:
        MissingDependencyError: A package it needs is not installed, or another package's command is broken.
    """
    entry = own_commands().get(name) or all_commands()[name]
    try:
        return _resolved(entry.place)
    except ModuleNotFoundError as error:
        raise _missing(name, entry, error) from error
    except Exception as error:
        if not entry.package:
            raise
        raise MissingDependencyError(
            f"the command {name!r} of {entry.package} cannot be loaded: {type(error).__name__}: {error}."
            f" Update {entry.package}, or uninstall it."
        ) from error


def _missing(name: str, entry: Entry, error: ModuleNotFoundError) -> MissingDependencyError:
    """What to install, where a module is not there."""
    who = f"the command {name!r}" if entry.help else name
    what = f"{who} needs the module {error.name!r}, which is not installed."
    if entry.package:
        return MissingDependencyError(f"{what} Reinstall {entry.package}, whose command it is.")
    if entry.extra and not (error.name or "").startswith("empatheia."):
        return MissingDependencyError(f"{what} pip install 'empatheia[{entry.extra}]'")
    return MissingDependencyError(f"{what} Reinstall the package: pip install --upgrade empatheia")


def load_command(name: str) -> Command:
    """Imports the command behind a name of the tables; see :func:`load_target`."""
    target = load_target(name)
    callbacks = [entry.callback for entry in getattr(target, "registered_commands", [])] or [target]
    for callback in callbacks:  # a raw docstring spells click's do-not-rewrap mark as two characters
        if callback is not None and callback.__doc__:
            callback.__doc__ = callback.__doc__.replace("\\b\n", "\b\n")
    if isinstance(target, typer.Typer):
        found = typer.main.get_group(target)
        for joined in all_commands():
            if joined.startswith(f"{name} "):
                found.add_command(_joined(joined))
        return found
    wrapper = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=HELP_FLAGS)
    wrapper.command(name.rpartition(" ")[2], context_settings=HELP_FLAGS)(target)
    return typer.main.get_command(wrapper)


def _joined(name: str) -> Command:
    """A command that joins the group of another package; where it cannot be loaded it says so when it is called."""
    try:
        return load_command(name)
    except MissingDependencyError as error:
        problem = error

    def fail() -> None:
        raise problem

    return TyperCommand(name.rpartition(" ")[2], callback=fail, short_help=all_commands()[name].help)


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    rich_markup_mode=None,
    context_settings=HELP_FLAGS,
    no_args_is_help=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        show(f"empatheia {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Understand what a person feels and why, and answer accordingly.

    Try: empatheia demo
    """


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line and exits; an error is one line on stderr (EMPATHEIA_DEBUG=1: the traceback)."""
    args = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    with contextlib.suppress(AttributeError, ValueError):
        for stream in (sys.stdout, sys.stderr):
            cast(io.TextIOWrapper, stream).reconfigure(errors="replace")  # as both are unless someone put another there
    _log_visibly()
    try:
        code = typer.main.get_group(app).main(args, prog_name="empatheia", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _leave_pipe()
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        if os.environ.get("EMPATHEIA_DEBUG"):
            raise
        if isinstance(error, ModuleNotFoundError) and (entry := all_commands().get(args[0])) is not None:
            error = _missing(args[0], entry, error)
        code = _report(error)
    sys.exit(code if isinstance(code, int) else 0)


class _VisibleHandler(logging.Handler):
    """What the package logs may quote files: it goes to stderr without their escapes."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints one line."""
        say(" ".join(self.format(record).split()))


def _log_visibly() -> None:
    """What our package and those with commands log goes to stderr; each logs under its own name."""
    joined = (point.module.partition(".")[0] for point in entry_points(group=GROUP))
    for package in dict.fromkeys(("empatheia", *joined)):
        logger = logging.getLogger(package)
        if not logger.hasHandlers():
            logger.addHandler(_VisibleHandler())


def _leave_pipe() -> int:
    """The reader went away (``| head``): drop what is buffered, so that nothing is said at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _report(error: Exception) -> int:
    """Prints ``error: ...`` on one line and gives the exit code."""
    if isinstance(error, typer.Abort):
        return 130
    format_message: Callable[[], str] | None = getattr(error, "format_message", None)  # usage errors of typer have it
    if format_message is not None and type(error).__name__ == "NoArgsIsHelpError":
        say(format_message())
        return 2
    if format_message is not None:
        context = getattr(error, "ctx", None)
        remedy = f" Try '{context.command_path} --help'." if context is not None else ""
        message, code = format_message().rstrip(". ") + "." + remedy, 2
    elif isinstance(error, EmpatheiaError):
        message, code = str(error), error.exit_code
    elif isinstance(error, OSError):
        message, code = _os_message(error), 1
    else:
        message, code = f"unexpected {type(error).__name__}: {error} (EMPATHEIA_DEBUG=1 shows where)", 1
    say("error: " + " ".join(message.split()))
    return code


def _os_message(error: OSError) -> str:
    where = f" {error.filename}" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"no space left on the device while writing{where}. Free some space or choose another place."
    if error.errno == errno.EACCES:
        return f"no permission for{where}. Choose a place you may read or write."
    return f"{error.strerror or error}{where}."
