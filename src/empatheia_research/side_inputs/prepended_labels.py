"""Labels in front of a text, as words: EmoPrepend-k and TopicPrepend-k of Rashkin et al. 2018.

The classifier is a model folder, e.g. of ``recipes/rashkin2018/fasttext.yaml`` or ``topics.yaml``. It reads the last
turns of a context, or a reply by itself. The released code puts one label after the other in front, so the order is
k-th, ..., second, best, text (``order: best_last``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from empatheia.errors import ConfigError, MissingResourceError
from empatheia.reading import Json
from empatheia.records.dialogue import Example
from empatheia.text.words import tokenize_words
from empatheia_research.corpora import labelled_texts, sample
from empatheia_research.text.collation import EncodedExample, pad_rows
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.understanding.labels.classifier import Text, TextClassifier

ORDERS = ("best_last", "best_first")
SAMPLES = ("sample/emotions", "sample/topics")


class Classifier(Protocol):
    """What says the labels."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Their names."""
        ...

    def classify_texts(self, texts: Sequence[Text]) -> np.ndarray:
        """Distributions. Shape: ``(n_texts, n_labels)``."""
        ...


class SampleClassifier:
    """Naive Bayes over the words of the self-written sample: stands in for a trained classifier in smoke runs.

    Args:
        texts: (label, text) pairs.
    """

    def __init__(self, texts: Sequence[tuple[str, str]]) -> None:
        self.labels = tuple(sorted({label for label, _ in texts}))
        counts = [Counter(w for name, text in texts if name == label for w in _words(text)) for label in self.labels]
        self.index = {word: i for i, word in enumerate(sorted(set().union(*counts)))}
        table = np.ones((len(self.labels), len(self.index)))
        for row, own in zip(table, counts, strict=True):
            for word, n in own.items():
                row[self.index[word]] += n
        self.log_p = np.log(table / table.sum(1, keepdims=True))

    def classify_texts(self, texts: Sequence[Text]) -> np.ndarray:
        """See :class:`Classifier`."""
        out = np.zeros((len(texts), len(self.labels)))
        for i, text in enumerate(texts):
            whole = text if isinstance(text, str) else " ".join(turn.text for turn in text)
            out[i] = self.log_p[:, [self.index[w] for w in _words(whole) if w in self.index]].sum(1)
        out = np.exp(out - out.max(1, keepdims=True))
        return out / out.sum(1, keepdims=True)


def _words(text: str) -> list[str]:
    return [word.text for word in tokenize_words(text, "recec")]


def load_classifier(name: str) -> Classifier:
    """A text classifier by folder or name, or one of ``SAMPLES``.

    Raises:
        MissingResourceError: There is no such folder; says what makes one.
        CheckpointError: The folder holds no text classifier.
    """
    if name == SAMPLES[0]:
        return SampleClassifier([(str(d.emotion), str(d.situation)) for d in sample.load("train").dialogues])
    if name == SAMPLES[1]:
        return SampleClassifier(labelled_texts.load("sample", "train"))
    try:
        return TextClassifier.load(name)
    except MissingResourceError as error:
        raise MissingResourceError(
            f"no classifier at {name!r} to prepend labels with. Train one: empatheia train recipes/rashkin2018/"
            "fasttext.yaml --size cpu (emotions) or topics.yaml (topics); or name another in the recipe."
        ) from error


class PrependedLabels:
    """The k best labels of each text, as pieces.

    Args:
        tokenizer: Of the model that reads them.
        classifier: Folder or name; None = nothing is prepended.
        k: Labels.
        order: ``best_last`` (next to the text; released code) or ``best_first``.
        max_turns: Turns of a context the classifier reads, the newest.

    Raises:
        ConfigError: ``k`` or ``order`` is out of range.
    """

    features: ClassVar[tuple[str, ...]] = ("prepended_ids",)

    def __init__(
        self,
        tokenizer: DialogueTokenizer,
        classifier: str | None = None,
        k: int = 1,
        order: str = "best_last",
        max_turns: int = 4,
    ) -> None:
        if order not in ORDERS or max_turns < 1:
            raise ConfigError(
                f"prepended_labels: order={order!r}, max_turns={max_turns}; accepted: {', '.join(ORDERS)}; 1 ..."
            )
        self.tokenizer = tokenizer
        self.name, self.k, self.order, self.max_turns = classifier, k, order, max_turns
        self.classifier = None if classifier is None else load_classifier(classifier)
        n = len(self.classifier.labels) if self.classifier else k
        if not 1 <= k <= n:
            raise ConfigError(f"prepended_labels: k={k}; accepted: 1 to {n}, the classifier's labels.")

    def settings(self) -> dict[str, Json]:
        """What makes an equal one."""
        if self.name is None:
            return {}
        return {"classifier": self.name, "k": self.k, "order": self.order, "max_turns": self.max_turns}

    @staticmethod
    def vocabulary(classifier: str | None = None, **_: Any) -> tuple[str, ...]:
        """Words the labels are, which a word vocabulary must have."""
        return () if classifier is None else load_classifier(classifier).labels

    def labels_of(self, texts: Sequence[Text]) -> list[tuple[str, ...]]:
        """Labels of each text in the order they stand in front of it; empty where nothing is prepended.

        Args:
            texts: Strings, or the turns of a context.
        """
        if self.classifier is None:
            return [()] * len(texts)
        read = [text if isinstance(text, str) else tuple(text[-self.max_turns :]) for text in texts]
        best = np.argsort(-self.classifier.classify_texts(read), axis=1, kind="stable")[:, : self.k]
        if self.order == "best_last":
            best = best[:, ::-1]
        return [tuple(self.classifier.labels[i] for i in row) for row in best]

    def pieces_of(self, texts: Sequence[Text]) -> list[list[int]]:
        """The labels of each text as pieces."""
        rows = self.labels_of(texts)
        words = sorted({word for row in rows for word in row})
        ids = dict(zip(words, (cut.ids for cut in self.tokenizer.encode_batch(words)), strict=True))
        return [[piece for word in row for piece in ids[word]] for row in rows]

    def add(self, examples: Sequence[Example], items: Sequence[EncodedExample]) -> None:
        """Labels of each context."""
        if self.classifier is not None:
            rows = self.pieces_of([example.context for example in examples])
            for item, row in zip(items, rows, strict=True):
                item.extra["prepended_ids"] = row

    def collate(self, items: Sequence[EncodedExample], pad_id: int, width: int) -> dict[str, Tensor]:
        """``prepended_ids``. Shape: ``(batch, longest)``, with no column where nothing is prepended."""
        rows = [item.extra.get("prepended_ids", []) for item in items]
        longest = max(map(len, rows))
        return {"prepended_ids": pad_rows(rows, pad_id, longest) if longest else torch.zeros(len(rows), 0).long()}
