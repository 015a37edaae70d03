"""``empatheia demo``: the main job on three short self-written conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from empatheia.cli.opening import check_who
from empatheia.cli.options import ModelOption, WhoOptions
from empatheia.cli.output import perceived_lines, print_json, print_lines, reply_lines
from empatheia.records.dialogue import Dialogue
from empatheia.resources.catalogue import DEFAULT, LISTENER, find_model
from empatheia.resources.manifest import read_manifest

if TYPE_CHECKING:
    from empatheia.listener import Listener

CONVERSATIONS = (
    (
        "My cat is very sick.",
        "I am sorry. What does the doctor say?",
        "She needs an operation and I am afraid that I will lose her.",
    ),
    ("I finally passed my driving test after three tries!",),
    ("my boss yelled at me in front of everyone today",),
)


def demo(
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a conversation: the reply and its analysis.")
    ] = False,
    model: ModelOption = None,
) -> None:
    """Show three short conversations: what is felt, which words caused it, a reply.

    With --model the first conversation alone.
    """
    check_who(WhoOptions(model=model))
    from empatheia.listener import Listener
    from empatheia.listener.listener import five_steps

    talks = [Dialogue.of(*texts, id=f"demo/{i}") for i, texts in enumerate(CONVERSATIONS, 1)]
    model = None if model == DEFAULT else model
    if model is None:
        listener = five_steps()
        replies = listener.respond(talks)
    else:
        listener = Listener.load(model)
        replies = [listener.respond(talks[0], strategy="beam", num_beams=4)]
    for reply in replies:
        if as_json:
            print_json(reply.to_dict())
            continue
        print_lines(perceived_lines(reply.analysis, top=3))
        print_lines([*reply_lines(reply), [("", "")]])
    if not as_json:
        print_lines([[(about(listener, model), "dim")], [("try it: empatheia chat --show analysis", "dim")]])


def about(listener: Listener, model: str | None) -> str:
    """Which models answered, and under which licence."""
    manifest = read_manifest(find_model(LISTENER if model is None else model))
    what = "perceived by" if model is None else "model"
    how = ", answered by reflection" if model is None else ""
    return f"{what} {manifest.name} ({manifest.system}){how}; weights: {manifest.licence or 'no licence stated'}"
