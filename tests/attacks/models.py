"""Whole model folders with one file damaged: what loads is used once, and what does not is told."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "understanding"))

import tiny_classifiers
from readers import Reader
from tiny_classifiers import encoder_classifier, linear_classifier

from tiny_responders import build_model_folder


@cache
def model_readers() -> tuple[Reader, ...]:
    """One for each file of each kind of model that is opened from a folder."""
    made = Path(tempfile.mkdtemp(prefix="models"))
    folders = [("responder", build_model_folder(made / "responder"), _answer)]
    folders.append(("classifier", tiny_classifiers.save(encoder_classifier(), made / "classifier"), _classify))
    folders.append(("word classifier", tiny_classifiers.save(linear_classifier(), made / "words"), _classify))
    return tuple(
        Reader(f"{kind}, {file.name}", file.name, file.read_bytes(), partial(_among, folder, use))
        for kind, folder, use in folders
        for file in sorted(folder.iterdir())
        if file.name not in ("README.md", "card.json")
    )


def _among(good: Path, use: Callable[[Path], object], folder: Path) -> None:
    """Puts the other files beside the damaged one."""
    for file in good.iterdir():
        if not (folder / file.name).exists():
            shutil.copyfile(file, folder / file.name)
    use(folder)


def _answer(folder: Path) -> None:
    from empatheia.listener.listener import Listener

    reply = Listener.load(folder).respond("I lost my keys and I am sad.", max_new_tokens=5)
    json.dumps(reply.to_dict(), allow_nan=False)


def _classify(folder: Path) -> None:
    from empatheia_research.understanding.labels.classifier import TextClassifier

    found: Any = TextClassifier.load(folder).classify_texts(["I lost my keys."])
    json.dumps(found.tolist(), allow_nan=False)
