"""A linear classifier on averaged word and n-gram vectors: fastText (Joulin et al. 2017), baseline of Rashkin et al.

``p = softmax(A mean(E[features]))`` (equation 1), features = the known words, the end mark, and the hashed n-grams of
all words; one table row for each word and bucket. The hash and the features are fastText's, so its matrices fit. It
learns by plain gradient descent with a rate that falls linearly to 0. fastText takes one example a step; a batch of B
with B times the rate is the same to first order. Rashkin et al. (2019), table 9: .43 on situations, .41 without the
label's word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor, nn
from transformers import AutoConfig, AutoModel
from transformers import initialization as init

from empatheia.errors import DataError
from empatheia.text.words import tokenize_words
from empatheia_research.layers.aligned import AlignedModel
from empatheia_research.understanding.heads import POSITIVE, Check, FieldsConfig, Heads, LabelOutput, at_least
from empatheia_research.understanding.labels.classifier import Row, Text, label_tensor, pad_rows, read_model

END = "</s>"
SPLITS = ("blanks", "spaced", "family")
READS = ("turn", "context")
_FNV_OFFSET, _FNV_PRIME = 2166136261, 16777619
_NGRAM_FACTOR = 116049371
_MASK_32, _MASK_64 = (1 << 32) - 1, (1 << 64) - 1
_MARKS = re.compile(r"([.!?,'/()])")


@lru_cache(maxsize=1 << 16)
def word_hash(word: str) -> int:
    """FastText's 32-bit FNV-1a hash, in which bytes are signed.

    >>> word_hash("")
    2166136261
    >>> word_hash("a")
    3826002220
    """
    value = _FNV_OFFSET
    for byte in word.encode("utf-8", "replace"):
        value ^= byte if byte < 128 else byte | 0xFFFFFF00
        value = value * _FNV_PRIME & _MASK_32
    return value


def ngram_buckets(words: Sequence[str], n: int, buckets: int) -> list[int]:
    """Buckets of all n-grams of 2 to ``n`` words, by first word, then by length.

    Args:
        words: All words, known or not, the end mark included.
        n: Longest n-gram; 1 gives none.
        buckets: Number of buckets.

    >>> len(ngram_buckets(["so", "sad", "</s>"], n=2, buckets=1000))
    2
    """
    signed = [h - (1 << 32) if h >> 31 else h for h in map(word_hash, words)]
    found = []
    for i, value in enumerate(signed):
        for other in signed[i + 1 : i + n]:
            value = value * _NGRAM_FACTOR + other
            found.append((value & _MASK_64) % buckets)
    return found


def split_words(text: str, style: str) -> list[str]:
    """Words of a text.

    ``blanks`` cuts at white space only, as fastText itself does; ``spaced`` is the preparation its documentation gives
    (lower case, marks set apart); ``family`` the word rules of the response systems (:mod:`empatheia.text.words`).

    >>> split_words("I'm SO sad.", "spaced")
    ['i', "'", 'm', 'so', 'sad', '.']
    """
    if style == "family":
        return [word.text for word in tokenize_words(text, "family")]
    if style == "spaced":
        return _MARKS.sub(r" \1 ", text.lower()).split()
    return text.split()


class LinearClassifierConfig(FieldsConfig):
    """The features and sizes; defaults of the command-line fastText where it has one.

    Attributes:
        words: Known words, by index; the end mark is always one of them.
        split: ``blanks``, ``spaced`` or ``family``, see :func:`split_words`.
        width: Of the word vectors.
        n_grams: Longest n-gram; 1 = words only.
        buckets: Rows for hashed n-grams (none if ``n_grams`` is 1). fastText: 2,000,000.
        reads: ``turn`` (one text) or ``context`` (the last ``max_turns`` turns).
        max_turns: Turns of a context that are read (Rashkin et al.'s code: 4), joined by the end mark.
        label_weights: Factor of each label in the loss; None = all 1.
        softmax_temperature: Logits are divided by it; above 0.
    """

    model_type = "linear_classifier"
    words: Sequence[str] = ()
    split: str = "spaced"
    width: int = 100
    n_grams: int = 1
    buckets: int = 2_000_000
    reads: str = "turn"
    max_turns: int = 4
    label_weights: list[float] | None = None
    softmax_temperature: float = 1.0
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"split": SPLITS, "reads": READS}
    checks: ClassVar[Mapping[str, Check]] = {
        **dict.fromkeys(("width", "n_grams", "buckets", "max_turns"), at_least(1)),
        "softmax_temperature": POSITIVE,
    }

    def __post_init__(self, labels: Sequence[str] | None = None, **kwargs: Any) -> None:
        super().__post_init__(labels, **kwargs)
        self.words = list(self.words)

    @property
    def n_rows(self) -> int:
        """Rows of the table: padding, words, buckets."""
        return 1 + len(self.words) + (self.buckets if self.n_grams > 1 else 0)


class LinearClassifier(AlignedModel, Heads):
    """Mean of the feature vectors, one linear map without bias, softmax.

    Args:
        config: Words, labels and sizes.
    """

    config_class = LinearClassifierConfig
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    optimizer: ClassVar[str] = "sgd"
    features: ClassVar[tuple[str, ...]] = ("input_ids", "attention_mask", "labels")
    config: LinearClassifierConfig

    def __init__(self, config: LinearClassifierConfig) -> None:
        super().__init__(config)
        self.table = nn.EmbeddingBag(config.n_rows, config.width, mode="mean", sparse=True, padding_idx=0)
        self.head = nn.Linear(config.width, int(config.num_labels or 2), bias=False)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Uniform feature vectors in +-1 / width and a head of zeros, as fastText starts."""
        if isinstance(module, nn.EmbeddingBag):
            init.uniform_(module.weight, -1.0 / self.config.width, 1.0 / self.config.width)
            if not getattr(module.weight, "_is_hf_initialized", False):
                init.zeros_(module.weight[0])
        elif isinstance(module, nn.Linear):
            init.zeros_(module.weight)

    @classmethod
    def from_texts(
        cls, texts: Iterable[Text], labels: Sequence[str], min_count: int = 1, **kwargs: Any
    ) -> tuple[LinearClassifier, NgramReader]:
        """A fresh model that knows the words of some texts, most frequent first, and its reader.

        Args:
            texts: What the words are taken from.
            labels: Names of the classes by index.
            min_count: Rarer words are left out (their n-grams still count).
            **kwargs: Fields of :class:`LinearClassifierConfig`.

        Raises:
            DataError: There is no text.
        """
        config = LinearClassifierConfig(words=(END,), labels=labels, **kwargs)
        reader = NgramReader(config)
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(reader.words_of(text))
        if not counts:
            raise DataError("linear_classifier: no text to take words from; check the recipe's data block.")
        config.words = [word for word, n in counts.most_common() if n >= min_count or word == END]
        return cls(config), NgramReader(config)

    @classmethod
    def open(cls, folder: str | Path) -> tuple[LinearClassifier, NgramReader]:
        """A trained model and its reader from the folder training saved.

        Raises:
            CheckpointError: Weights are missing.
        """
        model = read_model(cls, folder)
        return model, NgramReader(model.config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> LabelOutput:
        """Scores the labels; content under a false ``attention_mask`` does not matter.

        Args:
            input_ids: Rows of the table. Shape: (batch, n_features), int64.
            attention_mask: True = keep; None keeps all but row 0. Shape: (batch, n_features).
            labels: Class indices, -100 = not supervised. Shape: (batch,), int64.
            return_dict: Accepted for the Trainer; the answer is always a ``LabelOutput``.
        """
        if attention_mask is not None:
            input_ids = input_ids.masked_fill(~attention_mask.bool(), 0)
        hidden = self.table(input_ids)  # (batch, width)
        logits = self.head(hidden) / self.config.softmax_temperature  # (batch, n_labels)
        return LabelOutput(logits=logits, **self.learn({"label": logits}, {"labels": labels}))


class NgramReader:
    """Texts to rows of the table: known words, then n-grams; 0 is padding.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: LinearClassifierConfig) -> None:
        self.config = config
        self.index = {word: i for i, word in enumerate(config.words, start=1)}

    def words_of(self, text: Text) -> list[str]:
        """Words of a text, or of the last turns of a conversation with the end mark between them, and the end mark."""
        turns = [text] if isinstance(text, str) else [turn.text for turn in text[-self.config.max_turns :]]
        return [word for turn in turns for word in (*split_words(turn, self.config.split), END)]

    def encode(self, texts: Sequence[Text]) -> list[Row]:
        """One row a text."""
        return [{"input_ids": self._features(self.words_of(text))} for text in texts]

    def collate(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """A batch. Shapes: (batch, n_features), and (batch,) for ``labels``."""
        ids = pad_rows([row["input_ids"] for row in rows], 0)
        return {"input_ids": ids, "attention_mask": ids != 0} | label_tensor(rows)

    def save(self, folder: Path) -> None:
        """Nothing: the words are part of the configuration."""

    def _features(self, words: list[str]) -> list[int]:
        known = [self.index[word] for word in words if word in self.index]
        first = 1 + len(self.config.words)
        buckets = ngram_buckets(words, self.config.n_grams, self.config.buckets)
        return known + [first + bucket for bucket in buckets]


AutoConfig.register(LinearClassifierConfig.model_type, LinearClassifierConfig, exist_ok=True)
AutoModel.register(LinearClassifierConfig, LinearClassifier, exist_ok=True)
