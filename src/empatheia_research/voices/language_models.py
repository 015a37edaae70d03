"""Language models of transformers in this process, as listeners and as voices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList

from empatheia.listener.language_models import SYSTEM, LanguageListener, check_label
from empatheia.listener.protocol import Input
from empatheia.records.dialogue import Example
from empatheia.resources.catalogue import find_model
from empatheia.resources.chat_endpoint import Usage
from empatheia.resources.manifest import FORMAT, MANIFEST, Manifest, read_json, read_manifest
from empatheia.resources.quiet import quiet_loading
from empatheia.text.inputs import prepare
from empatheia.text.prompts import read_reply
from empatheia.voices.decoding import NO_REPEAT, Decoding, DecodingSettings
from empatheia.voices.endpoint import STANDARD_SHOWN, EndpointAnswers, Prompt, hints_of
from empatheia.voices.language_endpoint import open_endpoint
from empatheia.voices.voice import Request, Traits, Voice
from empatheia_research.checkpoints.prompt_contexts import PromptContexts
from empatheia_research.decoding.strategies import generate_settings
from empatheia_research.decoding.streaming import Cancelled, Generation, PieceQueue
from empatheia_research.pretrained import load_pretrained
from empatheia_research.responders.language_model import (
    LanguageModel,
    LanguageModelConfig,
    form_of,
    load_tokenizer,
    make_reader,
)
from empatheia_research.text.prompt_pieces import PromptItem, PromptReader
from empatheia_research.voices.local import LocalVoice

DEFAULTS = {"no_repeat_ngram_size": NO_REPEAT}
"""Of the writing, for a model in this process."""


class LocalAnswers:
    """A model in this process.

    Args:
        model: Put into evaluation mode.
        reader: How it reads prompts.
    """

    usage: Usage | None = None
    host = ""

    def __init__(self, model: LanguageModel, reader: PromptReader) -> None:
        self.model, self.reader, self.wording = model.eval(), reader, reader.wording

    def replies(self, prompts: Sequence[Prompt], decoding: Decoding) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each reply and what did not fit into its prompt, in order."""
        items = [self.reader.encode(one.example, one.hints) for one in prompts]

        def settings(indices: Sequence[int]) -> Mapping[str, Any]:
            return self._settings([prompts[i] for i in indices], decoding)

        replies = [""] * len(items)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(decoding.seed)
            for i, pieces in self.model.answers(self.reader, items, settings):
                replies[i] = self.text(pieces)
        for reply, item in zip(replies, items, strict=True):
            yield reply, _cut(item)

    def texts(self, prompt: Prompt, decoding: Decoding, facts: dict[str, Any]) -> Generation:
        """One reply in pieces; what did not fit into the prompt comes into ``facts``."""
        item = self.reader.encode(prompt.example, prompt.hints)
        facts.update(_cut(item))

        def start(source: PieceQueue, cancelled: Cancelled) -> None:
            settings = self._settings([prompt], decoding)
            batch = self.reader.answering_batch([item])
            if decoding.strategy == "beam":
                (pieces,) = self.model.continue_batch(self.reader, batch, **settings, stopping_criteria=[cancelled])
                source.put(torch.tensor(pieces, dtype=torch.long))
            else:
                self.model.continue_batch(
                    self.reader, batch, **settings, streamer=_WithoutPrompt(source), stopping_criteria=[cancelled]
                )

        return Generation(start, self.text, is_whole=decoding.strategy == "beam")

    def text(self, pieces: Sequence[int]) -> str:
        """The reply in these pieces."""
        return read_reply(self.reader.decode(pieces))

    @staticmethod
    def _settings(prompts: Sequence[Prompt], decoding: Decoding) -> Mapping[str, Any]:
        return generate_settings(decoding, ["\n".join(t.text for t in one.example.context) for one in prompts])


class _WithoutPrompt:
    """What ``generate()`` streams to, less the prompt it begins with."""

    def __init__(self, source: PieceQueue) -> None:
        self.source = source
        self._is_prompt = True

    def put(self, value: torch.Tensor) -> None:
        if not self._is_prompt:
            self.source.put(value)
        self._is_prompt = False

    def end(self) -> None:
        self.source.end()


class LocalLanguageListener(LanguageListener):
    """A language model in this process; usually made by :meth:`of_model`, or :meth:`load` for a trained folder."""

    answers: LocalAnswers
    batch_size = 64

    @property
    def network(self) -> LanguageModel:
        """The loaded model."""
        return self.answers.model

    @classmethod
    def of_model(
        cls,
        place: str | Path,
        *,
        form: str | None = None,
        dtype: str = "float32",
        device: str = "cpu",
        max_source: int = 1024,
        shown: str | Sequence[str] = (),
        wording: Mapping[str, str] | None = None,
        **analysis: Any,
    ) -> LocalLanguageListener:
        """A causal or encoder-decoder model of transformers, by folder or name, as it is.

        Args:
            place: Folder, GGUF file, installed name, or hub id.
            form: ``causal`` or ``seq2seq``; None = as its configuration says.
            dtype: Of the weights.
            device: A torch device.
            max_source: Most pieces of a prompt; the oldest turns go first.
            shown: See the class.
            wording: Texts of :class:`~empatheia.text.prompts.Wording` to replace.
            **analysis: ``analyst``, ``reaction``, ``labeller`` of the class.

        Raises:
            MissingResourceError: It is not on this machine and cannot be fetched.
            CheckpointError: It is no language model.
        """
        with quiet_loading():
            config = LanguageModelConfig(
                form=form or form_of(place),
                base=str(place),
                dtype=dtype,
                max_source=max_source,
                wording=dict(wording) if wording else None,
            )
            model = LanguageModel.build(config, device)
            reader = make_reader(config, model, load_tokenizer(place))
        name = Path(place).name if Path(place).exists() else str(place)
        manifest = Manifest(format=FORMAT, system=SYSTEM, name=name, weights="", licence=f"that of {name}")
        return cls(LocalAnswers(model, reader), manifest, shown=shown, **analysis)

    @classmethod
    def load(cls, name_or_path: str | Path, device: str = "cpu", **options: Any) -> LanguageListener:
        """What ``empatheia train`` wrote for a recipe of this system: tuned, or a base and how it is asked.

        Args:
            name_or_path: A model folder, or a name from ``empatheia models list``.
            device: A torch device.
            **options: Of the class, in place of the folder's own; ``prices`` and ``journal`` for a served model.

        Raises:
            MissingResourceError: The folder, or the base it stands on, is not on this machine.
            CheckpointError: The folder is incomplete or foreign.
        """
        folder = find_model(name_or_path)
        manifest, record = read_manifest(folder), read_json(folder / MANIFEST)
        config: Any = load_pretrained(LanguageModelConfig, folder)
        served = {name: options.pop(name) for name in ("prices", "journal") if name in options}
        own = {name: record[name] for name in ("shown", "analyst", "reaction", "labeller") if name in record}
        if config.form == "endpoint":
            answers = EndpointAnswers(open_endpoint(config, **served))
            return LanguageListener(answers, manifest, **{**own, **options})
        with quiet_loading():
            model = load_pretrained(LanguageModel, folder).to(device)
            has_pieces = (folder / "tokenizer.json").is_file() or (folder / "tokenizer_config.json").is_file()
            reader = make_reader(
                config, model, load_tokenizer(folder if has_pieces or not config.base else config.base)
            )
        return cls(LocalAnswers(model, reader), manifest, **{**own, **options})

    def prompt(self, item: Input) -> str:
        """See :class:`LanguageListener`."""
        (one,) = self._questions([prepare(item)])
        return self.answers.reader.text_of(one.prompt.example.context, one.prompt.hints)

    def as_voice(self, shown: Sequence[str] | None = None) -> Voice:
        """See :class:`~empatheia.listener.Listener`."""
        return LanguageVoice(self, self.shown or STANDARD_SHOWN if shown is None else shown)

    def _checked(self, decoding: Decoding) -> Decoding:
        check_label(decoding, self.name)
        return decoding if decoding.no_repeat_ngram_size is not None else replace(decoding, **DEFAULTS)

    def _used(self, decoding: Decoding) -> dict[str, Any]:
        return decoding.to_dict()


class LanguageVoice(LocalVoice):
    """A causal or encoder-decoder language model of transformers.

    Args:
        listener: Over a model in this process.
        shown: What of the steps before it is shown.
    """

    def __init__(self, listener: LocalLanguageListener, shown: Sequence[str] = STANDARD_SHOWN) -> None:
        self.listener = listener
        self.lm = listener.answers.model
        self.model = self.lm.network
        self.reader = listener.answers.reader
        self.contexts = PromptContexts(self.lm, self.reader)
        self.ends = self.reader.ends
        self.name = self.place = listener.name
        self.shown = tuple(shown)
        self.traits = Traits(focusable=True, reads_intent="intent" in self.shown)

    def ways(self, ways: Sequence[DecodingSettings]) -> list[DecodingSettings]:
        """Without repetitions, where nothing else is said."""
        return [way if way.no_repeat_ngram_size is not None else way.model_copy(update=DEFAULTS) for way in ways]

    def length(self, request: Request) -> int:
        """See :class:`LocalVoice`."""
        return len(self._item(request))

    def tensors(self, requests: Sequence[Request]) -> dict[str, Tensor]:
        """See :class:`LocalVoice`."""
        return self.contexts.tensors([self._item(one) for one in requests])

    def write(
        self,
        requests: Sequence[Request],
        inputs: dict[str, Tensor],
        decoding: Decoding,
        n: int,
        processors: Sequence[LogitsProcessor],
    ) -> list[str]:
        """See :class:`LocalVoice`."""
        settings = generate_settings(decoding, ["\n".join(t.text for t in one.dialogue.turns) for one in requests])
        if processors:
            settings["logits_processor"] = LogitsProcessorList([*processors, *settings.get("logits_processor", ())])
        if n > 1:
            settings["num_return_sequences"] = n
        rows = self.lm.continue_batch(self.reader, inputs, **settings)
        return [self.listener.answers.text(row) for row in rows]

    def labels(self, requests: Sequence[Request], replies: Sequence[str]) -> list[list[int]]:
        """See :class:`LocalVoice`."""
        return [list(self._item(one, reply).reply or ()) for one, reply in zip(requests, replies, strict=True)]

    def likelihoods(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """See :class:`LocalVoice`."""
        costs = self.lm.nats(
            self.reader, [self._item(one, reply) for one, reply in zip(requests, replies, strict=True)]
        )
        return [-nll / n for nll, n in costs]

    def piece(self, id: int) -> str:
        """See :class:`LocalVoice`."""
        return self.reader.decode([id])

    def _item(self, request: Request, reply: str | None = None) -> PromptItem:
        return self.reader.encode(Example(request.dialogue.turns, reply), hints_of(request, self.shown))


def _cut(item: PromptItem) -> dict[str, Any]:
    """What of a conversation did not fit into the prompt; empty if all did."""
    facts = {"turns_left_out": item.n_dropped_turns} if item.n_dropped_turns else {}
    return facts | ({"beginning_left_out": True} if item.was_cut else {})
