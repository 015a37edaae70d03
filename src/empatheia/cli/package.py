"""``empatheia package``: a finished run as a model folder to hand on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from empatheia.cli.output import show


def package(
    run: Annotated[Path, typer.Argument(help="Finished run folder of a responder, a language model or a perception.")],
    target: Annotated[Path, typer.Argument(help="New model folder.")],
    name: Annotated[str, typer.Option(help="Name of the model.")] = "empatheia-model",
    description: Annotated[str, typer.Option(help="First paragraph of the model card.")] = "",
    half: Annotated[bool, typer.Option(help="Store the weights as float16.")] = True,
) -> None:
    """Round, calibrate on validation data, measure on test, and write the model card.

    Example: empatheia package runs/default/listener/cpu-seed1024 my-model --name my-model
    """
    from empatheia.config import read_yaml
    from empatheia.errors import CheckpointError

    if not run.is_dir():  # told before torch is imported
        raise CheckpointError(f"there is no run folder {run}; name one that 'empatheia train' made.")
    from empatheia.training.language_model_card import package_language_model
    from empatheia.training.perception_card import package_perception, score_rows
    from empatheia.training.release import metric_rows
    from empatheia.training.release import package as make

    recipe = run / "checkpoint" / "recipe.yaml"
    task = read_yaml(recipe).get("task") if recipe.is_file() else None
    if task in ("perceive", "perceive_states"):
        card = package_perception(run, target, name, description)
    elif task == "prompt":
        card = package_language_model(run, target, name, half=half, description=description)
    else:
        card = make(run, target, name, half=half, description=description)
    show(f"{target}: {card['parameters']:,} parameters, {card['licence']}")
    for label, value, interval, n in metric_rows(card["metrics"]) or score_rows(card["metrics"]):
        show(f"  {label:<50} {value:>9}  {f'[{interval}]' if interval else '':<22} n={n}")
