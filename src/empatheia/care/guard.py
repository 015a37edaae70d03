"""The guard: whatever answers, it is asked only after the check, and its reply is checked before it is sent.

>>> from empatheia.care import Care  # doctest: +SKIP
>>> listener = Care().guard(listener)  # doctest: +SKIP
>>> listener.respond("I want to kill myself.").care["level"]  # doctest: +SKIP
'crisis'

Listeners of this package are guarded in themselves, by :func:`guarded` and :func:`guarded_stream`: their ``care=``
takes True (the shipped check, the default), a :class:`~empatheia.care.Care`, or False.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import Any, ParamSpec, Protocol, cast, overload

from empatheia.care.checking import CLAIM_LEFT_OUT, WITHHELD, Care, Checked, built_reply, care_of, mark, unguarded
from empatheia.care.reply_check import ends_sentence, sentences_of
from empatheia.errors import DataError
from empatheia.records.analysis import Analysis
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply

_INPUT = re.compile(r"^input (\d+):")
"""How a responder names an item of a list; it counts those that it was given."""
_LONGEST_HELD = 1000
"""Characters of one sentence on its way that are held back."""
_TAKES_CARE = "takes_care"
"""Attribute of methods that are guarded in themselves."""


Given = ParamSpec("Given")
Ask = Callable[[object], Reply | list[Reply]]
"""A responder: a text or a conversation to a reply, several of these to as many."""


class Answering(Protocol):
    """Whoever answers; what else is asked of it is looked for when it is."""

    @property
    def respond(self) -> Callable[..., object]:
        """A text, a conversation or several of these to one reply or to several."""
        ...


class ReplyPieces(Protocol):
    """A reply on its way: iterate for pieces of text; what keeps the whole of it has it under ``reply`` at the end."""

    @property
    def analysis(self) -> Analysis:
        """What was perceived."""
        ...

    def __iter__(self) -> Iterator[str]: ...


def answered(care: Care, item: object, ask: Ask) -> Reply | list[Reply]:
    """The guarded answer to one input, or the answers to several.

    Args:
        care: The check.
        item: A text, a conversation, or several of these; anything else is left to the responder, which refuses it.
        ask: The responder.

    Returns:
        One reply, or a list in the order of the inputs.
    """
    if isinstance(item, str | Dialogue):
        checked = care.check(item)
        if checked.instead:
            return built_reply(checked)
        said = ask(item)
        (reply,) = said if isinstance(said, list) else [said]
        return _finished(care, reply, checked)
    if isinstance(item, Mapping | bytes) or hasattr(item, "columns") or not isinstance(item, Iterable):
        return ask(item)
    items = list(item)
    if not all(isinstance(one, str | Dialogue) for one in items):
        return ask(items)
    return _all_answered(care, items, ask)


def _all_answered(care: Care, items: Sequence[str | Dialogue], ask: Ask) -> list[Reply]:
    """The guarded answers to several inputs; the responder is asked for all those at once that it may answer."""
    found = care.check_all(items)
    left = [place for place, checked in enumerate(found) if not checked.instead]
    try:
        said = ask([items[place] for place in left]) if left or not items else []
    except DataError as error:
        raise DataError(_INPUT.sub(lambda found: f"input {left[int(found[1]) - 1] + 1}:", str(error))) from error
    replies = iter([said] if isinstance(said, Reply) else said)
    return [built_reply(checked) if checked.instead else _finished(care, next(replies), checked) for checked in found]


def _finished(care: Care, reply: Reply, checked: Checked) -> Reply:
    text, done = care.finish(reply.text, checked.assessment)
    return replace(reply, text=text, care=mark(checked.assessment, done))


def guarded(method: Callable[..., Reply | list[Reply]]) -> Callable[..., Reply | list[Reply]]:
    """Puts the check in front of a listener's ``respond``; it takes ``care=`` beside its own settings."""

    @wraps(method)
    def respond(self: object, item: object, *, care: Care | bool = True, **settings: Any) -> Reply | list[Reply]:
        check = care_of(care)
        ask: Ask = partial(method, self, **settings)
        if check is not None:
            return answered(check, item, ask)
        replies = ask(item)
        return unguarded(replies) if isinstance(replies, Reply) else [unguarded(reply) for reply in replies]

    setattr(respond, _TAKES_CARE, True)
    return respond


def guarded_stream(method: Callable[Given, ReplyPieces]) -> Callable[Given, GuardedStream]:
    """Puts the check in front of a listener's ``stream`` and does what its ``care=`` says."""
    made: Callable[..., ReplyPieces] = method

    @wraps(method)
    def stream(self: object, item: object, *, care: Care | bool = True, **settings: Any) -> GuardedStream:
        check = care_of(care)
        checked = None if check is None or not isinstance(item, str | Dialogue) else check.check(item)
        if checked is not None and checked.instead:
            return GuardedStream(check, checked)
        return GuardedStream(check, checked, made(self, item, **settings))

    setattr(stream, _TAKES_CARE, True)
    return cast("Callable[Given, GuardedStream]", stream)


class Guard:
    """A responder behind the check: asked by ``respond``, ``stream`` and ``converse``; all else is the responder's own.

    Args:
        responder: Whoever has ``respond``, and ``stream`` or ``converse`` where these are asked.
        care: The check; None = the shipped one.
    """

    def __init__(self, responder: Answering, care: Care | None = None) -> None:
        self.responder = responder
        self.care = care or Care()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("responder", "care"):
            raise AttributeError(name)
        return getattr(self.responder, name)

    @overload
    def respond(self, item: str | Dialogue, **settings: Any) -> Reply: ...

    @overload
    def respond(self, item: Sequence[str | Dialogue], **settings: Any) -> list[Reply]: ...

    @overload
    def respond(self, item: object, **settings: Any) -> Reply | list[Reply]: ...

    def respond(self, item: object, **settings: Any) -> Reply | list[Reply]:
        """Answers; see :class:`~empatheia.care.Policy` for what is done at which level.

        Args:
            item: A text, a conversation, or several of these.
            **settings: Of the responder's ``respond``.

        Returns:
            One reply, or a list in the order of the inputs; :attr:`Reply.care` says what was found and done.

        Raises:
            DataError: The responder refuses the input.
        """
        return self._call("respond", guarded, item, settings)

    def stream(self, item: object, **settings: Any) -> GuardedStream:
        """Answers, sentence by sentence: none leaves before it was checked.

        Args:
            item: A text or a conversation.
            **settings: Of the responder's ``stream``.
        """
        return self._call("stream", guarded_stream, item, settings)

    def converse(self, *arguments: Any, **settings: Any) -> Any:
        """The responder's own conversation, which asks this guard from now on."""
        conversation = self._own("converse")(*arguments, **settings)
        conversation.listener = self
        return conversation

    def _own(self, name: str) -> Any:
        return getattr(self.responder, name)

    def _call(self, name: str, guard: Callable[..., Any], item: object, settings: Mapping[str, Any]) -> Any:
        settings = {**settings, "care": self.care}
        method = self._own(name)
        if getattr(method, _TAKES_CARE, False):
            return method(item, **settings)
        return guard(lambda _, *given, **own: method(*given, **own))(self, item, **settings)


class GuardedStream:
    """A checked reply on its way: iterate for its sentences; :attr:`reply` is there at the end.

    Args:
        care: The check; None = it is off, and pieces pass as they come.
        checked: What was found in what is answered.
        inner: The responder's own stream; None where the reply stands already.
    """

    def __init__(self, care: Care | None, checked: Checked | None, inner: ReplyPieces | None = None) -> None:
        self.reply: Reply | None = None
        self._care = care
        self._checked = checked
        self._inner = inner
        self._built = built_reply(checked) if inner is None and checked is not None else None

    @property
    def analysis(self) -> Analysis:
        """What was perceived; of a built reply, nothing."""
        source = self._built if self._built is not None else self._inner
        assert source is not None  # one of both is there
        return source.analysis

    def __iter__(self) -> Generator[str, None, None]:
        if self._built is not None:
            yield self._built.text
            self.reply = self._built
        elif self._care is None or self._checked is None:
            yield from self._inner or ()
            reply = getattr(self._inner, "reply", None)
            self.reply = None if reply is None else unguarded(reply)
        else:
            yield from self._told(self._care, self._checked)

    def _told(self, care: Care, checked: Checked) -> Iterator[str]:
        """The responder's sentences, each checked, between what goes around them."""
        found = checked.assessment
        said, done = "", []
        if lead := care.lead(found):
            said, done = lead + "\n\n", ["preceded"]
            yield said
        start = len(said)
        for sentence in _whole_sentences(self._inner or ()):
            told, what = care.passed(sentence, found, said)
            done += what
            if any(reason.startswith(WITHHELD) for reason in what):
                piece = _apart(said, told)
                said += piece
                yield piece
                break
            if CLAIM_LEFT_OUT not in what:
                said += told
                yield told
        if len(said) == start and CLAIM_LEFT_OUT in done:
            piece = care.replies.without_past(found.turns)
            said += piece
            yield piece
        if addition := care.addition(found):
            done.append("followed")
            piece = _apart(said, addition)
            said += piece
            yield piece
        care.count(found)
        inner = getattr(self._inner, "reply", None) or Reply("", self.analysis)
        self.reply = replace(inner, text=said.strip(), care=mark(found, list(dict.fromkeys(done))))


def _whole_sentences(pieces: Iterable[str]) -> Iterator[str]:
    """Sentences of a text that comes in pieces, each as soon as the next one has begun."""
    held: list[str] = []
    for piece in pieces:
        held.append(piece)
        if any(ends_sentence(part) for part in held[-2:]):
            *whole, rest = sentences_of("".join(held)) or [""]
            yield from whole
            held = [rest]
            if len(rest) > _LONGEST_HELD:
                yield rest
                held = []
    if rest := "".join(held):
        yield rest


def _apart(said: str, piece: str) -> str:
    return (" " if said and not said[-1].isspace() else "") + piece
