"""Distractors by a masked language model (Devlin et al. 2019): target words masked, other words filled in.

Unlike the estimator it sees what stands behind a gap, and knows no emotion. Targets that are still to be filled are
masked too, so no original word is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from empatheia.analysis.targets import Targets
from empatheia.errors import CheckpointError, ConfigError
from empatheia.resources import resolve_model
from empatheia.text.batching import BucketBatchSampler
from empatheia_research.decoding.distractors import Distractors, Made
from empatheia_research.decoding.turn_pool import WordList, turn_pool
from empatheia_research.decoding.word_exchange import Gap, exchange
from empatheia_research.pretrained import load_pretrained
from empatheia_research.understanding.labels.classifier import pad_rows

_MOST_PIECES = 512


class MaskedDistractors(Distractors):
    """Target words exchanged by what a masked language model finds likely there.

    Args:
        model: With a masked-language-model head; put into evaluation mode.
        tokenizer: Its own fast one.
        seed: Of the draws.
        temperature: Above 0.
        vocabulary: What may be filled in, as far as a word is one piece; None = the content words of
            :func:`empatheia_research.decoding.turn_pool.turn_pool`.
        name: For records.

    Raises:
        ConfigError: The tokenizer has no mask piece or gives no offsets, the temperature is not above 0, or no word of
            the vocabulary is one piece.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        seed: int = 0,
        temperature: float = 1.0,
        vocabulary: WordList | None = None,
        name: str = "masked language model",
    ) -> None:
        if tokenizer.mask_token_id is None or not tokenizer.is_fast:
            raise ConfigError("masked distractors: the tokenizer has no mask piece, or is not a fast one; use another.")
        if not temperature > 0:
            raise ConfigError(f"masked distractors: temperature is {temperature}; accepted: above 0.")
        self.model, self.tokenizer = model.eval(), tokenizer
        self.seed, self.temperature = seed, temperature
        words = vocabulary or turn_pool().words
        rows = [ids[1:] for ids in self._pieces([f"a {word}" for word in words.words])]
        found = {word: ids[0] for word, ids in zip(words.words, rows, strict=True) if len(ids) == 1}
        found = {word: id for word, id in found.items() if id != tokenizer.unk_token_id}
        if not found:
            raise ConfigError(f"masked distractors: no word of {words.name!r} is one piece; give other words.")
        self.vocabulary = WordList(words.name, tuple(found))
        self._ids = torch.tensor(list(found.values()))
        positions = getattr(model.config, "max_position_embeddings", None) or _MOST_PIECES
        offset = 2 if model.config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet") else 0
        self.max_pieces = min(positions - offset, _MOST_PIECES)
        n_words = len(self.vocabulary.words)
        self.name = f"masked ({name}, temperature {temperature:g}, seed {seed}, {n_words} words of {words.name})"

    @classmethod
    def load(cls, folder: str | Path, **options: Any) -> MaskedDistractors:
        """From a folder or a name; options as for the class.

        Raises:
            MissingResourceError: There is no such model on this machine.
            CheckpointError: The folder holds no masked language model, or lacks weights of its head.
        """
        path = resolve_model(folder)
        odd = f"cannot read a masked language model from {str(path)!r}"
        model, info = load_pretrained(AutoModelForMaskedLM, path, odd, dtype=torch.float32, output_loading_info=True)
        tokenizer = load_pretrained(AutoTokenizer, path, odd)
        if missing := sorted(info["missing_keys"]):
            raise CheckpointError(
                f"{str(path)!r} lacks {len(missing)} weights, first {missing[0]!r}: an encoder without the head that"
                " fills in words (a sentence encoder, for instance); give a masked language model."
            )
        return cls(model, tokenizer, **{"name": Path(str(folder)).name, **options})

    def others(self, targets: Sequence[Targets], n: int, batch_size: int) -> list[Made]:
        """See :class:`Distractors`."""

        def scores(gaps: Sequence[Gap]) -> np.ndarray:
            return self._scores(gaps, batch_size)

        return exchange(targets, n, self.vocabulary, scores, seed=self.seed, temperature=self.temperature)

    @torch.inference_mode()
    def _scores(self, gaps: Sequence[Gap], batch_size: int) -> np.ndarray:
        rows, places = zip(*map(self._row, gaps), strict=True)
        out = np.zeros((len(gaps), len(self.vocabulary.words)))
        padding: Any = self.tokenizer.pad_token_id or 0
        for batch in BucketBatchSampler([len(row) for row in rows], batch_size, shuffle=False):
            ids = pad_rows([rows[i] for i in batch], padding).to(self.model.device)
            lengths = torch.tensor([len(rows[i]) for i in batch])
            mask = (torch.arange(ids.shape[1]) < lengths[:, None]).long().to(ids.device)
            logits = self.model(input_ids=ids, attention_mask=mask).logits
            at = torch.tensor([places[i] for i in batch], device=ids.device)
            found = logits[torch.arange(len(batch), device=ids.device), at].double().log_softmax(-1).cpu()
            out[batch] = found[:, self._ids].numpy()
        return out

    def _row(self, gap: Gap) -> tuple[list[int], int]:
        """Pieces of a text with its gaps masked, as near to the first gap as fits, and the place of that gap."""
        mask: Any = self.tokenizer.mask_token_id
        before, *after = self._pieces([gap.before.rstrip(), *gap.after])
        behind: list[int] = []
        for i, part in enumerate(after):
            behind += [*([mask] if i else []), *part]
        frame = list(self.tokenizer(str(self.tokenizer.mask_token))["input_ids"])
        n_front = frame.index(mask)
        room = self.max_pieces - len(frame)
        n_before = min(len(before), max(room // 2, room - len(behind)))
        before, behind = before[len(before) - n_before :], behind[: room - n_before]
        return [*frame[:n_front], *before, mask, *behind, *frame[n_front + 1 :]], n_front + len(before)

    def _pieces(self, texts: list[str]) -> list[list[int]]:
        found = self.tokenizer(texts, add_special_tokens=False, return_attention_mask=False, verbose=False)
        return list(found["input_ids"])
