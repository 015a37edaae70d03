"""The table of forms: what conversations people have, how a file of each is told, and what reads it.

The table in docs/howto/conversations.md has a row for each, in this order; a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from empatheia.files import json_forms, transcripts
from empatheia.files.talks import Talk


@dataclass(frozen=True, slots=True)
class Form:
    """A form of conversations.

    Attributes:
        name: In the table.
        what: What people call a file of it.
        fits: Whether a value is of it: a JSON value, or the first lines of a text.
        read: Its conversations, of the same value, or of all lines.
    """

    name: str
    what: str
    fits: Callable[[Any], bool]
    read: Callable[[Any], Iterator[Talk]]


TURNS = Form(
    "turns",
    "conversations as lists of turns",
    lambda value: bool(json_forms.turns_in(value)),
    lambda value: iter([json_forms.turn_talk(value)]),
)
JSON_FORMS = (
    Form("telegram", "an export of Telegram", json_forms.is_telegram, json_forms.telegram),
    Form("discord", "a channel of DiscordChatExporter", json_forms.is_discord, json_forms.discord),
    Form("slack", "a day of a Slack export", json_forms.is_slack, json_forms.slack),
    Form("messenger", "a chat of Messenger or Instagram", json_forms.is_messenger, json_forms.messenger),
    Form("chatgpt", "conversations of ChatGPT", json_forms.is_chatgpt, json_forms.chatgpt),
    Form("array", "one conversation, a turn an object", json_forms.is_turn_array, TURNS.read),
)
TEXT_FORMS = (
    Form("parlai", "episodes of ParlAI", transcripts.is_parlai, transcripts.read_parlai),
    Form("transcript", "a chat transcript", transcripts.is_transcript, transcripts.read_talk_lines),
)
FORMS = (TURNS, *JSON_FORMS, *TEXT_FORMS)


def json_form(value: Any) -> Form | None:
    """The form of a JSON value that is an export of one or several conversations; None for rows and lists of turns."""
    return next((form for form in JSON_FORMS if form.fits(value)), None)


def text_form(first: Sequence[str]) -> Form | None:
    """The form of a text by its first lines; None where each line is a text of its own."""
    return next((form for form in TEXT_FORMS if form.fits(first)), None)
