"""One of 41 emotions and intents for each turn of a context, and one for the reply that is to come (Xie and Pu 2021).

The labels of turns are a classifier's (section 3.2: the bare utterance is read, the most probable label counts), in
training, measuring and answering alike; a file may hold what it said of a training corpus. The reply's label is a
predictor's, which reads the context and its labels. In training the label of the *gold* reply is there, too, as a
feature of its own.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.reading import Json, read_record
from empatheia.records.dialogue import Example
from empatheia.resources import cache_dir, resolve_model
from empatheia.taxonomy import LABELS_41
from empatheia.writing import whole_file
from empatheia_research.corpora import sample
from empatheia_research.corpora.turn_labels import LabelledTurns, load_released, read_turn_labels
from empatheia_research.text.collation import EncodedExample, pad_rows
from empatheia_research.text.tokenizer import DialogueTokenizer

logger = logging.getLogger(__name__)
UNKNOWN = -1
INDEX = {name: i for i, name in enumerate(LABELS_41)}
MAKE = {
    "classifier": "Make it with: empatheia models train intent; or name a folder.",
    "predictor": "Make it with: empatheia models train reaction; or name a folder.",
}
_WORTH_KEEPING = 1_000
"""So many newly labelled training texts are remembered in the cache."""


class LabelsOfTurns:
    """Features ``turn_label_ids``, ``reply_label_ids`` and, for training, ``gold_reply_label_ids``.

    Without any setting all labels are unknown (-1), as a system that reads none wants it.

    Args:
        tokenizer: The system's pieces.
        classifier: Folder or name of a 41-class classifier of single turns (``intent``).
        predictor: Folder or name of a predictor of the reply's label (``reaction``).
        labels: What the classifier said of a training corpus: a file (``corpora/turn_labels.py``), ``released`` (the
            labels of EmpatheticIntents) or ``sample``. Read in training; elsewhere only if there is no classifier.
        must_exist: A model or file that is not here is an error; False: a doubt about each answer.

    Raises:
        ConfigError: The file's labels are another model's than the classifier.
        MissingResourceError: A model or the file is not here.
        DataError: The file is no label file.
    """

    features: ClassVar[tuple[str, ...]] = ("turn_label_ids", "reply_label_ids", "gold_reply_label_ids")

    def __init__(
        self,
        tokenizer: DialogueTokenizer,
        *,
        classifier: str | None = None,
        predictor: str | None = None,
        labels: str | None = None,
        must_exist: bool = True,
    ) -> None:
        self.classifier = classifier
        self.predictor = predictor
        self.labels = labels
        self._must_exist = must_exist
        self._folders: dict[str, Path] = {}
        self._models: dict[str, Any] = {}
        self._doubts: list[str] = []
        for part, place in (("classifier", classifier), ("predictor", predictor)):
            if place is not None:
                self._find(part, place)
            elif classifier or predictor or labels:
                self._doubts.append(f"no {part} of labels is set")
        self._file = self._read_file()
        self._check_agreement()

    def settings(self) -> dict[str, Json]:
        """See :class:`empatheia_research.side_inputs.SideInput`; in a loaded model its labellers may be missing."""
        given = {"classifier": self.classifier, "predictor": self.predictor, "labels": self.labels}
        return {**given, "must_exist": False}

    def add(self, examples: Sequence[Example], items: Sequence[EncodedExample]) -> None:
        """Writes ``turn_labels`` (one a turn of the context) and ``reply_label`` (predicted) into ``item.extra``."""
        known = self._of_contexts(examples, from_file="classifier" not in self._folders)
        for item, own, reply in zip(items, known, self._predict(examples, known), strict=True):
            item.extra |= {"turn_labels": own, "reply_label": reply}
            if self._doubts:
                item.extra["doubts"] = [*item.extra.get("doubts", []), *self._doubts]

    def teach(self, examples: Sequence[Example], items: Sequence[EncodedExample]) -> None:
        """For examples that are learnt from: ``turn_labels``, and ``gold_reply_label``, that of the gold reply.

        No label of the reply is predicted here; training does not read one.
        """
        known = self._of_contexts(examples, from_file=True, keep=True)
        replies = self._of_replies(examples)
        for item, own, reply in zip(items, known, replies, strict=True):
            item.extra |= {"turn_labels": own, "gold_reply_label": reply}

    def collate(self, items: Sequence[EncodedExample], pad_id: int, width: int) -> dict[str, Tensor]:
        """Labels as numbers, -1 unknown: of each piece's turn ``(batch, source)``, of the reply ``(batch,)``, twice.

        CLS has the label of the turn behind it.
        """
        return {
            "turn_label_ids": pad_rows([_piece_labels(item) for item in items], UNKNOWN, width),
            "reply_label_ids": torch.tensor([item.extra.get("reply_label", UNKNOWN) for item in items]),
            "gold_reply_label_ids": torch.tensor([item.extra.get("gold_reply_label", UNKNOWN) for item in items]),
        }

    # -- labels ----------------------------------------------------------------------------------------------

    def _of_contexts(self, examples: Sequence[Example], *, from_file: bool, keep: bool = False) -> list[list[int]]:
        rows = [self._filed(example) if from_file else None for example in examples]
        unfiled = [example for example, row in zip(examples, rows, strict=True) if row is None]
        found = self._classify((turn.text for example in unfiled for turn in example.context), keep=keep)
        return [
            row[: len(example.context)] if row is not None else [found[turn.text] for turn in example.context]
            for example, row in zip(examples, rows, strict=True)
        ]

    def _of_replies(self, examples: Sequence[Example]) -> list[int]:
        rows = [self._filed(example) for example in examples]
        asked = {e.response for e, row in zip(examples, rows, strict=True) if row is None and e.response is not None}
        found = self._classify(asked, keep=True)
        labels = []
        for example, row in zip(examples, rows, strict=True):
            if example.response is None:
                labels.append(UNKNOWN)
            else:
                labels.append(found[example.response] if row is None else row[example.turn_index])
        return labels

    def _filed(self, example: Example) -> list[int] | None:
        """All labels the file has of the dialogue; None if it has not this dialogue up to the reply."""
        names = None if self._file is None else self._file.turns.get(example.dialogue_id)
        if names is None or example.turn_index != len(example.context) or len(names) <= example.turn_index:
            return None
        return [UNKNOWN if name is None else INDEX[name] for name in names]

    def _classify(self, texts: Iterable[str], *, keep: bool) -> dict[str, int]:
        """The classifier's label of each text."""
        wanted = sorted(set(texts))
        if "classifier" not in self._folders:
            return dict.fromkeys(wanted, UNKNOWN)
        memory = self._models.setdefault("memory", _Memory(self._folders["classifier"])) if keep else None
        known = {} if memory is None else memory.recall(wanted)
        if new := [text for text in wanted if text not in known]:
            component = self._component()
            order = [INDEX[name] for name in component.labels]
            found = component.classify_texts(new).argmax(-1).tolist()  # a tie: the lowest index
            known |= {text: order[i] for text, i in zip(new, found, strict=True)}
            if memory is not None:
                memory.keep({text: known[text] for text in new})
        return known

    def _predict(self, examples: Sequence[Example], known: Sequence[Sequence[int]]) -> list[int]:
        """The predictor's label of each reply to come."""
        if "predictor" not in self._folders or not examples:
            return [UNKNOWN] * len(examples)
        from empatheia_research.understanding.labels.next_label import NextTurn, ReactionPredictor, predict

        if "predictor" not in self._models:
            self._models["predictor"] = ReactionPredictor.open(self._folders["predictor"])
        model, reader = self._models["predictor"]
        names = [tuple(None if i < 0 else LABELS_41[i] for i in row) for row in known]
        items = [NextTurn(example.context, row) for example, row in zip(examples, names, strict=True)]
        return predict(model, reader, items).argmax(-1).tolist()

    # -- where they come from ----------------------------------------------------------------------------------

    def _find(self, part: str, place: str) -> None:
        try:
            self._folders[part] = resolve_model(place)
        except MissingResourceError as problem:
            if self._must_exist:
                raise MissingResourceError(f"side input turn_labels, {part}: {problem} {MAKE[part]}") from None
            self._doubts.append(f"the {part} of labels, {place!r}, is not here: the model answers without its labels")

    def _read_file(self) -> LabelledTurns | None:
        if self.labels is None:
            return None
        try:
            if self.labels == "sample":
                return load_released(sample.root())
            return load_released() if self.labels == "released" else read_turn_labels(self.labels)
        except MissingResourceError:
            if self._must_exist:
                raise
            return None  # only training needs it, or the classifier's absence says so

    def _check_agreement(self) -> None:
        """Labels of one model in training and of another in use would not mean the same."""
        if self._file is None or "classifier" not in self._folders or not self._must_exist:
            return
        path = self._folders["classifier"] / "empatheia.json"
        try:
            name = read_record(path)["name"]
        except (OSError, ValueError, KeyError) as problem:
            raise CheckpointError(f"{path} cannot be read ({problem}); give the folder of a trained model.") from None
        if name != self._file.model:
            raise ConfigError(
                f"side input turn_labels: the labels in {self._file.path} are by {self._file.model!r}, the classifier"
                f" is {name!r}; label the corpus with the classifier (leave `labels` out), or leave `classifier` out."
            )

    def _component(self) -> Any:
        if "classifier" not in self._models:
            from empatheia_research.understanding.labels.turns import IntentOfTurns

            classifier = IntentOfTurns.load(self._folders["classifier"]).classifier
            if classifier.model.config.reads != "turn":
                raise ConfigError(
                    f"side input turn_labels: {classifier.name!r} reads contexts; accepted: a classifier of single"
                    " turns, as recipes/meed2/emotion_intent.yaml makes it."
                )
            self._models["classifier"] = classifier
        return self._models["classifier"]


class _Memory:
    """What a classifier said of training texts, kept between runs: hashes and labels, no text.

    Args:
        folder: Of the classifier; its weights name the file.
    """

    def __init__(self, folder: Path) -> None:
        from empatheia_research.understanding.vectors.texts import weights_fingerprint

        self.path = cache_dir() / "turn_labels" / f"{weights_fingerprint(folder)[:16]}.json"
        try:
            self._known: dict[str, int] = read_record(self.path)
        except (OSError, ValueError):
            self._known = {}

    def recall(self, texts: Sequence[str]) -> dict[str, int]:
        """Labels of those it knows."""
        keys = {text: self._key(text) for text in texts}
        return {text: self._known[key] for text, key in keys.items() if key in self._known}

    def keep(self, labels: dict[str, int]) -> None:
        """Adds labels; the file is written when that saves real work, and a disk that cannot be written is no error."""
        self._known |= {self._key(text): label for text, label in labels.items()}
        if len(labels) < _WORTH_KEEPING:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(self.path) as part:
                part.write_text(json.dumps(self._known), encoding="utf-8")
        except OSError as problem:
            logger.warning("labels of turns are not remembered: cannot write %s (%s)", self.path, problem)

    @staticmethod
    def _key(text: str) -> str:
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _piece_labels(item: EncodedExample) -> list[int]:
    labels = item.extra.get("turn_labels", ())
    turns = [*item.turn_ids[1:2], *item.turn_ids[1:]]  # CLS reads as the turn behind it
    return [labels[turn] if 0 <= turn < len(labels) else UNKNOWN for turn in turns]


__all__ = ["LabelsOfTurns"]
