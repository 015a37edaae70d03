"""``empatheia chat``: a conversation, turn by turn; sentences as they come where one model is named."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer

from empatheia.cli.guarding import tell_notice
from empatheia.cli.options import SessionOptions, Shown, WritingOptions, with_options
from empatheia.cli.output import perceived_lines, print_lines, say, show, show_piece, visible
from empatheia.cli.session import open_session
from empatheia.cli.steering import COMMANDS, steer
from empatheia.cli.steering import HELP as STEERING_HELP
from empatheia.errors import EmpatheiaError

if TYPE_CHECKING:
    from empatheia.listener import Conversation

HELP = f"""\
{STEERING_HELP}
  /reset                  forget the conversation
  /help                   show this
  /quit                   leave
All else is said to the listener."""


@with_options
def chat(context: typer.Context, writing: WritingOptions, session: SessionOptions) -> None:
    r"""Talk with a model.

    Without --model or --system the replies are ranked by five steps, so each is shown when it is complete; otherwise
    sentences are shown as they are written, except with beam search. --strategy leaves one way of writing. A text about
    danger gets a composed reply with help lines; see 'empatheia care --help'.

    Reads stdin to its end when that is not a terminal: one line in, one reply out. Commands inside: /quit,
    /reset, /help; /focus, /alpha, /emotion, /intent steer the next replies, /why explains the last. Named words apply
    only to the next turn.

    \b
    empatheia chat --show analysis
    empatheia chat --focus auto --set express.focus.alpha=4
    printf 'I failed my exam.\nI studied for weeks.\n' | empatheia chat
    """
    opened = open_session(context, session)
    conversation = opened.converse()
    tell_notice(opened.care)
    try:
        _converse(conversation, writing.show is Shown.analysis, session.who.condition, opened.given.writing)
    finally:
        opened.tell_usage()


def _converse(conversation: Conversation, with_analysis: bool, condition: str | None, given: Mapping[str, Any]) -> None:
    """Reads, and answers, to the end of the input or ``/quit``."""
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        say(f"Say something; {_who(conversation.listener.name)} answers.\n{HELP}")
    for line in _lines(is_terminal):
        text = line.strip()
        if text == "/quit":
            return
        if text == "/reset":
            conversation.reset()
            say("the conversation is forgotten.")
        elif text == "/help":
            say(HELP)
        elif not text:
            say("say something; /help shows the commands.")
        elif text.startswith("/") and text[1:].isalpha() and text not in COMMANDS:
            say(f"no such command {text!r}; /help shows them.")
        else:
            try:
                if text.split()[0] in COMMANDS:
                    conversation = steer(conversation, text, condition, given)
                else:
                    _answer(conversation, text, with_analysis, is_terminal)
            except EmpatheiaError as error:
                say(f"error: {error}")


def _who(name: str) -> str:
    return "a listener of five steps" if name == "five steps" else name


def _answer(conversation: Conversation, text: str, with_analysis: bool, is_terminal: bool) -> None:
    """Streams one reply to stdout; one of five steps comes whole, after the words it should be about."""
    from empatheia.listener.steps.conversing import SteeredConversation

    stream = conversation.stream(text)
    if with_analysis:
        print_lines(perceived_lines(stream.analysis, top=3, last_turns=1))
    elif stream.analysis.unsure:
        say(f"uncertain: {'; '.join(stream.analysis.unsure)}")
    pieces: Iterable[str] = stream
    try:
        if isinstance(conversation, SteeredConversation):
            pieces = list(stream)
            last = conversation.last
            if last is not None and last.worlds:
                turns = last.analysis.dialogue.turns
                say(f"about: {', '.join(visible(span.of(turns)) for span in last.analysis.targets) or 'no word'}")
        if is_terminal or with_analysis:
            show_piece("listener  ")
        for piece in pieces:
            show_piece(piece, keeps_lines=is_terminal)
    except KeyboardInterrupt:
        say("(stopped)")
    show("")
    if isinstance(conversation, SteeredConversation) and conversation.steering.words:  # hardly in the next turn
        conversation.steering = conversation.steering.but(focus="auto")


def _lines(is_terminal: bool) -> Iterator[str]:
    """What the person says: prompted on a terminal, else the lines of stdin; bad bytes are replaced."""
    if not is_terminal:
        for raw in sys.stdin.buffer:
            yield raw.decode("utf-8", "replace")
        return
    with suppress(ImportError):
        import readline  # noqa: F401  (gives input() editing and history)
    while True:
        try:
            yield input("you       ")
        except (EOFError, KeyboardInterrupt):
            show("")
            return
        except UnicodeDecodeError:
            say("error: that was not UTF-8; please say it again.")
