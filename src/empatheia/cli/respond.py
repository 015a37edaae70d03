"""``empatheia respond``: one reply to a conversation."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from empatheia.cli.arguments import refuse_files
from empatheia.cli.explaining import explanation_lines
from empatheia.cli.guarding import tell_guesses
from empatheia.cli.options import SessionOptions, Shown, WritingOptions, with_options
from empatheia.cli.output import perceived_lines, print_json, print_lines, reply_lines, say, show
from empatheia.cli.session import open_session
from empatheia.errors import DataError
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply


@with_options
def respond(
    context: typer.Context,
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...|-", help="Turns, speaker first; '-' reads lines.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Reply and analysis as one JSON object.")] = False,
    writing: WritingOptions,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Explain the reply: emotion, words, intent, candidates. Always uses five steps."
        ),
    ] = False,
    session: SessionOptions,
) -> None:
    r"""Answer a conversation.

    Several TEXTs are the turns of one conversation: speaker, listener, speaker ... The last must be the
    speaker's.

    Without --model or --system, and with --focus or --explain, five steps make the reply: candidates are written
    greedily and by beam search, plain and focused, and ranked. --strategy leaves one way of writing; the other options
    change both.

    A text about danger gets a composed reply with help lines instead of the model's; see 'empatheia care --help'.

    \b
    empatheia respond "I finally got the job!"
    empatheia respond "My dog died." "I am so sorry." "He was fourteen." --strategy beam --show analysis
    empatheia respond "I failed again." --system cause_gated
    empatheia respond "I failed again." --system language_model --endpoint http://localhost:8000/v1 --llm NAME
    empatheia respond "My dog ate the cake." --focus cake --set express.focus.alpha=6 --set express.focus.worlds=4
    empatheia respond "My dog ate the cake." --listener listener.yaml --explain
    """
    dialogue = Dialogue.of(*_turns(texts))
    opened = open_session(context, session, explain)
    reply = opened.respond(dialogue, explain)
    requested = opened.given.requested(session.focus) if explain else None
    _print(reply, as_json, requested, writing.show is Shown.analysis)
    tell_guesses(opened.care, reply)
    opened.tell_usage()


def _turns(texts: list[str]) -> list[str]:
    """The turns of the command line, or the lines of stdin.

    Raises:
        DataError: stdin holds none, or a text is the name of a file.
    """
    if texts != ["-"]:
        refuse_files(texts, "respond")
        return texts
    lines = sys.stdin.buffer.read().decode("utf-8", "replace").splitlines()
    if turns := [line for line in lines if line.strip()]:
        return turns
    raise DataError("stdin holds no text; write one turn a line, speaker first.")


def _print(reply: Reply, as_json: bool, requested: frozenset[str] | None, with_analysis: bool) -> None:
    """The reply in the form asked for, with what is doubtful of it; explained where ``requested`` is not None."""
    if not reply.text:
        finish = reply.decoding.get("finish", "none")
        say(f"the reply is empty (finish: {finish}); try --set express.decoding.max_new_tokens=100.")
    if as_json:
        print_json(reply.to_dict())
    elif requested is not None:
        print_lines([*explanation_lines(reply, requested), *reply_lines(reply)])
    elif with_analysis:
        print_lines([*perceived_lines(reply.analysis), *reply_lines(reply)])
    else:
        show(reply.text)
        if reply.analysis.unsure:
            say(f"uncertain: {'; '.join(reply.analysis.unsure)}")
