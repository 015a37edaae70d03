"""The command line: ``empatheia COMMAND``.

Each command lives in a file of its own, imported only when it runs: ``empatheia --help`` knows names and
one-line helps from the table below and imports nothing heavy. Results go to stdout, all else to stderr. Exit
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
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, cast

import typer
from typer.core import TyperCommand, TyperGroup

from empatheia.errors import EmpatheiaError
from empatheia.registry import nearest

if TYPE_CHECKING:
    from typer._click.core import Command  # what typer makes of a function; its own copy of click has no public name

COMMANDS: dict[str, tuple[str, str]] = {
    # name: (where its function or sub-application is, one line of help)
    "analyze": (
        "empatheia.cli.analyze:analyze",
        "Find emotions and the words that caused them: text, stdin or file.",
    ),
    "respond": ("empatheia.cli.respond:respond", "Answer a conversation with one empathetic reply."),
    "chat": ("empatheia.cli.chat:chat", "Talk with a model, turn by turn."),
    "serve": ("empatheia.cli.serve:serve", "Answer over HTTP: OpenAI's protocol, analysis, chat page."),
    "mcp": ("empatheia.cli.mcp:mcp", "Offer analysis and replies as tools for assistants (MCP)."),
    "care": ("empatheia.cli.care:app", "Check texts for danger, measure the check, show help lines."),
    "demo": ("empatheia.cli.demo:demo", "Show analysis and replies on short conversations, with the bundled model."),
    "models": ("empatheia.cli.models:app", "List models, show their cards, train or fetch more."),
    "data": ("empatheia.cli.data:app", "Get, show and count corpora."),
    "train": ("empatheia.cli.train:train", "Train recipes; stopped runs continue."),
    "queue": ("empatheia.cli.queue:app", "Train a queue of recipes in order; a stopped one continues."),
    "evaluate": ("empatheia.cli.evaluate:evaluate", "Score a run and print it beside the published row."),
    "score": (
        "empatheia.cli.score:score",
        "Measure any replies: text files, or a file released with a paper.",
    ),
    "reproduce": (
        "empatheia.cli.reproduce:reproduce",
        "Compare a published table with our runs, and name the missing ones.",
    ),
    "plot": ("empatheia.cli.plot:app", "Plot curves, confusions, labels, lengths and trade-offs of runs."),
    "leaderboard": (
        "empatheia.cli.leaderboard:leaderboard",
        "Write a page of all runs: sort, filter, replies side by side.",
    ),
    "judge": (
        "empatheia.cli.judge:judge",
        "Let a language model compare two systems' replies, in both orders.",
    ),
    "study": (
        "empatheia.cli.study:app",
        "Run studies with people: ratings, comparisons, live talks, collection.",
    ),
    "annotate": (
        "empatheia.cli.annotate:annotate",
        "Label causes, emotions or mechanisms of a corpus with a trained model.",
    ),
    "infer": (
        "empatheia.cli.infer:infer",
        "Write commonsense inferences about every speaker turn to a file; build the index.",
    ),
    "curate": ("empatheia.cli.curate:app", "Make dialogue corpora out of subtitles and chats."),
    "package": ("empatheia.cli.package:package", "Turn a finished run into a model folder with its card."),
    "doctor": ("empatheia.cli.doctor:doctor", "Show what is installed, what is missing and how to get it."),
}
HELP_FLAGS = {"help_option_names": ["-h", "--help"]}


def all_commands() -> dict[str, tuple[str, str]]:
    """``COMMANDS``, and behind them those of other packages (entry-point group ``empatheia.commands``)."""
    others = [point for point in entry_points(group="empatheia.commands") if point.name not in COMMANDS]
    return COMMANDS | {point.name: (point.value, f"A command of {_package_of(point)}.") for point in others}


def _package_of(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.value.partition(".")[0]


class LazyGroup(TyperGroup):
    """A group whose commands are entries of a table until one of them is called."""

    def list_commands(self, ctx: typer.Context) -> list[str]:
        """Names in the order of the table, those of other packages last."""
        return list(all_commands())

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | None:
        """A stand-in that knows its help line; None for an unknown name."""
        if (entry := COMMANDS.get(cmd_name) or all_commands().get(cmd_name)) is None:
            return None
        return TyperCommand(cmd_name, short_help=entry[1], rich_markup_mode=None)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> tuple[str | None, Command, list[str]]:
        """Imports the command that is about to run."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and name not in (known := all_commands()):
            ctx.fail(f"no such command {name!r}.{nearest(name, list(known))} Known: {', '.join(known)}.")
        name, _, rest = super().resolve_command(ctx, args)
        return name, load_command(str(name)), rest


def load_command(name: str) -> Command:
    """Imports the command behind a name of ``COMMANDS``, or of another package's entry point.

    Raises:
        MissingDependencyError: A package the command needs is not installed.
    """
    module, _, attribute = (COMMANDS.get(name) or all_commands()[name])[0].partition(":")
    try:
        target = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        from empatheia.errors import MissingDependencyError

        raise MissingDependencyError(
            f"the command {name!r} needs the module {error.name!r}, which is not installed."
            " Reinstall the package: pip install --upgrade empatheia"
        ) from error
    callbacks = [entry.callback for entry in getattr(target, "registered_commands", [])] or [target]
    for callback in callbacks:  # a raw docstring spells click's do-not-rewrap mark as two characters
        if callback is not None and callback.__doc__:
            callback.__doc__ = callback.__doc__.replace("\\b\n", "\b\n")
    if isinstance(target, typer.Typer):
        return typer.main.get_group(target)
    wrapper = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=HELP_FLAGS)
    wrapper.command(name, context_settings=HELP_FLAGS)(target)
    return typer.main.get_command(wrapper)


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    rich_markup_mode=None,
    context_settings=HELP_FLAGS,
    no_args_is_help=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from empatheia import __version__
        from empatheia.cli.output import show

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
        code = _report(error)
    sys.exit(code if isinstance(code, int) else 0)


class _VisibleHandler(logging.Handler):
    """What the package logs may quote files: it goes to stderr without their escapes."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints one line."""
        from empatheia.cli.output import say

        say(" ".join(self.format(record).split()))


def _log_visibly() -> None:
    logger = logging.getLogger("empatheia")
    if not logger.hasHandlers():
        logger.addHandler(_VisibleHandler())


def _leave_pipe() -> int:
    """The reader went away (``| head``): drop what is buffered, so that nothing is said at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _report(error: Exception) -> int:
    """Prints ``error: ...`` on one line and gives the exit code."""
    from empatheia.cli.output import say

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
