"""Our tokeniser as one of transformers: ``AutoTokenizer`` and its collators work with a responder's folder.

The word rules (lower case, contractions, NLTK's cuts) are not in ``tokenizer.json``, and pieces cut without them are
other pieces. So transformers alone refuses the file, by its version, and reads it once this module is imported:

>>> import empatheia_research.text.auto_tokenizer
>>> from transformers import AutoTokenizer
>>> tokenizer = AutoTokenizer.from_pretrained("runs/mine/checkpoint")  # doctest: +SKIP

What it gives is :meth:`DialogueTokenizer.encode`'s: the pieces of one turn, without CLS and SEP.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedConfig, PreTrainedTokenizerFast

from empatheia_research.text.tokenizer import AUTO_CLASS, META, DialogueTokenizer

_KEPT = ("model_max_length", "padding_side", "truncation_side")


class EmpatheiaTokenizer(PreTrainedTokenizerFast):
    """A :class:`DialogueTokenizer` of kind ``word`` or ``bpe`` behind transformers' interface.

    Args:
        dialogue: What cuts and joins.
        **kwargs: Of transformers' tokenisers.
    """

    def __init__(self, dialogue: DialogueTokenizer, **kwargs: Any) -> None:
        self.dialogue = dialogue
        self._is_whole = False
        backend = Tokenizer.from_str(dialogue.to_str())
        super().__init__(tokenizer_object=backend, **{**dialogue.special_tokens(), **kwargs})
        self._is_whole = True

    @classmethod
    def from_pretrained(cls, place: str | Path, *args: Any, **kwargs: Any) -> EmpatheiaTokenizer:
        """Reads a folder.

        Args:
            place: A folder on this machine.
            *args: Not read.
            **kwargs: ``model_max_length``, ``padding_side`` and ``truncation_side`` are kept, others not read.

        Raises:
            CheckpointError: A file is missing, truncated, or of something else.
        """
        given = {name: kwargs[name] for name in _KEPT if name in kwargs}
        return cls(DialogueTokenizer.from_pretrained(place), **given)

    def save_pretrained(self, save_directory: str | Path, *args: Any, **kwargs: Any) -> tuple[str, ...]:
        """Writes the folder's files again; other arguments than the folder are not read."""
        self.dialogue.save_pretrained(save_directory)
        return tuple(str(Path(save_directory) / name) for name in ("tokenizer_config.json", "tokenizer.json", META))

    def add_tokens(self, *args: Any, **kwargs: Any) -> int:
        """Refused: the word rules would cut a new piece before it is looked up.

        Raises:
            NotImplementedError: Always, but while transformers sets the special pieces.
        """
        if not self._is_whole:
            return super().add_tokens(*args, **kwargs)
        raise NotImplementedError(
            "a tokeniser of empatheia takes no new pieces; train one: DialogueTokenizer.train_bpe."
        )

    def _encode_plus(
        self,
        text: Any,
        text_pair: Any = None,
        is_split_into_words: bool = False,
        return_offsets_mapping: bool = False,
        **kwargs: Any,
    ) -> Any:
        if is_split_into_words:
            raise NotImplementedError("a tokeniser of empatheia cuts words itself; give whole texts.")
        if return_offsets_mapping:
            raise NotImplementedError("offsets are given by DialogueTokenizer.encode(text).starts and .ends.")

        def cut(given: Any) -> Any:
            own = self.dialogue.words_to_cut
            return own(given) if isinstance(given, str) else [own(one) for one in given]

        kwargs["split_special_tokens"] = True
        if text_pair is not None:
            text_pair = cut(text_pair)
        return super()._encode_plus(cut(text), text_pair, is_split_into_words=True, **kwargs)

    def _decode(self, token_ids: Any, skip_special_tokens: bool = False, **kwargs: Any) -> str:
        if not skip_special_tokens:
            return super()._decode(token_ids, skip_special_tokens=False, **kwargs)
        return self.dialogue.decode([token_ids] if isinstance(token_ids, int) else token_ids)


class _OurPieces(PreTrainedConfig):
    """Only names the tokeniser to transformers, which lists them by configuration."""

    model_type = "empatheia_pieces"


assert EmpatheiaTokenizer.__name__ == AUTO_CLASS
AutoTokenizer.register(_OurPieces, tokenizer_class=EmpatheiaTokenizer, exist_ok=True)

__all__ = ["EmpatheiaTokenizer"]
