"""``empatheia demo``: the main job on a short self-written conversation."""

from __future__ import annotations

from typing import Annotated

import typer

CONVERSATION = (
    "My grandmother passed away last month and I still sit in her kitchen every Sunday.",
    "I am so sorry. You two must have been very close.",
    "She taught me everything. Yesterday I found her old recipe book and I could not stop crying.",
)


def demo(
    as_json: Annotated[bool, typer.Option("--json", help="The reply and its analysis as one JSON object.")] = False,
    model: Annotated[str, typer.Option(help="Name or folder of a model.")] = "default",
) -> None:
    """Run the main job on a short conversation: what is felt, which words caused it, a reply."""
    from empatheia.cli.output import print_json, print_lines, reply_lines, understanding_lines
    from empatheia.dialogue import Dialogue
    from empatheia.listener import Listener

    listener = Listener.load(model)
    reply = listener.respond(Dialogue.of(*CONVERSATION, id="demo"), strategy="beam", num_beams=4)
    if as_json:
        print_json(reply.to_dict())
        return
    manifest = listener.manifest
    print_lines(understanding_lines(reply.understanding))
    print_lines([*reply_lines(reply), [("", "")]])
    about = f"model {manifest.name} ({manifest.system}); weights: {manifest.licence or 'no licence stated'}"
    print_lines([[(about, "dim")], [("try it: empatheia chat --show analysis", "dim")]])
