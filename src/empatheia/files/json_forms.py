"""Conversations in JSON: lists of turns of all usual names, and what chat programs export."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from empatheia.errors import DataError
from empatheia.files.talks import LEFT_OUT, Message, Talk, mended

CONVERSATION_COLUMNS = ("dialogue_id", "conversation_id", "conv_id", "dialog_id", "thread_id", "session_id", "chat_id")
"""Columns of a table whose rows are turns; rows of one conversation follow each other."""
TURN_LISTS = ("turns", "messages", "conversations", "conversation", "dialog", "dialogue", "utterances", "chat_messages")
"""Fields that hold the turns of a conversation, the first that is there."""
PEOPLE = ("speaker", "author", "sender", "name", "sender_name", "senderName", "from", "user")
TEXTS = ("text", "content", "value", "utterance", "message", "body")
TIMES = ("time", "timestamp", "timestamp_ms", "date_unixtime", "ts", "date", "created_at", "create_time")
_CALLS = ("tool_calls", "function_call")
"""What an assistant's message may have in place of a text."""
_MILLISECONDS_FROM = 10**11
"""A number of this size is one of milliseconds, not seconds, since 1970."""
_TEXT_PARTS = frozenset({None, "text", "input_text", "output_text"})
_QUIET = frozenset({*PEOPLE, *TEXTS, *TIMES, "role", "id", "type", "label", "labels", "emotion", "episode_done"})
"""Fields of a turn that are read, or say nothing of who speaks or what is said."""
_SLACK_MARK = re.compile(r"<([@#!]?)([^<>|]{1,300})(?:\|([^<>]{0,300}))?>")
_MESSENGER_NOTICE = re.compile(
    r"(?:\S+ )?(?:sent an attachment|liked a message|reacted .{1,8} to your message|missed (?:a|your) (?:video )?call"
    r"|called you|started a (?:video )?call|unsent a message|shared a story)\.?\s*$",
    re.IGNORECASE,
)


# -- one turn ------------------------------------------------------------------------------------------------


def text_of(content: Any, left: Counter[str]) -> str:
    r"""The text of a message's content: a text, or a list of parts, whose texts are joined by a blank line.

    Args:
        content: As a chat API has it; null has no text.
        left: Parts that are no texts are counted here.

    >>> text_of([{"type": "text", "text": "He ran away"}, {"type": "image_url"}, "in the park"], Counter())
    'He ran away\n\nin the park'
    """
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = content.get("parts", [content])
    texts = []
    for part in content if isinstance(content, list) else ():
        own = part.get("text", part.get("content")) if isinstance(part, Mapping) else part
        if isinstance(own, str) and not (isinstance(part, Mapping) and part.get("type") not in _TEXT_PARTS):
            texts.append(own)
        else:
            left["parts that are no texts"] += 1
    return "\n\n".join(text for text in texts if text.strip())


def moment(value: Any) -> int | None:
    """Milliseconds since 1970 of a number of seconds or milliseconds, or an ISO date; None for anything else."""
    if isinstance(value, str):
        try:
            if re.fullmatch(r"\d{1,15}(\.\d{1,9})?", value.strip()):
                return moment(float(value))
            date = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        return int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 10**15:
        return None
    return int(value) if abs(value) >= _MILLISECONDS_FROM else int(value * 1000)


def _first(record: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if record.get(name) not in (None, "")), None)


def _name(value: Any) -> str | None:
    """A person's name: a text, a number, or an object with one."""
    if isinstance(value, Mapping):
        value = _first(value, ("role", "name", "nickname", "username", "id"))
    return None if value is None else str(value).strip() or None


def message_of(turn: Any, talk: Talk, place: int = 0) -> None:
    """Adds a turn to a conversation; what is not said by anybody is counted instead.

    Args:
        turn: A text, or an object with a text and who says it.
        talk: Added to.
        place: Number of the turn, for messages.

    Raises:
        DataError: It is none.
    """
    if isinstance(turn, str):
        talk.messages.append(Message(None, mended(turn)))
        return
    key = _text_field(turn, place)
    if key is None:
        talk.left["messages without a text"] += 1
        return
    who, is_role = _author(turn, key)
    if who is not None and who.strip().lower() in LEFT_OUT:
        talk.left[f"{who.strip().lower()} messages"] += 1
        return
    talk.are_roles = talk.are_roles or is_role
    if who is None:  # it may stand in a field that is not known
        talk.left.update(f"fields {name!r} of turns" for name in turn if name not in _QUIET)
    text = text_of(turn[key], talk.left)
    if text.strip():
        talk.messages.append(Message(who, mended(text), moment(_first(turn, TIMES))))
    else:
        talk.left["messages without a text"] += 1


def _text_field(turn: Any, place: int) -> str | None:
    """The field that holds the text of a turn; None where an assistant calls a tool in place of one.

    Raises:
        DataError: It is no turn.
    """
    if isinstance(turn, Mapping):
        key = next((name for name in TEXTS if name in turn), None)
        if key is None and any(turn.get(name) for name in _CALLS):
            return None
        if key is not None and isinstance(turn[key], str | list | dict | None):
            return key
    raise DataError(f"turn {place} is {turn!r:.60}; accepted: a string, or an object with role and text.")


def _author(turn: Mapping[str, Any], key: str) -> tuple[str | None, bool]:
    """Who says a turn whose text is in the field ``key``, None if it does not say; and whether that names a role."""
    role = turn.get("role")
    if role is None and key == "value":
        role = turn.get("from")
    if role is not None:
        return str(role), True
    who = _name(_first(turn, PEOPLE))
    if who is None and "id" in turn and not isinstance(turn["id"], int):
        who = str(turn["id"])  # ParlAI's name of who speaks
    return who, False


# -- lists of turns ------------------------------------------------------------------------------------------


def turns_in(record: Any) -> list[Any] | None:
    """The turns of a conversation, or None if it is none: a list of turns, or an object with one under a usual name."""
    if isinstance(record, Mapping):
        found = next((record[name] for name in TURN_LISTS if isinstance(record.get(name), list)), None)
    else:
        found = record if isinstance(record, list) else None
    if found and all(isinstance(turn, list) for turn in found):
        found = [turn for pair in found for turn in pair]  # ParlAI's pairs of turns
    return found


def turn_talk(record: Any) -> Talk:
    """A conversation with its turns in a list; see :func:`turns_in`.

    Raises:
        DataError: A turn is none, or there is none.
    """
    turns = turns_in(record)
    if not turns:
        raise DataError("has no turns; accepted: a list with at least one, under " + ", ".join(TURN_LISTS) + ".")
    talk = Talk(record=record if isinstance(record, Mapping) else {})
    for place, turn in enumerate(turns):
        message_of(turn, talk, place)
    if (who := talk.record.get("speaker")) is not None:
        talk.speaker = str(who)
    if isinstance(talk.record.get("system"), str):
        talk.left["system messages"] += 1
    identity = talk.record.get("id")
    talk.id = str(identity) if isinstance(identity, str | int) else ""
    return talk


def is_turn_array(value: Any) -> bool:
    """One conversation as a list of objects that say who speaks, and have no field that names their conversation."""
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(
            isinstance(one, Mapping)
            and any(name in one for name in TEXTS)
            and not any(name in one for name in CONVERSATION_COLUMNS)
            for one in value
        )
        and (all(is_said(one) for one in value) or _is_between_people(value))
    )


def is_said(turn: Mapping[str, Any]) -> bool:
    """Whether an object has a field that only what somebody says has."""
    return any(name in turn for name in ("role", "speaker", "from"))


def _is_between_people(turns: list[Mapping[str, Any]]) -> bool:
    """Whether two people write them, or more who come again; as many people as texts rather review something."""
    people = [_name(_first(turn, PEOPLE)) for turn in turns]
    different = len(set(people))
    return None not in people and (different == 2 or 2 < 2 * different <= len(people))


# -- exports -------------------------------------------------------------------------------------------------


def _chat(record: Mapping[str, Any], name: str, add: Callable[[Mapping[str, Any], Talk], None]) -> Talk:
    """A chat of an export: each of its messages is added, or counted where ``add`` counts it."""
    talk = Talk(id=name, record=record)
    for message in record["messages"]:
        if isinstance(message, Mapping):
            add(message, talk)
        else:
            talk.left["messages that are no objects"] += 1
    return talk


def _said(talk: Talk, who: Any, text: Any, time: Any) -> None:
    name, said = _name(who), text if isinstance(text, str) else ""
    if said.strip():
        talk.messages.append(Message(name or "somebody without a name", mended(said), moment(time)))
    else:
        talk.left["messages without a text"] += 1


def is_telegram(value: Any) -> bool:
    """``result.json`` of Telegram: one chat, or the whole account."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("chats"), Mapping):
        return isinstance(value["chats"].get("list"), list)
    return _any_message(value, ("date_unixtime", "text_entities", "from_id", "actor")) or (
        _any_message(value, ("text",)) and _any_message(value, ("type",)) and "channel" not in value
    )


def telegram(value: Mapping[str, Any]) -> Iterator[Talk]:
    """Chats of Telegram; what was forwarded is not one's own, an account that was deleted is known by its number."""
    chats = [value] if "messages" in value else []
    for group in ("chats", "left_chats"):
        if isinstance(value.get(group), Mapping) and isinstance(value[group].get("list"), list):
            chats += value[group]["list"]
    for chat in chats:
        if isinstance(chat, Mapping) and isinstance(chat.get("messages"), list) and chat["messages"]:
            yield _chat(chat, str(_first(chat, ("name", "id")) or ""), _add_telegram)


def _add_telegram(message: Mapping[str, Any], talk: Talk) -> None:
    if message.get("type", "message") != "message":
        talk.left["notices"] += 1
    elif message.get("forwarded_from") is not None or message.get("saved_from") is not None:
        talk.left["forwarded messages"] += 1
    else:
        text = message.get("text")
        parts = text if isinstance(text, list) else [text]
        said = "".join(str(part.get("text", "")) if isinstance(part, Mapping) else str(part or "") for part in parts)
        _said(talk, _first(message, ("from", "from_id")), said, _first(message, ("date_unixtime", "date")))


def is_discord(value: Any) -> bool:
    """A channel as DiscordChatExporter writes it."""
    if not isinstance(value, Mapping) or not isinstance(value.get("messages"), list):
        return False
    return isinstance(value.get("channel"), Mapping)


def discord(value: Mapping[str, Any]) -> Iterator[Talk]:
    """A channel of Discord; joins, pins, calls and bots are left out."""

    def add(message: Mapping[str, Any], talk: Talk) -> None:
        author = message.get("author")
        if message.get("type", "Default") not in ("Default", "Reply", 0, 19):
            talk.left["notices"] += 1
        elif isinstance(author, Mapping) and author.get("isBot"):
            talk.left["messages of bots"] += 1
        else:
            _said(talk, author, message.get("content"), message.get("timestamp"))

    yield _chat(value, str(_first(value["channel"], ("name", "id")) or ""), add)


def is_slack(value: Any) -> bool:
    """A day of a channel of a Slack export: a list of messages with ``ts``."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, Mapping) and "ts" in one and "type" in one for one in value)
    )


def slack(value: list[Mapping[str, Any]]) -> Iterator[Talk]:
    """A day of Slack; joins and bots are left out, people are called as their profile says."""
    names = {str(one["user"]): name for one in value if "user" in one and (name := _slack_name(one)) is not None}

    def mark(found: re.Match[str]) -> str:
        kind, target, label = found[1], found[2], found[3]
        return label or (f"@{names.get(target, target)}" if kind else target)

    def add(message: Mapping[str, Any], talk: Talk) -> None:
        if message.get("bot_id"):
            talk.left["messages of bots"] += 1
        elif message["type"] != "message" or message.get("subtype") not in (None, "thread_broadcast", "me_message"):
            talk.left["notices"] += 1
        else:
            who = str(message.get("user") or "")
            _said(talk, names.get(who, who), _SLACK_MARK.sub(mark, str(message.get("text") or "")), message["ts"])

    yield _chat({"messages": value}, "", add)


def _slack_name(message: Mapping[str, Any]) -> str | None:
    profile = message.get("user_profile")
    return _name(_first(profile, ("display_name", "real_name", "name"))) if isinstance(profile, Mapping) else None


def is_messenger(value: Any) -> bool:
    """A chat of Messenger or Instagram, of the account's download or of an encrypted chat."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("participants"), list)
        and isinstance(value.get("messages"), list)
    )


def messenger(value: Mapping[str, Any]) -> Iterator[Talk]:
    """A chat of Messenger or Instagram, oldest message first; its UTF-8 was written as if it were Latin-1."""

    def add(message: Mapping[str, Any], talk: Talk) -> None:
        text = _first(message, ("content", "text"))
        said = latin_mended(text) if isinstance(text, str) else ""
        if message.get("is_unsent") or message.get("isUnsent"):
            talk.left["deleted messages"] += 1
        elif "call_duration" in message or _MESSENGER_NOTICE.match(said):
            talk.left["notices"] += 1
        else:
            who = latin_mended(str(_first(message, ("sender_name", "senderName")) or ""))
            _said(talk, who, said, _first(message, ("timestamp_ms", "timestamp")))

    talk = _chat(value, latin_mended(str(_first(value, ("title", "threadName")) or "")), add)
    if all(message.time is not None for message in talk.messages):
        talk.messages.reverse()  # the file has the newest first; equal times keep their order
        talk.messages.sort(key=lambda message: message.time or 0)
    yield talk


def latin_mended(text: str) -> str:
    r"""UTF-8 that was read as Latin-1, read again; any other text as it is.

    >>> latin_mended("I\xe2\x80\x99m sad"), latin_mended("caf\xe9")
    ('I’m sad', 'café')
    """
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def is_chatgpt(value: Any) -> bool:
    """``conversations.json`` of ChatGPT, or one of its conversations."""
    one = value[0] if isinstance(value, list) and value else value
    return isinstance(one, Mapping) and isinstance(one.get("mapping"), Mapping)


def chatgpt(value: Any) -> Iterator[Talk]:
    """Conversations of ChatGPT, along the branch that was shown last."""
    for record in value if isinstance(value, list) else [value]:
        if not isinstance(record, Mapping) or not isinstance(record.get("mapping"), Mapping):
            yield Talk(error="is no conversation of ChatGPT: it has no 'mapping'.")
            continue
        talk = Talk(id=str(_first(record, ("conversation_id", "id", "title")) or ""), record=record)
        messages = [node.get("message") for node in _shown_branch(record)]
        shown = [message for message in messages if isinstance(message, Mapping)]
        for message in shown:
            _add_chatgpt(message, talk)
        nodes = record["mapping"].values()
        n_all = sum(bool(isinstance(node, Mapping) and node.get("message")) for node in nodes)
        talk.left["messages of other branches"] += n_all - len(shown)
        yield talk


def _shown_branch(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The nodes of the branch that was shown last, the oldest first."""
    nodes = record["mapping"]
    branch: list[Mapping[str, Any]] = []
    at = record.get("current_node") or next(reversed(nodes), None)
    while isinstance(at, str) and isinstance(nodes.get(at), Mapping) and len(branch) <= len(nodes):
        branch.append(nodes[at])
        at = nodes[at].get("parent")
    return branch[::-1]


def _add_chatgpt(message: Mapping[str, Any], talk: Talk) -> None:
    author, content = message.get("author"), message.get("content")
    role = author.get("role") if isinstance(author, Mapping) else None
    kind = content.get("content_type", "text") if isinstance(content, Mapping) else "text"
    if kind in ("text", "multimodal_text"):
        message_of({"role": role, "content": content, "time": message.get("create_time")}, talk)
    else:
        talk.left[f"{kind} messages"] += 1


def _any_message(value: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    messages = value.get("messages")
    return isinstance(messages, list) and any(
        isinstance(one, Mapping) and any(name in one for name in names) for one in messages[:50]
    )
