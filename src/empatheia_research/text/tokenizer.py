"""One tokeniser for turns: words, byte-pair pieces trained here, or an encoder's own, with offsets kept.

Every piece knows the word it belongs to and the characters of the original text it came from, so labels and
scores move between characters, words and pieces in one place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from empatheia.errors import CheckpointError, ConfigError
from empatheia.reading import read_record, read_text
from empatheia.text.readable import SURROGATES
from empatheia.text.words import Style, detokenize, tokenize_words
from empatheia_research.text import vocabularies
from empatheia_research.text.vocabularies import SPECIALS as SPECIALS

META = "empatheia_tokenizer.json"
FORMAT = 2
AUTO_CLASS = "EmpatheiaTokenizer"
"""In ``text.auto_tokenizer``; what ``AutoTokenizer`` is to take for a folder."""
_VERSION, _OUR_VERSION = (
    '"version": "1.0"',
    '"version": "of empatheia: import empatheia_research.text.auto_tokenizer first"',
)
Kind = Literal["word", "bpe", "hf"]
_CLITIC = re.compile(r"(?<=\w) ' (s|t|m|d|ll|re|ve)\b")  # what word pieces leave of "don't": "don ' t"
_LONGEST_CACHED, _MOST_CACHED = 40, 200_000
_MOST_SPARE_ROWS = {"word": 128, "bpe": 128, "hf": 1024}  # tables are padded to round sizes


@dataclass(slots=True)
class Pieces:
    """A turn in pieces; all lists have one entry a piece.

    Attributes:
        ids: Vocabulary indices.
        starts: First character in the original text.
        ends: Character after the last.
        words: Index of the word a piece belongs to, from 0.
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
        self._tokenizer.encode_special_tokens = True  # a typed "[SEP]" is text, not a piece that ends a turn
        self.kind: Kind = kind
        self.style: Style = style
        self.pad_id = specials["pad"]
        self.unk_id = specials["unk"]
        self.cls_id = specials["cls"]
        self.sep_id = specials["sep"]
        self.bos_id = specials["bos"]
        self.eos_id = specials["eos"]
        self.usr_id = specials.get("usr")
        self.sys_id = specials.get("sys")
        self._specials = specials
        self._special_ids = set(specials.values()) - {self.unk_id}
        self._remembered: dict[str, Pieces] | None = None
        self._word_ids: dict[str, tuple[int, ...]] = {}
        if kind == "word":
            ids = set(specials.values())
            self._word_ids = {word: (i,) for word, i in tokenizer.get_vocab().items() if i not in ids}

    # -- making ----------------------------------------------------------------------------------------------

    @classmethod
    def train_words(
        cls,
        texts: Iterable[str],
        min_count: int = 1,
        max_size: int | None = None,
        style: Style = "family",
        *,
        roles: bool = False,
    ) -> DialogueTokenizer:
        """A word-level vocabulary; see :func:`empatheia_research.text.vocabularies.train_words`."""
        tokenizer, specials = vocabularies.train_words(texts, min_count, max_size, style, roles)
        return cls(tokenizer, "word", style, specials)

    @classmethod
    def train_bpe(
        cls, texts: Iterable[str], size: int = 8000, style: Style = "family", *, roles: bool = False
    ) -> DialogueTokenizer:
        """Byte-pair pieces inside words; see :func:`empatheia_research.text.vocabularies.train_bpe`."""
        tokenizer, specials = vocabularies.train_bpe(texts, size, style, roles)
        return cls(tokenizer, "bpe", style, specials)

    @classmethod
    def from_hf(cls, folder: str | Path) -> DialogueTokenizer:
        """An encoder's own fast tokeniser; see :func:`empatheia_research.text.vocabularies.from_hf`."""
        tokenizer, specials = vocabularies.from_hf(folder)
        return cls(tokenizer, "hf", "family", specials)

    # -- facts -----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def special_tokens(self) -> dict[str, str]:
        """Special pieces by transformers' names for them, such as ``pad_token``."""
        return {f"{name}_token": str(self._tokenizer.id_to_token(i)) for name, i in self._specials.items()}

    def to_str(self) -> str:
        """The library's tokeniser as text."""
        return self._tokenizer.to_str()

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
            return self._cut_hf(texts)
        rows = [tokenize_words(text, self.style) for text in texts]
        ids_of = self._ids_of({word.text for row in rows for word in row})
        out = []
        for row in rows:
            pieces = Pieces([], [], [], [])
            ids, starts, ends, index = pieces.ids, pieces.starts, pieces.ends, pieces.words
            for i, (word, start, end) in enumerate(row):
                for piece in ids_of[word]:
                    ids.append(piece)
                    starts.append(start)
                    ends.append(end)
                    index.append(i)
            out.append(pieces)
        return out

    def words_to_cut(self, text: str) -> list[str]:
        """A turn's words as the library's tokeniser is to read them; not for an encoder's own (``hf``)."""
        words = [word.text for word in tokenize_words(text, self.style)]
        if self.kind == "word":
            return [word if word in self._word_ids else str(self._tokenizer.id_to_token(self.unk_id)) for word in words]
        return [SURROGATES.sub(" ", word) for word in words]

    def _cut_hf(self, texts: Sequence[str]) -> list[Pieces]:
        texts = [SURROGATES.sub(" ", text) for text in texts]
        out = []
        for text, e in zip(texts, self._tokenizer.encode_batch(texts, add_special_tokens=False), strict=True):
            starts, ends = [start for start, _ in e.offsets], [end for _, end in e.offsets]
            for i, (start, end) in enumerate(e.offsets):  # byte-level pieces may hold the blank before a word
                while start < end and text[start].isspace():
                    start += 1
                starts[i] = start
            out.append(Pieces(e.ids, starts, ends, [0 if word is None else word for word in e.word_ids]))
        return out

    def _ids_of(self, words: set[str]) -> dict[str, tuple[int, ...]]:
        """Pieces of each word; words repeat, so they are remembered up to a limit."""
        missing = sorted(words - self._word_ids.keys())
        if not missing:
            return self._word_ids
        if self.kind == "word":
            found = dict.fromkeys(missing, (self.unk_id,))
        else:
            rows = self._tokenizer.encode_batch(
                [[SURROGATES.sub(" ", word)] for word in missing],
                is_pretokenized=True,
                add_special_tokens=False,
            )
            found = {word: tuple(row.ids) for word, row in zip(missing, rows, strict=True)}
            short = {word: ids for word, ids in found.items() if len(word) <= _LONGEST_CACHED}
            if len(self._word_ids) + len(short) <= _MOST_CACHED:
                self._word_ids.update(short)
        return {**{word: self._word_ids[word] for word in words - found.keys()}, **found}

    # -- pieces to text --------------------------------------------------------------------------------------

    def decode(self, ids: Sequence[int], *, raw: bool = False) -> str:
        """Text of pieces up to the first EOS.

        Args:
            ids: Pieces, a list or a tensor; special and negative ones are dropped.
            raw: Space-joined lower-case words (what metrics read) instead of readable text.
        """
        return self.decode_batch([ids], raw=raw)[0]

    def decode_batch(self, rows: Sequence[Sequence[int]], *, raw: bool = False) -> list[str]:
        """:meth:`decode` of each row."""
        all_words = self._words_of([self._kept(row) for row in rows], raw)
        if raw:
            return [" ".join(words) for words in all_words]
        return [detokenize(word for word in words if word != "[UNK]") for words in all_words]

    def _words_of(self, rows: Sequence[list[int]], raw: bool) -> list[list[str]]:
        """The words that the pieces of each row make."""
        if self.kind == "word":
            return [[self._tokenizer.id_to_token(i) or "[UNK]" for i in row] for row in rows]
        texts = self._tokenizer.decode_batch(rows)
        if self.kind != "hf":
            return [text.split() for text in texts]
        style: Style = "family" if raw else "recec"
        return [[word.text for word in tokenize_words(_CLITIC.sub(r"'\1", text), style)] for text in texts]

    def _kept(self, ids: Any) -> list[int]:
        kept: list[int] = []
        for i in ids.tolist() if hasattr(ids, "tolist") else ids:
            if i == self.eos_id and kept:
                break
            if i not in self._special_ids and i >= 0:
                kept.append(i)
        return kept

    def known_word_share(self, text: str) -> float:
        """Share of words the model can have met in training.

        A word counts unless a piece of it is UNK or, for ``bpe``, it falls into over four pieces or into
        pieces of fewer than two characters on average.

        Returns:
            In [0, 1]; 1.0 for a text without words.
        """
        pieces = self.encode(text)
        by_word: dict[int, list[int]] = {}
        n_bytes: dict[int, int] = {}
        for word, i, start, end in zip(pieces.words, pieces.ids, pieces.starts, pieces.ends, strict=True):
            by_word.setdefault(word, []).append(i)
            n_bytes[word] = len(text[start:end].encode("utf-8", "replace")) + 1  # one for the mark of a word's start
        known = [
            self.unk_id not in ids
            and (self.kind != "bpe" or len(ids) == 1 or (len(ids) <= 4 and 2 * len(ids) < n_bytes[word]))
            for word, ids in by_word.items()
        ]
        return sum(known) / len(known) if known else 1.0

    # -- files -----------------------------------------------------------------------------------------------

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes ``tokenizer.json`` with what transformers reads beside it, and a small description.

        The word rules are not in that file: without ours, transformers would cut other pieces and say nothing. Its
        version therefore names what reads it (``text.auto_tokenizer``); an encoder's own tokeniser is plain.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        PreTrainedTokenizerFast(tokenizer_object=self._tokenizer, **self.special_tokens()).save_pretrained(folder)
        if self.kind != "hf":
            path = folder / "tokenizer.json"
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(_VERSION, _OUR_VERSION, 1), encoding="utf-8", newline="\n")
            path = folder / "tokenizer_config.json"
            settings = read_record(path) | {"tokenizer_class": AUTO_CLASS}
            path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        meta = {
            "format": FORMAT,
            "kind": self.kind,
            "style": self.style,
            "specials": self._specials,
            "size": len(self),
        }
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
                raise CheckpointError(
                    f"no {name} in {str(folder)!r}: not a folder this package saved, or incomplete; copy the"
                    " whole folder again."
                )
        file = META
        try:
            meta = read_record(folder / META)
            if meta["format"] > FORMAT:
                raise CheckpointError(
                    f"the tokeniser in {str(folder)!r} has format {meta['format']}, this version reads up to"
                    f" {FORMAT}; install a newer empatheia."
                )
            check_kind(meta["kind"])
            file = "tokenizer.json"
            written = read_text(folder / file)
            tokenizer = Tokenizer.from_str(written.replace(_OUR_VERSION, _VERSION, 1))
            made = cls(tokenizer, meta["kind"], meta["style"], meta["specials"])
            size = meta["size"]
            if odd := {name: i for name, i in made._specials.items() if type(i) is not int or not 0 <= i < len(made)}:
                raise CheckpointError(
                    f"the tokeniser in {str(folder)!r} has {len(made)} pieces, and its special ones are {odd!r:.60};"
                    " the files are of different models: copy the folder again."
                )
        except CheckpointError:
            raise
        except Exception as problem:  # the library raises a bare Exception for a truncated file
            raise CheckpointError(
                f"the tokeniser in {str(folder)!r} cannot be read ({file}: {vocabularies.short(problem)});"
                " the file is truncated or foreign: copy the folder again."
            ) from None
        if len(made) != size:
            raise CheckpointError(
                f"the tokeniser in {str(folder)!r} has {len(made)} pieces, its description says {size};"
                " the files are of different models: copy the folder again."
            )
        return made


def check_kind(kind: str) -> None:
    """Raises ConfigError for a kind other than word, bpe, hf."""
    if kind not in ("word", "bpe", "hf"):
        raise ConfigError(f"unknown tokeniser kind {kind!r}; accepted: word, bpe, hf.")
