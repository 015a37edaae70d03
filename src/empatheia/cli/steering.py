"""``--focus``, ``--listener``: a listener of five steps in ``respond`` and ``chat``, and what the person decides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from empatheia.errors import ConfigError

if TYPE_CHECKING:
    from empatheia.listener import FocusedListener, Steering
    from empatheia.listener.protocol import AnyListener
    from empatheia.listener.steps.conversing import SteeredConversation

FocusOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        metavar="WORDS|auto|off", help="Words of the last turn the reply must be about, with commas; auto = find them."
    ),
]
AlphaOption = Annotated[Optional[float], typer.Option(help="Focus: how strongly, 0 or more [6].")]  # noqa: UP045
BetaOption = Annotated[Optional[float], typer.Option(help="Focus: of the imagined listener [0.9].")]  # noqa: UP045
WorldsOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(help="Focus: the true context and its distractors, 2 or more [3]."),
]
DistractorsOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="KIND", help="Focus: gee, masked, random or given [gee where its model is here]."),
]
TopPOption = Annotated[
    float, typer.Option(help="Sample from the most probable pieces with this share of the probability; 1 = all.")
]
NoRepeatOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        metavar="N", help="No run of N pieces twice in a reply; 0 = no limit. [4 for language models, else 0]"
    ),
]
PenaltyOption = Annotated[
    float, typer.Option(help="Above 1, pieces that the reply already has become less probable; 1 = no penalty.")
]
ListenerOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--listener", metavar="FILE", help="A listener of five steps; see docs/howto/listener.md."),
]
WHO_ANSWERS = (
    *("model", "system", "runs", "endpoint", "llm", "folder"),
    *("condition", "key_env", "price_in", "price_out"),
)
"""Options that name another model than the listener's own."""
COMMANDS = ("/emotion", "/intent", "/focus", "/alpha", "/why")
HELP = (
    "/focus WORDS|auto|off, /alpha X, /emotion NAME|auto and /intent NAME|auto steer the next replies,"
    " /why explains the last."
)


def steering_of(
    focus: str | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    worlds: int | None = None,
    distractors: str | None = None,
) -> Steering | None:
    """What the options decide; None if none was given. A number for the focus asks for it.

    Raises:
        DecodingError: A value is out of range or unknown.
    """
    from empatheia.listener import Steering

    given = {"alpha": alpha, "beta": beta, "worlds": worlds, "distractors": distractors}
    given = {name: value for name, value in given.items() if value is not None}
    if focus is None and not given:
        return None
    return Steering(focus="auto" if focus is None else focus, **given)  # pyright: ignore[reportArgumentType]


def was_given(context: typer.Context, *names: str) -> bool:
    """Whether one of these options stands on the command line."""
    sources = (context.get_parameter_source(name) for name in names)
    return any(source is not None and source.name == "COMMANDLINE" for source in sources)


def given_decoding(context: typer.Context) -> dict[str, Any]:
    """The options of writing that stand on the command line."""
    from empatheia.listener import Decoding

    return {name: context.params[name] for name in Decoding.__dataclass_fields__ if was_given(context, name)}


def read_listener(context: typer.Context, file: Path) -> AnyListener:
    """The listener of a YAML file.

    Args:
        context: Of the command.
        file: Which.

    Raises:
        ConfigError: An option that says who answers is given too, the file is no YAML file, or a setting is wrong.
    """
    for name in WHO_ANSWERS:
        if was_given(context, name):
            raise ConfigError(f"--listener names its own models in {file}; leave --{name.replace('_', '-')} out.")
    if file.suffix not in (".yaml", ".yml"):
        raise ConfigError(f"--listener is {str(file)!r}; accepted: a YAML file. A model is named with --model.")
    from empatheia.cli.opening import tell_host
    from empatheia.listener import Listener

    listener = Listener.load(file)
    tell_host(listener)
    return listener


def in_five_steps(listener: AnyListener, condition: str | None = None) -> FocusedListener:
    """A model as the responder of a listener of five steps; one of those as itself.

    Args:
        listener: Who answers.
        condition: What a language model is told of the steps before; None = as it was opened, else everything.

    Raises:
        ConfigError: ``condition`` names something else.
    """
    from empatheia.listener import FocusedListener, LanguageListener, Listener
    from empatheia.listener.steps.responders import voice_of
    from empatheia.text.prompts import SHOWN, parse_shown

    if isinstance(listener, FocusedListener):
        return listener
    if isinstance(listener, LanguageListener):
        shown = (listener.shown or SHOWN) if condition is None else parse_shown(condition)
        reasoner = listener.analyst if listener.has_own_analyst else None
        return FocusedListener({"name": listener.name}, voices=[voice_of(listener, shown)], reasoner=reasoner)
    reasoner = listener if isinstance(listener, Listener) and listener.reader.analyzes else None
    return FocusedListener({"name": listener.name}, voices=[listener], reasoner=reasoner)


def steer(
    conversation: Any, line: str, condition: str | None = None, given: Mapping[str, Any] | None = None
) -> SteeredConversation:
    """Does what a command of a chat says; tells what was decided, or why the last reply was given.

    Args:
        conversation: Of any listener; of five steps from now on.
        line: ``/focus dog`` and the like.
        condition: As for :func:`in_five_steps`.
        given: Options of writing, by name.

    Raises:
        DecodingError: The value is out of range or unknown; nothing changes.
    """
    from empatheia.cli.explaining import explanation_lines
    from empatheia.cli.output import print_lines, say
    from empatheia.listener.steps.conversing import SteeredConversation

    if not isinstance(conversation, SteeredConversation):
        conversation = SteeredConversation(
            in_five_steps(conversation.listener, condition),
            None,
            conversation.dialogue,
            care=conversation.care,
            **(given or {}),
        )
    command, _, value = line.partition(" ")
    value = value.strip()
    if command == "/why":
        if conversation.last is None or conversation.last.explanation is None:
            if conversation.dialogue.turns:
                say("the last reply was not given in five steps, so there is no telling why; the next one will be.")
            else:
                say("there is no reply to explain yet; say something first.")
        else:
            print_lines(explanation_lines(conversation.last))
        return conversation
    before = conversation.steering
    conversation.steering = decided(before, command, value)
    say(f"{command[1:]}: {value or 'auto'}")
    if command == "/alpha" and conversation.steering.focus != before.focus:
        say(f"focus: {conversation.steering.focus}")
    return conversation


def decided(steering: Steering, command: str, value: str) -> Steering:
    """The steering after a command; nothing or ``auto`` leaves it to the models.

    Raises:
        DecodingError: The value is out of range or unknown.
    """
    from empatheia.errors import DecodingError

    name, is_auto = command[1:], value in ("", "auto")
    if name == "focus":
        return steering.but(focus=value or "auto")
    if name != "alpha" or is_auto:
        return steering.but(**{name: None if is_auto else value})
    try:
        number = float(value)
    except ValueError:
        raise DecodingError(f"alpha is {value!r}; accepted: a number, 0 or more.") from None
    return steering.but(alpha=number, focus=steering.focus if steering.focus not in (None, "off") else "auto")
