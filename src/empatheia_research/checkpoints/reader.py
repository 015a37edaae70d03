"""Perceive and explain: prepared inputs through a model's reasoner to :class:`Analysis` records.

Inputs of like length share a batch and results come back in the order of the inputs; padding is masked, so an
input's result does not depend on its neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from empatheia.perceive.phrases import cause_phrases, speaker_words
from empatheia.records.analysis import Analysis, Labels, TurnAnalysis
from empatheia.records.dialogue import Dialogue
from empatheia.resources.arrays import check_finite
from empatheia.resources.manifest import Manifest
from empatheia.taxonomy import EMOTIONS
from empatheia.text.batching import TokenBatchSampler, cut_by_length
from empatheia.text.inputs import ReadyInput, unread
from empatheia.text.uncertainty import doubts
from empatheia_research.checkpoints.contexts import ContextReader
from empatheia_research.responders.seq2seq import Seq2SeqResponder, Understood, given
from empatheia_research.side_inputs import make_side_inputs
from empatheia_research.text.collation import EncodedExample, Layout, word_scores
from empatheia_research.text.tokenizer import DialogueTokenizer

PIECES_PER_BATCH = 4096
READING = 64
"""What a batch that is only read costs by itself, in pieces of padding that cost the same."""
ANSWERING = 768
"""The same of a batch that is read and answered, step by step."""
ANSWERING_ALONE = 1 << 20
"""The same of one whose contexts were read before: padding costs next to nothing."""


@dataclass(frozen=True, slots=True)
class EncodedInput:
    """A prepared input and its pieces."""

    ready: ReadyInput
    pieces: EncodedExample


class Reader:
    """A network, its tokeniser and how they read a conversation.

    Args:
        network: A responder in evaluation mode.
        tokenizer: The pieces it was trained on.
        manifest: Its ``empatheia.json``.
    """

    def __init__(self, network: Seq2SeqResponder, tokenizer: DialogueTokenizer, manifest: Manifest) -> None:
        side_inputs = make_side_inputs(getattr(network, "side_inputs", ()), manifest.side_inputs, tokenizer)
        self.contexts = ContextReader(network, tokenizer, Layout(**manifest.layout), side_inputs)
        self.network = network
        self.tokenizer = tokenizer
        self.manifest = manifest
        self.analyzes = network.has_emotion_head
        self._model_order = [manifest.emotions.index(name) for name in EMOTIONS]

    def encode(self, inputs: Sequence[ReadyInput]) -> list[EncodedInput]:
        """Pieces of prepared inputs, in order; see :meth:`ContextReader.encode`."""
        items = self.contexts.encode([ready.example for ready in inputs])
        return [EncodedInput(ready, pieces) for ready, pieces in zip(inputs, items, strict=True)]

    def batches(self, inputs: Sequence[EncodedInput], batch_size: int, cost: int = READING) -> Iterator[list[int]]:
        """Indices of inputs of like length: at most ``batch_size``, and ``PIECES_PER_BATCH`` pieces.

        Args:
            inputs: Encoded inputs.
            batch_size: Most inputs in a batch.
            cost: Of a batch by itself, in pieces: :data:`READING` or :data:`ANSWERING`.
        """
        lengths = [len(item.pieces.input_ids) for item in inputs]
        for batch in TokenBatchSampler(lengths, PIECES_PER_BATCH, shuffle=False).batches():
            for start in range(0, len(batch), batch_size):
                part = batch[start : start + batch_size]
                ends = cut_by_length([lengths[i] for i in part], cost)
                yield from (part[first:end] for first, end in pairwise([0, *ends]))

    def tensors(self, inputs: Sequence[EncodedInput]) -> dict[str, Tensor]:
        """The features the network reads, on its device. Shape of each: ``(batch, source)``."""
        return self.contexts.tensors([item.pieces for item in inputs])

    def understand(
        self, inputs: Sequence[EncodedInput], batch_size: int, progress: Callable[[int], None] | None = None
    ) -> list[Analysis]:
        """What the speakers feel and why, in the order of the inputs.

        Args:
            inputs: Encoded inputs.
            batch_size: Most inputs in a batch.
            progress: Called with the number of inputs just finished.
        """
        results: list[Analysis | None] = [None] * len(inputs)
        for batch in self.batches(inputs, batch_size):
            chosen = [inputs[i] for i in batch]
            for i, analysis in zip(batch, self.understand_batch(chosen, self.tensors(chosen)), strict=True):
                results[i] = analysis
            if progress is not None:
                progress(len(batch))
        return [result for result in results if result is not None]

    @torch.inference_mode()
    def reason(self, tensors: dict[str, Tensor]) -> Understood | None:
        """What the network finds in one batch; None without an emotion head."""
        return self.network.understand(**tensors) if self.analyzes else None

    def understand_batch(self, inputs: Sequence[EncodedInput], tensors: dict[str, Tensor]) -> list[Analysis]:
        """One batch; a network without an emotion head names none, marked as such."""
        return self.records(inputs, self.reason(tensors))

    def records(self, inputs: Sequence[EncodedInput], output: Understood | None) -> list[Analysis]:
        """What :meth:`reason` found, input by input."""
        if output is None:
            return [self._record(item, None, None) for item in inputs]
        logits = given(output.emotion_logits)[:, self._model_order].double() / self.manifest.temperature  # (batch, 32)
        check_finite({"emotion logits": logits}, f"what the model {self.manifest.name!r} computes")
        emotions = logits.softmax(-1).tolist()
        causes = [None] * len(inputs) if output.cause_probs is None else output.cause_probs.float().tolist()
        return [self._record(*row) for row in zip(inputs, emotions, causes, strict=True)]

    def _record(
        self, item: EncodedInput, probabilities: Sequence[float] | None, cause_probs: Sequence[float] | None
    ) -> Analysis:
        words = [] if cause_probs is None else word_scores(item.pieces, cause_probs)
        context = item.ready.example.context
        words = speaker_words(context, words)
        causes = cause_phrases(context, words, self.manifest.cause_threshold)
        ready, name = item.ready, self.manifest.name
        newest = TurnAnalysis(
            len(ready.turns) - 1,
            None if probabilities is None else Labels(dict(zip(EMOTIONS, probabilities, strict=True)), name),
            causes=tuple(ready.located(span) for span in causes),
            words=tuple(ready.located(span) for span in words),
        )
        found = ("emotion", "causes", "words") if probabilities is not None else ("listener",)
        dialogue = Dialogue(ready.example.dialogue_id, ready.turns)
        return Analysis(dialogue, (newest,), by=dict.fromkeys(found, name), unsure=self._doubts(item))

    def _doubts(self, item: EncodedInput) -> tuple[str, ...]:
        ready, pieces = item.ready, item.pieces
        reasons = list(ready.doubts)
        first = 0
        if ready.shift or pieces.was_cut:
            last = len(ready.example.context) - 1
            starts = (
                s for s, e, t in zip(pieces.starts, pieces.ends, pieces.turn_ids, strict=True) if t == last and e > s
            )
            first = ready.shift + min(starts, default=0)
        reasons += unread(ready.n_skipped + pieces.n_dropped_turns, first, ready.turns)
        reasons += pieces.extra.get("doubts", ())
        tokenizer = self.tokenizer if self._may_be_unknown(pieces) else None
        reasons += doubts(" ".join(turn.text for turn in ready.example.context), tokenizer)
        if not self.analyzes:
            reasons.append(f"the model {self.manifest.name!r} has no emotion head: all emotions are equal here")
        if self.manifest.degraded:
            reasons.append(f"a stand-in answered: {self.manifest.degraded}")
        return tuple(dict.fromkeys(reasons))

    def _may_be_unknown(self, pieces: EncodedExample) -> bool:
        """Whether the share of known words must be counted: fewer than half are one piece of the vocabulary.

        Spares the common case a second encoding of the text.
        """
        if pieces.was_cut or self.tokenizer.unk_id in pieces.input_ids:
            return True
        n_pieces = Counter(zip(pieces.turn_ids, pieces.word_ids, strict=True))
        sizes = [n for (_, word), n in n_pieces.items() if word >= 0]
        return 2 * sizes.count(1) < len(sizes) or not sizes
