"""Two bases for what a recipe's `task` names: :class:`Task` learns and is measured, :class:`Measurement` measures."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from empatheia.errors import ConfigError
from empatheia.metrics.base import Metric
from empatheia.registry import nearest
from empatheia.resources import resolve_model
from empatheia.writing import save_folder
from empatheia_research.corpora.loading import SPLITS
from empatheia_research.pretrained import load_pretrained, load_weights
from empatheia_research.recipes.recipe import Recipe, StageConfig, stage_data_config, validate_model_fields
from empatheia_research.training.evaluation import N_RESAMPLES
from empatheia_research.training.stages import StageData
from empatheia_research.understanding.heads import FieldsConfig
from empatheia_research.understanding.labels.utterance_classifier import train_pieces

_MADE_HERE = ("vocab_size", "pad_token_id", "bos_token_id", "eos_token_id", "encoder_config")


class Task(ABC):
    """A recipe's model, its data and its scores; the runner knows nothing else of either.

    Args:
        recipe: Fully resolved.
        folder: The run's.

    Attributes:
        systems: Systems that the task is for; empty = any.
        fixed: Fields of ``data`` that a stage cannot change.
        model: What learns.
        data: The recipe's ``data`` block.

    Raises:
        ConfigError: The recipe asks for what the task cannot do.
        MissingResourceError: A model or corpus it names is not here.
    """

    systems: ClassVar[tuple[str, ...]] = ()
    fixed: ClassVar[tuple[str, ...]] = ()
    model: Any
    reader: Any
    data: Any

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe, self.folder, self.data = recipe, folder, recipe.data
        self.record: dict[str, Any] = {}
        if self.systems and recipe.system not in self.systems:
            raise self.refusal(
                f"task {recipe.task} is for system {' or '.join(self.systems)}, not"
                f" {recipe.system}.{nearest(recipe.system, list(self.systems))}"
            )
        self.build()

    # -- what a task says of itself --------------------------------------------------------------------------

    @abstractmethod
    def build(self) -> None:
        """Makes ``model`` and what reads for it; draws the weights."""

    @abstractmethod
    def evaluate(self, split: str, outputs: Path | None) -> dict[str, Any]:
        """Scores by name, JSON-ready.

        Args:
            split: ``valid`` or ``test``.
            outputs: File for one JSON line an answer; None writes none.
        """

    def rows(self, split: str, data: Any, stage: StageConfig) -> Any:
        """Items of a split as the model learns from them."""
        raise NotImplementedError(f"{type(self).__name__} gives no rows; it has its own stage_data.")

    def lengths(self, rows: Sequence[Any]) -> list[int]:
        """Length of each row, in pieces."""
        return [max(1, len(row.get("input_ids", ()))) for row in rows]

    def stage_data(self, stage: StageConfig) -> StageData:
        """Training and validation items of a stage."""
        data = self.stage_config(stage)
        train, valid = self.rows("train", data, stage), self.rows("valid", data, stage)
        return StageData(train, self.lengths(train), valid, self.lengths(valid), self.reader.collate)

    def data_record(self) -> dict[str, Any]:
        """Counts and checksums of what was learnt from."""
        return self.record

    # -- saving ----------------------------------------------------------------------------------------------

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        """Weights saved after a stage."""
        return load_weights(folder / "model.safetensors")

    def calibrate(self) -> None:  # noqa: B027 (most tasks have nothing to find)
        """Sets what is found on validation data once the weights are final: temperatures, thresholds."""

    def facts(self) -> Mapping[str, object]:
        """What ``empatheia.json`` says beside the recipe: ``part``, ``licence``, labels ..."""
        return {}

    def save_reader(self, folder: Path) -> None:
        """Writes the pieces that the model reads."""
        self.reader.save(folder)

    def save_model(self, folder: Path) -> None:
        """Writes weights and configuration."""
        self.model.save_pretrained(folder)

    def save(self, folder: Path) -> None:
        """Writes the model folder that a user loads: model, reader, ``empatheia.json``, ``recipe.yaml``."""
        self.calibrate()
        self.save_model(folder)
        self.save_reader(folder)
        write_description(folder, self.recipe, self.facts(), encoder=True)

    # -- checks ----------------------------------------------------------------------------------------------

    def refusal(self, reason: str, stage: StageConfig | None = None) -> ConfigError:
        """The error of a recipe that cannot be run."""
        where = f"recipe {self.recipe.name!r}" + (f", stage {stage.name!r}" if stage is not None else "")
        return ConfigError(f"{where}: {reason}")

    def check_fields(self, config_class: type, hidden: Sequence[str] = (), more: Sequence[str] = ()) -> None:
        """Refuses settings of the model that its configuration does not have.

        Args:
            config_class: Whose parameters are accepted.
            hidden: Those that are not a recipe's to set.
            more: Accepted beside them.
        """
        accepted = [name for name in (*accepted_fields(config_class), *more) if name not in hidden]
        validate_model_fields(self.recipe.model, accepted, f"recipe {self.recipe.name!r}")

    def encoder(self) -> str:
        """Folder of the recipe's encoder.

        Raises:
            ConfigError: It names none.
        """
        if self.recipe.encoder is None:
            raise self.refusal(f"task `{self.recipe.task}` needs `encoder`, a folder or name of an encoder.")
        return str(resolve_model(self.recipe.encoder))

    def stage_config(self, stage: StageConfig) -> Any:
        """The data block of a stage.

        Raises:
            ConfigError: It changes one of the :attr:`fixed` fields.
        """
        data = stage_data_config(self.recipe, stage.data) if stage.data else self.data
        if any(getattr(data, name) != getattr(self.data, name) for name in self.fixed):
            fields = " or ".join(f"data.{name}" for name in self.fixed)
            raise self.refusal(f"a stage cannot change {fields}.", stage)
        return data

    # -- made once -------------------------------------------------------------------------------------------

    def made_once(self, name: str, make: Callable[[], Any]) -> Path:
        """A folder of the run that is filled once, so that a resumed run and other processes find the same.

        Args:
            name: Of the folder.
            make: Gives what has ``save_pretrained``.
        """
        place = self.folder / name
        if not place.is_dir():
            save_folder(place, make().save_pretrained)
        return place

    def learnt_pieces(self, texts: Callable[[], Sequence[str]], longest: int) -> PreTrainedTokenizerFast:
        """WordPiece pieces of the run's own texts, for an encoder trained from scratch; see :func:`.train_pieces`."""
        place = self.made_once("tokenizer", lambda: train_pieces(texts(), self.recipe.tokenizer.size, longest))
        return load_pretrained(PreTrainedTokenizerFast, place)


class Measurement(Task):
    """A task that learns nothing: ``model`` is who is measured, if anybody has weights."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.model = nn.ModuleList()
        if recipe.stages:
            raise ConfigError(f"recipe {recipe.name!r}: task {recipe.task} trains nothing; drop stages.")
        super().__init__(recipe, folder)

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        """Those of who is measured."""
        return self.model.state_dict()

    def save(self, folder: Path) -> None:
        """The recipe; the models lie where it says."""
        (folder / "recipe.yaml").write_text(self.recipe.dump(), encoding="utf-8")


def accepted_fields(config_class: type) -> list[str]:
    """Parameters of a configuration class and its parents that a recipe may set."""
    names: list[str] = []
    for parent in config_class.__mro__:
        if issubclass(parent, FieldsConfig):
            own = inspect.get_annotations(parent)
            names += [field.name for field in dataclasses.fields(parent) if field.name in own]
        elif parent.__module__.startswith("empatheia") and "__init__" in vars(parent):
            names += [p for p in inspect.signature(parent.__init__).parameters if p not in ("self", "kwargs")]
    variant = getattr(config_class, "variant_fields", None)
    names += list(variant("paper")) if variant else []
    return [name for name in dict.fromkeys(names) if name not in _MADE_HERE]


def write_description(folder: Path, recipe: Recipe, facts: Mapping[str, object], encoder: bool = False) -> None:
    """Writes ``empatheia.json``, what a model is and how it was made, and the recipe.

    Args:
        folder: The model's.
        recipe: Of the run.
        facts: Beside those of the recipe.
        encoder: Whether the recipe's encoder is named.
    """
    names = ("system", "name", "size", "seed", "note", *(("encoder",) if encoder else ()))
    meta = {"format": 1, **{name: getattr(recipe, name) for name in names}, **facts}
    (folder / "empatheia.json").write_text(json.dumps(meta, indent=2), encoding="utf-8")
    (folder / "recipe.yaml").write_text(recipe.dump(), encoding="utf-8")


def checksum(parts: Iterable[str]) -> str:
    """Of texts one behind the other: 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
    return digest.hexdigest()[:16]


def counted(lines: Sequence[str]) -> dict[str, object]:
    """How many items there are, and a checksum of what each is."""
    return {"items": len(lines), "sha256": checksum(lines)}


def counted_splits(lines: Callable[[str], Sequence[str]]) -> dict[str, object]:
    """:func:`counted` of each split."""
    return {split: counted(lines(split)) for split in SPLITS}


def scored(name: str, metric: Metric, *values: Any, n_resamples: int = N_RESAMPLES) -> dict[str, object]:
    """A metric's record under a name of the task's own, with its bootstrap interval; ``values`` are added first."""
    if values:
        metric.update(*values)
    return {**metric.compute(n_resamples=n_resamples).to_dict(), "name": name}


def write_rows(outputs: Path | None, rows: Iterable[Mapping[str, object]]) -> None:
    """One JSON line a row; nothing where ``outputs`` is None."""
    if outputs is not None:
        outputs.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
