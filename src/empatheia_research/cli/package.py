"""``empatheia package``: a finished run as a model folder to hand on."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from empatheia.cli.output import show
from empatheia.errors import CheckpointError
from empatheia.settings import read_yaml


class Kept(StrEnum):
    """How weights are kept: as they are, in half precision, or the word table in eight bits besides."""

    full = "full"
    half = "half"
    mixed = "mixed"


def package(
    run: Annotated[Path, typer.Argument(help="Finished run folder of a responder, a language model or a perception.")],
    target: Annotated[Path, typer.Argument(help="New model folder.")],
    name: Annotated[str, typer.Option(help="Name of the model.")] = "empatheia-model",
    description: Annotated[str, typer.Option(help="First paragraph of the model card.")] = "",
    half: Annotated[bool, typer.Option(help="Store the weights as float16.")] = True,
    onnx: Annotated[
        Kept | None, typer.Option(help="Write a perception for ONNX Runtime, its weights kept so; RUN may be a model.")
    ] = None,
) -> None:
    """Round, calibrate on validation data, measure on test, and write the model card.

    Example: empatheia package runs/default/listener/cpu-seed1024 my-model --name my-model
    Example: empatheia package listener_as_trained my-onnx-listener --onnx mixed
    """
    if onnx is not None:
        _package_onnx(run, target, name, onnx)
        return
    if not run.is_dir():  # told before torch is imported
        raise CheckpointError(f"there is no run folder {run}; name one that 'empatheia train' made.")
    from empatheia_research.training.language_model_card import package_language_model
    from empatheia_research.training.perception_card import package_perception, score_rows
    from empatheia_research.training.release import metric_rows
    from empatheia_research.training.release import package as make

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


def _package_onnx(run: Path, target: Path, name: str, kept: Kept) -> None:
    from empatheia_research.training.perception_file import export_perception

    place = run / "checkpoint" if (run / "checkpoint").is_dir() else run
    facts = export_perception(place, target, weights=kept.value, name=name)
    size = sum(path.stat().st_size for path in target.iterdir())
    show(f"{target}: {size / 1e6:.0f} MB, opset {facts.opset}, weights {facts.weights}, {facts.licence}")
    show(f"  largest difference of a probability from the model it was made of: {facts.deviation:.1e}")
