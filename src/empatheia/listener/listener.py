"""The :class:`Listener`: loads a model folder, analyses and answers.

>>> listener = Listener.load()  # doctest: +SKIP
>>> listener.analyze("I lost my grandmother last week.").emotion  # doctest: +SKIP
'sad'
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Unpack, overload

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import LogitsProcessorList

from empatheia.care.checking import Care
from empatheia.care.guard import guarded_stream
from empatheia.checkpoints.catalogue import DEFAULT, find_model, perceiver
from empatheia.checkpoints.manifest import read_manifest
from empatheia.checkpoints.open import open_folder
from empatheia.checkpoints.reader import ANSWERING, ANSWERING_ALONE, EncodedInput, Reader
from empatheia.decoding.strategies import Decoding, DecodingFields
from empatheia.dialogue import Reply, Understanding
from empatheia.errors import ConfigError, DecodingError
from empatheia.listener.batch_listener import BatchListener, decoding_of
from empatheia.listener.frames import ANSWERED, Frame
from empatheia.listener.given import given
from empatheia.listener.progress import Told, told
from empatheia.listener.protocol import Input
from empatheia.listener.steps.steering import NAMES, SteeredFields, Steering
from empatheia.listener.streaming import Cancelled, PieceQueue, ReplyStream
from empatheia.registry import Registry
from empatheia.text.inputs import as_dialogue, prepare, up_to

LISTENERS = Registry(
    "listeners",
    {
        "five_steps": "empatheia.listener.steps.focused:FocusedListener",
        "affect_reader": "empatheia.listener.perceiving:PerceivingListener",
        "language_model": "empatheia.listener.language_models:LanguageListener",
        "rashkin_retrieval": "empatheia.listener.retriever:Retriever",
    },
)
"""Systems that answer otherwise than by a decoder of ours, and who answers with them."""


class Listener(BatchListener):
    """Understands what is felt and why, and answers.

    Args:
        reader: An opened model: its network, its tokenizer and how they read.

    Usually made by :meth:`load`.
    """

    def __init__(self, reader: Reader) -> None:
        self.network = reader.network
        self.tokenizer = reader.tokenizer
        self.manifest = reader.manifest
        self.reader = reader

    @classmethod
    def load(cls, name_or_path: str | Path = DEFAULT, device: str = "cpu") -> Listener:
        """Loads a model.

        Args:
            name_or_path: A folder, a name from ``empatheia models list``, or the YAML file of a listener of five steps.
                Without it: the default listener, which :func:`respond` asks, too.
            device: A torch device, e.g. ``cpu`` or ``cuda``.

        Returns:
            This class for a responder with a decoder; for what :data:`LISTENERS` names the listener of that kind.

        Raises:
            ConfigError: The YAML file has an unknown key or a bad value.
            MissingResourceError: No such model on this machine.
            CheckpointError: The folder is incomplete, truncated, foreign, or its parts do not fit.
        """
        if name_or_path == DEFAULT:
            return LISTENERS.get("five_steps")(device=device)
        if Path(name_or_path).suffix in (".yaml", ".yml"):
            return LISTENERS.get("five_steps").load(name_or_path, device)
        folder = find_model(name_or_path)
        manifest = read_manifest(folder)
        if manifest.system in LISTENERS:
            return LISTENERS.get(manifest.system).load(folder, device)
        return cls(open_folder(folder, manifest, device).reader)

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
        (understanding,) = self.reader.records(encoded, found)
        known = self._known(found)

        def start(source: PieceQueue, cancelled: Cancelled) -> None:
            if decoding.strategy == "beam":
                source.put(self._generate(encoded, tensors, decoding, stopping_criteria=[cancelled], **known))
            else:
                self._generate(encoded, tensors, decoding, streamer=source, stopping_criteria=[cancelled], **known)

        def finish(text: str) -> Reply:
            return Reply(text, understanding, self.name, decoding.to_dict())

        return ReplyStream(understanding, start, self.tokenizer.decode, finish, is_whole=decoding.strategy == "beam")

    def _respond_batch(self, inputs: Sequence[EncodedInput], decoding: Decoding) -> list[Reply]:
        if self._reads_in_parts:
            understandings, tensors, known = self._read_in_parts(inputs)
        else:
            tensors = self.reader.tensors(inputs)
            found = self.reader.reason(tensors)
            understandings, known = self.reader.records(inputs, found), {}
        rows = self._generate(inputs, tensors, decoding, **known).tolist()
        settings = decoding.to_dict()
        return [
            Reply(self.tokenizer.decode(row), understanding, self.name, settings)
            for row, understanding in zip(rows, understandings, strict=True)
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
    ) -> tuple[list[Understanding], dict[str, Tensor], dict[str, Any]]:
        """What is understood, in the inputs' order, and what ``generate()`` goes on from.

        Reading padding is dear, so contexts of like length are read together; answering is dear step by step, so all
        are answered at once.
        """
        order: list[int] = []
        understandings, encodings, masks = [], [], []
        for part in self.reader.batches(inputs, len(inputs)):
            chosen = [inputs[i] for i in part]
            tensors = self.reader.tensors(chosen)
            found = self.reader.reason(tensors)
            assert found is not None  # systems that take their reasoning reason
            understandings += self.reader.records(chosen, found)
            encodings.append(self.network.encode_reasoned(found, **tensors))
            masks += tensors["attention_mask"]
            order += part
        places = sorted(range(len(order)), key=order.__getitem__)
        mask = pad_sequence([masks[place] for place in places], batch_first=True)
        known = {"encoder_outputs": type(encodings[0]).joined(encodings, places)}
        return [understandings[place] for place in places], {"attention_mask": mask}, known

    def _known(self, found: Any) -> dict[str, Any]:
        """What the network has reasoned, where it can go on from there."""
        return {"reasoning": found} if getattr(self.network, "takes_reasoning", False) else {}

    @torch.inference_mode()
    def _generate(
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
        settings = decoding.generate_settings(contexts)
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


@overload
def analyze(
    item: Input,
    model: str | Path | None = ...,
    *,
    target: int | None = ...,
    batch_size: int = ...,
    progress: Told | bool = ...,
) -> Understanding: ...


@overload
def analyze(
    item: Sequence[Input],
    model: str | Path | None = ...,
    *,
    target: int | None = ...,
    batch_size: int = ...,
    progress: Told | bool = ...,
) -> list[Understanding]: ...


@overload
def analyze(
    item: object,
    model: str | Path | None = ...,
    *,
    column: str | None = ...,
    target: int | None = ...,
    batch_size: int = ...,
    progress: Told | bool = ...,
) -> Any: ...


def analyze(
    item: object,
    model: str | Path | None = None,
    *,
    column: str | None = None,
    target: int | None = None,
    batch_size: int = 1,
    progress: Told | bool = None,
) -> Any:
    """What :meth:`Listener.analyze` gives; the model is loaded once and kept.

    Args:
        item: A text, a conversation, chat messages, a list of these, a Series of texts, or a frame with ``column``.
        model: Name or folder; None = what the default listener perceives with.
        column: Of a frame: where the texts are.
        target: Index (from 0) of the speaker turn to understand, in place of the last; later turns are not read.
        batch_size: As for :meth:`Listener.analyze`.
        progress: True = a bar on stderr; or what is called with the number of inputs just finished.

    Returns:
        One understanding; a list of them; or the same frame, its index kept, with the columns ``emotion``,
        ``probability``, ``side``, ``causes``, ``uncertain`` and ``error``: see :meth:`Frame.answered
        <empatheia.listener.frames.Frame.answered>`.

    Raises:
        InputTypeError: ``item`` is something else; a ``TypeError``, too.
        DataError: An input is empty or ends with a listener turn, ``target`` is no speaker turn, the frame has no such
            column, or no text in it.
    """
    read = given(item, column)
    listener = _shared(str(model or perceiver()))
    if isinstance(read, Frame):
        return read.answered(
            as_dialogue if target is None else lambda text: up_to(text, target),
            lambda asked: _all_analyzed(listener, asked, batch_size, progress),
        )
    if target is not None:
        read = [up_to(one, target) for one in read] if isinstance(read, list) else up_to(read, target)
    if isinstance(read, list):
        return _all_analyzed(listener, read, batch_size, progress)
    return listener.analyze(read)


def _all_analyzed(
    listener: Listener, items: Sequence[Input], batch_size: int, progress: Told | bool
) -> list[Understanding]:
    with told(progress, len(items)) as advance:
        return listener.analyze(items, batch_size=batch_size, progress=advance)


@overload
def respond(
    item: Input,
    model: str | Path | None = ...,
    *,
    system: str | None = ...,
    care: Care | bool = ...,
    decoding: Decoding | None = ...,
    steering: Steering | None = ...,
    explain: bool = ...,
    **settings: Unpack[SteeredFields],
) -> Reply: ...


@overload
def respond(
    item: Sequence[Input],
    model: str | Path | None = ...,
    *,
    system: str | None = ...,
    care: Care | bool = ...,
    decoding: Decoding | None = ...,
    steering: Steering | None = ...,
    explain: bool = ...,
    **settings: Unpack[SteeredFields],
) -> list[Reply]: ...


@overload
def respond(
    item: object,
    model: str | Path | None = ...,
    *,
    system: str | None = ...,
    column: str | None = ...,
    care: Care | bool = ...,
    decoding: Decoding | None = ...,
    steering: Steering | None = ...,
    explain: bool = ...,
    **settings: Unpack[SteeredFields],
) -> Any: ...


def respond(
    item: object,
    model: str | Path | None = None,
    *,
    system: str | None = None,
    column: str | None = None,
    care: Care | bool = True,
    decoding: Decoding | None = None,
    steering: Steering | None = None,
    explain: bool = False,
    **settings: Unpack[SteeredFields],
) -> Any:
    """What :meth:`Listener.respond` gives; the model is loaded once and kept.

    Args:
        item: As for :func:`analyze`.
        model: Name or folder, e.g. ``gao2021-small`` for the small bundled responder alone; None = :func:`five_steps`.
        system: Answer by the best checkpoint of this system in ``runs``, e.g. ``moel``, in place of a model.
        column: Of a frame: where the texts are.
        care: The check in front of the answer: True = as shipped, a :class:`~empatheia.care.Care` of your own, or
            False = none, which the reply's ``care`` says.
        decoding: How the reply is chosen.
        steering: What the caller decides; a model is then the voice of a listener of five steps, as in ``--focus``.
        explain: Give every reply its explanation; likewise.
        **settings: Fields of ``decoding`` and ``steering`` in their place.

    Returns:
        One reply; a list of them; or the same frame, its index kept, with the column ``reply`` and those of
        :func:`analyze`.

    Raises:
        InputTypeError: ``item`` is something else; a ``TypeError``, too.
        ConfigError: Both ``model`` and ``system`` are given, or there is no such system.
        DecodingError: A setting is unknown, out of range, or not for this model.
        MissingResourceError: The system has no checkpoint here; says which command makes one.
    """
    read = given(item, column)
    if system is not None:
        from empatheia.listener.systems import check_system, find_system

        if model is not None:
            raise ConfigError(f"model={model!r} and system={system!r} are both given; give one of them.")
        check_system(system)
        model = find_system(system, Path("runs"))
    is_steered = bool(steering or explain or set(settings) & set(NAMES))
    listener: Any = five_steps() if model is None else _in_steps(str(model)) if is_steered else _shared(str(model))
    steered = {name: value for name, value in (("steering", steering), ("explain", explain)) if value}
    ask = partial(listener.respond, care=care, decoding=decoding, **steered, **settings)
    return read.answered(as_dialogue, ask, ANSWERED) if isinstance(read, Frame) else ask(read)


@lru_cache(maxsize=1)
def five_steps() -> Listener:
    """The default listener: five steps, the reply a reflection of what was perceived.

    Steps for which a model is installed are answered by it; see :mod:`empatheia.listener.steps.focused`.
    """
    return LISTENERS.get("five_steps")()


@lru_cache(maxsize=2)
def _shared(model: str) -> Listener:
    return five_steps() if model == DEFAULT else Listener.load(model)


@lru_cache(maxsize=2)
def _in_steps(model: str) -> Listener:
    """A model as the voice of a listener of five steps; one of those as itself."""
    listener, five_steps_of = _shared(model), LISTENERS.get("five_steps")
    own = getattr(listener, "in_steps", listener)
    if isinstance(own, five_steps_of):
        return own
    reasoner = listener if isinstance(listener, Listener) and listener.reader.analyzes else None
    return five_steps_of({"name": listener.name}, voices=[listener], reasoner=reasoner)
