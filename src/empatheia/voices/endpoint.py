"""A language model behind an OpenAI-compatible endpoint: what it answers, and the voice that asks it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from empatheia.errors import DecodingError
from empatheia.records.analysis import Analysis, Inference
from empatheia.records.dialogue import Example
from empatheia.resources.chat_endpoint import Usage
from empatheia.taxonomy import RELATION_TITLES
from empatheia.text.prompts import Hints, cause_texts
from empatheia.voices.decoding import Decoding, DecodingSettings, FocusSettings
from empatheia.voices.language_endpoint import EndpointReplies, EndpointReply
from empatheia.voices.voice import Draft, Request, Traits, Voice

STANDARD_SHOWN = ("emotion", "causes", "intent", "inferences")
"""What of the steps before a language model is shown where nothing is said."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a language model is asked: a context, and what is shown of its analysis."""

    example: Example
    hints: Hints


class EndpointAnswers:
    """Answers of a served model.

    Args:
        replies: Who is asked.
    """

    def __init__(self, replies: EndpointReplies) -> None:
        self.endpoint_replies = replies
        self.wording = replies.wording

    @property
    def usage(self) -> Usage:
        """Tokens and cost so far."""
        return self.endpoint_replies.ledger.total

    @property
    def host(self) -> str:
        """Where conversations are sent."""
        return getattr(self.endpoint_replies.endpoint, "host", "")

    def replies(self, prompts: Sequence[Prompt], decoding: Decoding) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each reply and what the server says of it, in order.

        Raises:
            DecodingError: Such a model cannot write so.
            EndpointError: It gave no answer.
        """
        check_served(decoding)
        pairs = ((one.example, one.hints) for one in prompts)
        for answer in self.endpoint_replies.stream(pairs, **_request(decoding)):
            yield answer.reply, _facts(answer)

    def texts(
        self, prompt: Prompt, decoding: Decoding, facts: dict[str, Any]
    ) -> Callable[[threading.Event], Iterator[str]]:
        """One reply as one piece; what the server says of it comes into ``facts``."""

        def write(stop: threading.Event) -> Iterator[str]:
            answer = self.endpoint_replies.reply(prompt.example, prompt.hints, **_request(decoding))
            facts.update(_facts(answer))
            if answer.reply:
                yield answer.reply

        return write


class EndpointVoice(Voice):
    """A served language model; never focused.

    Args:
        answers: Who is asked.
        name: For records.
        shown: What of the steps before it is shown.
    """

    def __init__(self, answers: EndpointAnswers, name: str, shown: Sequence[str] = STANDARD_SHOWN) -> None:
        self.answers = answers
        self.name = self.place = name
        self.host = answers.host
        self.shown = tuple(shown)
        self.traits = Traits(reads_intent="intent" in self.shown)

    @property
    def usage(self) -> Usage:
        """Tokens and cost so far."""
        return self.answers.usage

    def ways(self, ways: Sequence[DecodingSettings]) -> list[DecodingSettings]:
        """A served model keeps no beams."""
        return [way for way in ways if way.strategy != "beam"]

    def propose(
        self, requests: Sequence[Request], way: DecodingSettings, focus: FocusSettings | None
    ) -> list[list[Draft]]:
        """See :class:`Voice`."""
        out: list[list[Draft]] = [[] for _ in requests]
        prompts = [
            Prompt(Example(one.dialogue.turns, None, one.dialogue.id), hints_of(one, self.shown)) for one in requests
        ]
        for number in range(way.n if way.strategy == "sample" else 1):
            decoding = replace(way.decoding(number), no_repeat_ngram_size=None, repetition_penalty=1.0)  # not sent
            used = {name: value for name, value in decoding.to_dict().items() if name != "top_k"}  # not sent
            for drafts, (text, _) in zip(out, self.answers.replies(prompts, decoding), strict=True):
                drafts.append(Draft(text, used))
        return out


def hints_of(request: Request, shown: Sequence[str]) -> Hints:
    """What a language model is shown of an analysis: the causes as they were perceived, or the words that were named.

    Args:
        request: With the analysis.
        shown: Of ``emotion``, ``side``, ``causes``, ``intent`` and ``inferences``.
    """
    newest, causes = request.newest, request.causes
    if causes is None:
        causes = causes_of(request.analysis) if request.analysis is not None else ()
    return Hints(
        emotion=newest.emotion.label if "emotion" in shown and newest.emotion is not None else "",
        causes=causes if "causes" in shown else (),
        intent=request.label if "intent" in shown else "",
        inferences=inferred(newest.inferences) if "inferences" in shown else (),
        side=newest.side.label if "side" in shown and newest.side is not None else "",
    )


def causes_of(analysis: Analysis) -> tuple[str, ...]:
    """The words that caused what is felt: phrases as they were perceived, or the targets where these are the causes."""
    newest, turns = analysis.newest, analysis.dialogue.turns
    if newest.causes == analysis.targets:
        return tuple(span.of(turns) for span in analysis.targets)
    return cause_texts(newest.causes, turns)


def inferred(inferences: Sequence[Inference]) -> tuple[str, ...]:
    """Inferences as a language model is told of them.

    >>> inferred([Inference(0, "xReact", ("sad", "lonely")), Inference(0, "xWant", (), absent="no near event")])
    ('feels sad, lonely',)
    """
    return tuple(f"{RELATION_TITLES[one.relation]} {', '.join(one.tails)}" for one in inferences if one.tails)


def check_served(decoding: Decoding) -> None:
    """Whether a served model can write so.

    Raises:
        DecodingError: It cannot; says what it accepts.
    """
    if decoding.strategy == "beam":
        raise DecodingError("strategy is 'beam'; a model behind an endpoint accepts greedy and sample.")
    if decoding.no_repeat_ngram_size or decoding.repetition_penalty != 1:
        raise DecodingError(
            "a model behind an endpoint takes no no_repeat_ngram_size and no repetition_penalty; accepted:"
            " strategy, temperature, top_p, seed and max_new_tokens."
        )


def _request(decoding: Decoding) -> dict[str, Any]:
    """Fields of a request."""
    sampled = {"temperature": decoding.temperature, "seed": decoding.seed} if decoding.strategy == "sample" else {}
    sampled |= {"top_p": decoding.top_p} if sampled and decoding.top_p < 1 else {}
    return {"max_tokens": decoding.max_new_tokens, **sampled}


def _facts(answer: EndpointReply) -> dict[str, Any]:
    return {"finish": answer.finish, "served": answer.served, "usage": answer.usage.to_dict()}
