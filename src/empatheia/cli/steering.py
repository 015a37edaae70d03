"""``--focus``, ``--listener``: a listener of five steps in ``respond`` and ``chat``, and what the person decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from empatheia.cli.listener_settings import LISTENER_FILES, check_overrides, was_given
from empatheia.errors import ConfigError

if TYPE_CHECKING:
    from empatheia.listener import FocusedListener, Steering
    from empatheia.listener.protocol import AnyListener
    from empatheia.listener.steps.conversing import SteeredConversation

FocusOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        metavar="WORDS|auto|off",
        help="Words of the last turn that the reply must be about, separated by commas; auto = find them.",
    ),
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
HELP = """\
  /focus WORDS|auto|off   what the next replies are about
  /alpha X                how much they keep to it
  /emotion NAME|auto      the feeling they answer
  /intent NAME|auto       what they try to do
  /why                    explain the last reply"""


def read_listener(context: typer.Context, file: Path, overrides: Sequence[str] = ()) -> AnyListener:
    """The listener of a YAML file.

    Args:
        context: Of the command.
        file: Which.
        overrides: Settings laid over the file's, as ``--set`` gives them.

    Raises:
        ConfigError: An option that says who answers is given too, the file is no YAML file, or a setting is wrong.
    """
    for name in WHO_ANSWERS:
        if was_given(context, name):
            raise ConfigError(f"--listener names its own models in {file}; leave --{name.replace('_', '-')} out.")
    if file.suffix not in LISTENER_FILES:
        raise ConfigError(f"--listener is {str(file)!r}; accepted: a YAML file. A model is named with --model.")
    from empatheia.cli.opening import tell_host
    from empatheia.listener import FocusedListener

    listener = FocusedListener.load(file, overrides=overrides)
    tell_host(listener)
    return listener


def in_five_steps(
    listener: AnyListener, condition: str | None = None, overrides: Sequence[str] = ()
) -> FocusedListener:
    """A model as the responder of a listener of five steps; one of those as itself.

    Args:
        listener: Who answers.
        condition: What a language model is told of the steps before; None = as it was opened, else everything.
        overrides: Settings of the steps around the model, as ``--set`` gives them.

    Raises:
        ConfigError: ``condition`` names something else, or ``overrides`` name other responders.
    """
    from empatheia.listener import FocusedListener, LanguageListener
    from empatheia.text.prompts import SHOWN, parse_shown

    own = listener if overrides else getattr(listener, "in_steps", listener)
    if isinstance(own, FocusedListener):
        return own
    settings: dict[str, Any] = check_overrides(overrides, {"name": listener.name})
    if "responders" in settings.get("express", {}):
        raise ConfigError(
            f"{listener.name} was chosen to answer; leave out --set express.responders, or --model and --system."
        )
    if isinstance(listener, LanguageListener):
        shown = (listener.shown or SHOWN) if condition is None else parse_shown(condition)
        reasoner = listener.analyst if listener.has_own_analyst and "reasoner" not in settings else None
        return FocusedListener(settings, voices=[listener.as_voice(shown)], reasoner=reasoner)
    model: Any = listener
    reasoner = model if model.reasons and "reasoner" not in settings else None
    return FocusedListener(settings, voices=[model], reasoner=reasoner)


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
        writing: Any = dict(given or {})
        conversation = SteeredConversation(
            in_five_steps(conversation.listener, condition),
            None,
            conversation.dialogue,
            care=conversation.care,
            **writing,
        )
    command, _, value = line.partition(" ")
    value = value.strip()
    if command == "/why":
        if conversation.last is None or conversation.last.explanation is None:
            if conversation.dialogue.turns:
                say("the last reply did not use five steps, so it cannot be explained; the next one will.")
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
