"""How a language model in this process reads conversations: the counterpart of ``ContextReader``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from empatheia.records.dialogue import Dialogue, Example, Turn
from empatheia.taxonomy import IGNORED
from empatheia.text.prompts import read_reply
from empatheia.text.words import tokenize_words
from empatheia_research.responders.language_model import LanguageModel
from empatheia_research.text.collation import pad_rows
from empatheia_research.text.prompt_pieces import PromptItem, PromptReader

_ANYTHING = (Turn("speaker", "Hello."),)
"""Stands for a context where only the pieces of a reply are wanted."""


class PromptContexts:
    """Conversations as prompts, and replies as the model says them; see :class:`.contexts.Contexts`.

    Args:
        model: Wraps a model of transformers.
        reader: Prompts in its pieces.
    """

    def __init__(self, model: LanguageModel, reader: PromptReader) -> None:
        self.model, self.reader = model, reader
        self.network: Any = model.network

    def __call__(self, dialogues: Sequence[Dialogue]) -> dict[str, Tensor]:
        """Model inputs of conversations, one row each, on the model's device."""
        return self.tensors([self.reader.encode(Example(dialogue.turns, None)) for dialogue in dialogues])

    def tensors(self, items: Sequence[PromptItem]) -> dict[str, Tensor]:
        """Prompts as model inputs, on its device. Shape of each: ``(batch, source)``, int64."""
        batch = self.reader.answering_batch(items)
        return {name: tensor.long().to(self.network.device) for name, tensor in batch.items()}

    def reply_pieces(self, replies: Sequence[str]) -> list[list[int]]:
        """Pieces of replies with their end mark."""
        return [list(self.reader.encode(Example(_ANYTHING, reply)).reply or ()) for reply in replies]

    def labels(self, replies: Sequence[str]) -> Tensor:
        """Pieces of replies with their end mark, -100 behind it. Shape: ``(batch, longest)``."""
        return pad_rows(self.reply_pieces(replies), IGNORED).to(self.network.device)

    def read(self, row: Sequence[int]) -> tuple[str, str]:
        """A row of ``generate()`` behind the prompt: the reply, and its lower-case words with blanks between."""
        said = list(row[1 if self.reader.form == "seq2seq" else 0 :])
        end = next((i for i, piece in enumerate(said) if piece in self.reader.ends), len(said))
        reply = read_reply(self.reader.decode(said[:end]))
        return reply, " ".join(word.text for word in tokenize_words(reply))

    @property
    def marks(self) -> dict[str, Any]:
        """Start, end and padding, as arguments of ``generate()``."""
        start = {"decoder_start_token_id": self.reader.decoder_start} if self.reader.form == "seq2seq" else {}
        return {"eos_token_id": self.reader.ends, "pad_token_id": self.reader.pad_id, **start}

    @property
    def vocabulary(self) -> str:
        """Kind and number of its pieces, for signatures."""
        return f"{self.reader.kind}-{len(self.reader)}"

    @property
    def n_given(self) -> int:
        """Leading pieces that every reply has, which are not scored."""
        return self.reader.encode(Example(_ANYTHING, "Hello.")).n_begin
