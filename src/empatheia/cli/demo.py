"""``empatheia demo``: the main job on a short self-written conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from empatheia.cli.opening import DEFAULT, ModelOption

if TYPE_CHECKING:
    from empatheia.cli.output import Line
    from empatheia.dialogue import Reply

CONVERSATION = (
    "My cat is very sick.",
    "I am sorry. What does the doctor say?",
    "She needs an operation and I am afraid that I will lose her.",
)


OTHERS = ("Our team won the last game of the season.", "I have to give a talk in front of my whole class tomorrow.")
"""What a focused reply should not fit: the same on every machine."""


def demo(
    as_json: Annotated[bool, typer.Option("--json", help="The reply and its analysis as one JSON object.")] = False,
    model: ModelOption = None,
) -> None:
    """Run the main job on a short conversation: what is felt, which words caused it, a reply."""
    from empatheia.cli.output import print_json, print_lines, reply_lines, understanding_lines
    from empatheia.dialogue import Dialogue
    from empatheia.listener import FocusedListener, Listener
    from empatheia.listener.catalogue import find_model
    from empatheia.listener.checkpoint import read_manifest

    talk, why = Dialogue.of(*CONVERSATION, id="demo"), []
    if model is None:
        listener = FocusedListener({"express": {"focus": {"distractors": "given", "texts": OTHERS}}})
        reply = listener.respond(talk, explain=True)
        why = _why(reply)
        reply = replace(reply, explanation=None)
    else:
        reply = Listener.load(model).respond(talk, strategy="beam", num_beams=4)
    if as_json:
        print_json(reply.to_dict())
        return
    print_lines(understanding_lines(reply.understanding))
    print_lines([*reply_lines(reply), *why, [("", "")]])
    manifest = read_manifest(find_model(DEFAULT if model is None else model))
    about = f"model {manifest.name} ({manifest.system}); weights: {manifest.licence or 'no licence stated'}"
    print_lines([[(about, "dim")], [("try it: empatheia chat --show analysis", "dim")]])


def _why(reply: Reply) -> list[Line]:
    """How the reply was chosen, in a line."""
    told = reply.explanation
    if told is None:
        return []
    words = ", ".join(span.of(told.turns) for span in told.targets)
    how = f"focused on {words}" if "focus" in reply.decoding else "not focused"
    return [[("chosen    ", "dim"), (f"first of {len(told.candidates)} candidates, {how}", "")]]
