"""Chat messages as a conversation, and how a request's options say that the reply is to be made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from empatheia.decoding.strategies import MAX_NEW_TOKENS_LIMIT
from empatheia.dialogue import Dialogue, Turn
from empatheia.errors import DecodingError
from empatheia.listener import Steering
from empatheia.registry import nearest
from empatheia.serve.faults import ApiError
from empatheia.serve.replies import Wish
from empatheia.serve.requests import Body
from empatheia.serve.settings import Limits
from empatheia.text.readable import readable

ROLES = ("user", "assistant", "system", "developer")


class TextPart(Body):
    """A part of a message's content; only texts can be read."""

    type: str = Field(description="`text`.")
    text: str | None = None


class ChatMessage(Body):
    """One message."""

    role: str = Field(description="`user`, `assistant`, `system` or `developer`.")
    content: str | list[TextPart] | None = Field(None, description="A text, or a list of parts of type `text`.")


class SteerBody(Body):
    """What the caller decides, and what is told of the steps; see docs/howto/listener.md."""

    explain: bool | None = Field(None, description="Candidates with their terms; without it where they cost nothing.")
    emotion: str | None = Field(None, description="What the person feels, one of the 32, instead of what is found.")
    intent: str | None = Field(None, description="What the reply is to express or do, one of the 41.")
    focus: str | list[str] | None = Field(
        None, description="Words of the last message that the reply must be about; `auto`, `off`."
    )
    alpha: float | None = Field(None, ge=0, description="How strongly it is focused.")
    beta: float | None = Field(None, ge=0, description="How rational the imagined listener is.")
    worlds: int | None = Field(None, ge=2, le=16, description="The true context and its distractors.")
    distractors: str | None = Field(None, description="`auto`, `gee`, `masked`, `random` or `given`.")


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a request's messages say.

    Attributes:
        dialogue: The turns.
        places: Of each turn: the index of its message in the request.
        guidance: Texts of system and developer messages.
    """

    dialogue: Dialogue
    places: tuple[int, ...]
    guidance: tuple[str, ...]


def read_messages(messages: Sequence[ChatMessage], limits: Limits, name: str = "messages") -> Conversation:
    """A conversation out of chat messages, last a user's.

    Args:
        messages: As sent.
        limits: How many and how long they may be.
        name: Of the request's field.

    Raises:
        ApiError: It is none that can be answered.
    """
    if not messages:
        raise ApiError(400, f"{name} is empty; give at least one user message.", param=name, code="empty")
    if len(messages) > limits.messages:
        said = f"{name} holds {len(messages):,} messages; accepted: at most {limits.messages:,}."
        raise ApiError(422, said, param=name, code="too_many_messages")
    turns: list[Turn] = []
    places: list[int] = []
    guidance: list[str] = []
    n_characters = 0
    for place, message in enumerate(messages):
        where = f"{name}[{place}]"
        text = _text_of(message, where)
        n_characters += len(text)
        if n_characters > limits.characters:
            said = f"{name} holds more than {limits.characters:,} characters."
            raise ApiError(422, said, param=name, code="too_long")
        if message.role in ("system", "developer"):
            guidance += [text] if text.strip() else []
            continue
        if not readable(text).strip():
            said = f"{where} has no text; write at least one word."
            raise ApiError(400, said, param=where, code="empty")
        turns.append(Turn("speaker" if message.role == "user" else "listener", text))
        places.append(place)
    if not turns:
        raise ApiError(400, f"{name} holds no user message; give at least one.", param=name, code="empty")
    if turns[-1].role != "speaker":
        said = f"the last message is the assistant's, which needs no answer; end {name} with a user message."
        raise ApiError(400, said, param=f"{name}[{places[-1]}].role", code="ends_with_assistant")
    return Conversation(Dialogue("", tuple(turns)), tuple(places), tuple(guidance))


def _text_of(message: ChatMessage, where: str) -> str:
    if message.role not in ROLES:
        said = (
            f"{where}.role is {message.role[:40]!r}.{nearest(message.role, list(ROLES))} Accepted: {', '.join(ROLES)}."
        )
        raise ApiError(400, said, param=f"{where}.role", code="unsupported_role")
    if message.content is None:
        raise ApiError(400, f"{where}.content is missing; give a text.", param=f"{where}.content", code="missing")
    if isinstance(message.content, str):
        return message.content
    texts = []
    for number, part in enumerate(message.content):
        if part.type not in ("text", "input_text", "output_text") or part.text is None:
            said = f"{where}.content[{number}] is of type {part.type[:40]!r}; only texts can be read."
            raise ApiError(400, said, param=f"{where}.content[{number}]", code="unsupported_content")
        texts.append(part.text)
    return "".join(texts)


def wish_of(
    steer: SteerBody | None,
    *,
    temperature: float | None,
    top_p: float | None,
    max_tokens: int | None,
    seed: int | None,
) -> Wish:
    """How the reply is to be made.

    Args:
        steer: The request's ``empathy``.
        temperature: 0 = no randomness, as without it; above 0 replies are drawn.
        top_p: Only read where replies are drawn; 0 = no randomness.
        max_tokens: Longest reply.
        seed: Of the draw, and of the reflection's choice of words.

    Raises:
        ApiError: A value of ``empathy`` is unknown or out of range.
    """
    writing: dict[str, Any] = {}
    if temperature and top_p != 0:
        writing |= {"strategy": "sample", "temperature": float(temperature)}
        writing |= {} if top_p is None else {"top_p": float(top_p)}
    if max_tokens is not None:
        writing["max_new_tokens"] = min(max_tokens, MAX_NEW_TOKENS_LIMIT)
    if seed is not None:
        writing["seed"] = seed % 2**63
    names = ("emotion", "intent", "focus", "alpha", "beta", "worlds", "distractors")
    decided = {name: value for name in names if steer is not None and (value := getattr(steer, name)) is not None}
    if isinstance(decided.get("focus"), list):
        decided["focus"] = tuple(decided["focus"]) or "off"
    try:
        steering = Steering(**decided)
    except DecodingError as error:
        raise ApiError(400, f"empathy: {error}", param="empathy", code="invalid_value") from None
    return Wish(tuple(sorted(writing.items())), steering, bool(steer is not None and steer.explain))
