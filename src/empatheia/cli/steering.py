"""What the person decides while a chat runs: ``/focus``, ``/alpha``, ``/emotion``, ``/intent``, ``/why``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from empatheia.cli.explaining import explanation_lines
from empatheia.cli.output import print_lines, say
from empatheia.cli.session import in_five_steps
from empatheia.errors import DecodingError

if TYPE_CHECKING:
    from empatheia.listener import Steering
    from empatheia.listener.steps.conversing import SteeredConversation

COMMANDS = ("/emotion", "/intent", "/focus", "/alpha", "/why")
HELP = """\
  /focus WORDS|auto|off   what the next replies are about
  /alpha X                how much they keep to it
  /emotion NAME|auto      the feeling they answer
  /intent NAME|auto       what they try to do
  /why                    explain the last reply"""


def steer(
    conversation: Any, line: str, condition: str | None = None, given: Mapping[str, Any] | None = None
) -> SteeredConversation:
    """Does what a command of a chat says; tells what was decided, or why the last reply was given.

    Args:
        conversation: Of any listener; of five steps from now on.
        line: ``/focus dog`` and the like.
        condition: As for :func:`~empatheia.cli.session.in_five_steps`.
        given: Options of writing, by name.

    Raises:
        DecodingError: The value is out of range or unknown; nothing changes.
    """
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
        if conversation.last is None or not conversation.last.candidates:
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
