"""``empatheia evaluate``: a run or a model measured, beside the published row; or all records of one capability."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from empatheia.cli.output import json_line, print_json, show
from empatheia.errors import ConfigError
from empatheia.metrics.earlier_records import is_score
from empatheia.metrics.published import AT_ROW_SIZE, compare, published
from empatheia.metrics.score import Score
from empatheia.reading import read_record
from empatheia.resources import resolve_model
from empatheia.settings import read_yaml
from empatheia_research.recipes.data import DATA_CONFIGS
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.shipped import recipes_root, shipped_path
from empatheia_research.training.standings import standings, to_text

if TYPE_CHECKING:
    from empatheia_research.recipes.recipe import Size
    from empatheia_research.training.perception_card import PerceptionFolder
    from empatheia_research.training.release import ModelFolder
    from empatheia_research.training.tasks.prompt import PromptRun
    from empatheia_research.training.tasks.whole import WholeTask

Measurable: TypeAlias = "ModelFolder | PerceptionFolder | PromptRun | RecordedRun | WholeTask"
_MEASURED_ANEW = ("respond", "prompt", "perceive", "perceive_states")
"""Tasks whose runs are measured when somebody asks."""
DEFAULT = "default"
"""The listener as a whole; the small bundled responder, called so elsewhere, is measured by its folder."""


def evaluate(
    run: Annotated[
        str,
        typer.Argument(
            help="Run folder, model folder, a model's name; default: the listener that answers where nobody is named,"
            " as a whole; understanding: the table of all parts of the analysis, from the records in --results."
        ),
    ],
    split: Annotated[str, typer.Option(help="valid or test.")] = "test",
    as_json: Annotated[bool, typer.Option("--json", help="Print all scores with their signatures as JSON.")] = False,
    outputs: Annotated[Path | None, typer.Option(help="Write the replies as JSON lines.")] = None,
    results: Annotated[Path, typer.Option(help="Folder of run records, for understanding.")] = Path("results"),
) -> None:
    """Measure a model on a split of its corpus and print it beside the published row.

    Example: empatheia evaluate runs/gao2021/soft/cpu-seed1024
    """
    if split not in ("valid", "test"):
        raise typer.BadParameter(f"unknown split {split!r}; accepted: valid, test.")
    if run == "understanding" and not Path(run).is_dir():
        show(_understanding(results, as_json))
        return

    folder = Path(run) if run == DEFAULT or Path(run).is_dir() else resolve_model(run)
    from empatheia_research.training.perception_card import score_rows
    from empatheia_research.training.release import metric_rows  # takes seconds

    model = default_listener() if run == DEFAULT and not folder.is_dir() else _opened(folder)
    metrics = model.evaluate(split, outputs)
    if as_json:
        print_json({"model": model.meta["name"], "split": split, "metrics": metrics})
        return
    show(f"{model.meta['name']} ({model.recipe.size}, seed {model.recipe.seed}), {split}")
    rows = [] if isinstance(model, RecordedRun) else metric_rows(metrics)  # whose labels are a responder's
    for label, value, interval, n in rows or score_rows(metrics):
        show(f"  {label:<50} {value:>9}  {f'[{interval}]' if interval else '':<22} {f'n={n}' if n else ''}".rstrip())
    show(published_text(model, metrics))


def default_listener(size: Size = "cpu") -> WholeTask:
    """What answers where nobody is named, ready to be measured, as the recipe `default/whole` says."""
    from empatheia_research.training.tasks.whole import WholeTask

    return WholeTask(load_recipe(recipes_root() / DEFAULT / "whole.yaml", size=size), Path())


class RecordedRun:
    """A finished run of any task but answering, as it was measured when it ended.

    Args:
        folder: Run folder with its ``metrics.json``.

    Attributes:
        meta: Its ``name``.
        recipe: As it ran.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.record = folder, read_record(folder / "metrics.json")
        self.recipe = load_recipe(folder / "recipe.yaml")
        self.meta = {"name": self.recipe.name}

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """The kept scores.

        Raises:
            ConfigError: Another split or outputs are wanted.
        """
        if split != "test" or outputs is not None:
            raise ConfigError(
                f"{self.folder} is a run of task {self.recipe.task!r}, measured on test when it ended; its answers are"
                " in outputs.jsonl there. Accepted: --split test without --outputs."
            )
        return dict(self.record["metrics"])


def _opened(folder: Path) -> Measurable:
    """A run folder or a model folder, ready to be measured."""
    from empatheia_research.training.perception_card import PerceptionFolder
    from empatheia_research.training.release import ModelFolder
    from empatheia_research.training.tasks.prompt import PromptRun

    place = folder / "checkpoint" if (folder / "checkpoint").is_dir() else folder
    recipe = place / "recipe.yaml"
    task = read_yaml(recipe).get("task") if recipe.is_file() else None
    if task == "prompt":
        return PromptRun(folder)
    if task in DATA_CONFIGS and task not in _MEASURED_ANEW and (folder / "metrics.json").is_file():
        return RecordedRun(folder)
    return PerceptionFolder(place) if task in ("perceive", "perceive_states") else ModelFolder(place)


def _understanding(results: Path, as_json: bool) -> str:
    found = standings(shipped_path(results))
    if as_json:
        return json_line({"unit": "percent", "rows": [row.to_dict() for row in found]})
    return to_text(found)


def published_text(model: Measurable, metrics: Mapping[str, object]) -> str:
    """Our scores beside the row the recipe names, or a line that says there is none."""
    from empatheia.metrics.published import to_text

    row = model.recipe.published
    if row is None:
        return "No published row: this recipe is not a published system."
    ours = [Score.from_dict(value) for value in metrics.values() if is_score(value)]
    printed = published(row.paper, row.table, row.row, row.setting, row.dataset)
    why = "measured on the sample" if model.recipe.data.corpus == "sample" else ""
    why = why or (AT_ROW_SIZE if model.recipe.size == "row" else "")
    verdicts = compare(ours, printed, dict.fromkeys(printed, why) if why else {})
    return f"Published: {row.paper}, {row.table}, {row.row}\n{to_text(verdicts)}"
