"""What a recipe needs and this machine lacks: corpora, packages, models, files, room; nothing is read, no torch loaded.

A queue makes the runs that others read first (:func:`empatheia_research.recipes.needs.runs_to_make_first`) and asks
:func:`missing_for`; whoever trains recipes as they are named asks :func:`check_before`.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empatheia.errors import MissingResourceError
from empatheia.listener.parts import PART_MODELS
from empatheia.resources import corpus_roots, find_corpus_file, is_at_hand, is_offline
from empatheia.resources.lookup import GET_GGUF, GGUF_NAMES, MINILM_NAMES, installed_model
from empatheia_research.corpora import CORPORA, labelled_texts, lexicons, place_of, senticnet, turn_labels
from empatheia_research.recipes.needs import RUNS, NeededRun, runs_needed, runs_to_make_first
from empatheia_research.recipes.recipe import Recipe
from empatheia_research.shipped import shipped_path

_SELF_WRITTEN = frozenset(("sample", "none", "released"))
_PLACES_OF_MODELS = ("encoder", "start", "sentence_encoder")
_MODELS_OF_DATA = ("estimator", "masked", "listener", "near", "classifier", "beside", "pieces")
"""Fields of ``data`` that name models."""
_OWN = "EMPATHEIA_DATA/own/train.jsonl, a conversation a line, see docs/howto/own_data.md"
_MEGABYTES = {"smoke": 64, "row": 512, "cpu": 1024, "full": 2048}
"""What a run of a size may write at most: the weights and moments of two checkpoints beside the finished model."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that a recipe needs and that is not here.

    Attributes:
        what: In words.
        command: That brings it, or what to do.
        is_on_hub: It is fetched from the hub when it is asked for, if there is a connection.
    """

    what: str
    command: str
    is_on_hub: bool = False

    def __str__(self) -> str:
        return f"{self.what}; get it: {self.command}"


def missing_for(recipe: Recipe) -> tuple[Missing, ...]:
    """What must be brought before a recipe can be trained, what its needed runs lack included; each once."""
    first = [needed.load() for needed in runs_to_make_first([recipe])]
    found = [missing for one in (*first, recipe) for missing in lacking(one)]
    return tuple(dict.fromkeys(found))


def check_before(recipes: Sequence[Recipe], out: Path) -> dict[int, str]:
    """What stands in the way of recipes that are to be trained one after the other, before any work.

    Args:
        recipes: In that order; a run that an earlier one makes is not missing for a later one.
        out: Parent of the run folders. A finished run needs nothing.

    Returns:
        Place in the list to what that recipe lacks, in one line; of recipes that can be trained nothing.

    Raises:
        MissingResourceError: None of those that are not finished can be trained.
    """
    found: dict[int, str] = {}
    made: set[tuple[str, str, int]] = set()
    n_open = 0
    for place, recipe in enumerate(recipes):
        if (out / recipe.name / f"{recipe.size}-seed{recipe.seed}" / "metrics.json").is_file():
            continue
        n_open += 1
        runs = [one for one in _runs_first(recipe) if (one.recipe, one.size, one.seed) not in made]
        missing = [one for one in lacking(recipe) if not one.is_on_hub or is_offline()]
        missing += [
            Missing(f"run {one.folder}", f"empatheia train {one.recipe} --size {one.size} --seed {one.seed}")
            for one in runs
        ]
        missing += _room(recipe, out)
        if missing:
            told = "; ".join(dict.fromkeys(map(str, missing)))
            smoke = "" if recipe.size == "smoke" else ". To try the recipe without: --size smoke"
            found[place] = f"{recipe.name} at size {recipe.size} needs what is not here: {told}{smoke}."
        elif out.absolute() == RUNS.absolute():
            made.add((recipe.name, recipe.size, recipe.seed))
    if n_open and len(found) == n_open:
        raise MissingResourceError(" ".join(found.values()))
    return found


def _runs_first(recipe: Recipe) -> list[NeededRun]:
    """Runs of our recipes that a recipe reads itself and that are not finished."""
    return [one for one in runs_needed(recipe) if one.file.is_file() and not one.is_here]


def _room(recipe: Recipe, out: Path) -> Iterator[Missing]:
    """Whether the disk has room for what a run writes."""
    place = next((folder for folder in (out.absolute(), *out.absolute().parents) if folder.is_dir()), Path("/"))
    free, wanted = shutil.disk_usage(place).free // 1_000_000, _MEGABYTES[recipe.size]
    if free < wanted:
        told = f"room on the disk of {out}: {free:,} MB are free, a run of size {recipe.size} may write {wanted:,} MB"
        yield Missing(told, "free some space, or choose another --out")


def lacking(recipe: Recipe) -> Iterator[Missing]:
    """What a recipe itself names and this machine lacks."""
    data = recipe.data.model_dump(mode="json")
    yield from _corpora(recipe, data)
    own = [getattr(recipe, name) for name in _PLACES_OF_MODELS]
    shown = ("analyst",) if data.get("shown") else ()
    shown += ("reaction", "labeller") if "intent" in (data.get("shown") or ()) else ()
    named = [data.get(name) for name in (*_MODELS_OF_DATA, *shown)] + [*data.get("teachers", ())]
    yield from _models(recipe, [*own, recipe.tokenizer.distil, recipe.tokenizer.folder, *named])
    yield from _language_model(recipe)
    is_file = recipe.task == "respond"  # elsewhere a model that judges replies
    yield from _models(recipe, [None if is_file else data.get("mechanisms")])
    yield from _files([recipe.tokenizer.vectors, data.get("features"), data.get("emotion_teacher")])
    yield from _files([data.get("mechanisms") if is_file else None])
    yield from _causes(data)
    yield from _labels(None if data.get("corpus") == "sample" else data.get("labels"))
    for block in ("prepend", "external"):
        yield from _second_encoder(recipe, data.get(block) or {})
    for name, settings in (data.get("side_inputs") or {}).items():
        yield from _SIDE_INPUTS.get(name, _second_encoder)(recipe, settings)


# -- corpora and files ---------------------------------------------------------------------------------------


def _corpora(recipe: Recipe, data: Mapping[str, Any]) -> Iterator[Missing]:
    blocks = [data, *(stage.data for stage in recipe.stages)]
    names = [data.get("corpus"), *recipe.tokenizer.pool]
    names += [name for block in blocks for key in ("pool", "extra", "candidates") for name in block.get(key) or ()]
    names += ["reccon"] if data.get("spans") == "reccon" and data.get("corpus") != "sample" else []
    for name in dict.fromkeys(names):
        if name in (labelled_texts.NAME, "labelled_turns"):
            yield from _texts(str(data.get("path")))
        elif name == "own":  # among candidates and pools the recipe's own corpus, whichever that is
            if data.get("corpus") == name and place_of(name) is None:
                yield Missing("corpus own", _OWN)
        elif name in CORPORA and place_of(name) is None:
            yield Missing(f"corpus {name}", f"empatheia data get {name}")


def _texts(place: str) -> Iterator[Missing]:
    if place != "sample" and not any((root / place).exists() for root in (Path(), *corpus_roots())):
        known = f": from {labelled_texts.GET}" if place == "20newsgroups" else ""
        yield Missing(f"labelled texts {place}", f"EMPATHEIA_DATA/{place}{known}")
    elif place == "20newsgroups":
        yield from _package("scikit-learn", "sklearn", "topics")


def _files(places: Iterable[str | None]) -> Iterator[Missing]:
    for place in places:
        if place is not None and place not in _SELF_WRITTEN and not shipped_path(Path(place).expanduser()).is_file():
            yield Missing(f"file {place}", "put it there, or name another with --set")


def _causes(data: Mapping[str, Any]) -> Iterator[Missing]:
    if data.get("causes") == "lexicon":
        yield from _lexicon(data.get("causes_path"))
    elif data.get("causes") == "annotator":
        yield from _files([data.get("causes_path")])


def _lexicon(name: str | None) -> Iterator[Missing]:
    if name in lexicons.KNOWN:
        try:
            find_corpus_file(lexicons.FOLDER, lexicons.KNOWN[name])
        except MissingResourceError:
            yield Missing(f"lexicon {name}", f"EMPATHEIA_DATA/{lexicons.FOLDER}: from {lexicons.GET[name]}")
    else:
        yield from _files([name])


def _labels(name: Any) -> Iterator[Missing]:
    """Labels of turns: those released, or a file."""
    if name == "released":
        try:
            find_corpus_file(turn_labels.FOLDER, turn_labels.FILE)
        except MissingResourceError:
            yield Missing("released labels of turns", "empatheia data get empathetic_intents")
    elif isinstance(name, str) and name not in ("file", "turns"):
        yield from _files([name])


# -- models --------------------------------------------------------------------------------------------------


def _models(recipe: Recipe, places: Iterable[Any]) -> Iterator[Missing]:
    """Models by folder or name; runs of our recipes are made first and are no prerequisite."""
    made_first = {str(run.folder) for run in runs_needed(recipe) if run.file.is_file()}
    for place in places:
        if not isinstance(place, str) or place == "" or place.partition("/")[0] == "sample":
            continue
        folder = place.replace("{size}", recipe.size).replace("{seed}", str(recipe.seed))
        if folder.removesuffix("/checkpoint") in made_first or is_at_hand(folder):
            continue
        command = _command_for(folder)
        yield Missing(f"model {folder}", command, command.startswith("hf download"))


def _language_model(recipe: Recipe) -> Iterator[Missing]:
    """The weights that a language model is made of, and the packages that read and tune them."""
    base = str(recipe.model.get("base") or "")
    if base in GGUF_NAMES and installed_model(base) is None:
        if importlib.util.find_spec(GGUF_NAMES[base][0]) is None:
            yield Missing(f"language model {base}", GET_GGUF)
        else:
            yield from _package("gguf", "gguf", "gguf")
    elif base.lower().endswith(".gguf"):
        yield from (*_files([base]), *_package("gguf", "gguf", "gguf"))
    else:
        yield from _models(recipe, [base])
    if recipe.model.get("lora"):
        yield from _package("peft", "peft", "lora")


def _package(name: str, module: str, extra: str) -> Iterator[Missing]:
    if importlib.util.find_spec(module) is None:
        yield Missing(f"package {name}", f"pip install 'empatheia[{extra}]'")


def _command_for(name: str) -> str:
    """What brings a model."""
    if name in MINILM_NAMES:
        return "pip install 'empatheia[encoder]'"
    for model in PART_MODELS:
        if model.name == name:
            return model.remedy if model.recipe else "empatheia infer --build-index atomic --encoder words"
    if name.startswith(f"{RUNS}/") or Path(name).is_absolute():
        return "train it first, or name another folder with --set"
    return f"hf download {name} --local-dir {name}, then EMPATHEIA_MODELS=FOLDER that holds it"


def _second_encoder(recipe: Recipe, settings: Mapping[str, Any]) -> Iterator[Missing]:
    """Side inputs that read another model and nothing else: prepended labels, a second encoder."""
    yield from _models(recipe, [settings.get("classifier"), settings.get("encoder")])
    yield from _files([settings.get("path")])


def _turn_labels(recipe: Recipe, settings: Mapping[str, Any]) -> Iterator[Missing]:
    yield from _models(recipe, [settings.get("classifier"), settings.get("predictor")])
    yield from _labels(settings.get("labels"))


def _cause_turns(recipe: Recipe, settings: Mapping[str, Any]) -> Iterator[Missing]:
    """A detector, or what one said before."""
    if settings.get("use", "found") != "found":
        return
    if settings.get("detections"):
        yield from _files([settings["detections"]])
    else:
        yield from _models(recipe, [settings.get("detector"), settings.get("emotion")])


def _knowledge(recipe: Recipe, settings: Mapping[str, Any]) -> Iterator[Missing]:
    """Who answers, and what was answered before."""
    provider, cache = settings.get("provider"), settings.get("cache")
    if provider not in (None, "sample"):
        yield from _models(recipe, [provider])
    if cache is not None and not Path(cache).is_file():
        by = "" if provider in (None, "inferences", "sample") else f" --provider {provider}"
        heads = " --head causes --causes causes" if settings.get("head") in ("causes", "each") else ""
        yield Missing(f"cache of inferences {cache}", f"empatheia infer {recipe.data.corpus}{by}{heads} --out {cache}")


def _concept_graph(recipe: Recipe, settings: Mapping[str, Any]) -> Iterator[Missing]:
    assertions = settings.get("assertions")
    if assertions == senticnet.NAME:
        yield from _package("senticnet", "senticnet", "concepts")
    elif assertions is None:
        yield Missing("a file of ConceptNet", "--set data.side_inputs.concept_graph.assertions=PATH")
    else:
        yield from _files([assertions])
    yield from _lexicon(settings.get("lexicon", "warriner"))


def _emotion_words(recipe: Recipe, settings: Mapping[str, Any]) -> Iterator[Missing]:
    yield from _lexicon(settings.get("lexicon", "vader"))


_SIDE_INPUTS = {
    "turn_labels": _turn_labels,
    "cause_turns": _cause_turns,
    "knowledge_of_relations": _knowledge,
    "knowledge_of_types": _knowledge,
    "concept_graph": _concept_graph,
    "emotion_words": _emotion_words,
}
