"""Tasks that chat pages give a model about a conversation: its title, tags, follow-ups, search queries, a summary.

No person is answered there, so a listener of ours answers plainly, in the form that is asked for; a language model
behind an endpoint gets the task as it is. A danger that somebody tells in such words is answered as any other: only
what stands in the written-out history of a chat was answered before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from empatheia.serve.messages import ChatMessage

_VERB = r"(?:generate|create|provide|write|give|suggest|produce|propose|come up with|choose)"
_THING = r"(?P<title>titles?|name)|(?P<tags>tags?|keywords)|(?P<emoji>emoji)|follow[- ]?ups?|(?:search )?queries"
_CHAT = r"(?:conversation|chat|discussion|thread|dialogue|messages?|exchange)"
_HEADED = re.compile(
    r"\A\s*#{1,4}\s*task:?\s*(?:you are an autocompletion system|analy[sz]e the chat history[^\n]{0,80}\bsearch queries"
    rf"|(?:please )?{_VERB}\b[^\n]{{0,120}}?\b(?:{_THING}|(?:image )?prompts?)\b)",
    re.IGNORECASE,
)
"""Tasks as pages write them, under a heading."""
_ASKED = re.compile(
    rf"\A\s*(?:please |now )*(?:{_VERB}\b[^\n]{{0,80}}?\b(?:{_THING})\b[^\n]{{0,120}}?\b{_CHAT}\b"
    rf"|(?P<summary>summari[sz]e)\b[^\n]{{0,40}}?\b{_CHAT}\b)",
    re.IGNORECASE,
)
"""Tasks in a sentence, as the last message or in the system's."""
_TITLING = re.compile(
    rf"\A\s*you(?: are|'re) (?:a|an|the)\b(?:(?!\b(?:and|who)\b)[^.\n]){{0,60}}"
    rf"\b(?P<title>titl(?:e|ing)|summari[sz]er)\b[^\n]{{0,60}}(?:assistant|generator|writer|maker|{_CHAT})",
    re.IGNORECASE,
)
_ELSE = re.compile(
    r"\b(?:every|each|all)\b|\b(?:and|then|but|also|please|always)\s+(?:\w+ly\s+)?(?:be|stay|act|speak|talk|listen|help"
    r"|support|comfort|care|encourage|(?:answer|reply|respond)(?!\s+(?:only|just|with|in)\b))\b",
    re.IGNORECASE,
)
"""What a system says to one who answers a person."""
_OF_FORM = re.compile(
    r"\b(?:titles?|names?|tags?|keywords|emojis?|summar\w+|words?|characters|quot\w+|punctuation|output|return|only|json"
    r"|language|nothing|markdown|lines?|prefix|concise|short|brief|examples?)\b",
    re.IGNORECASE,
)
_HISTORY = re.compile(r"<chat_history>.*?</chat_history>", re.IGNORECASE | re.DOTALL)
_FORM = re.compile(r'\{\s*\\?"(\w+)\\?"\s*:\s*(\[|\\?")')
"""The key of the JSON that is asked for, and whether its value is a list."""
_FIRST_USER = re.compile(r"^\W*(?:user|human)(?: message)?\W*:\s*(\S.*)", re.IGNORECASE | re.MULTILINE)
_END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")
_MOST_WORDS = 6
_MOST_SUMMARY = 200
_LONGEST_ASKED = 1000  # characters of a task in a sentence


def plain_answer(messages: Sequence[ChatMessage], is_safe: Callable[[str], bool]) -> str | None:
    """The answer to a task about a conversation; None where the messages are none.

    Args:
        messages: Of the request, the last one a user's.
        is_safe: Whether the check finds no danger in a text.
    """
    newest = messages[-1].text
    if (headed := _HEADED.match(newest)) and is_safe(_HISTORY.sub(" ", newest)):
        return _answer(headed, newest, _first_said(newest))
    users = [one.text for one in messages[:-1] if one.role == "user"]
    if len(newest) <= _LONGEST_ASKED and (asked := _ASKED.match(newest)) and is_safe(newest):
        inner = newest[asked.end() :]
        if asked["summary"]:
            words = " ".join(users or [inner]).split()[:_MOST_SUMMARY]
            return f"The user wrote: {' '.join(words)}"
        return _answer(asked, newest, users[0] if users else _first_said(inner))
    found = None if users else _answer_to_system(messages)
    return found if found is not None and is_safe(newest) else None


def _answer_to_system(messages: Sequence[ChatMessage]) -> str | None:
    """The answer to a task that the system sets about the only message of a user; None where it sets none."""
    newest = messages[-1].text
    for one in messages:
        if one.role in ("system", "developer"):
            asked = _system_task(one.text)
            if asked is not None:
                return _answer(asked, one.text, _first_said(newest) or newest)
    return None


def _system_task(text: str) -> re.Match[str] | None:
    """The task that a system's message is; None where it says anything else, too: a person is answered then.

    >>> _system_task("Please give every message a name and be warm in the conversation.")
    >>> bool(_system_task("Write a title for this conversation. Use five words."))
    True
    """
    if titling := _TITLING.match(text):
        return None if _ELSE.search(titling[0]) else titling
    asked = _ASKED.match(text)
    if asked is None or _ELSE.search(text):
        return None
    further = _END_OF_SENTENCE.split(text[asked.end() :])[1:]
    return asked if all(_OF_FORM.search(one) for one in further if one.strip()) else None


def _answer(task: re.Match[str], prompt: str, said: str) -> str:
    """In the form that a prompt asks for."""
    kinds = {kind for kind, found in task.groupdict().items() if found}
    title = _title(said)
    if form := _FORM.search(prompt, task.end()):
        key, is_list = form[1], form[2] == "["
        values = {"title": title, "tags": ["General"], "emoji": "💬"}
        return json.dumps({key: values.get(key, [] if is_list else "")}, ensure_ascii=False)
    if "tags" in kinds:
        return "General"
    return "💬" if "emoji" in kinds else title if "title" in kinds else "[]"


def _first_said(text: str) -> str:
    """What a user said first in a conversation that is written out."""
    found = _FIRST_USER.search(text)
    return found[1] if found else ""


def _title(said: str) -> str:
    """The first words of the first sentence."""
    words = _END_OF_SENTENCE.split(said.strip().strip('"'), maxsplit=1)[0].split()[:_MOST_WORDS]
    title = " ".join(words).strip(" .,;:!?\"'")
    return title[:1].upper() + title[1:] if title else "Conversation"
