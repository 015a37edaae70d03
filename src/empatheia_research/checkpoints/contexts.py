"""How a responder reads conversations: pieces, side inputs, tensors. The one place where the three come together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Protocol

from torch import Tensor

from empatheia.records.dialogue import Dialogue, Example
from empatheia.taxonomy import IGNORED
from empatheia_research.responders.seq2seq import Seq2SeqResponder
from empatheia_research.side_inputs import SideInput
from empatheia_research.text.collation import Collator, EncodedExample, Layout, encode_examples, pad_rows
from empatheia_research.text.tokenizer import DialogueTokenizer

N_KEPT = 256
"""Encoded contexts that a reader remembers."""


class Contexts(Protocol):
    """How a model in this process reads conversations and says replies: a responder's, or a language model's.

    Attributes:
        network: What ``generate()`` is called on.
    """

    network: Any

    @property
    def n_given(self) -> int:
        """Leading pieces that every reply has, which are not scored."""
        ...

    @property
    def marks(self) -> Mapping[str, int | Sequence[int]]:
        """Start, end and padding, as arguments of ``generate()``."""
        ...

    @property
    def vocabulary(self) -> str:
        """Kind and number of its pieces, for signatures."""
        ...

    def __call__(self, dialogues: Sequence[Dialogue]) -> dict[str, Tensor]:
        """Model inputs of conversations, one row each, on the model's device."""
        ...

    def labels(self, replies: Sequence[str]) -> Tensor:
        """Pieces of replies with their end mark, -100 behind it. Shape: ``(batch, longest)``."""
        ...

    def read(self, row: Sequence[int]) -> tuple[str, str]:
        """A row of ``generate()`` behind the prompt: the reply, and its lower-case words with blanks between."""
        ...


class ContextReader:
    """Conversations as a responder reads them, and replies as it says them.

    Args:
        network: A responder; its ``features`` say what it reads.
        tokenizer: Its pieces.
        layout: How a context becomes one sequence.
        side_inputs: What it reads beside the context; see :func:`empatheia_research.side_inputs.make_side_inputs`.
    """

    n_given = 0

    def __init__(
        self,
        network: Seq2SeqResponder,
        tokenizer: DialogueTokenizer,
        layout: Layout,
        side_inputs: Sequence[SideInput] = (),
    ) -> None:
        self.features = tuple(name for name in network.features if name not in network.gold_features)
        self.network, self.tokenizer, self.layout = network, tokenizer, layout
        self.side_inputs = tuple(side_inputs)
        self.collate = Collator(self.features, tokenizer.pad_id, self.side_inputs)
        self._kept: OrderedDict[Example, EncodedExample] = OrderedDict()
        self._lock = Lock()

    def __call__(self, dialogues: Sequence[Dialogue]) -> dict[str, Tensor]:
        """Model inputs of conversations, one row each, on the model's device; see :meth:`tensors`.

        A conversation with an id is one of a corpus: what is filed under its id is found.
        """
        examples = [Example(d.turns, None, d.id, len(d.turns) if d.id else -1) for d in dialogues]
        return self.tensors(self.encode(examples))

    def encode(self, examples: Sequence[Example]) -> list[EncodedExample]:
        """Contexts to answer, in order; each is encoded once while it is among the last :data:`N_KEPT`.

        Args:
            examples: Their replies and labels are encoded, too, but for emotion and causes; see :meth:`pieces`.

        Returns:
            Shared with other callers: not to be written into.
        """
        found: dict[Example, EncodedExample] = {}
        with self._lock:
            for example in examples:
                if example in self._kept:
                    self._kept.move_to_end(example)
                    found[example] = self._kept[example]
        new = [example for example in dict.fromkeys(examples) if example not in found]
        if new:
            items = self.pieces(new)
            self.add_side_inputs(new, items)
            found.update(zip(new, items, strict=True))
            sure = [(example, item) for example, item in zip(new, items, strict=True) if "doubts" not in item.extra]
            with self._lock:
                self._kept.update(sure[-N_KEPT:])  # a source that was not there is asked again
                while len(self._kept) > N_KEPT:
                    self._kept.popitem(last=False)
        return [found[example] for example in examples]

    def pieces(self, examples: Sequence[Example], **labels: Any) -> list[EncodedExample]:
        """New items of the caller's own, without side inputs.

        Args:
            examples: Contexts, replies, labels.
            **labels: Of :func:`empatheia_research.text.collation.encode_examples`.
        """
        return encode_examples(examples, self.tokenizer, self.layout, **labels)

    def add_side_inputs(
        self, examples: Sequence[Example], items: Sequence[EncodedExample], *, learn: bool = False
    ) -> None:
        """Writes what the system reads beside the context into the items.

        Args:
            examples: What the items are of.
            items: From :meth:`pieces`.
            learn: The items are learnt from: side inputs that can teach may read replies and labels.
        """
        for side in self.side_inputs:
            teach = getattr(side, "teach", None) if learn else None
            (teach or side.add)(examples, items)

    def tensors(self, items: Sequence[EncodedExample]) -> dict[str, Tensor]:
        """The features that the network reads, on its device; no gold label is among them.

        Returns:
            Shape of each: ``(batch, source)``, int64; ``attention_mask`` bool, True = keep.
        """
        return {name: tensor.to(self.network.device) for name, tensor in self.collate(items).items()}

    def labels(self, replies: Sequence[str]) -> Tensor:
        """Pieces of replies with their end mark, -100 behind it. Shape: ``(batch, longest)``."""
        return pad_rows(self.reply_pieces(replies), IGNORED).to(self.network.device)

    def reply_pieces(self, replies: Sequence[str]) -> list[list[int]]:
        """Pieces of replies with their end mark."""
        return [[*pieces.ids, self.tokenizer.eos_id] for pieces in self.tokenizer.encode_batch(list(replies))]

    def read(self, row: Sequence[int]) -> tuple[str, str]:
        """A row of ``generate()``: the reply as a person reads it, and its lower-case words with blanks between."""
        return self.tokenizer.decode(row), self.tokenizer.decode(row, raw=True)

    @property
    def marks(self) -> dict[str, int]:
        """Start, end and padding, as arguments of ``generate()``."""
        own = self.tokenizer
        begin = {"bos_token_id": own.bos_id, "decoder_start_token_id": own.bos_id}
        return {"pad_token_id": own.pad_id, "eos_token_id": own.eos_id, **begin}

    @property
    def vocabulary(self) -> str:
        """Kind and number of its pieces, for signatures."""
        return f"{self.tokenizer.kind}-{len(self.tokenizer)}"
