"""Chat messages as a conversation, and how a request's options say that the reply is to be made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from empatheia.errors import DecodingError
from empatheia.files.json_forms import text_of
from empatheia.listener import Steering
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.registry import nearest
from empatheia.serve.faults import ApiError
from empatheia.serve.replies import Wish
from empatheia.serve.requests import Body
from empatheia.serve.settings import Limits
from empatheia.text.model_text import spoken, without_tokens
from empatheia.text.readable import readable
from empatheia.voices.decoding import MAX_NEW_TOKENS_LIMIT

ROLES = ("user", "assistant", "system", "developer", "tool", "function")
_GUIDING = ("system", "developer")
_TOOLS = ("tool", "function")
_TEXTS = ("text", "input_text", "output_text")


class ContentPart(Body):
    """A part of a message's content; only texts are read."""

    type: str = Field(description="`text`; parts of other types are not read.")
    text: str | None = None


class ChatMessage(Body):
    """One message."""

    role: str = Field(description="`user`, `assistant`, `system`, `developer` or `tool`.")
    content: str | list[ContentPart] | None = Field(
        None,
        description="A text, or a list of parts, whose texts are joined by a blank line; an assistant's may be null.",
    )
    tool_calls: list[dict[str, Any]] | None = Field(
        default=None, description="What an assistant asked its caller to do."
    )

    @property
    def parts(self) -> list[ContentPart]:
        """Of its content; none where that is a text."""
        return self.content if isinstance(self.content, list) else []

    @property
    def text(self) -> str:
        """What is to be read of it; an assistant's words without thoughts and without tokens of templates."""
        text = (
            text_of([{"type": part.type, "text": part.text} for part in self.parts], Counter())
            if self.parts
            else self.content or ""
        )
        assert isinstance(text, str)
        return spoken(text) if self.role == "assistant" else text


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
        unread: What else of the messages was left out, e.g. ``messages[2].content[1]: image_url``.
    """

    dialogue: Dialogue
    places: tuple[int, ...]
    guidance: tuple[str, ...]
    unread: tuple[str, ...]

    def ignored(self, name: str = "messages") -> list[str]:
        """What of the messages has no say where a listener of ours answers."""
        return [*([f"{name}: system, developer"] if self.guidance else []), *self.unread]


def read_messages(messages: Sequence[ChatMessage], limits: Limits, name: str = "messages") -> Conversation:
    """A conversation out of chat messages, last a user's, or what an assistant's tools gave in answer to one.

    Args:
        messages: As sent.
        limits: How many and how long they may be.
        name: Of the request's field.

    Raises:
        ApiError: It is none that can be answered.
    """
    _check_number(messages, limits, name)
    _check_parts(messages, limits, name)
    last = max((place for place, one in enumerate(messages) if one.role == "user"), default=-1)
    turns: list[Turn] = []
    places: list[int] = []
    guidance: list[str] = []
    unread: list[str] = []
    for place, message in enumerate(messages):
        text, where = message.text, f"{name}[{place}]"
        unread += _unread_parts(message, where)
        if message.role in _GUIDING:
            guidance += [text] if text.strip() else []
        elif message.role in _TOOLS:
            unread.append(f"{where}: {message.role}")
        elif readable(text).strip() and not (message.tool_calls and place > last):
            turns.append(Turn("speaker" if message.role == "user" else "listener", text))
            places.append(place)
        elif message.role == "user":
            said = f"{where} has no text; write at least one word."
            raise ApiError(400, said, param=where, code="empty")
    if last < 0:
        raise ApiError(400, f"{name} holds no user message; give at least one.", param=name, code="empty")
    if turns[-1].role != "speaker":
        said = f"the last message is the assistant's, which needs no answer; end {name} with a user message."
        raise ApiError(400, said, param=f"{name}[{places[-1]}].role", code="ends_with_assistant")
    return Conversation(Dialogue("", tuple(turns)), tuple(places), tuple(guidance), tuple(unread))


def _unread_parts(message: ChatMessage, where: str) -> list[str]:
    """Parts of a message that are no texts."""
    return [
        f"{where}.content[{n}]: {part.type[:40]}" for n, part in enumerate(message.parts) if part.type not in _TEXTS
    ]


def _check_number(messages: Sequence[ChatMessage], limits: Limits, name: str) -> None:
    """At least one message, and no more than accepted."""
    if not messages:
        raise ApiError(400, f"{name} is empty; give at least one user message.", param=name, code="empty")
    if len(messages) > limits.messages:
        said = f"{name} holds {len(messages):,} messages; accepted: at most {limits.messages:,}."
        raise ApiError(422, said, param=name, code="too_many_messages")


def _check_parts(messages: Sequence[ChatMessage], limits: Limits, name: str) -> None:
    """Roles that there are, contents where they must be, texts within bounds."""
    n_characters = 0
    for place, message in enumerate(messages):
        where, role = f"{name}[{place}]", message.role
        if role not in ROLES:
            said = f"{where}.role is {role[:40]!r}.{nearest(role, list(ROLES))} Accepted: {', '.join(ROLES)}."
            raise ApiError(400, said, param=f"{where}.role", code="unsupported_role")
        if message.content is None and role != "assistant":
            raise ApiError(400, f"{where}.content is missing; give a text.", param=f"{where}.content", code="missing")
        for number, part in enumerate(message.parts):
            if part.type in _TEXTS and part.text is None:
                part_at = f"{where}.content[{number}].text"
                raise ApiError(400, f"{part_at} is missing; give a text.", param=part_at, code="missing")
        n_characters += len(message.text)
        if n_characters > limits.characters:
            said = f"{name} holds more than {limits.characters:,} characters."
            raise ApiError(422, said, param=name, code="too_long")


def sent_on(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """The messages for a language model behind an endpoint, less those of the system.

    Plain texts of one role in a row become one message, as many models accept only alternating ones.
    """
    out: list[dict[str, Any]] = []
    for message in messages:
        if message.role in _GUIDING:
            continue
        given = message.model_dump(exclude_unset=True)
        one = {"role": message.role, "content": _content_sent(message)}
        one |= {key: given[key] for key in ("tool_calls", "tool_call_id", "name") if given.get(key)}
        is_plain = isinstance(one["content"], str) and set(one) == {"role", "content"}
        if is_plain and not one["content"].strip():
            continue
        before = out[-1] if out else {}
        if is_plain and before.get("role") == message.role and isinstance(before["content"], str) and len(before) == 2:
            before["content"] += "\n" + one["content"]
        else:
            out.append(one)
    return out


def _content_sent(message: ChatMessage) -> str | list[dict[str, Any]] | None:
    """A text; parts where some are no texts; None of an assistant that says nothing."""
    if all(part.type in _TEXTS for part in message.parts):
        text = message.text if message.role == "assistant" else without_tokens(message.text)
        return text or (None if message.tool_calls else "")
    return [_part_sent(part) for part in message.parts]


def _part_sent(part: ContentPart) -> dict[str, Any]:
    """As the chat route of OpenAI names it."""
    if part.type in _TEXTS:
        return {"type": "text", "text": without_tokens(part.text or "")}
    if part.type == "input_image":
        return {"type": "image_url", "image_url": {"url": (part.model_extra or {}).get("image_url")}}
    return part.model_dump(exclude_unset=True)


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
