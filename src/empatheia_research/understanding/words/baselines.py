"""What word scorers are compared with: random words, keywords, an affect lexicon, and a classifier's own reasons.

None has seen a word label; all answer the questions of :mod:`empatheia.analysis.questions`. Sources: RAKE
(Rose et al. 2010); intensity in a lexicon (KEMP, Li et al. 2022); attention of a fine-tuned classifier (Kim et al.
2021 give no details: last layer, heads averaged, pieces pooled by their maximum); gradient times input (Shrikumar et
al. 2016).
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification, PreTrainedModel, PreTrainedTokenizerBase

from empatheia.analysis.questions import (
    Place,
    WordAnswer,
    WordQuestion,
    filled,
    is_candidate,
    labels_meant,
    spread_to_words,
)
from empatheia.errors import ConfigError
from empatheia.resources import resolve_model
from empatheia.text.batching import BucketBatchSampler
from empatheia.text.stems import stem
from empatheia_research.corpora import lexicons
from empatheia_research.corpora.lexicons import Affect, Lexicon
from empatheia_research.understanding.encoders import special_ids
from empatheia_research.understanding.labels import utterance_classifier as _registers_its_model  # noqa: F401
from empatheia_research.understanding.labels.classifier import label_names, pad_rows, read_model, read_tokenizer


class RandomWords:
    """Any order of the words; the same for the same text and seed.

    Args:
        seed: Of the draws.
    """

    def __init__(self, seed: int = 15) -> None:
        self.seed = seed
        self.name = "random"

    def score(self, questions: Sequence[WordQuestion], *, batch_size: int = 32) -> list[WordAnswer]:
        """See :class:`WordScorer`; numbers from 0 to 1."""
        answers = []
        for question in questions:
            digest = hashlib.sha256(f"{self.seed}\0{question.text}".encode("utf-8", "replace")).digest()
            generator = np.random.default_rng(int.from_bytes(digest[:8], "big"))
            answers.append(WordAnswer(question.emotion, tuple(generator.random(len(question.words)).tolist())))
        return answers


class RakeWords:
    """Rapid automatic keyword extraction (Rose et al. 2010) in one text.

    Phrases are runs of words between stop words and punctuation. A word's own score is its degree (words in its
    phrases, itself included) over its frequency; a phrase has the sum of its words, a word the best phrase it is in.
    """

    name = "rake"

    def score(self, questions: Sequence[WordQuestion], *, batch_size: int = 32) -> list[WordAnswer]:
        """See :class:`WordScorer`; 0 for stop words."""
        return [WordAnswer(q.emotion, self._scores(q.surface())) for q in questions]

    def _scores(self, surface: Sequence[str]) -> tuple[float, ...]:
        words = [word.lower() for word in surface]
        phrases: list[list[int]] = [[]]
        for i, word in enumerate(words):
            if is_candidate(word):
                phrases[-1].append(i)
            elif phrases[-1]:
                phrases.append([])
        frequency = Counter(words[i] for phrase in phrases for i in phrase)
        degree: Counter[str] = Counter()
        for phrase in phrases:
            for i in phrase:
                degree[words[i]] += len(phrase)
        best: dict[str, float] = {}
        for phrase in phrases:
            total = sum(degree[words[i]] / frequency[words[i]] for i in phrase)
            for i in phrase:
                best[words[i]] = max(best.get(words[i], 0.0), total)
        return tuple(best.get(word, 0.0) for word in words)


class LexiconWords:
    """How affective each word is, by a lexicon; the emotion plays no part.

    Intensity is ``|| (V - 1/2, A/2) ||`` for valence and arousal in [0, 1], and ``|V - 1/2|`` without arousal; a listed
    word of a lexicon without numbers has 1. A word that is not listed is looked up by its stem, else has 0.

    Args:
        lexicon: See :mod:`empatheia_research.corpora.lexicons`.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self.name = f"lexicon ({lexicon.kind})"
        self._values = {word: _intensity(lexicon.affect.get(word)) for word in lexicon.words}
        self._stems: dict[str, float] = {}
        for word in sorted(self._values, key=lambda word: (len(word), word)):
            self._stems.setdefault(stem(word), self._values[word])

    @classmethod
    def load(cls, path: str | Path) -> LexiconWords:
        """From a file, or ``warriner``, ``vader`` of the data; see :func:`empatheia_research.corpora.lexicons.load`."""
        return cls(lexicons.load(path))

    def score(self, questions: Sequence[WordQuestion], *, batch_size: int = 32) -> list[WordAnswer]:
        """See :class:`WordScorer`."""
        return [WordAnswer(q.emotion, tuple(self._value(word.lower()) for word in q.surface())) for q in questions]

    def _value(self, word: str) -> float:
        found = self._values.get(word)
        return self._stems.get(stem(word), 0.0) if found is None else found


def _intensity(affect: Affect | None) -> float:
    if affect is None:
        return 1.0
    return math.hypot(affect.valence - 0.5, (affect.arousal or 0.0) / 2)


class ClassifierWords:
    """What an emotion classifier rests its decision on; subclasses say how it is asked.

    Any model of the ``AutoModelForSequenceClassification`` kind serves: ``forward`` gives ``logits``, ``base_model``
    is its encoder, ``config.id2label`` names the emotions.

    Args:
        model: Trained on emotions.
        tokenizer: Its own, a fast one.
        name: For tables and records.

    Raises:
        ConfigError: The tokenizer gives no character offsets.
    """

    kind = "classifier"

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str | None = None) -> None:
        if not tokenizer.is_fast:
            raise ConfigError(f"{type(tokenizer).__name__} gives no character offsets; use a fast tokenizer.")
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.name = name or self.kind
        self.opening, self.closing, self.padding = special_ids(tokenizer)
        config: Any = model.config
        positions = getattr(config, "max_pieces", None) or min(tokenizer.model_max_length, 512)
        self.room = max(1, int(positions) - 2)
        self.lowercase = bool(getattr(config, "lowercase", False))
        self.labels = label_names(config)

    @classmethod
    def load(cls, folder: str | Path, **options: Any) -> Self:
        """From a folder or name.

        Raises:
            MissingResourceError: There is no such folder.
            CheckpointError: It holds no classifier, or lacks weights or tokenizer.
        """
        path = resolve_model(folder)
        auto: Any = AutoModelForSequenceClassification
        model = read_model(auto, path)
        return cls(model, read_tokenizer(path, model), **options)

    def score(self, questions: Sequence[WordQuestion], *, batch_size: int = 32) -> list[WordAnswer]:
        """See :class:`WordScorer`; without an emotion the classifier's own is explained."""
        rows = self._pieces([q.text for q in questions])
        out: list[WordAnswer | None] = [None] * len(questions)
        for indices in BucketBatchSampler([len(ids) for ids, _ in rows], batch_size, shuffle=False):
            ids = [[self.opening, *rows[i][0], self.closing] for i in indices]
            lengths = torch.tensor([len(row) for row in ids])
            batch = pad_rows(ids, self.padding).to(self.model.device)
            keep = (torch.arange(batch.shape[1]) < lengths[:, None]).to(self.model.device)
            emotions = [questions[i].emotion for i in indices]
            meant = [None if emotion is None else labels_meant(emotion, self.labels) for emotion in emotions]
            values, chosen = self._read(batch, keep, meant)
            for row, i, e, emotion in zip(values.cpu().tolist(), indices, chosen, emotions, strict=True):
                marks = [(a, b, row[k + 1]) for k, (a, b) in enumerate(rows[i][1])]
                scores = spread_to_words(questions[i], marks, self._pool)
                out[i] = WordAnswer(emotion or self.labels[e], filled(scores))
        return [answer for answer in out if answer is not None]

    def _pieces(self, texts: Sequence[str]) -> list[tuple[list[int], list[Place]]]:
        if not texts:
            return []
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        lowered = [text.lower() if self.lowercase and len(text.lower()) == len(text) else text for text in clean]
        found: Any = self.tokenizer(
            lowered,
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            return_offsets_mapping=True,
            split_special_tokens=True,
            verbose=False,
        )
        out = []
        for text, ids, places in zip(clean, found["input_ids"], found["offset_mapping"], strict=True):
            shown = [(a + len(text[a:b]) - len(text[a:b].lstrip()), b) for a, b in places]
            out.append((list(ids[: self.room]), shown[: self.room]))
        return out

    def _pool(self, values: list[float]) -> float:
        return max(values)

    def _read(self, ids: Tensor, keep: Tensor, meant: Sequence[list[int] | None]) -> tuple[Tensor, list[int]]:
        """A value for each piece (batch, source), and the label the classifier would choose for each row."""
        raise NotImplementedError


class AttentionWords(ClassifierWords):
    """Attention of a classifier's last layer, heads averaged: what the pooled position looks at.

    That is the first position, or the mean over positions where the classifier pools by mean. The emotion plays no part
    beyond its name.
    """

    kind = "classifier attention"

    @torch.inference_mode()
    def _read(self, ids: Tensor, keep: Tensor, meant: Sequence[list[int] | None]) -> tuple[Tensor, list[int]]:
        chosen = self.model(input_ids=ids, attention_mask=keep.long()).logits.argmax(-1).tolist()
        encoder: Any = self.model.base_model
        used = encoder.config._attn_implementation
        encoder.set_attn_implementation("eager")  # the fast kernels do not give the weights
        try:
            found = encoder(input_ids=ids, attention_mask=keep.long(), output_attentions=True).attentions[-1]
        finally:
            encoder.set_attn_implementation(used)
        weights = found.float().mean(1)  # (batch, source, source)
        if getattr(self.model.config, "pooling", "cls") in ("mean", "additive", "dot"):
            share = keep.float() / keep.sum(1, keepdim=True)  # (batch, source)
            return (share[:, :, None] * weights).sum(1), chosen
        return weights[:, 0], chosen


class GradientWords(ClassifierWords):
    """Gradient times input: how much each word's embedding adds to the log-probability of the emotion, to first order.

    A word has the sum over its pieces. The emotion is the one asked about, else the classifier's own.

    Args:
        signed: Words against the emotion get negative scores; False = the size counts.
        **options: As :class:`ClassifierWords`.
    """

    kind = "gradient x input"

    def __init__(self, *arguments: Any, signed: bool = True, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.signed = signed

    def _pool(self, values: list[float]) -> float:
        return sum(values) if self.signed else abs(sum(values))

    def _read(self, ids: Tensor, keep: Tensor, meant: Sequence[list[int] | None]) -> tuple[Tensor, list[int]]:
        held: list[Tensor] = []

        def hold(_module: Any, _inputs: Any, output: Tensor) -> Tensor:
            held.append(output.detach().requires_grad_())
            return held[-1]

        table: Any = self.model.get_input_embeddings()
        hook = table.register_forward_hook(hold)
        try:
            with torch.inference_mode(False), torch.enable_grad():
                logits = self.model(input_ids=ids.clone(), attention_mask=keep.clone().long()).logits.float()
                chosen = logits.argmax(-1).tolist()
                aims = [[e] if own is None else own for e, own in zip(chosen, meant, strict=True)]
                scores = logits.log_softmax(-1)
                aim = torch.stack([row[own].logsumexp(0) for row, own in zip(scores, aims, strict=True)]).sum()
                (gradient,) = torch.autograd.grad(aim, held[0])
        finally:
            hook.remove()
        return (gradient * held[0].detach()).sum(-1).float(), chosen
