"""Distractors by the generative emotion estimator (Kim et al. 2021): what would be said here under unlikely emotions.

``clean`` (ours) exchanges whole words (:mod:`empatheia_research.decoding.word_exchange`); each distractor is written
under one of the three least likely emotions, as the estimator was trained. ``repo`` is the released code: pieces, the
three least likely labels and the rest of the text read as one, the original words before each piece, temperature 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from empatheia.analysis.targets import Targets
from empatheia.errors import ConfigError
from empatheia.resources import resolve_model
from empatheia.text.batching import BucketBatchSampler
from empatheia_research.decoding.distractors import Distractors, Made, exchanged, seeded
from empatheia_research.decoding.turn_pool import WordList, turn_pool
from empatheia_research.decoding.word_exchange import Gap, exchange
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.understanding.labels.classifier import label_names
from empatheia_research.understanding.words.estimator import CELLS, EmotionEstimator, explain
from empatheia_research.understanding.words.estimator_pieces import EstimatorReader, TextPieces
from empatheia_research.understanding.words.turns import EstimatorWords

N_UNLIKELY = 3
TEMPERATURE = {"clean": 1.0, "repo": 2.0}
_TRIES = 10
_FORBIDDEN = -100.0
_ANCHOR = "a"


class EstimatorDistractors(Distractors):
    """Target words exchanged by what an emotion estimator writes under unlikely emotions.

    Args:
        words: The estimator; with a ``memory`` texts that were scored for their targets are not read again.
        form: ``clean`` or ``repo``; see the module.
        seed: Of the draws.
        temperature: Above 0; None = 1 for ``clean``, 2 (published) for ``repo``.
        vocabulary: ``clean``: what may be filled in, as far as a word is one piece to the estimator; None = the content
            words of :func:`empatheia_research.decoding.turn_pool.turn_pool`.

    Raises:
        ConfigError: A value is not accepted, the estimator has fewer than four labels, or no word of the vocabulary is
            one piece.
    """

    def __init__(
        self,
        words: EstimatorWords,
        form: Literal["clean", "repo"] = "clean",
        seed: int = 0,
        temperature: float | None = None,
        vocabulary: WordList | None = None,
    ) -> None:
        if form not in TEMPERATURE:
            raise ConfigError(f"gee distractors: form is {form!r}; accepted: {', '.join(TEMPERATURE)}.")
        self.temperature = TEMPERATURE[form] if temperature is None else temperature
        if not self.temperature > 0:
            raise ConfigError(f"gee distractors: temperature is {self.temperature}; accepted: above 0.")
        self.labels = label_names(words.model.config)
        if len(self.labels) <= N_UNLIKELY:
            raise ConfigError(f"gee distractors: {len(self.labels)} labels; needed: more than {N_UNLIKELY}.")
        self.words, self.form, self.seed = words, form, seed
        self.model, self.reader = words.model.eval(), words.reader
        self.name = f"gee {form} ({words.name}, temperature {self.temperature:g}, seed {seed}"
        if form == "clean":
            self.vocabulary, self._ids = one_piece_words(self.reader, vocabulary or turn_pool().words)
            self.name += f", {len(self.vocabulary.words)} words of {self.vocabulary.name}"
        self.name += ")"

    @classmethod
    def load(cls, folder: str | Path, **options: Any) -> EstimatorDistractors:
        """From a trained estimator's folder or name; options as for the class.

        Raises:
            MissingResourceError: There is no such folder.
            CheckpointError: It holds another model.
        """
        path = resolve_model(folder)
        model, reader = EmotionEstimator.open(path)
        return cls(EstimatorWords(model, reader, memory={}, name=path.name), **options)

    def others(self, targets: Sequence[Targets], n: int, batch_size: int) -> list[Made]:
        """See :class:`Distractors`."""
        unlikely = self._unlikely([own.text if own.spans else "" for own in targets], batch_size)
        if self.form == "repo":
            return self._by_pieces(targets, unlikely, n, batch_size)

        def scores(gaps: Sequence[Gap]) -> np.ndarray:
            return self._scores(gaps, unlikely, batch_size)

        return exchange(targets, n, self.vocabulary, scores, seed=self.seed, temperature=self.temperature)

    def _unlikely(self, texts: Sequence[str], batch_size: int) -> list[tuple[str, ...]]:
        """The least likely emotions of each text, the least likely first."""
        evidence = replace(self.words.evidence, top_emotions=1)
        asked = sorted({text for text in texts if text})
        found = self.words.likelihoods_of(asked, batch_size=batch_size)
        estimates = explain(self.model, self.reader, found, None, evidence, batch_size=batch_size)
        known = {
            text: tuple(self.labels[e] for e in np.argsort(own.joint, kind="stable")[:N_UNLIKELY])
            for text, own in zip(asked, estimates, strict=True)
        }
        return [known.get(text, ()) for text in texts]

    # -- clean -------------------------------------------------------------------------------------------------

    def _scores(self, gaps: Sequence[Gap], unlikely: Sequence[tuple[str, ...]], batch_size: int) -> np.ndarray:
        """Log-probability of each word in each gap, given what stands before and an emotion; words of one piece."""
        sources = [tuple(self.reader.label_ids([unlikely[gap.item][(gap.world - 1) % N_UNLIKELY]])) for gap in gaps]
        rows = [last_pieces(self.reader, gap.before) for gap in gaps]
        out = np.zeros((len(gaps), len(self.vocabulary.words)))
        for indices, logits in self._rows(sources, rows, batch_size):
            for row, i in enumerate(indices):
                log_probs = logits[row, len(rows[i].ids) - 1].double().log_softmax(-1).cpu()
                out[i] = log_probs[self._ids].numpy()
        return out

    @torch.inference_mode()
    def _rows(self, sources: Sequence[tuple[int, ...]], texts: Sequence[TextPieces], batch_size: int) -> Any:
        """(indices, scores of every place) for batches of like length that stay small."""
        lengths = [len(text.ids) for text in texts]
        width = self.model.backbone.config.vocab_size
        for batch in BucketBatchSampler(lengths, batch_size, shuffle=False):
            room = max(1, CELLS // (width * max(1, *(lengths[i] for i in batch))))
            for start in range(0, len(batch), room):
                part = batch[start : start + room]
                yield part, self.model.row_logits(self.reader, [sources[i] for i in part], [texts[i] for i in part])

    # -- as released -------------------------------------------------------------------------------------------

    def _by_pieces(
        self, targets: Sequence[Targets], unlikely: Sequence[tuple[str, ...]], n: int, batch_size: int
    ) -> list[Made]:
        out = [Made((), reason="it has no target word")] * len(targets)
        pieces = self.reader.pieces([own.text for own in targets])
        asked = []
        for i, (own, text) in enumerate(zip(targets, pieces, strict=True)):
            if _pieces_of(own, text):
                asked.append(i)
            elif own.spans:
                out[i] = Made((), reason="its target words lie beyond what the estimator reads")
        sources = []
        for i in asked:
            gone = set(_pieces_of(targets[i], pieces[i]))
            rest = [id for t, id in enumerate(pieces[i].ids) if t not in gone]
            labels = self.reader.label_ids(unlikely[i])
            n_after = len(self.reader.source.after)
            whole = [*labels[: len(labels) - n_after], *rest]
            limit = self.model.config.max_pieces - n_after
            sources.append(tuple([*whole[-limit:], *labels[len(labels) - n_after :]]))
        for indices, logits in self._rows(sources, [pieces[i] for i in asked], batch_size):
            for row, k in enumerate(indices):
                i = asked[k]
                out[i] = self._sampled(targets[i], pieces[i], logits[row].double().cpu().numpy(), n)
        return out

    def _sampled(self, own: Targets, text: TextPieces, logits: np.ndarray, n: int) -> Made:
        """Distinct pieces for each piece of a target, drawn place by place."""
        places = _pieces_of(own, text)
        original = sorted({text.ids[t] for t in places})
        specials = _special_ids(self.reader)
        columns = []
        for t in places:
            scores = logits[t].copy()
            scores[original] = _FORBIDDEN
            draws = seeded(self.seed, "repo", own.text, t)
            chosen = np.empty(0, dtype=np.int64)
            for attempt in range(_TRIES + 1):
                if attempt == _TRIES:  # the released code goes on with the special pieces
                    scores[specials] = -np.inf
                chosen = np.argsort(-(scores / self.temperature + draws.gumbel(size=len(scores))))[:n]
                if not np.isin(chosen, specials).any():
                    break
            columns.append(chosen)
        texts, replaced = [], []
        for j in range(n):
            new = {t: int(column[j]) for t, column in zip(places, columns, strict=True)}
            words, joined = zip(*(self._word(own, text, span, new) for span in own.spans), strict=True)
            made = _joined(own, words, joined)
            if made not in (own.text, *texts):
                texts.append(made)
                replaced.append(tuple(words))
        return Made(tuple(texts), tuple(replaced), f"{len(texts)} different texts came out of {n} draws")

    def _word(self, own: Targets, text: TextPieces, span: Any, new: dict[int, int]) -> tuple[str, bool]:
        """What stands in the place of a target, and whether it is written onto the word before."""
        ids = [new.get(t, id) for t, id in enumerate(text.ids) if _touches(text.places[t], span)]
        if not ids:  # beyond what is read
            return own.text[span.start : span.end], False
        written = _behind_anchor(self.reader, ids)
        return written.strip(), bool(written) and not written[:1].isspace()


def one_piece_words(reader: EstimatorReader, words: WordList) -> tuple[WordList, Tensor]:
    """What of a word list is one piece behind a blank, and the ids of these pieces.

    They stand for their words at the start of a text too, where byte-level pieces differ.

    Raises:
        ConfigError: No word is one piece.
    """
    found = {}
    for word, text in zip(words.words, reader.pieces([f"{_ANCHOR} {word}" for word in words.words]), strict=True):
        ids = [id for id, (start, _) in zip(text.ids, text.places, strict=True) if start > len(_ANCHOR)]
        if len(ids) == 1:
            found[word] = ids[0]
    if not found:
        raise ConfigError(f"no word of {words.name!r} is one piece to this estimator; give other words, or form=repo.")
    return WordList(words.name, tuple(found)), torch.tensor(list(found.values()))


def last_pieces(reader: EstimatorReader, before: str) -> TextPieces:
    """The end of a text as pieces, with one more place behind it, whose piece is never read."""
    text = before.rstrip()
    found = reader.pieces([text])[0]
    while len(found.ids) >= reader.max_pieces - 2 or not found.is_whole:  # the newest words matter
        text = text[len(text) // 4 :].partition(" ")[2] or text[len(text) // 2 + 1 :]
        found = reader.pieces([text])[0]
    return TextPieces((*found.ids, reader.padding), (*found.places, (len(text), len(text))))


def _touches(place: tuple[int, int], span: Any) -> bool:
    return place[0] < span.end and span.start < place[1]


def _pieces_of(own: Targets, text: TextPieces) -> list[int]:
    return [t for t, place in enumerate(text.places) if any(_touches(place, span) for span in own.spans)]


def _special_ids(reader: EstimatorReader) -> list[int]:
    tokenizer: Any = reader.tokenizer
    if isinstance(tokenizer, DialogueTokenizer):
        return [i for i, text in enumerate(tokenizer.piece_texts()) if not text]
    return sorted(set(tokenizer.all_special_ids))


def _behind_anchor(reader: EstimatorReader, ids: Sequence[int]) -> str:
    """Pieces as text as they stand behind a word: with a blank in front if they begin a word."""
    tokenizer: Any = reader.tokenizer
    anchor = list(reader.pieces([_ANCHOR])[0].ids)
    if isinstance(tokenizer, DialogueTokenizer):
        alone, whole = (tokenizer.decode(row, raw=True) for row in (anchor, [*anchor, *ids]))
    else:
        alone, whole = (
            tokenizer.decode(row, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            for row in (anchor, [*anchor, *ids])
        )
    return whole[len(alone) :]


def _joined(own: Targets, words: Sequence[str], is_joined: Sequence[bool]) -> str:
    """The text with its targets replaced; a word that begins in the middle of a word is written onto the one before."""
    text = exchanged(own, words)
    shift = 0
    lengths = {span.start: (len(word), glued) for span, word, glued in zip(own.spans, words, is_joined, strict=True)}
    for span in own.in_order:
        n_new, glued = lengths[span.start]
        start = span.start + shift
        shift += n_new - (span.end - span.start)
        if glued:
            kept = text[:start].rstrip()
            if kept:
                shift -= start - len(kept)
                text = kept + text[start:]
    return text
