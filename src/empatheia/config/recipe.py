"""Recipes: YAML files that determine a run completely, in four sizes, with dotted overrides.

``load_recipe("recipes/gao2021/soft.yaml", size="smoke", overrides=["seed=7", "model.dropout=0.2"])`` merges the
file, its ``sizes.smoke`` block and the overrides, and validates every key; an unknown key names the nearest one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Literal, Required, TypedDict, TypeGuard

import yaml
from pydantic import (
    BaseModel,
    Field,
    PositiveFloat,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
)

from empatheia.config.data import DATA_CONFIGS, WITHOUT_TRAINING, DataConfig, TaskData
from empatheia.config.names import PathName, PlainName
from empatheia.errors import ConfigError, MissingResourceError
from empatheia.reading import read_text
from empatheia.registry import nearest
from empatheia.settings import Strict

Size = Literal["smoke", "row", "cpu", "full"]
SIZES: tuple[Size, ...] = ("smoke", "row", "cpu", "full")
"""``smoke``: a minute on samples; ``row``: ``cpu`` made smaller, equal for all rows of a table; ``cpu``; ``full``."""
YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The compiled one where PyYAML has it: ten times faster."""
_MOST_DEEP, _MOST_VALUES, _MOST_LOOKED_AT, _MOST_DIGITS = 40, 100_000, 200, 100
_TOO_DEEP = f"values are nested more than {_MOST_DEEP} deep, or in themselves; accepted: less."
_NUMBER = re.compile(r"[-+]?(0[xb][0-9a-fA-F_]+|[0-9][0-9_]*(:[0-9_.]+)*)")
"""What YAML makes a whole number of, or one to the base of 60."""
_EXPONENT = re.compile(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+")


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


class StageConfig(Strict):
    """One training phase."""

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

    @model_serializer(mode="wrap")
    def _without_blanks(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Later fields are written only where they are given: recipes of earlier runs stay the same."""
        later = ("alternate", "same_batch", "optimizer", "precision", "rates")
        return {name: value for name, value in handler(self).items() if value or name not in later}


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


class PublishedRow(Strict):
    """The row of a paper's table a run is compared with; see :func:`empatheia.metrics.published.published`."""

    paper: str
    table: str
    row: str
    setting: str = Field("", description="Whole words of the setting, where a row has several.")
    dataset: str = Field("", description="Whole words of the test set's name, where a row has several.")

    @model_serializer(mode="wrap")
    def _without_blanks(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What is not given is not written, so that recipes of runs made before these fields stay the same."""
        return {name: value for name, value in handler(self).items() if value}


class Recipe(Strict):
    """Everything that determines a run."""

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

    @model_serializer(mode="wrap")
    def _without_blanks(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Written only where something was overridden: recipes of earlier runs stay the same."""
        return {name: value for name, value in handler(self).items() if value or name != "overrides"}

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


def merge(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """``over`` laid on ``base``: dicts merge, lists of named dicts (stages) merge by name, all else replaces."""
    out = dict(base)
    for key, value in over.items():
        old = out.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            out[key] = merge(old, value)
        elif _is_named(value) and _is_named(old):
            by_name = {item["name"]: item for item in value}
            unknown = set(by_name) - {item["name"] for item in old}
            if unknown:
                raise ConfigError(
                    f"stage {sorted(unknown)[0]!r} is overridden but not defined;"
                    f" defined: {', '.join(item['name'] for item in old)}."
                )
            out[key] = [merge(item, by_name.get(item["name"], {})) for item in old]
        else:
            out[key] = value
    return out


def _is_named(value: object) -> TypeGuard[list[dict[str, Any]]]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(v, dict) and isinstance(v.get("name"), str) for v in value)
    )


def apply_override(tree: Mapping[str, object], override: str) -> dict[str, object]:
    """Sets ``a.b=value`` in a copy of a recipe tree; a stage is addressed by name: ``stages.joint.epochs=2``.

    Raises:
        ConfigError: The text has no ``=``, or no such stage.
    """
    path, equals, text = override.partition("=")
    if not equals:
        raise ConfigError(f"override {override!r} is not of the form key=value.")
    value = _parsed(text, f"override {override[:60]!r}")
    if isinstance(value, str) and _EXPONENT.fullmatch(value):  # YAML reads 1e-4 as text
        value = float(value)
    keys = path.strip().split(".")
    if keys[0] == "stages" and len(keys) >= 3:
        return merge(tree, {"stages": [merge({"name": keys[1]}, _nest(keys[2:], value))]})
    return merge(tree, _nest(keys, value))


def _nest(keys: list[str], value: Any) -> dict[str, Any]:
    for key in reversed(keys):
        value = {key: value}
    return value


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A YAML file that holds a mapping.

    Raises:
        ConfigError: Missing file (names the nearest in that folder), bad YAML (with line), or not a mapping.
    """
    path = Path(path)
    try:
        is_there = path.is_file()
    except OSError:  # a name that is too long for a file
        is_there = False
    if not is_there:
        name = str(path) if len(str(path)) <= 300 else f"{str(path)[:300]}..."
        raise ConfigError(f"no recipe at {name!r}.{nearest(name, _recipes_near(path)) or ' Check the path.'}")
    try:
        text = read_text(path)
    except ValueError as problem:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(problem).split())[:300]}.") from None
    tree = _parsed(text, str(path))
    if not isinstance(tree, dict):
        raise ConfigError(
            f"{path}: a recipe is a mapping of keys, found {type(tree).__name__}. Write `name: value` lines."
        )
    return tree


def _recipes_near(path: Path) -> list[str]:
    """Recipes one may have meant: in the folder of a path, or the nearest one above that is there, and one below."""
    try:
        folder = next((parent for parent in path.parents if parent.is_dir()), Path())
        folders = [folder, *(inner for inner in islice(folder.iterdir(), _MOST_LOOKED_AT) if inner.is_dir())]
        return sorted(str(file) for inner in folders for file in islice(inner.glob("*.yaml"), _MOST_LOOKED_AT))
    except OSError:  # a folder one may not read
        return []


def _parsed(text: str, origin: str) -> Any:
    """The value of a YAML text.

    Raises:
        ConfigError: It is none, or one that :func:`_check_nodes` refuses.
    """
    problem: Exception | None = None
    for loader in (YAML_LOADER, yaml.SafeLoader):  # the messages of the second name the right line
        try:
            _check_nodes(text, origin, loader)
            return yaml.load(text, loader)
        except ConfigError:
            raise
        except Exception as error:  # a tag on a value of another kind raises errors of all kinds
            problem = error
    raise ConfigError(f"{origin}: not valid YAML: {' '.join(str(problem).split())[:300]}.")


def _check_nodes(text: str, origin: str, loader: type) -> None:
    """Refuses, before values are made of it, what a short YAML text can blow up to.

    Anchors within anchors, merged or not, count as often as they are named; for deep nesting the compiled loader has no
    limit but its stack; numbers of many digits take the square of their length.

    Raises:
        ConfigError: It is.
        yaml.YAMLError: It is no YAML.
    """
    total, anchored, open_nodes = 0, dict[str, tuple[int, int]](), list[_OpenNode]()
    for event in yaml.parse(text, loader):
        levels = 0
        match event:
            case yaml.CollectionStartEvent():
                open_nodes.append(_OpenNode(event.anchor, total))
                total += 1
            case yaml.CollectionEndEvent():
                node = open_nodes.pop()
                levels = node.levels + 1
                anchored[node.anchor or ""] = (total - node.before, levels)
            case yaml.ScalarEvent():
                total += 1
                anchored[event.anchor or ""] = (1, 0)
                _check_digits(event, origin)
            case yaml.AliasEvent():  # one that is not anchored is in itself, or an error the loader tells
                is_in_itself = event.anchor in (node.anchor for node in open_nodes)
                size, levels = anchored.get(event.anchor, (0, _MOST_DEEP + 1 if is_in_itself else 0))
                total += size
        if len(open_nodes) + levels > _MOST_DEEP:
            raise ConfigError(f"{origin}: {_TOO_DEEP}")
        if total > _MOST_VALUES:
            raise ConfigError(
                f"{origin}: over {_MOST_VALUES:,} values and keys, its anchors resolved; accepted: fewer."
            )
        if open_nodes:
            open_nodes[-1].levels = max(open_nodes[-1].levels, levels)


def _check_digits(event: yaml.ScalarEvent, origin: str) -> None:
    if event.implicit[0] and len(event.value) > _MOST_DIGITS and _NUMBER.fullmatch(event.value):
        raise ConfigError(
            f"{origin}: a number of {len(event.value):,} characters; accepted: {_MOST_DIGITS}, or quotes."
        )


@dataclass
class _OpenNode:
    """A list or mapping that is being read: its anchor, the nodes before it, and the levels in it so far."""

    anchor: str | None
    before: int
    levels: int = 0


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
"""Beside them, the runs in the order in which they are to be made; see :mod:`empatheia.config.queue`."""


def recipe_files(root: Path) -> list[Path]:
    """The recipes of trainings below a folder, in order."""
    found = (path for path in root.rglob("*.yaml") if path.parent.name not in NOT_TRAININGS)
    return sorted(path for path in found if path != root / QUEUE)


def recipes_root() -> Path:
    """The folder of recipes: beside the package, or in the checkout it runs from.

    Raises:
        MissingResourceError: Neither is there.
    """
    package = Path(__file__).parents[1]
    for place in (package / "recipes", package.parents[1] / "recipes"):
        if place.is_dir():
            return place
    raise MissingResourceError(
        "this installation has no recipes. Reinstall the package: pip install --upgrade empatheia"
    )


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
        raise ConfigError(f"{origin}: {explain_invalid(problem, tree)}") from None
    if (place := _not_finite(recipe.model_dump())) is not None:  # in a block that the model's own class reads
        raise ConfigError(f"{origin}: {place[0]}: Input should be a finite number (found {place[1]!r}).")
    _check_stages(recipe, origin)
    return recipe


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


def explain_invalid(
    problem: ValidationError, tree: Mapping[str, object], model: type[BaseModel] = Recipe, prefix: str = ""
) -> str:
    """The first error of a validation on one line: the key, what was found, what is accepted, the nearest name.

    Args:
        problem: What pydantic raised.
        tree: What was validated.
        model: Against which class.
        prefix: In front of the key's path.
    """
    errors = problem.errors()  # a mistyped key also leaves the right one missing: tell the former
    first = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
    parts = [str(part) for part in first["loc"]]
    if len(parts) > 1 and parts[0] == "stages":  # name the stage instead of counting it
        stages = tree["stages"]
        named = stages[int(parts[1])] if isinstance(stages, Sequence) else None
        if isinstance(named, dict) and parts[2:] != ["name"]:
            parts[1] = str(named.get("name", parts[1]))
    where = prefix + ".".join(parts)
    if first["type"] != "extra_forbidden":
        return f"{where}: {first['msg']} (found {first.get('input')!r})."
    for part in first["loc"][:-1]:
        if model is Recipe and part == "data":
            model = DATA_CONFIGS.get(str(tree.get("task", "respond")), DataConfig)
        elif not isinstance(part, int):
            model = _class_of_field(model, part)
    known = list(model.model_fields)
    return f"unknown key {where!r}.{nearest(str(first['loc'][-1]), known)} Accepted here: {', '.join(known)}."


def _class_of_field(model: type[BaseModel], name: str) -> type[BaseModel]:
    """The class of a field's value, or of those in it if it is a collection."""
    annotation = model.model_fields[name].annotation
    args = getattr(annotation, "__args__", ())
    return next(kind for kind in (annotation, *args) if isinstance(kind, type) and issubclass(kind, BaseModel))


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
