"""The :class:`ResponderListener`: a published responder that understands and answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import LogitsProcessorList

from empatheia.care.checking import Care
from empatheia.care.guard import guarded_stream
from empatheia.errors import DecodingError
from empatheia.listener.batch_listener import BatchListener, decoding_of
from empatheia.listener.protocol import Input
from empatheia.listener.streaming import ReplyStream
from empatheia.records.analysis import Analysis
from empatheia.records.reply import Reply
from empatheia.resources.catalogue import find_model
from empatheia.resources.manifest import read_manifest
from empatheia.text.inputs import prepare
from empatheia.voices.decoding import Decoding, DecodingFields
from empatheia_research.checkpoints.open import open_folder
from empatheia_research.checkpoints.reader import ANSWERING, ANSWERING_ALONE, EncodedInput, Reader
from empatheia_research.decoding.strategies import generate_settings
from empatheia_research.decoding.streaming import Cancelled, Generation, PieceQueue


class ResponderListener(BatchListener):
    """Understands what is felt and why, and answers, by the network of a published system.

    Args:
        reader: An opened model: its network, its tokenizer and how they read.

    Usually made by ``Listener.load``.
    """

    kind = "responder"

    def __init__(self, reader: Reader) -> None:
        self.network = reader.network
        self.tokenizer = reader.tokenizer
        self.manifest = reader.manifest
        self.reader = reader

    @classmethod
    def load(cls, name_or_path: str | Path, device: str = "cpu") -> ResponderListener:
        """From a folder or name.

        Raises:
            MissingResourceError: No such model on this machine.
            CheckpointError: The folder is incomplete, truncated, foreign, or its parts do not fit.
        """
        folder = find_model(name_or_path)
        return cls(open_folder(folder, read_manifest(folder), device).reader)

    @property
    def reasons(self) -> bool:
        """Whether its network names emotions."""
        return self.reader.analyzes

    def count(self, text: str) -> int:
        """Pieces of a text."""
        (pieces,) = self.tokenizer.encode_batch([text])
        return len(pieces.ids)

    @guarded_stream
    def stream(
        self,
        item: Input,
        *,
        decoding: Decoding | None = None,
        care: Care | bool = True,
        **settings: Unpack[DecodingFields],
    ) -> ReplyStream:
        """Answers piece by piece: iterate over the result for pieces of text; ``reply`` is there at the end.

        A piece is a sentence, which has passed the check; without it, a word. Beams are compared only at their end,
        so ``beam`` gives the reply as one piece.

        Args:
            item: A text or a conversation.
            decoding: How the reply is chosen.
            care: As for :meth:`respond`.
            **settings: Fields of :class:`Decoding` in its place.

        Raises:
            DataError: As for :meth:`analyze`.
            DecodingError: A setting is unknown or out of range.
        """
        decoding = decoding_of(decoding, settings)
        encoded = self.reader.encode([prepare(item)])
        tensors = self.reader.tensors(encoded)
        found = self.reader.reason(tensors)
        (analysis,) = self.reader.records(encoded, found)
        known = self._known(found)

        def start(source: PieceQueue, cancelled: Cancelled) -> None:
            if decoding.strategy == "beam":
                source.put(self.generate(encoded, tensors, decoding, stopping_criteria=[cancelled], **known))
            else:
                self.generate(encoded, tensors, decoding, streamer=source, stopping_criteria=[cancelled], **known)

        written = Generation(start, self.tokenizer.decode, is_whole=decoding.strategy == "beam")
        return ReplyStream(analysis, written, lambda _: Reply(written.text, analysis, self.name, decoding.to_dict()))

    def _respond_batch(self, inputs: Sequence[EncodedInput], decoding: Decoding) -> list[Reply]:
        if self._reads_in_parts:
            analyses, tensors, known = self._read_in_parts(inputs)
        else:
            tensors = self.reader.tensors(inputs)
            found = self.reader.reason(tensors)
            analyses, known = self.reader.records(inputs, found), {}
        rows = self.generate(inputs, tensors, decoding, **known).tolist()
        settings = decoding.to_dict()
        return [
            Reply(self.tokenizer.decode(row), analysis, self.name, settings)
            for row, analysis in zip(rows, analyses, strict=True)
        ]

    @property
    def _batch_cost(self) -> int:
        return ANSWERING_ALONE if self._reads_in_parts else ANSWERING

    @property
    def _reads_in_parts(self) -> bool:
        """Whether contexts of like length can be read together, and then all be answered at once."""
        return bool(getattr(self.network, "takes_reasoning", False))

    @torch.inference_mode()
    def _read_in_parts(
        self, inputs: Sequence[EncodedInput]
    ) -> tuple[list[Analysis], dict[str, Tensor], dict[str, Any]]:
        """What is understood, in the inputs' order, and what ``generate()`` goes on from.

        Reading padding is dear, so contexts of like length are read together; answering is dear step by step, so all
        are answered at once.
        """
        order: list[int] = []
        analyses, encodings, masks = [], [], []
        for part in self.reader.batches(inputs, len(inputs)):
            chosen = [inputs[i] for i in part]
            tensors = self.reader.tensors(chosen)
            found = self.reader.reason(tensors)
            assert found is not None  # systems that take their reasoning reason
            analyses += self.reader.records(chosen, found)
            encodings.append(self.network.encode_reasoned(found, **tensors))
            masks += tensors["attention_mask"]
            order += part
        places = sorted(range(len(order)), key=order.__getitem__)
        mask = pad_sequence([masks[place] for place in places], batch_first=True)
        known = {"encoder_outputs": type(encodings[0]).joined(encodings, places)}
        return [analyses[place] for place in places], {"attention_mask": mask}, known

    def _known(self, found: Any) -> dict[str, Any]:
        """What the network has reasoned, where it can go on from there."""
        return {"reasoning": found} if getattr(self.network, "takes_reasoning", False) else {}

    @torch.inference_mode()
    def generate(
        self,
        inputs: Sequence[EncodedInput],
        tensors: dict[str, Tensor],
        decoding: Decoding,
        processors: Sequence[Any] = (),
        **extra: Any,
    ) -> Tensor:
        """Reply pieces, BOS first; ``processors`` see the scores before sampling. Shape: ``(batch, pieces)``."""
        tokenizer = self.tokenizer
        if decoding.label is not None:
            if not getattr(self.network, "takes_label", False):
                raise DecodingError(
                    f"the model {self.name!r} ({self.manifest.system}) takes no label of the reply; leave label out."
                )
            extra["label"] = decoding.label
        silent = {tokenizer.unk_id, tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.bos_id}
        contexts = ["\n".join(turn.text for turn in item.ready.example.context) for item in inputs]
        settings = generate_settings(decoding, contexts)
        if processors:
            settings["logits_processor"] = LogitsProcessorList([*processors, *settings.get("logits_processor", ())])
        with torch.random.fork_rng(devices=[]):  # systems that draw gates when they answer stay reproducible
            torch.manual_seed(decoding.seed)
            made = self.network.generate(
                **tensors,
                **settings,
                suppress_tokens=sorted(silent - {tokenizer.eos_id}),
                begin_suppress_tokens=[tokenizer.eos_id],
                **extra,
            )
        return made if isinstance(made, Tensor) else made.sequences
