"""Language models as listeners: local, tuned or served; zero-shot, or shown what our analysis finds.

>>> listener = LanguageListener.of_endpoint("NAME", "http://localhost:8000/v1", shown="emotion")  # doctest: +SKIP
>>> listener.respond("I lost my grandmother last week.").text  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import torch

from empatheia.care.checking import Care
from empatheia.care.guard import guarded_stream
from empatheia.checkpoints.catalogue import find_model, perceiver
from empatheia.checkpoints.manifest import FORMAT, MANIFEST, Manifest, read_json, read_manifest
from empatheia.decoding.strategies import NO_REPEAT, Decoding, DecodingFields
from empatheia.dialogue import Dialogue, Example, Reply, Understanding
from empatheia.errors import DecodingError
from empatheia.listener.batch_listener import BatchListener, decoding_of
from empatheia.listener.hints import load_reaction
from empatheia.listener.listener import Listener
from empatheia.listener.protocol import AnyListener, Input, Inputs
from empatheia.listener.streaming import Cancelled, PieceQueue, ReplyStream
from empatheia.resources import load_pretrained, quiet_loading
from empatheia.resources.chat_endpoint import API_KEY, ChatEndpoint, Prices, Usage
from empatheia.responders.language_endpoint import EndpointReplies, EndpointReply, open_endpoint
from empatheia.responders.language_model import (
    LanguageModel,
    LanguageModelConfig,
    form_of,
    load_tokenizer,
    make_reader,
)
from empatheia.taxonomy import EMOTIONS
from empatheia.text.inputs import ReadyInput, prepare
from empatheia.text.prompt_pieces import PromptItem, PromptReader
from empatheia.text.prompts import Hints, Wording, cause_texts, messages_of, parse_shown, read_reply
from empatheia.text.uncertainty import doubts

SYSTEM = "language_model"
DEFAULTS = {"no_repeat_ngram_size": NO_REPEAT}
"""Of the writing, for a model in this process."""
NOTHING_ANALYSED = "nothing was analysed: the language model answered by itself, and all emotions are equal here"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a reply takes: the conversation, what was understood, what is shown of it."""

    example: Example
    understanding: Understanding
    hints: Hints


class _Local:
    """A model in this process."""

    def __init__(self, model: LanguageModel, reader: PromptReader) -> None:
        self.model, self.reader, self.wording = model.eval(), reader, reader.wording
        self.usage: Usage | None = None

    def replies(self, asked: Sequence[_Asked], decoding: Decoding) -> Iterator[tuple[str, dict[str, Any]]]:
        items = [self.reader.encode(one.example, one.hints) for one in asked]

        def settings(indices: Sequence[int]) -> Mapping[str, Any]:
            return self._settings([asked[i] for i in indices], decoding)

        replies = [""] * len(items)
        for i, pieces in self.model.answers(self.reader, items, settings):
            replies[i] = self.text(pieces)
        for reply, item in zip(replies, items, strict=True):
            yield reply, _cut(item)

    def stream(self, one: _Asked, decoding: Decoding, source: PieceQueue, cancelled: Cancelled) -> dict[str, Any]:
        item = self.reader.encode(one.example, one.hints)
        settings = self._settings([one], decoding)
        batch = self.reader.answering_batch([item])
        if decoding.strategy == "beam":
            (pieces,) = self.model.continue_batch(self.reader, batch, **settings, stopping_criteria=[cancelled])
            source.put(torch.tensor(pieces, dtype=torch.long))
        else:
            self.model.continue_batch(
                self.reader, batch, **settings, streamer=_WithoutPrompt(source), stopping_criteria=[cancelled]
            )
        return _cut(item)

    def text(self, pieces: Sequence[int]) -> str:
        return read_reply(self.reader.decode(pieces))

    @staticmethod
    def _settings(asked: Sequence[_Asked], decoding: Decoding) -> Mapping[str, Any]:
        return decoding.generate_settings(["\n".join(t.text for t in one.example.context) for one in asked])


class _Remote:
    """A model behind an endpoint."""

    def __init__(self, answers: EndpointReplies) -> None:
        self.answers, self.wording = answers, answers.wording
        self._said = ""

    @property
    def usage(self) -> Usage:
        return self.answers.ledger.total

    def replies(self, asked: Sequence[_Asked], decoding: Decoding) -> Iterator[tuple[str, dict[str, Any]]]:
        pairs = ((one.example, one.hints) for one in asked)
        for answer in self.answers.stream(pairs, **_request(decoding)):
            yield answer.reply, _facts(answer)

    def stream(self, one: _Asked, decoding: Decoding, source: PieceQueue, cancelled: Cancelled) -> dict[str, Any]:
        answer = self.answers.reply(one.example, one.hints, **_request(decoding))
        self._said = answer.reply
        return _facts(answer)

    def text(self, pieces: Sequence[int]) -> str:
        return self._said


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


class _Prompts:
    """The part of a reader that :meth:`Listener.respond` needs: inputs as they are, in batches."""

    analyzes = False

    def __init__(self, batch_size: int | None) -> None:
        self.batch_size = batch_size

    def encode(self, inputs: Sequence[ReadyInput]) -> list[ReadyInput]:
        return list(inputs)

    def batches(self, inputs: Sequence[ReadyInput], batch_size: int, cost: int = 0) -> Iterator[list[int]]:
        size = self.batch_size or len(inputs)
        for start in range(0, len(inputs), size):
            yield list(range(start, min(len(inputs), start + size)))


class LanguageListener(BatchListener):
    """A language model that answers; what is felt, and why, is found by our analysis.

    Usually made by :meth:`of_endpoint`, :meth:`of_model`, or :meth:`load` for a folder that ``empatheia train`` wrote.

    Args:
        answers: Who answers.
        manifest: Name, system, licence.
        shown: What of the analysis the model is shown: ``emotion``, ``side``, ``causes``, ``intent``; nothing =
            zero-shot.
        analyst: Listener (or its folder or name) that finds emotion and causes; None = what perceives by default.
        reaction: Folder or name of the model that finds the intent of the reply.
        labeller: Folder or name of the turn labels that model reads.

    Raises:
        ConfigError: ``shown`` names something else.
    """

    def __init__(
        self,
        answers: _Local | _Remote,
        manifest: Manifest,
        *,
        shown: str | Sequence[str] = (),
        analyst: AnyListener | str | Path | None = None,
        reaction: str | Path = "reaction",
        labeller: str | Path = "intent",
    ) -> None:
        self.answers = answers
        self.manifest = manifest
        self.shown = parse_shown(shown)
        self._analyst = analyst
        self._intent_models = (reaction, labeller)
        self.reader: Any = _Prompts(None if isinstance(answers, _Remote) else 64)
        self.network: Any = answers.model if isinstance(answers, _Local) else None

    @classmethod
    def of_endpoint(
        cls,
        llm: str,
        base_url: str | None = None,
        *,
        shown: str | Sequence[str] = (),
        prices: Prices | None = None,
        wording: Mapping[str, str] | None = None,
        request: Mapping[str, Any] | None = None,
        workers: int = 4,
        journal: str | Path | None = None,
        key_variable: str = API_KEY,
        timeout: float = 60.0,
        retries: int = 5,
        **analysis: Any,
    ) -> LanguageListener:
        """A model behind any OpenAI-compatible endpoint; the key comes from the environment.

        Args:
            llm: Name under which it is served.
            base_url: Address up to ``/v1``; None = EMPATHEIA_BASE_URL.
            shown: See the class.
            prices: Of a million tokens, for :attr:`usage` and each reply's cost.
            wording: Texts of :class:`~empatheia.text.prompts.Wording` to replace.
            request: More fields of every request.
            workers: Requests under way at once, when a list is answered.
            journal: File of answers; what is in it is not asked again.
            key_variable: Name of the variable that holds the key.
            timeout: Seconds without a byte before a request is given up.
            retries: Retries after a failure, with growing pauses.
            **analysis: ``analyst``, ``reaction``, ``labeller`` of the class.

        Raises:
            ConfigError: There is no usable address, or an option is wrong.
        """
        endpoint = ChatEndpoint(llm, base_url, key_variable=key_variable, timeout=timeout, retries=retries)
        answers = EndpointReplies(
            endpoint, Wording.of(wording), prices=prices, request=request, workers=workers, journal=journal
        )
        manifest = Manifest(format=FORMAT, system=SYSTEM, name=llm, weights="", licence=f"that of {llm}")
        return cls(_Remote(answers), manifest, shown=shown, **analysis)

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
    ) -> LanguageListener:
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
        return cls(_Local(model, reader), manifest, shown=shown, **analysis)

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
            return cls(_Remote(open_endpoint(config, **served)), manifest, **{**own, **options})
        with quiet_loading():
            model = load_pretrained(LanguageModel, folder).to(device)
            has_pieces = (folder / "tokenizer.json").is_file() or (folder / "tokenizer_config.json").is_file()
            reader = make_reader(
                config, model, load_tokenizer(folder if has_pieces or not config.base else config.base)
            )
        return cls(_Local(model, reader), manifest, **{**own, **options})

    @property
    def usage(self) -> Usage | None:
        """Tokens and cost so far of a model behind an endpoint; None for one in this process."""
        return self.answers.usage

    @property
    def usage_by_conversation(self) -> dict[str, Usage]:
        """The same by the conversations' ids; empty for a model in this process."""
        return self.answers.answers.ledger.conversations if isinstance(self.answers, _Remote) else {}

    @property
    def host(self) -> str:
        """Where conversations are sent; empty for a model in this process."""
        return getattr(self.answers.answers.endpoint, "host", "") if isinstance(self.answers, _Remote) else ""

    @property
    def has_own_analyst(self) -> bool:
        """Whether another than the default listener finds emotion and causes."""
        return self._analyst is not None

    @cached_property
    def analyst(self) -> AnyListener:
        """Who finds emotion and causes; loaded when first needed."""
        analyst = self._analyst or perceiver()
        return Listener.load(analyst) if isinstance(analyst, str | Path) else analyst

    @cached_property
    def _reaction(self) -> Any:
        with quiet_loading():
            return load_reaction(*self._intent_models)

    def analyze(self, item: Input | Inputs, batch_size: int = 1, progress: Callable[[int], None] | None = None) -> Any:
        """As :meth:`Listener.analyze`, by the analyst."""
        return self.analyst.analyze(item, batch_size, progress)

    def prompt(self, item: Input) -> str:
        """What the model would be told, as text; nothing is asked.

        Raises:
            DataError: The input is empty or ends with a listener turn.
        """
        (one,) = self._asked([prepare(item)])
        if isinstance(self.answers, _Local):
            return self.answers.reader.text_of(one.example.context, one.hints)
        messages = messages_of(one.example.context, one.hints, self.answers.wording)
        return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)

    @guarded_stream
    def stream(
        self,
        item: Input,
        *,
        decoding: Decoding | None = None,
        care: Care | bool = True,
        **settings: Unpack[DecodingFields],
    ) -> ReplyStream:
        """As :meth:`Listener.stream`; a served model gives its reply as one piece.

        Raises:
            DataError: The input is empty or ends with a listener turn.
            DecodingError: A setting is unknown or out of range.
            EndpointError: While it is read: the endpoint gave no answer.
        """
        decoding = self._checked(decoding_of(decoding, settings))
        (one,) = self._asked([prepare(item)])
        facts: dict[str, Any] = {}

        def start(source: PieceQueue, cancelled: Cancelled) -> None:
            facts.update(self.answers.stream(one, decoding, source, cancelled))

        def finish(text: str) -> Reply:
            return self._reply(text, facts, one, decoding)

        is_whole = decoding.strategy == "beam" or isinstance(self.answers, _Remote)
        return ReplyStream(one.understanding, start, self.answers.text, finish, is_whole)

    def replies_to(self, pairs: Sequence[tuple[Example, Hints | None]], decoding: Decoding) -> list[str]:
        """Replies to contexts with what is shown of each, in order; nothing is analysed.

        Raises:
            DecodingError: The model cannot write so.
            EndpointError: A served model gave no answer.
        """
        decoding = self._checked(decoding)
        nothing = _unanalysed(prepare("."), self.name)
        asked = [_Asked(example, nothing, hints or Hints()) for example, hints in pairs]
        return [text for text, _ in self.answers.replies(asked, decoding)]

    def _respond_batch(self, inputs: Sequence[Any], decoding: Decoding) -> list[Reply]:
        decoding = self._checked(decoding)
        asked = self._asked(inputs)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(decoding.seed)
            told = list(self.answers.replies(asked, decoding))
        return [self._reply(text, facts, one, decoding) for (text, facts), one in zip(told, asked, strict=True)]

    def _asked(self, inputs: Sequence[ReadyInput]) -> list[_Asked]:
        """The conversations analysed as far as the model is shown something of it."""
        if {"emotion", "side", "causes"} & set(self.shown):
            found = self.analyst.analyze([Dialogue(ready.example.dialogue_id, ready.turns) for ready in inputs])
        else:
            found = [_unanalysed(ready, self.name) for ready in inputs]
        intents = [""] * len(inputs)
        if "intent" in self.shown:
            records = self._reaction.annotate([Dialogue(str(i), r.example.context) for i, r in enumerate(inputs)])
            intents = [rows[-1].label if rows else "" for rows in records]
        return [
            _Asked(ready.example, understanding, self._hints(understanding, intent))
            for ready, understanding, intent in zip(inputs, found, intents, strict=True)
        ]

    def _hints(self, understanding: Understanding, intent: str) -> Hints:
        return Hints(
            emotion=understanding.emotion if "emotion" in self.shown else "",
            causes=cause_texts(understanding.causes, understanding.turns) if "causes" in self.shown else (),
            intent=intent,
            side=max(understanding.sides, key=lambda s: understanding.sides[s])
            if "side" in self.shown and understanding.sides
            else "",
        )

    def _reply(self, text: str, facts: Mapping[str, Any], one: _Asked, decoding: Decoding) -> Reply:
        told = decoding.to_dict()
        if isinstance(self.answers, _Remote):
            told.pop("top_k", None)  # not a field of such endpoints; request={"top_k": ...} where one has it
        told |= {"prompt": self.answers.wording.fingerprint}
        told |= {"shown": one.hints.to_dict()} if self.shown else {}
        return Reply(text, one.understanding, self.name, {**told, **facts})

    def _checked(self, decoding: Decoding) -> Decoding:
        if decoding.strategy == "beam" and isinstance(self.answers, _Remote):
            raise DecodingError("strategy is 'beam'; a model behind an endpoint accepts greedy and sample.")
        if getattr(decoding, "label", None) is not None:
            raise DecodingError(
                f"the model {self.name!r} ({SYSTEM}) takes no label of the reply; leave label out, or show the"
                " predicted one with shown=intent."
            )
        if not isinstance(self.answers, _Remote):
            return decoding if decoding.no_repeat_ngram_size is not None else replace(decoding, **DEFAULTS)
        if decoding.no_repeat_ngram_size or decoding.repetition_penalty != 1:
            raise DecodingError(
                "a model behind an endpoint takes no no_repeat_ngram_size and no repetition_penalty; accepted:"
                " strategy, temperature, top_p, seed and max_new_tokens."
            )
        return decoding


def _request(decoding: Decoding) -> dict[str, Any]:
    """Fields of a request."""
    sampled = {"temperature": decoding.temperature, "seed": decoding.seed} if decoding.strategy == "sample" else {}
    sampled |= {"top_p": decoding.top_p} if sampled and decoding.top_p < 1 else {}
    return {"max_tokens": decoding.max_new_tokens, **sampled}


def _facts(answer: EndpointReply) -> dict[str, Any]:
    return {"finish": answer.finish, "served": answer.served, "usage": answer.usage.to_dict()}


def _cut(item: PromptItem) -> dict[str, Any]:
    """What of a conversation did not fit into the prompt; empty if all did."""
    facts = {"turns_left_out": item.n_dropped_turns} if item.n_dropped_turns else {}
    return facts | ({"beginning_left_out": True} if item.was_cut else {})


def _unanalysed(ready: ReadyInput, name: str) -> Understanding:
    text = " ".join(turn.text for turn in ready.example.context)
    return Understanding(
        emotions=dict.fromkeys(EMOTIONS, 1 / len(EMOTIONS)),
        causes=(),
        words=(),
        turns=ready.turns,
        uncertain=tuple(dict.fromkeys((*ready.doubts, *doubts(text, None), NOTHING_ANALYSED))),
        model=name,
    )
