"""Which recipe answers which printed number, and why the others have none.

A recipe says so itself (its ``published:`` block); what no recipe can say, and the reasons for numbers without one,
stand in ``reasons.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from empatheia.errors import ConfigError
from empatheia.metrics.published import DEFINITIONS, PAPERS, Published, has_words, read_published
from empatheia.registry import nearest
from empatheia.settings import read_package_yaml
from empatheia_research.recipes.recipe import read_recipe_tree, recipe_files

TESTED_ON = re.compile(r", test \d$")
"""RECCON prints a row for each fold a model is tested on: one model, several rows."""
# Parts of the column "notes" of the printed numbers that only define what the unit or metric is, or are told elsewhere
_PLAIN = (
    *("percent", "BLEU-4", "dagger", "mean of cumulative", "weighted recall equals", "cosine of", "zero-shot domain"),
    *("training data includes", "seeds listed as", "same system as", "evaluation split", "situations containing"),
    *("reproduced from", "lower (better)", "text 3", "that run "),
)
_SELECTORS = ("paper", "table", "dataset", "setting", "row", "metric")


@dataclass(frozen=True, slots=True)
class Target:
    """A recipe and the printed row it is compared with.

    Attributes:
        recipe: Its name, e.g. ``gao2021/soft``.
        file: Where it lies.
        seed: Its own seed.
        paper, table, row, setting, dataset: Its ``published:`` block, see
            :class:`~empatheia_research.recipes.PublishedRow`; ``table`` as printed.
    """

    recipe: str
    file: Path
    seed: int
    paper: str
    table: str
    row: str
    setting: str = ""
    dataset: str = ""

    @property
    def stands_in(self) -> str:
        """What is another system about it, if it stands in for the printed one; empty if it is that one."""
        return _notes_file().stand_ins.get(self.recipe, "")

    def answers(self, number: Published) -> bool:
        """Whether a run of this recipe measures that number.

        It does for the whole row it names, for the same row of tables that print the same systems, and, in RECCON, for
        the row of every fold the trained model is tested on.
        """
        return (
            number.paper == self.paper
            and number.table in _notes_file().same_systems(self.paper, self.table)
            and _model(number.paper, number.row) == _model(self.paper, self.row)
            and (
                number.dataset == self.dataset
                if self._names_whole_dataset()
                else has_words(self.dataset, number.dataset)
            )
            and has_words(self.setting, number.setting)
            and is_automatic(number)  # these two take longest
            and not _is_set_apart(number)
        )

    def _names_whole_dataset(self) -> bool:
        """Whether the table prints a test set of exactly that name: ``ED`` is then not also ``ED-cut``."""
        return (self.paper, self.table, self.dataset) in _datasets()


@cache
def _datasets() -> frozenset[tuple[str, str, str]]:
    return frozenset((number.paper, number.table, number.dataset) for number in read_published())


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a printed number has no recipe.

    Attributes:
        kind: ``data``, ``weights``, ``copied``, ``people``, ``chance`` or ``undefined``.
        text: In words.
        recipe: The name a recipe will have (``later``), or an empty string.
        see: Page of the documentation, or an empty string.
    """

    kind: str
    text: str
    recipe: str = ""
    see: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """What may explain a difference.

    Attributes:
        text: In words.
        see: Page of the documentation, or an empty string.
    """

    text: str
    see: str = ""


@dataclass(frozen=True, slots=True)
class Why:
    """What is known of a difference from print.

    Attributes:
        text: In words.
        shown_by: The experiment that shows it; empty where nothing was tried.
        see: Page of the documentation, or an empty string.
    """

    text: str
    shown_by: str = ""
    see: str = ""


def is_automatic(number: Published) -> bool:
    """Whether a program computes it: neither rated by people nor a fact about data or training."""
    definition = DEFINITIONS.get((number.paper, number.metric))
    return isinstance(definition, tuple) and (reason_of(number) or Reason("", "")).kind != "people"


def read_targets(recipes: Path) -> tuple[Target, ...]:
    """All recipes of a folder that name a printed row, by name.

    Raises:
        ConfigError: A recipe cannot be read.
    """
    found = []
    for file in recipe_files(recipes):
        tree = read_recipe_tree(file)
        row: Mapping[str, str] | None = tree.get("published")
        if row is None or not {"paper", "table", "row"} <= set(row):
            continue
        table = f"Table {row['table']}" if str(row["table"]).isdigit() else str(row["table"])
        place = (str(row["paper"]), table, str(row["row"]), row.get("setting", ""), row.get("dataset", ""))
        found.append(Target(str(tree["name"]), file, int(tree.get("seed", 1024)), *place))
    return tuple(sorted(found, key=lambda target: target.recipe))


def answering(number: Published, targets: Iterable[Target]) -> list[Target]:
    """The recipes that measure a printed number."""
    return [target for target in targets if target.answers(number)]


def reason_of(number: Published) -> Reason | None:
    """Why a number has no recipe, or None if nothing is known; a recipe that answers it comes before any reason."""
    definition = DEFINITIONS.get((number.paper, number.metric), "no score of this package measures it")
    if isinstance(definition, str):
        return Reason("undefined", f"{definition[0].upper()}{definition[1:]}.")
    for entry in _notes_file().reasons:
        recipes = entry.get("recipes", {})
        if _selects(entry, number) and (not recipes or number.row in recipes):
            return Reason(entry["kind"], entry["reason"], recipes.get(number.row, ""), entry.get("see", ""))
    return None


def _is_set_apart(number: Published) -> bool:
    """Whether its setting, not its row, is what cannot be had: candidates that are not released."""
    return any(
        "setting" in entry and entry["kind"] == "data" and _selects(entry, number) for entry in _notes_file().reasons
    )


def notes_of(number: Published) -> list[Note]:
    """What may explain a difference to a printed number; what the transcription found stands last."""
    entries = [entry for entry in _notes_file().notes if _selects(entry, number)]
    found = [Note(entry["note"], entry.get("see", "")) for entry in entries]
    printed = [part for part in number.notes.split("; ") if part and not part.startswith(_PLAIN)]
    if printed:
        found.append(Note(f"Found when the table was copied: {'; '.join(printed)}."))
    return found


def found_difference(number: Published, recipe: str, size: str) -> Why | None:
    """What somebody found out about a difference from a printed number; the first entry that selects the run counts."""
    for entry in _notes_file().differences:
        own = ((entry.get("recipe", recipe), recipe), (entry.get("size", size), size))
        if _selects(entry, number) and all(is_one_of(wanted, value) for wanted, value in own):
            return Why(entry["why"], entry.get("shown_by", ""), entry.get("see", ""))
    return None


def kind_meaning(kind: str) -> str:
    """What a kind of reason means, for a heading."""
    return _notes_file().kinds.get(kind, "no score of ours is defined as that number")


def table_key(number: Published) -> str:
    """How a table is called on the command line.

    >>> table_key(read_published()[3])
    'gao2021/2'
    """
    return f"{number.paper}/{_slug(number.table)}"


def tables() -> dict[str, tuple[Published, ...]]:
    """Every printed table: key to its numbers, in the order of print."""
    out: dict[str, list[Published]] = {}
    for number in read_published():
        out.setdefault(table_key(number), []).append(number)
    return {key: tuple(numbers) for key, numbers in out.items()}


def tables_named(names: Iterable[str]) -> list[str]:
    """Keys of the tables that are asked for, each once.

    Args:
        names: Keys (``gao2021/2``), tables as printed (``reccon/subtask 2, with context``), or papers.

    Raises:
        ConfigError: Unknown paper or table; names the nearest.
    """
    known = tables()
    chosen: list[str] = []
    for name in names:
        paper, slash, table = name.partition("/")
        if paper not in PAPERS:
            raise ConfigError(f"unknown paper {paper!r}.{nearest(paper, list(PAPERS))} Known: {', '.join(PAPERS)}.")
        own = [key for key in known if key.startswith(f"{paper}/")]
        key = f"{paper}/{_slug(table)}"
        if slash and key not in own:
            raise ConfigError(f"unknown table {name!r}.{nearest(key, own)} Known: {', '.join(own)}.")
        chosen += [key] if slash else own
    return list(dict.fromkeys(chosen))


def _slug(table: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", table.lower().removeprefix("table ")).strip("-")


def _model(paper: str, row: str) -> str:
    """The trained model behind a row."""
    return TESTED_ON.sub("", _notes_file().same_rows.get((paper, row), row))


@dataclass(frozen=True)
class _NotesFile:
    kinds: Mapping[str, str]
    tables: Mapping[str, list[str]]
    same_rows: Mapping[tuple[str, str], str]
    reasons: tuple[dict[str, Any], ...]
    notes: tuple[dict[str, Any], ...]
    stand_ins: Mapping[str, str]
    differences: tuple[dict[str, Any], ...]

    def same_systems(self, paper: str, table: str) -> list[str]:
        own = self.tables.get(paper, [])
        return own if table in own else [table]


@cache
def _notes_file() -> _NotesFile:
    tree = read_package_yaml(__file__, "reasons.yaml")
    return _NotesFile(
        MappingProxyType(tree["kinds"]),
        MappingProxyType(tree["same_systems"]),
        MappingProxyType({(entry["paper"], entry["row"]): entry["as"] for entry in tree["same_rows"]}),
        tuple(tree["reasons"]),
        tuple(tree["notes"]),
        MappingProxyType({entry["recipe"]: entry["as"] for entry in tree["stand_ins"]}),
        tuple(tree["differences"]),
    )


def _selects(entry: Mapping[str, Any], number: Published) -> bool:
    return all(is_one_of(entry.get(name, "*"), getattr(number, name)) for name in _SELECTORS)


def is_one_of(wanted: str | list[str], text: str) -> bool:
    """Whether a text fits a pattern, or one of several; ``*`` stands for any letters."""
    values = wanted if isinstance(wanted, list) else [wanted]
    return any(fnmatchcase(text, str(value)) for value in values)
