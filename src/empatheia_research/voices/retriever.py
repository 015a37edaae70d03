"""The :class:`Retriever`: a listener that answers with the best of its ready replies (Rashkin et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch

from empatheia.care.checking import Care
from empatheia.care.guard import guarded_stream
from empatheia.errors import DataError
from empatheia.listener.batch_listener import BatchListener, decoding_of
from empatheia.listener.protocol import Input
from empatheia.listener.streaming import ReplyStream, whole_reply
from empatheia.records.analysis import Analysis, Labels, TurnAnalysis
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia.resources.catalogue import find_model
from empatheia.resources.manifest import MANIFEST, Manifest, read_json, read_manifest
from empatheia.taxonomy import EMOTIONS
from empatheia.text.inputs import ReadyInput, prepare
from empatheia.text.uncertainty import doubts
from empatheia.voices.decoding import Decoding, DecodingFields
from empatheia_research.checkpoints.weights import load_network
from empatheia_research.decoding.reply_index import ReplyIndex
from empatheia_research.decoding.retrieving import PairReader, vectors_of
from empatheia_research.responders.rashkin_retrieval import RashkinRetrieval
from empatheia_research.side_inputs.external_vectors import ExternalVectors
from empatheia_research.side_inputs.prepended_labels import PrependedLabels
from empatheia_research.text.tokenizer import DialogueTokenizer

_CHUNK = 1024


@dataclass(frozen=True, slots=True)
class Match:
    """A candidate and how well it fits: the dot product, comparable within one context only."""

    text: str
    score: float


class _Contexts:
    """The part of a reader that :class:`Listener` needs: inputs to context vectors and what they say of the emotion."""

    def __init__(self, network: RashkinRetrieval, reader: PairReader, manifest: Manifest) -> None:
        self.network, self.pairs, self.manifest = network, reader, manifest
        self.analyzes = network.emotion is not None

    def encode(self, inputs: Sequence[ReadyInput]) -> list[ReadyInput]:
        return list(inputs)

    def batches(self, inputs: Sequence[ReadyInput], batch_size: int, cost: int = 0) -> Iterator[list[int]]:
        for start in range(0, len(inputs), _CHUNK):  # the encoder cuts it further, by pieces
            yield list(range(start, min(len(inputs), start + _CHUNK)))

    def vectors(self, inputs: Sequence[ReadyInput]) -> np.ndarray:
        rows = self.pairs.contexts([ready.example.context for ready in inputs])
        return vectors_of(self.network, self.pairs, rows, "context")

    def understand(
        self, inputs: Sequence[ReadyInput], batch_size: int, progress: Callable[[int], None] | None = None
    ) -> list[Analysis]:
        found = self.analyses_of(inputs, self.vectors(inputs))
        if progress is not None:
            progress(len(inputs))
        return found

    @torch.inference_mode()
    def analyses_of(self, inputs: Sequence[ReadyInput], vectors: np.ndarray) -> list[Analysis]:
        if self.network.emotion is None:
            return [self._record(ready, None) for ready in inputs]
        logits = self.network.emotion(torch.from_numpy(vectors).to(self.network.device)).double()
        order = [self.manifest.emotions.index(name) for name in EMOTIONS]
        rows = (logits[:, order] / self.manifest.temperature).softmax(-1).tolist()
        return [self._record(ready, row) for ready, row in zip(inputs, rows, strict=True)]

    def _record(self, ready: ReadyInput, probabilities: Sequence[float] | None) -> Analysis:
        text = " ".join(turn.text for turn in ready.example.context)
        reasons = [*ready.doubts, *doubts(text, self.pairs.tokenizer)]
        if not self.analyzes:
            reasons.append(f"the model {self.manifest.name!r} has no emotion head: all emotions are equal here")
        dialogue, name = Dialogue(ready.example.dialogue_id, ready.turns), self.manifest.name
        if probabilities is None:
            return Analysis(dialogue, by={"listener": name}, unsure=tuple(dict.fromkeys(reasons)))
        felt = Labels(dict(zip(EMOTIONS, probabilities, strict=True)), name)
        newest = TurnAnalysis(len(ready.turns) - 1, felt)
        return Analysis(dialogue, (newest,), by={"emotion": name}, unsure=tuple(dict.fromkeys(reasons)))


class Retriever(BatchListener):
    """Answers from an index of replies; settings of decoding have no say.

    Args:
        network: A retrieval model in evaluation mode.
        reader: How it reads.
        index: Its candidates.
        manifest: Its ``empatheia.json``.

    Usually made by :meth:`load`.
    """

    def __init__(self, network: RashkinRetrieval, reader: PairReader, index: ReplyIndex, manifest: Manifest) -> None:
        self.network = network
        self.tokenizer = reader.tokenizer
        self.manifest = manifest
        self.reader: Any = _Contexts(network, reader, manifest)
        self.index = index

    @classmethod
    def load(cls, name_or_path: str | Path, device: str = "cpu") -> Retriever:
        """Loads a model folder of task ``retrieve``.

        Args:
            name_or_path: A folder, or a name from ``empatheia models list``.
            device: A torch device.

        Raises:
            MissingResourceError: No such model, or no classifier or second encoder it needs.
            CheckpointError: The folder is incomplete, truncated, foreign, or its parts do not fit.
        """
        folder = find_model(name_or_path)
        manifest, record = read_manifest(folder), read_json(folder / MANIFEST)
        tokenizer = DialogueTokenizer.from_pretrained(folder)
        network = load_network(folder, manifest, len(tokenizer), device)
        labels = PrependedLabels(tokenizer, **record.get("prepend", {}))
        reader = PairReader(tokenizer, network.config, labels, ExternalVectors(**record.get("external", {})))
        return cls(network, reader, ReplyIndex.load(folder), manifest)

    def use_candidates(self, texts: Sequence[str]) -> None:
        """Answers from these replies from now on.

        Raises:
            DataError: There is none.
        """
        kept = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
        pairs = self.reader.pairs
        self.index = ReplyIndex(kept, vectors_of(self.network, pairs, pairs.replies(kept), "candidate"))

    def best(self, item: Input, k: int = 5) -> list[Match]:
        """The k best replies to a text or conversation, best first.

        Raises:
            DataError: The input is empty or ends with a listener turn, or k is below 1.
        """
        if k < 1:
            raise DataError(f"k is {k}; accepted: 1 or more replies.")
        return self._matches(self.reader.vectors([prepare(item)]), k)[0]

    @guarded_stream
    def stream(
        self,
        item: Input,
        *,
        decoding: Decoding | None = None,
        care: Care | bool = True,
        **settings: Unpack[DecodingFields],
    ) -> ReplyStream:
        """As :meth:`Listener.stream`; the reply comes as one piece."""
        return whole_reply(self._respond_batch([prepare(item)], decoding_of(decoding, settings))[0])

    def _respond_batch(self, inputs: Sequence[Any], decoding: Decoding) -> list[Reply]:
        vectors = self.reader.vectors(inputs)
        told = {"strategy": "retrieve", "candidates": len(self.index)}
        return [
            Reply(best.text, analysis, self.name, {**told, "score": round(best.score, 4)})
            for [best], analysis in zip(
                self._matches(vectors, 1), self.reader.analyses_of(inputs, vectors), strict=True
            )
        ]

    def _matches(self, vectors: np.ndarray, k: int) -> list[list[Match]]:
        places, scores = self.index.best(vectors, k)
        return [
            [Match(self.index.texts[i], float(score)) for i, score in zip(*pair, strict=True)]
            for pair in zip(places, scores, strict=True)
        ]
