"""Recipes: YAML files that determine a run completely, in four sizes, with dotted overrides.

``load_recipe("recipes/gao2021/soft.yaml", size="smoke", overrides=["seed=7", "model.dropout=0.2"])`` merges the
file, its ``sizes.smoke`` block and the overrides, and validates every key; an unknown key names the nearest one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, Required, TypedDict

import yaml
from pydantic import (
    BaseModel,
    Field,
    PositiveFloat,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from empatheia.errors import ConfigError, MissingResourceError
from empatheia.registry import nearest
from empatheia.settings import PathName, PlainName, Sparse, Strict, apply_override, explain_invalid, merge, read_yaml
from empatheia_research.recipes.data import DATA_CONFIGS, WITHOUT_TRAINING, DataConfig, TaskData
from empatheia_research.shipped import recipes_root

Size = Literal["smoke", "row", "cpu", "full"]
SIZES: tuple[Size, ...] = ("smoke", "row", "cpu", "full")
"""``smoke``: a minute on samples; ``row``: ``cpu`` made smaller, equal for all rows of a table; ``cpu``; ``full``."""


class TokenizerConfig(Strict):
    """How text becomes pieces."""

    kind: Literal["word", "bpe", "hf"] = Field("word", description="Words, own byte-pair pieces, or an encoder's.")
    min_count: int = Field(1, description="Words seen less often are UNK (`word`).", ge=1)
    size: int = Field(8000, description="Number of pieces (`bpe`).", ge=300)
    folder: str | None = Field(None, description="Whose pieces `hf` takes; None = those of `encoder`.")
    pool: tuple[str, ...] = Field((), description="Dialogue corpora whose training texts make the vocabulary, too.")
    splits: tuple[str, ...] = Field(("train", "valid", "test"), description="Splits whose text makes the vocabulary.")
    vectors: str | None = Field(None, description="GloVe/fastText text file to start the word table from.")
    distil: str | None = Field(None, description="Encoder whose outputs for each piece start the word table.")


class AlternateConfig(Strict):
    """One group of parameters that learns by turns with others (adversarial training)."""

    train: tuple[str, ...] = Field(min_length=1, description="Prefixes of the group's parameters.")
    losses: dict[str, float] = Field(min_length=1, description="What the group learns by, with weights.")
    steps: int = Field(1, ge=1, description="Updates of the group in each round.")
    learning_rate: float | None = Field(None, gt=0, description="None = the stage's.")


class StageConfig(Sparse):
    """One training phase."""

    unwritten = {
        "alternate": ((), []),
        "same_batch": (False,),
        "optimizer": (None,),
        "precision": (None,),
        "rates": ({},),
    }

    name: PlainName = Field("train", description="Used in the run folder and the curves.")
    losses: dict[str, float] = Field(description="Weight of each loss; a loss not named is not computed.")
    train: tuple[str, ...] = Field(("",), description="Prefixes of the parameters that learn.")
    freeze: tuple[str, ...] = Field((), description="Prefixes of parameters that do not, even if matched by train.")
    epochs: float = Field(1.0, gt=0)
    max_steps: int | None = Field(None, ge=1, description="Stop after so many updates.")
    batch_tokens: int | None = Field(None, ge=16, description="(n+1) * longest <= this; else `batch_examples`.")
    batch_examples: int = Field(32, ge=1, description="Examples a batch, when `batch_tokens` is not given.")
    accumulate: int = Field(1, ge=1, description="Micro-batches an update.")
    learning_rate: float = Field(5e-4, gt=0)
    head_learning_rate: float | None = Field(None, gt=0, description="Rate for parameters outside `encoder`.")
    rates: dict[str, PositiveFloat] = Field(
        default_factory=dict, description="Learning rate by prefix of parameters, the longest that fits; else as above."
    )
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt"] = "constant"
    warmup_steps: int = Field(0, ge=0)
    weight_decay: float = Field(0.0, ge=0)
    dropout: float | None = Field(None, ge=0, lt=1, description="Overrides the model's dropout during this stage.")
    optimizer: Literal["adamw", "adamax"] | None = Field(None, description="None = adamw.")
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    max_grad_norm: float = Field(0.0, ge=0, description="0 = no clipping.")
    precision: Literal["bfloat16"] | None = Field(
        None, description="Matrix products of the passes in bfloat16 (weights stay float32); None = float32."
    )
    evaluations: int = Field(0, ge=0, description="Validations an epoch; 0 = none.")
    select: str | None = Field(None, description="Keep the weights with the lowest of this validation loss.")
    patience: int | None = Field(None, ge=1, description="Stop after so many validations without improvement.")
    data: dict[str, Any] = Field(default_factory=dict, description="Overrides of `data` for this stage.")
    alternate: tuple[AlternateConfig, ...] = Field(
        (), description="Groups that learn by turns, round after round; `losses` is then what validation weighs."
    )
    same_batch: bool = Field(False, description="All updates of a round of `alternate` see the same batch.")

    @property
    def loss_names(self) -> list[str]:
        """Every loss the stage names, in `losses` or in a group of `alternate`."""
        return list(dict.fromkeys([*self.losses, *(name for group in self.alternate for name in group.losses)]))


class GenerateSettings(TypedDict, total=False):
    """Arguments of transformers' ``generate()`` that a recipe sets."""

    max_new_tokens: Required[int]
    do_sample: Required[bool]
    no_repeat_ngram_size: int
    top_k: int
    top_p: float
    temperature: float
    num_beams: int
    length_penalty: float


class DecodingConfig(Strict):
    """How replies are made at evaluation."""

    strategy: Literal["greedy", "beam", "diverse_beam", "shrinking_beam", "sample"] = "greedy"
    num_beams: int = Field(5, ge=1)
    num_groups: int = Field(6, ge=1, description="Groups of beams (`diverse_beam`); divides `num_beams`.")
    diversity: float = Field(0.5, ge=0, description="What a piece costs for each use by an earlier group.")
    top_k: int = Field(0, ge=0)
    top_p: float = Field(1.0, gt=0, le=1)
    temperature: float = Field(1.0, gt=0)
    max_new_tokens: int = Field(50, ge=1)
    no_repeat_ngram_size: int = Field(0, ge=0, description="No n-gram of pieces twice in a reply; 0 = no limit.")
    length_penalty: float = Field(1.0, description="A beam's score is divided by its pieces to this power.")
    seed: int = 1024

    def generate_settings(self) -> GenerateSettings:
        """Arguments of ``generate()`` for the strategies that transformers knows: greedy, beam, sample."""
        settings: GenerateSettings = {"max_new_tokens": self.max_new_tokens, "do_sample": self.strategy == "sample"}
        if self.no_repeat_ngram_size:
            settings["no_repeat_ngram_size"] = self.no_repeat_ngram_size
        if self.strategy == "sample":
            settings.update(top_k=self.top_k, top_p=self.top_p, temperature=self.temperature)
        elif self.strategy == "beam":
            settings.update(num_beams=self.num_beams, length_penalty=self.length_penalty)
        return settings


class PublishedRow(Sparse):
    """The row of a paper's table a run is compared with; see :func:`empatheia.metrics.published.published`."""

    unwritten = dict.fromkeys(("paper", "table", "row", "setting", "dataset"), ("",))

    paper: str
    table: str
    row: str
    setting: str = Field("", description="Whole words of the setting, where a row has several.")
    dataset: str = Field("", description="Whole words of the test set's name, where a row has several.")


class Recipe(Sparse):
    """Everything that determines a run."""

    unwritten = {"overrides": ((), [])}

    name: PathName = Field(description="Of the recipe and its run folder, e.g. `gao2021/soft`.")
    task: str = Field("respond", description=f"One of: {', '.join(DATA_CONFIGS)}.")
    system: str = Field(description="Registry name of the model.")
    size: Size = "full"
    seed: int = Field(1024, ge=0, lt=1 << 32)
    note: str = Field("", description="What a reader of the numbers must know.")
    encoder: str | None = Field(None, description="Pretrained encoder by folder or name; None = from scratch.")
    start: str | None = Field(
        None, description="Run or model folder whose weights and pieces it starts from; {size}, {seed} are the run's."
    )
    model: dict[str, Any] = Field(default_factory=dict, description="Fields of the model's configuration.")
    tokenizer: TokenizerConfig = TokenizerConfig.model_validate({})
    data: Any = Field(default={}, validate_default=True, description="See the task's data class.")
    stages: tuple[StageConfig, ...] = Field(
        (), description="At least one, but where a task needs no training, or to measure ``start`` as it is."
    )
    decoding: DecodingConfig = DecodingConfig.model_validate({})
    sentence_encoder: str | None = Field(
        None, description="Encoder whose vectors say how alike replies and gold replies are (SES); None = not measured."
    )
    published: PublishedRow | None = None
    overrides: tuple[str, ...] = Field((), description="What differs from the recipe's file, as given to --set.")

    @field_validator("task")
    @classmethod
    def _known_task(cls, value: str) -> str:
        if value not in DATA_CONFIGS:
            raise ValueError(
                f"no task {value!r}.{nearest(value, list(DATA_CONFIGS))} There are: {', '.join(DATA_CONFIGS)}"
            )
        return value

    @field_validator("data", mode="before")
    @classmethod
    def _data_of_task(cls, value: Any, info: ValidationInfo) -> TaskData:
        accepted = DATA_CONFIGS[info.data.get("task", "respond")]
        return value if isinstance(value, accepted) else accepted.model_validate(value)

    def dump(self) -> str:
        """The resolved recipe as YAML; :func:`load_recipe` reads it back to an equal one."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=110)


def check_recipe_size(size: str) -> None:
    """Whether recipes have such a size.

    Raises:
        ConfigError: They do not; says which there are.
    """
    if size not in SIZES:
        raise ConfigError(f"unknown size {size!r}.{nearest(size, list(SIZES))} Accepted: {', '.join(SIZES)}.")


def load_recipe(
    path: str | Path, size: str | None = None, overrides: list[str] | tuple[str, ...] = (), seed: int | None = None
) -> Recipe:
    """Reads, resizes, overrides and validates a recipe.

    Args:
        path: The YAML file, or the name of a recipe that comes with the installation, e.g. ``gao2021/soft``.
        size: ``smoke``, ``row`` (laid on ``cpu``), ``cpu`` or ``full``; None = the file's own ``size`` (else ``full``).
        overrides: Texts such as ``model.dropout=0.2`` or ``stages.joint.epochs=2``.
        seed: Shorthand for ``seed=...``.

    Raises:
        ConfigError: Anything wrong, with the key, what was found, and the nearest accepted key.
    """
    path = find_recipe(path)
    tree: dict[str, Any] = read_recipe_tree(path)
    sizes = tree.pop("sizes", {})
    if not isinstance(sizes, dict) or set(sizes) - set(SIZES):
        raise ConfigError(f"{path}: `sizes` accepts {', '.join(SIZES)}; found {sizes if not sizes else [*sizes]}.")
    if size is not None:
        check_recipe_size(size)
        if size not in (own := _own_sizes(sizes)) and size != tree.get("size"):
            raise ConfigError(f"{path} has no size {size!r}. Accepted: {', '.join(own)}.")
    size = size or tree.get("size", "full")
    for name in ("cpu", "row") if size == "row" else (size,):
        changes = sizes.get(name) or {}
        if not isinstance(changes, dict):
            raise ConfigError(f"{path}: `sizes.{name}` is a mapping of overrides; found {changes!r}.")
        tree = merge(tree, changes)
    tree["size"] = size
    for override in overrides:
        tree = apply_override(tree, override)
    if seed is not None:
        tree["seed"] = seed
    if overrides:
        tree["overrides"] = [*tree.get("overrides", ()), *overrides]
    return validate_recipe(tree, str(path))


def recipe_sizes(path: str | Path) -> tuple[Size, ...]:
    """The sizes a recipe has: ``row`` only where its file, or one it extends, gives it.

    Raises:
        ConfigError: See :func:`read_recipe_tree`.
    """
    return _own_sizes(read_recipe_tree(find_recipe(path)).get("sizes") or {})


def _own_sizes(sizes: Mapping[str, Any]) -> tuple[Size, ...]:
    return tuple(size for size in SIZES if size != "row" or sizes.get(size) is not None)


def read_recipe_tree(path: str | Path) -> dict[str, Any]:
    """A recipe laid on those it extends, its ``sizes`` block still apart; not validated.

    Raises:
        ConfigError: No such file, not YAML, or ``extends`` goes round in a circle.
    """
    return _read_tree(Path(path), ())


NOT_TRAININGS = ("curation", "studies")
"""Folders of recipes that other commands than ``train`` read."""
QUEUE = "queue.yaml"
"""Beside them, the runs in the order in which they are to be made; see :mod:`empatheia_research.recipes.queue`."""


def recipe_files(root: Path) -> list[Path]:
    """The recipes of trainings below a folder, in order."""
    found = (path for path in root.rglob("*.yaml") if path.parent.name not in NOT_TRAININGS)
    return sorted(path for path in found if path != root / QUEUE)


def recipe_titles() -> dict[str, str]:
    """The recipes of the installation that train something: name to what its file says of itself first."""
    root, titles = recipes_root(), {}
    for file in recipe_files(root):
        lines = takewhile(lambda line: line.startswith("#"), file.read_text(encoding="utf-8").splitlines())
        about = " ".join(line.removeprefix("#").strip() for line in lines).partition(" Run: ")[0]
        titles[file.relative_to(root).with_suffix("").as_posix()] = re.split(r"\.(?: (?=[A-Z])|$)", about)[0]
    return titles


def find_recipe(given: str | Path) -> Path:
    """A recipe's file, given as a path or by name: a file is taken as it is, else the installation's recipes are asked.

    Args:
        given: E.g. ``mine.yaml``, ``recipes/gao2021/soft.yaml`` (also where there is no folder ``recipes``) or
            ``gao2021/soft``.

    Raises:
        ConfigError: It is no file, and no recipe of that name comes with the installation; names the nearest.
    """
    path = Path(given)
    try:
        if path.is_file():
            return path
        root = recipes_root()
    except (OSError, MissingResourceError):  # read_yaml says what is wrong with the path
        return path
    name = path.as_posix().removeprefix("./").removeprefix("recipes/").removesuffix(".yaml")
    known = {file.relative_to(root).with_suffix("").as_posix(): file for file in sorted(root.glob("*/*.yaml"))}
    if name in known:
        return known[name]
    if path.is_absolute() or path.suffix == ".yaml":  # read_yaml names the nearest file
        return path
    alike = [key for key in known if key.rpartition("/")[2] == name]
    near = f" Did you mean {alike[0]!r}?" if alike else nearest(name[:200], list(known))
    raise ConfigError(
        f"no recipe at {str(path)[:300]!r}.{near} Accepted: a YAML file, or the name of one that comes with empatheia,"
        f" such as 'gao2021/soft'; `empatheia train --list` shows all, and they are in {root}."
    )


def _read_tree(path: Path, below: tuple[Path, ...]) -> dict[str, Any]:
    """A recipe laid on the one it ``extends``, and that one on its own parent."""
    if path in below:
        raise ConfigError(
            f"{path}: `extends` goes round in a circle: {' -> '.join(map(str, (*below, path)))}. Remove one."
        )
    tree = read_yaml(path)
    base = tree.pop("extends", None)
    if base is not None and not isinstance(base, str):
        raise ConfigError(f"{path}: `extends` is the file name of another recipe; found {base!r}.")
    return tree if base is None else merge(_read_tree(path.parent / base, (*below, path)), tree)


def validate_recipe(tree: Mapping[str, object], origin: str) -> Recipe:
    """A :class:`Recipe` from a plain tree; ``origin`` names the file in errors (see :func:`load_recipe`)."""
    try:
        recipe = Recipe.model_validate(tree)
    except ValidationError as problem:
        raise ConfigError(f"{origin}: {explain_invalid(problem, tree, Recipe, blocks=_blocks(tree))}") from None
    if (place := _not_finite(recipe.model_dump())) is not None:  # in a block that the model's own class reads
        raise ConfigError(f"{origin}: {place[0]}: Input should be a finite number (found {place[1]!r}).")
    _check_stages(recipe, origin)
    return recipe


def _blocks(tree: Mapping[str, object]) -> dict[str, type[BaseModel]]:
    """The class of the ``data`` block, which the task determines."""
    return {"data": DATA_CONFIGS.get(str(tree.get("task", "respond")), DataConfig)}


def _not_finite(value: Any, where: str = "") -> tuple[str, float] | None:
    """Where a NaN or infinite number is among values, and the number; None if there is none."""
    if isinstance(value, float):
        return None if math.isfinite(value) else (where, value)
    named = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    found = (_not_finite(inner, f"{where}.{name}" if where else str(name)) for name, inner in named)
    return next(filter(None, found), None)


def _check_stages(recipe: Recipe, origin: str) -> None:
    """What would otherwise show only when the stage begins, perhaps hours later."""
    names = [stage.name for stage in recipe.stages]
    if not names and recipe.task not in WITHOUT_TRAINING and recipe.start is None:
        raise ConfigError(
            f"{origin}: stages is missing or empty; task {recipe.task!r} needs at least one, or a start: the run whose"
            " weights are measured as they are."
        )
    accepted_data = DATA_CONFIGS[recipe.task]
    for stage in recipe.stages:
        where = f"stages.{stage.name}"
        if names.count(stage.name) > 1:
            raise ConfigError(f"{origin}: {where}: {names.count(stage.name)} stages have this name; names differ.")
        accepted = ["loss", *stage.losses]
        if stage.select is not None and stage.select not in accepted:
            raise ConfigError(
                f"{origin}: {where}.select: no loss {stage.select!r}.{nearest(stage.select, accepted)}"
                f" Accepted: {', '.join(accepted)}."
            )
        try:
            accepted_data.model_validate(merge(recipe.data.model_dump(mode="json"), stage.data))
        except ValidationError as problem:
            raise ConfigError(f"{origin}: {explain_invalid(problem, {}, accepted_data, f'{where}.data.')}") from None


def validate_model_fields(fields: Mapping[str, object], accepted: list[str], origin: str) -> None:
    """Checks the ``model:`` block of a recipe against a configuration class's own parameters.

    Raises:
        ConfigError: A key is unknown; names the nearest.
    """
    for key in fields:
        if key not in accepted:
            raise ConfigError(
                f"{origin}: unknown key 'model.{key}'.{nearest(key, accepted)} Accepted here: {', '.join(accepted)}."
            )


def stage_data_config(recipe: Recipe, over: Mapping[str, object]) -> DataConfig:
    """The recipe's data block with a stage's overrides.

    Raises:
        ConfigError: An unknown key among them.
    """
    tree = recipe.model_dump(mode="json")
    tree["data"] = merge(tree["data"], over)
    return validate_recipe(tree, f"recipe {recipe.name!r}, stage data").data
