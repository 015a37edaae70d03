"""A finished run of task ``prompt`` made into a folder to hand on: the adapters in half precision, and their card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from empatheia.errors import CheckpointError
from empatheia.reading import read_record
from empatheia.writing import save_folder
from empatheia_research.training.release import check_target, finished_record, halved, number_lines

_OF_THE_RECORD = ("recipe", "size", "seed", "note", "parameters", "training_seconds", "environment", "data", "metrics")
_OF_THE_BASE = ("config.json", "empatheia.json", "recipe.yaml", "model.safetensors")


def package_language_model(
    run: Path, target: Path, name: str, *, half: bool = True, description: str = ""
) -> dict[str, Any]:
    """Makes a model folder from a finished run; where it stands on a base, neither that nor its pieces are copied.

    Args:
        run: Run folder of task ``prompt``, of a model in this process.
        target: New model folder; one that was packaged before is replaced.
        name: What the model calls itself.
        half: Store the adapters as float16. The scores are of the run, before that.
        description: First paragraph of the card.

    Returns:
        The card.

    Raises:
        CheckpointError: The run is not finished, nothing was learnt, or something else is in the place.
    """
    record, checkpoint = finished_record(run), run / "checkpoint"
    if not (checkpoint / "model.safetensors").is_file():
        raise CheckpointError(f"{run} learnt nothing, so there is nothing to package; name its base in place of it.")
    check_target(run, target)
    meta = read_record(checkpoint / "empatheia.json") | {"name": name}
    base = read_record(checkpoint / "config.json").get("base")
    card = {"name": name, "description": description, **{field: record.get(field) for field in _OF_THE_RECORD}}
    card |= {"licence": meta["licence"], "base": base, "shown": list(meta.get("shown", ()))}

    def fill(folder: Path) -> None:
        for path in checkpoint.iterdir():
            if path.is_file() and (base is None or path.name in _OF_THE_BASE):
                (folder / path.name).write_bytes(path.read_bytes())
        if half:
            weights = halved(load_file(folder / "model.safetensors"))
            save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "empatheia.json").write_text(json.dumps(meta, indent=2), encoding="utf-8")
        (folder / "card.json").write_text(json.dumps(card, indent=1, ensure_ascii=False), encoding="utf-8")
        (folder / "README.md").write_text(language_model_card(card), encoding="utf-8")

    save_folder(target, fill)
    return card


def language_model_card(card: Mapping[str, Any]) -> str:
    """The model card in Markdown, from the record alone."""
    environment = card["environment"]
    base = f"`{card['base']}`, not inside: low-rank updates alone" if card["base"] else "none, all weights are inside"
    shown = ", ".join(card["shown"]) or "nothing"
    lines = [
        f"# {card['name']}",
        "",
        card["description"] or card["note"],
        "",
        f"- **Licence of the weights:** {card['licence']}.",
        f"- **Recipe:** `{card['recipe']}`, size `{card['size']}`, seed {card['seed']},"
        f" commit `{environment['commit'][:12]}`.",
        f"- **Base:** {base}.",
        f"- **Shown beside the conversation:** {shown}, found in it by our analysis; never a corpus's label.",
        f"- **Trained:** {card['training_seconds'] / 60:.0f} minutes on {environment['device']}.",
    ]
    lines += number_lines(
        "EmpatheticDialogues test, listener turns, with what is shown; intervals are 95 % bootstrap over items. One"
        " seed. What the base learnt from is unknown and may hold these replies.",
        card["metrics"],
    )
    lines += [
        "",
        "## Failure modes",
        "",
        "- It says things that were not said, and cheers or condoles where the perception it is shown is wrong.",
        "- English only. It gives no advice worth following.",
        "- By itself it does not recognise a crisis; `empatheia.care` stands in front of its answers, and misses some.",
        "",
    ]
    return "\n".join(lines)
