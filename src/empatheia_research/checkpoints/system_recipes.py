"""The recipes that make each system that answers, and the command that trains one; nothing but recipes is read."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from empatheia.errors import EmpatheiaError, MissingResourceError
from empatheia_research.recipes.recipe import read_recipe_tree, recipe_files
from empatheia_research.responders import RESPONDERS
from empatheia_research.shipped import recipes_root


@dataclass(frozen=True, slots=True)
class RecipeEntry:
    """One recipe of a system.

    Attributes:
        name: E.g. ``gao2021/soft``.
        file: Where it is.
        corpus: What it learns from.
        published: The row it is compared with, as the recipe names it; empty if it names none.
        is_variant: It extends another recipe, or is the released code's form.
        base: Pretrained model it stands on, or empty.
        learns: Something is trained.
        start: Where its weights come from at size cpu, e.g. another recipe's run; empty if it begins anew.
    """

    name: str
    file: Path
    corpus: str
    published: Mapping[str, str]
    is_variant: bool
    base: str = ""
    learns: bool = True
    start: str = ""


@cache
def recipes_of_systems() -> Mapping[str, tuple[RecipeEntry, ...]]:
    """The recipes of each system of the registry, by name; a recipe that cannot be read is left out."""
    found: dict[str, list[RecipeEntry]] = {}
    try:
        root = recipes_root()
    except MissingResourceError:
        return {}
    for file in recipe_files(root):
        try:
            tree = read_recipe_tree(file)
        except EmpatheiaError:
            continue
        name, data = str(tree.get("name", "")), tree.get("data") or {}
        if not name or "system" not in tree:
            continue
        is_variant = "extends:" in file.read_text(encoding="utf-8") or name.endswith("_repo")
        corpus = str(data.get("corpus", "empathetic_dialogues"))
        base = str((tree.get("model") or {}).get("base") or "")
        entry = RecipeEntry(
            name,
            file,
            corpus,
            tree.get("published") or {},
            is_variant,
            base,
            learns=bool(tree.get("stages")),
            start={"start": tree.get("start"), **((tree.get("sizes") or {}).get("cpu") or {})}["start"] or "",
        )
        found.setdefault(str(tree["system"]), []).append(entry)
    return {system: tuple(rows) for system, rows in found.items()}


def how_to_get(name: str) -> str:
    """What is told where a system is named in the place of a model; empty for other names."""
    if name not in RESPONDERS:
        return ""
    return (
        f"{name!r} is a system, and no model of this name is on this machine. Its best checkpoint answers with"
        f" --system {name} (in Python: respond(text, system={name!r})); this makes one:"
        f" {command_to_make(name) or 'a recipe of your own'}."
    )


def command_to_make(name: str) -> str:
    """The command that trains a system for who has nothing yet; empty if no recipe is here."""
    return command_of(first_to_make(name))


def first_to_make(name: str) -> RecipeEntry | None:
    """The recipe for who has nothing yet: it starts from no other run."""
    recipes = recipes_of_systems().get(name) or recipes_of_systems().get(twin(name), ())
    return min(recipes, key=lambda r: (is_lesser(r.name, name), bool(r.start), rank(name, r, {})), default=None)


def rank(system: str, recipe: RecipeEntry, records: Container[str]) -> tuple[bool, bool, bool, bool, bool, int, str]:
    """No ablation, no step on the way to another; of these first one with a record, a published row, no variant."""
    plain = (recipe.is_variant, len(recipe.name), recipe.name)
    is_step = any(f"/{recipe.name}/" in other.start for other in recipes_of_systems().get(system, ()))
    return (is_lesser(recipe.name, system), is_step, recipe.name not in records, not recipe.published, *plain)


def twin(name: str) -> str:
    """Another name of the same class that has recipes, or an empty text."""
    same = [
        other for other in RESPONDERS.names() if other != name and RESPONDERS.target(other) == RESPONDERS.target(name)
    ]
    return next((other for other in same if other in recipes_of_systems()), "")


def command_of(recipe: RecipeEntry | None) -> str:
    """The command that trains it; empty without a recipe."""
    return "" if recipe is None else f"empatheia train {_shown(recipe.file)} --size cpu"


def is_lesser(recipe: str, system: str) -> bool:
    """By its name an ablation (``without_...``), a baseline of the same class (``trs...``) or ``..._repo``."""
    row = recipe.rpartition("/")[2]
    return row != system and re.search(r"(?:^|_)without_|^(?:trs|transformer)(?:_|$)|_repo$", row) is not None


def _shown(file: Path) -> str:
    """A recipe's file as one would type it."""
    return f"recipes/{file.relative_to(recipes_root()).as_posix()}"
