"""One tokeniser for turns: words, byte-pair pieces trained here, or a Hugging Face encoder's own, with offsets kept.

Every piece knows the word it belongs to and the characters of the original text that word came from, so labels and
scores move between characters, words and pieces in one place.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from empatheia.errors import CheckpointError, ConfigError
from empatheia.text.words import Style, detokenize, tokenize_words

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[BOS]", "[EOS]")
META = "empatheia_tokenizer.json"
Kind = Literal["word", "bpe", "hf"]


@dataclass(slots=True)
class Pieces:
    """A turn in pieces; all lists have one entry a piece.

    Attributes:
        ids: Vocabulary indices.
        starts: First character in the original text.
        ends: Character after the last.
        words: Index of the word a piece belongs to.
    """

    ids: list[int]
    starts: list[int]
    ends: list[int]
    words: list[int]

    def __len__(self) -> int:
        return len(self.ids)


class DialogueTokenizer:
    """Turns to pieces and replies back to text.

    Args:
        tokenizer: The library's tokeniser.
        kind: ``word``, ``bpe`` or ``hf``.
        style: Word rules for ``word`` and ``bpe`` (see ``text.words``); ``hf`` uses the encoder's own.
        specials: Ids of PAD, UNK, CLS, SEP, BOS and EOS by lower-case name.
    """

    def __init__(self, tokenizer: Tokenizer, kind: Kind, style: Style, specials: dict[str, int]) -> None:
        self._tokenizer = tokenizer
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.kind: Kind = kind
        self.style: Style = style
        self.pad_id = specials["pad"]
        self.unk_id = specials["unk"]
        self.cls_id = specials["cls"]
        self.sep_id = specials["sep"]
        self.bos_id = specials["bos"]
        self.eos_id = specials["eos"]
        self._specials = specials
        self._special_ids = set(specials.values()) - {self.unk_id}
        self._remembered: dict[str, Pieces] | None = None

    # -- making ----------------------------------------------------------------------------------------------

    @classmethod
    def train_words(
        cls, texts: Iterable[str], min_count: int = 1, max_size: int | None = None, style: Style = "family"
    ) -> DialogueTokenizer:
        """A word-level vocabulary.

        With ``min_count=1`` and no ``max_size`` the words keep the order of first sight, as the family's code
        has it; otherwise the most frequent come first, ties by first sight.
        """
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(word.text for word in tokenize_words(text, style))
        if min_count > 1 or max_size is not None:
            ordered = [word for word, n in counts.most_common() if n >= min_count]
        else:
            ordered = list(counts)
        ordered = [w for w in ordered if w not in SPECIALS][: None if max_size is None else max_size - len(SPECIALS)]
        vocabulary = {word: i for i, word in enumerate([*SPECIALS, *ordered])}
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # pyright: ignore[reportAttributeAccessIssue]
        return cls(tokenizer, "word", style, _own_specials())

    @classmethod
    def train_bpe(cls, texts: Iterable[str], size: int = 8000, style: Style = "family") -> DialogueTokenizer:
        """Byte-level byte-pair pieces inside words: every string can be encoded, and decodes to its words."""
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(  # pyright: ignore[reportAttributeAccessIssue]
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)]
        )
        tokenizer.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=list(SPECIALS),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        lines = (" ".join(word.text for word in tokenize_words(text, style)) for text in texts)
        tokenizer.train_from_iterator(lines, trainer)
        return cls(tokenizer, "bpe", style, _own_specials())

    @classmethod
    def from_hf(cls, folder: str | Path) -> DialogueTokenizer:
        """An encoder's own fast tokeniser; its CLS and SEP also serve as BOS and EOS if it has no such pieces.

        Raises:
            CheckpointError: The folder has no fast tokeniser, or it lacks a CLS, SEP or PAD piece.
        """
        try:
            loaded: Any = AutoTokenizer.from_pretrained(str(folder))
            backend = loaded.backend_tokenizer
        except (OSError, ValueError, AttributeError) as problem:
            raise CheckpointError(f"no fast tokeniser in {str(folder)!r} ({problem}); give a folder with tokenizer.json.") from None
        cls_id = loaded.cls_token_id if loaded.cls_token_id is not None else loaded.bos_token_id
        sep_id = loaded.sep_token_id if loaded.sep_token_id is not None else loaded.eos_token_id
        if cls_id is None or sep_id is None or loaded.pad_token_id is None:
            raise CheckpointError(f"the tokeniser in {str(folder)!r} lacks a CLS, SEP or PAD piece; choose an encoder's.")
        specials = {
            "pad": loaded.pad_token_id,
            "unk": loaded.unk_token_id if loaded.unk_token_id is not None else loaded.pad_token_id,
            "cls": cls_id,
            "sep": sep_id,
            "bos": loaded.bos_token_id if loaded.bos_token_id is not None else cls_id,
            "eos": loaded.eos_token_id if loaded.eos_token_id is not None else sep_id,
        }
        return cls(Tokenizer.from_str(backend.to_str()), "hf", "family", specials)

    # -- facts -----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def check_fits(self, vocab_size: int) -> None:
        """Compares with a model's table.

        Raises:
            CheckpointError: A piece would have no row.
        """
        if len(self) > vocab_size:
            raise CheckpointError(
                f"the vocabulary does not match the model: the tokeniser has {len(self)} pieces, the model's table"
                f" {vocab_size} rows; use the tokeniser that was saved with the model."
            )

    def piece_texts(self) -> list[str]:
        """What each piece stands for, by id: the word, or the piece decoded; special pieces give ''."""
        specials = set(self._specials.values())
        texts = []
        for i in range(len(self)):
            if i in specials:
                texts.append("")
            elif self.kind == "word":
                texts.append(self._tokenizer.id_to_token(i) or "")
            else:
                texts.append(self._tokenizer.decode([i]).strip())
        return texts

    # -- text to pieces --------------------------------------------------------------------------------------

    def encode(self, text: str) -> Pieces:
        """Pieces of one turn, without special pieces."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Pieces]:
        """Pieces of many turns, in order."""
        if self._remembered is None:
            return self._cut(texts)
        new = [text for text in dict.fromkeys(texts) if text not in self._remembered]
        self._remembered.update(zip(new, self._cut(new), strict=True))
        return [self._remembered[text] for text in texts]

    def remember(self) -> None:
        """Keeps the pieces of every text seen from now on: for training, where each text comes many times."""
        self._remembered = self._remembered or {}

    def _cut(self, texts: Sequence[str]) -> list[Pieces]:
        if self.kind == "hf":
            return [
                Pieces(
                    e.ids,
                    [start for start, _ in e.offsets],
                    [end for _, end in e.offsets],
                    [0 if w is None else w for w in e.word_ids],
                )
                for e in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
            ]
        words = [tokenize_words(text, self.style) for text in texts]
        encoded = self._tokenizer.encode_batch(
            [[word.text for word in row] for row in words], is_pretokenized=True, add_special_tokens=False
        )
        out = []
        for row, e in zip(words, encoded, strict=True):
            index = e.word_ids
            out.append(Pieces(e.ids, [row[w].start for w in index], [row[w].end for w in index], index))
        return out

    # -- pieces to text --------------------------------------------------------------------------------------

    def decode(self, ids: Sequence[int], *, raw: bool = False) -> str:
        """Text of pieces up to the first EOS.

        Args:
            ids: Pieces; special ones are dropped.
            raw: Space-joined lower-case words (what metrics read) instead of readable text.
        """
        kept = []
        for i in ids:
            if i == self.eos_id and kept:
                break
            if i not in self._special_ids and i >= 0:
                kept.append(i)
        if self.kind == "word":
            words = [self._tokenizer.id_to_token(i) or "[UNK]" for i in kept]
        else:
            text = self._tokenizer.decode(kept)
            words = [w.text for w in tokenize_words(text, "recec")] if self.kind == "hf" else text.split()
        if raw:
            return " ".join(words)
        return detokenize(word for word in words if word != "[UNK]")

    def decode_batch(self, rows: Sequence[Sequence[int]], *, raw: bool = False) -> list[str]:
        """:meth:`decode` of each row."""
        return [self.decode(row, raw=raw) for row in rows]

    def known_word_share(self, text: str) -> float:
        """Share of words the model can have met in training: known words, or words of at most three pieces.

        Returns:
            In [0, 1]; 1.0 for a text without words.
        """
        pieces = self.encode(text)
        by_word: dict[int, list[int]] = {}
        for word, i in zip(pieces.words, pieces.ids, strict=True):
            by_word.setdefault(word, []).append(i)
        known = [self.unk_id not in ids and len(ids) <= 3 for ids in by_word.values()]
        return sum(known) / len(known) if known else 1.0

    # -- files -----------------------------------------------------------------------------------------------

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes ``tokenizer.json`` (readable by transformers) and a small description."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        names = {f"{k}_token": self._tokenizer.id_to_token(v) for k, v in self._specials.items()}
        PreTrainedTokenizerFast(tokenizer_object=self._tokenizer, **names).save_pretrained(folder)
        meta = {"format": 1, "kind": self.kind, "style": self.style, "specials": self._specials, "size": len(self)}
        (folder / META).write_text(json.dumps(meta, indent=2), encoding="utf-8")

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> DialogueTokenizer:
        """Reads what :meth:`save_pretrained` wrote.

        Raises:
            CheckpointError: A file is missing, truncated, or of something else.
        """
        folder = Path(folder)
        for name in (META, "tokenizer.json"):
            if not (folder / name).is_file():
                raise CheckpointError(f"no {name} in {str(folder)!r}: not a folder this package saved, or incomplete.")
        try:
            meta = json.loads((folder / META).read_text(encoding="utf-8"))
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            made = cls(tokenizer, meta["kind"], meta["style"], meta["specials"])
        except Exception as problem:
            raise CheckpointError(
                f"the tokeniser in {str(folder)!r} cannot be read ({' '.join(str(problem).split())[:200]});"
                " the file is truncated or foreign: copy the folder again."
            ) from None
        if len(made) != meta["size"]:
            raise CheckpointError(
                f"the tokeniser in {str(folder)!r} has {len(made)} pieces, its description says {meta['size']};"
                " the files are of different models: copy the folder again."
            )
        return made


def _own_specials() -> dict[str, int]:
    return {name.strip("[]").lower(): i for i, name in enumerate(SPECIALS)}


def check_kind(kind: str) -> None:
    """Raises ConfigError for a kind other than word, bpe, hf."""
    if kind not in ("word", "bpe", "hf"):
        raise ConfigError(f"unknown tokeniser kind {kind!r}; accepted: word, bpe, hf.")
