"""The systems that answer: what each is, which recipes make it, where a checkpoint of it lies, how good it is.

Everything is read from what is there anyway: the registry, the first lines of the modules, the recipes, the run
records, the model folders. A new system shows up without an edit here. No module of a system is imported.
"""

from __future__ import annotations

import ast
import importlib.util
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from empatheia.errors import CheckpointError, ConfigError, EmpatheiaError, MissingResourceError
from empatheia.metrics.published import DEFINITIONS, Published, other_settings, published
from empatheia.metrics.records import RunRecord, check_record, measured_of
from empatheia.metrics.score import Score
from empatheia.reading import Json, files_below, parse_json, read_record
from empatheia.registry import nearest
from empatheia.resources import cache_dir
from empatheia.resources.catalogue import ModelEntry, describe_model, known_models
from empatheia.resources.manifest import MANIFEST
from empatheia_research.checkpoints.system_recipes import (
    RecipeEntry,
    command_of,
    command_to_make,
    first_to_make,
    is_lesser,
    rank,
    recipes_of_systems,
)
from empatheia_research.corpora.licences import LICENCES
from empatheia_research.recipes.recipe import SIZES
from empatheia_research.responders import RESPONDERS
from empatheia_research.shipped import results_root

TOLD = ("accuracy", "ppl_word", "ppl_item", "ppl_token", "bleu_nltk_4", "bleu_avg", "p_at_1_100")
"""Scores a line of the table may show."""
ALWAYS = ("accuracy", "ppl_word", "bleu_nltk_4", "p_at_1_100")
"""Of these, the ones shown wherever we measured them; the others only beside a printed number."""
_CITATION = re.compile(
    r"[A-Z][\w-]+(?: et al\.,?| (?:and|&) [A-Z][\w-]+,?)(?:,? [A-Z][\w-]*| of| the){0,4} ?\(?(?:19|20)\d\d\b"
)
_REFERENCE = re.compile(r"(?P<first>[A-Z][^,.]*)(?P<others>, [^.]*)?\. .*?(?P<venue>[A-Z][\w -]*\b(?:19|20)\d\d)\.?\Z")
_SENTENCE_END = re.compile(r"(?<!\bal)(?<!\be\.g)(?<!\bcf)\.(?:\s|\Z)")


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """A run's model folder and its system."""

    system: str
    folder: Path


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """One system of the registry.

    Attributes:
        name: In ``RESPONDERS``.
        title: First sentence of its module.
        paper: What its module cites in its first paragraph or as the second, or the key of the paper its recipe is
            compared with; empty if neither.
        file: Its module, from ``empatheia`` on.
        recipe: The recipe the line is about: the system as published rather than an ablation; of those one with a
            record of ours, else with a published row; empty if none.
        recipes: All of them.
        size, seed: Of our record, or None.
        parameters: Of that record, or of the checkpoint; None if there is neither.
        ours: Score name to value, of that record; empty without one.
        unit: Score name to its unit.
        published: Score name (or printed metric, where we measure none) to the printed value; empty if none is.
        published_row: Where that is printed: the row of ``recipe``; of another recipe where that one has neither record
            nor row.
        licence: Of the weights: the checkpoint's, else what follows from the recipe's corpus.
        folder: Best checkpoint on this machine, or empty.
        command: What makes one; it needs no earlier run.
    """

    name: str
    title: str
    paper: str
    file: str
    recipe: str
    recipes: tuple[str, ...]
    size: str | None = None
    seed: int | None = None
    parameters: int | None = None
    ours: Mapping[str, float] = field(default_factory=dict)
    unit: Mapping[str, str] = field(default_factory=dict)
    published: Mapping[str, float] = field(default_factory=dict)
    published_row: str = ""
    licence: str = ""
    folder: str = ""
    command: str = ""

    @property
    def shown(self) -> list[str]:
        """Names of the scores that a line of the table shows."""
        return [name for name in TOLD if name in self.published or (name in ALWAYS and name in self.ours)]

    def to_dict(self) -> dict[str, Json]:
        """Plain JSON-ready data; ``kind`` tells it from a model folder."""
        return {"kind": "system", **asdict(self), "recipes": list(self.recipes)}


def known_systems(results: str | Path | None = None, runs: str | Path = "runs") -> list[SystemEntry]:
    """Every system, in the order of the registry.

    Args:
        results: Folder of run records; None = those that came with this installation.
        runs: Folder of run folders.
    """
    records = _records(results_root() if results is None else Path(results))
    recipes = recipes_of_systems()
    models = known_models()
    made = _run_checkpoints(Path(runs))
    return [_describe(name, recipes.get(name, ()), records, models, made) for name in RESPONDERS.names()]


def find_system(name: str, runs: str | Path = "runs") -> Path:
    """The best checkpoint of a system on this machine: bundled, installed, or of a run.

    Bundled models come first, then installed ones (EMPATHEIA_MODELS, the cache), then runs by size, the largest
    first; of these the system as published before its ablations, the baselines of its class and the released code's
    form; then the newest.

    Args:
        name: In ``RESPONDERS``.
        runs: Folder of run folders; those of ``empatheia models train`` in the cache are looked at, too.

    Raises:
        ConfigError: There is no such system.
        MissingResourceError: There is no checkpoint; says which command makes one.
    """
    check_system(name)
    folder = _best(name, known_models(), _run_checkpoints(Path(runs)))
    if folder is not None:
        return folder
    raise MissingResourceError(f"no checkpoint of {name!r} is bundled, installed or in {runs}. {_remedy(name)}")


def check_system(name: str) -> None:
    """Raises ConfigError, with the nearest name, unless a system is called so."""
    names = RESPONDERS.names()
    if name not in names:
        raise ConfigError(f"no system {name!r}.{nearest(name, names)} There are: {', '.join(names)}.")


def check_folder(folder: Path, name: str) -> None:
    """Makes sure that a model folder is of a system.

    Raises:
        CheckpointError: It is another's.
    """
    found = describe_model(folder, str(folder)).system
    if not _is_same(found, name):
        raise CheckpointError(f"{folder} is a model of {found!r}, not of {name!r}. {_remedy(name)}")


def _describe(
    name: str,
    recipes: Sequence[RecipeEntry],
    records: Mapping[str, Mapping[str, Any]],
    models: Sequence[ModelEntry],
    runs: Sequence[_Checkpoint],
) -> SystemEntry:
    title, paper, file = _module(name)
    folder = _best(name, models, runs)
    ranked = sorted(recipes, key=lambda r: rank(name, r, records))
    first = ranked[0] if ranked else None
    record = records.get(first.name, {}) if first is not None else {}
    scores = _scores(record)
    row = _published_row(ranked)
    own = first.published if first is not None and record else row  # nothing beside a number that is not its own
    return SystemEntry(
        name=name,
        title=title,
        paper=paper or str(row.get("paper", "")),
        file=file,
        recipe=first.name if first else "",
        recipes=tuple(recipe.name for recipe in recipes),
        size=record.get("size"),
        seed=record.get("seed"),
        parameters=record.get("parameters") or (_n_parameters(folder) if folder else None),
        ours={key: float(score.value) for key, score in scores.items()},
        unit={key: score.unit for key, score in scores.items()},
        published=_printed(own, scores),
        published_row=", ".join(str(value) for value in own.values()),
        licence=_licence(folder, first),
        folder=str(folder or ""),
        command=command_to_make(name),
    )


def _scores(record: Mapping[str, Any]) -> dict[str, Score]:
    """What was measured of a run, by name; without numbers that are none."""
    rows = measured_of(record).rows if record else ()
    return {row.name: row.score for row in rows if math.isfinite(row.score.value)}


def _published_row(recipes: Sequence[RecipeEntry]) -> Mapping[str, Any]:
    """The paper's row of the first recipe that has one."""
    return next((recipe.published for recipe in recipes if recipe.published), {})


def _remedy(name: str) -> str:
    first = first_to_make(name)
    if first is None:
        return "There is no recipe for it in this installation; name a model folder with --model."
    return (
        f"Make one with: {command_of(first)} (the recipe's first lines say what that needs);"
        " or name a model folder with --model."
    )


def _is_same(found: str, name: str) -> bool:
    return found == name or (found in RESPONDERS and RESPONDERS.target(found) == RESPONDERS.target(name))


def _best(name: str, models: Sequence[ModelEntry], runs: Sequence[_Checkpoint]) -> Path | None:
    for entry in models:
        if not entry.fault and _is_same(entry.system, name):
            return Path(entry.folder)
    return next((made.folder for made in runs if _is_same(made.system, name)), None)


def _run_checkpoints(runs: Path) -> list[_Checkpoint]:
    """Checkpoints of runs that can be used, the largest first, then those of no ablation, then the newest."""
    found = []
    for root in dict.fromkeys((runs, cache_dir() / "runs")):
        for manifest in root.glob(f"**/checkpoint/{MANIFEST}"):
            entry = describe_model(manifest.parent, str(manifest.parent))
            if not entry.fault:
                size = manifest.parent.parent.name.partition("-")[0]
                made = _Checkpoint(entry.system, manifest.parent)
                rank = list[str](SIZES).index(size) if size in SIZES else -1
                whole = not is_lesser(entry.title, entry.system)
                found.append((rank, whole, manifest.stat().st_mtime, made))
    return [made for *_, made in sorted(found, key=lambda row: row[:3], reverse=True)]


@cache
def _module(name: str) -> tuple[str, str, str]:
    """First sentence of a system's module, the citation in its first paragraph, its file; without importing it."""
    module = RESPONDERS.target(name).partition(":")[0]
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.origin:
        return "", "", ""
    path = Path(spec.origin)
    try:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    except (OSError, SyntaxError):
        text = ""
    title = _SENTENCE_END.split(" ".join(text.split()), maxsplit=1)[0]
    paper = _cited(title, [" ".join(paragraph.split()) for paragraph in text.split("\n\n")])
    return title, paper, "/".join(path.parts[-len(module.split(".")) :])


def _cited(title: str, paragraphs: Sequence[str]) -> str:
    """The paper as ``Name et al., VENUE YEAR``: in the title, the first paragraph, or a second that is a reference."""
    second = paragraphs[1] if len(paragraphs) > 1 else ""
    cited = _CITATION.search(title) or _CITATION.search(paragraphs[0]) or _CITATION.match(second)
    if cited is not None:
        return cited.group().replace("(", "")
    if (reference := _REFERENCE.match(second)) is None:
        return ""
    names = " and ".join(name.split()[-1] for name in reference["first"].split(" and "))
    return f"{names}{' et al.' if reference['others'] else ''}, {reference['venue']}"


def _records(results: Path | None) -> dict[str, RunRecord]:
    """The largest record of each recipe (smoke runs say nothing), the first seed of that size."""
    best: dict[str, tuple[int, RunRecord]] = {}
    for path in files_below(results, "*-seed*.json") if results is not None else ():
        try:
            record = check_record(read_record(path))
        except (OSError, ValueError):
            continue
        rank, name = SIZES.index(record["size"]), record["recipe"]
        if rank and (name not in best or rank > best[name][0]):
            best[name] = (rank, record)
    return {name: record for name, (_, record) in best.items()}


def _printed(row: Mapping[str, str], scores: Mapping[str, Score]) -> dict[str, float]:
    """The printed numbers of a row under our scores' names, in our units where they are one of percent and fraction.

    A number is left out where ours was measured in another way (over other words, by another protocol).
    """
    if not row:
        return {}
    try:
        found = published(**row)
    except (EmpatheiaError, TypeError):
        return {}
    out: dict[str, float] = {}
    for metric, number in found.items():
        definition = DEFINITIONS.get((number.paper, metric))
        if isinstance(definition, tuple):
            if _is_other(scores.get(definition[0]), number):
                continue
            out.setdefault(definition[0], round(100 * number.value, 6) if definition[1] == "fraction" else number.value)
        else:
            out.setdefault(metric, number.value)
    return out


def _is_other(ours: Score | None, number: Published) -> bool:
    """Whether ours is no number to set beside the printed one."""
    return ours is not None and bool(other_settings(ours, number))


def _licence(folder: Path | None, recipe: RecipeEntry | None) -> str:
    if folder is not None:
        return describe_model(folder, str(folder)).licence
    if recipe is None:
        return ""
    own = LICENCES[recipe.corpus].licence if recipe.learns and recipe.corpus in LICENCES else ""
    return "; ".join(filter(None, (own, f"that of {recipe.base}" if recipe.base else "")))


def _n_parameters(folder: Path) -> int | None:
    """Numbers in a checkpoint's weights, from the file's header."""
    try:
        with (folder / "model.safetensors").open("rb") as file:
            header = parse_json(file.read(int.from_bytes(file.read(8), "little")))
    except (OSError, ValueError):
        return None
    total = 0
    for name, tensor in header.items():
        if name != "__metadata__":
            n = 1
            for size in tensor["shape"]:
                n *= size
            total += n
    return total
