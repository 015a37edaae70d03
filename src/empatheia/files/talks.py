"""A conversation as a file has it: who says what and when, and which of the people is the speaker.

Whatever form a file has, its reader makes :class:`Talk` records of it; who is the speaker and who the listener is
decided here, in one way for all of them. What a reader leaves out it counts in :attr:`Talk.left`.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from empatheia.errors import DataError
from empatheia.records.dialogue import ROLES, Dialogue, Role, Turn
from empatheia.registry import nearest
from empatheia.text.readable import C1

_ROLE_NAMES = (
    "speaker user human prompter seeker help-seeker help_seeker client patient customer",
    "listener assistant gpt chatgpt bing model ai bot chatbot claude supporter helper agent"
    " therapist counselor counsellor",
)
ROLE_OF: dict[str, Role] = {
    name: role for role, names in zip(ROLES, _ROLE_NAMES, strict=True) for name in names.split()
}
"""Names of roles that files use, in small letters."""
LEFT_OUT = frozenset({"system", "developer", "tool", "function", "function_call", "function_response", "observation"})
"""Roles whose messages nobody said."""
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8});")
_CONTROL = re.compile("[\x80-\x9f]")
_MOST_NAMED = 6


class Message(NamedTuple):
    """What somebody said.

    Attributes:
        who: A person, or the name of a role; None if the file does not say.
        text: As written, mended by :func:`mended`.
        time: Milliseconds since 1970, None if unknown.
    """

    who: str | None
    text: str
    time: int | None = None


@dataclass(slots=True)
class Talk:
    """One conversation of a file.

    Attributes:
        messages: In order.
        id: Its own, or "".
        line: Where it begins: line of a text, number of the record in JSON; from 1.
        speaker: Who of them is the speaker, if the file says so.
        are_roles: Whether ``who`` names roles (user, assistant), not people.
        record: The JSON object it comes from, for what else is in it.
        left: What was left out, to how often.
        known: Who was heard in earlier parts of the same chat.
        error: Why it cannot be used, or None.
    """

    messages: list[Message] = field(default_factory=list)
    id: str = ""
    line: int = 1
    speaker: str | None = None
    are_roles: bool = False
    record: Mapping[str, Any] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
    known: tuple[str, ...] = ()
    error: str | None = None

    def roles(self, speaker: str | None = None) -> dict[str, Role]:
        """A role for each name; see :func:`dialogue_roles`."""
        names = [message.who for message in self.messages if message.who is not None]
        who = speaker if speaker is not None else self.speaker
        return dialogue_roles([*self.known, *names], who, self.are_roles) if names else {}

    def dialogue(self, speaker: str | None = None) -> Dialogue:
        """The conversation with roles; where nobody is named people take turns, the speaker first.

        Args:
            speaker: Who is the speaker, in place of what the file says.

        Raises:
            DataError: Nothing is left of it, or it is not clear who is the speaker.
        """
        if self.error is not None:
            raise DataError(self.error)
        if not self.messages:
            raise DataError(f"nobody says anything in it{_told(self.left)}; accepted: at least one turn with a text.")
        roles = self.roles(speaker)
        turns: list[Turn] = []
        for message in self.messages:
            other = ROLES[turns[-1].role == "speaker"] if turns else ROLES[0]
            turns.append(Turn(other if message.who is None else roles[message.who], message.text))
        return Dialogue(self.id, tuple(turns))


def _told(left: Counter[str]) -> str:
    return f" ({listed(left)} left out)" if left else ""


def listed(counts: Mapping[str, int]) -> str:
    """Counts in words.

    >>> listed({"system messages": 2, "calls": 0, "notices": 1})
    'system messages (2), notices (1)'
    """
    return ", ".join(f"{what} ({n:,})" for what, n in counts.items() if n)


@dataclass(slots=True)
class Notes:
    """What somebody should know of how a file was read.

    Attributes:
        left: What was left out, to how often.
        mended: What was read in another way than it stands there, to how often.
        said: Anything else, as sentences.
    """

    left: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)

    def tell_people(self, roles: Mapping[str, Role], what: str = "the conversation is read as") -> None:
        """Who is the speaker, said once a file, where that does not follow from the names."""
        if any(name.lower() not in ROLE_OF for name in roles) and not any(line.startswith(what) for line in self.said):
            self.said.append(f"{what}: " + ", ".join(f"{name} = {role}" for name, role in roles.items()))

    def lines(self) -> list[str]:
        """For people, most important first; nothing where there is nothing to tell."""
        counted = (("left out", self.left), ("mended", self.mended))
        return [*self.said, *(f"{what}: {listed(counts)}" for what, counts in counted if +counts)]


def dialogue_roles(names: Iterable[str], speaker: str | None = None, are_roles: bool = False) -> dict[str, Role]:
    """A role for each name: by the name where it is one of :data:`ROLE_OF`, else the first to speak is the speaker.

    Args:
        names: In order of appearance; repeats do no harm.
        speaker: Name of the speaker; case does not matter, everybody else listens.
        are_roles: The names are those of roles, so an unknown one is a mistake.

    Raises:
        DataError: It is not clear who is the speaker: more than two people, an unknown role, two names of one role; or
            nobody is called as ``speaker`` says.

    >>> dialogue_roles(["Ann", "Ben", "Ann"]), dialogue_roles(["assistant", "user"])
    ({'Ann': 'speaker', 'Ben': 'listener'}, {'assistant': 'listener', 'user': 'speaker'})
    """
    people = list(dict.fromkeys(names))
    if speaker is not None:
        return _roles_beside(speaker, people)
    known: dict[str, Role] = {name: ROLE_OF[name.lower()] for name in people if name.lower() in ROLE_OF}
    odd = [name for name in people if name not in known]
    are_different = len(known) == len(set(known.values()))
    if not odd and are_different:
        return known
    if are_roles:
        raise _unknown_roles(people, odd)
    if len(odd) == 1 and len(known) == 1:
        ((_, own),) = known.items()
        return {**known, odd[0]: ROLES[own == "speaker"]}
    if len(people) > 2:
        raise _too_many(people)
    return {name: ROLES[i] for i, name in enumerate(people)}


def _roles_beside(speaker: str, people: list[str]) -> dict[str, Role]:
    """The roles where one person is said to be the speaker.

    Raises:
        DataError: Nobody is called so.
    """
    wanted = speaker.strip().lower()
    if wanted not in [name.lower() for name in people]:
        found = ", ".join(people[:_MOST_NAMED])
        raise DataError(f"nobody is called {speaker!r}.{nearest(speaker, people)} Found: {found}.")
    return {name: ROLES[name.lower() != wanted] for name in people}


def _unknown_roles(people: list[str], odd: list[str]) -> DataError:
    what = f"unknown role {odd[0]!r}" if odd else f"roles of two kinds, {', '.join(map(repr, people))}"
    return DataError(
        f"{what}; accepted: speaker and listener, or user and assistant, or other names together with"
        f" --speaker NAME.{nearest(odd[0], list(ROLE_OF)) if odd else ''}"
    )


def _too_many(people: list[str]) -> DataError:
    shown = ", ".join(people[:_MOST_NAMED]) + (" ..." if len(people) > _MOST_NAMED else "")
    return DataError(
        f"{len(people)} people speak ({shown}); accepted: two. With --speaker NAME, or a field 'speaker' beside"
        " the turns, that one is the speaker and all others listen; in a text a line that begins with a blank"
        " continues the turn before."
    )


def mended(text: str) -> str:
    r"""A text without the traces of programs it went through: HTML entities and windows-1252 read as Latin-1.

    >>> mended("I\x92m &quot;fine&quot; &amp; you &notme")
    'I’m "fine" & you &notme'
    """
    if "&" in text:
        text = _ENTITY.sub(lambda found: html.unescape(found[0]), text)
    return text.translate(C1) if _CONTROL.search(text) else text
