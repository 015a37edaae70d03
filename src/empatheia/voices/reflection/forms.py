"""The sentence forms of ``forms.json``: read once, checked, filled.

What the reflection may say, one form a line, by moment, part and topic: ``id``, ``moment``, ``part``, ``text``;
``emotions``, ``not``, ``topics``, ``own`` where needed (``own``: only for what the speaker did, "You earned that.").
Every form was written for this project, in plain spoken English: would a warm, plain person say it aloud? Licence of
the file: CC BY 4.0. It is JSON because a cold start would spend more time on YAML than on the reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from empatheia.errors import DataError
from empatheia.reading import parse_json
from empatheia.taxonomy import EMOTIONS
from empatheia.voices.reflection.families import FAMILIES
from empatheia.voices.reflection.topics import names

_FILE = Path(__file__).with_name("forms.json")
PARTS = ("say", "feel", "side", "ask", "stay", "whole")
WILDCARDS = ("any", "any_pleasant", "any_unpleasant")
TALK = ("opening", "advice", "question", "greeting", "smalltalk", "closing", "short", "brief", "irony", "notext")
MOMENTS = (*FAMILIES, "mixed", "unclear", "unclear_pleasant", "unclear_unpleasant", *TALK, *WILDCARDS)
_SLOTS = {"say": ({"clause"},), "feel": ({"feeling"},)}
_SLOT = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True, slots=True)
class Form:
    """One sentence form.

    Attributes:
        id: Unique.
        moments: The moments it fits, wildcards among them.
        part: One of ``PARTS``.
        text: The sentence, with a slot where its part has one.
        emotions: Only for these labels; empty = for all.
        never: Never for these labels.
        topics: Only for these topics (see ``topics.yaml``); empty = whatever is told.
        is_own: Only for what the speaker did ("You earned that.").
    """

    id: str
    moments: tuple[str, ...]
    part: str
    text: str
    emotions: frozenset[str]
    never: frozenset[str]
    topics: frozenset[str] = frozenset()
    is_own: bool = False

    @property
    def slot(self) -> str:
        """Name of its slot, or ""."""
        match = _SLOT.search(self.text)
        return match[1] if match else ""

    @property
    def is_bare(self) -> bool:
        """Whether it adds no word of its own."""
        return not re.search(r"\w", _SLOT.sub("", self.text))

    def is_in(self, said: str) -> bool:
        """Whether it was used in what the listener said before (small letters, sentences after line breaks)."""
        pieces = [_lined(piece).strip(" .:,\n") for piece in _SLOT.split(self.text)[::2]]
        pieces = [piece for piece in pieces if re.search(r"\w", piece)]
        if not pieces:
            return False
        if self.slot and sum(map(len, pieces)) < 8:
            return bool(re.search(rf"\n{re.escape(pieces[0])},? ", said))
        return all(piece in said for piece in pieces)

    def fits(self, label: str, possible: Iterable[str]) -> bool:
        """Whether it may be used for a label, or where several are possible (``label`` empty)."""
        if self.emotions and label not in self.emotions:
            return False
        return not self.never.intersection((label, *possible))


def flat(texts: Iterable[str]) -> str:
    """What a listener said, one sentence a line and in small letters, for :meth:`Form.is_in`."""
    return "\n" + "\n".join(_lined(text.strip()) for text in texts) + "\n"


def _lined(text: str) -> str:
    return re.sub(r"(?<=[.!?])\s+|:\s+", "\n", text.lower())


@lru_cache(maxsize=1)
def load_forms() -> tuple[Form, ...]:
    """All forms, in the order of the file.

    Raises:
        DataError: The file breaks its own rules.
    """
    return read_forms(parse_json(_FILE.read_text(encoding="utf-8")))


def read_forms(records: object, source: str = "forms.json") -> tuple[Form, ...]:
    """Checks records and makes forms of them.

    Raises:
        DataError: A record is no form, or two share an id; the message names the first.
    """
    if not isinstance(records, list) or not records:
        raise DataError(f"{source}: expected a list of forms.")
    forms: dict[str, Form] = {}
    for number, record in enumerate(records, 1):
        form = _form(record, f"{source}, form {number}")
        if form.id in forms:
            raise DataError(f"{source}: two forms have the id {form.id!r}.")
        forms[form.id] = form
    return tuple(forms.values())


def _form(record: object, place: str) -> Form:
    fields = record if isinstance(record, dict) else {}
    missing = [name for name in ("id", "moment", "part", "text") if not fields.get(name)]
    if missing:
        raise DataError(f"{place}: {', '.join(missing)} missing.")
    form = Form(
        str(fields["id"]),
        (fields["moment"],) if isinstance(fields["moment"], str) else tuple(fields["moment"]),
        str(fields["part"]),
        str(fields["text"]).strip(),
        frozenset(fields.get("emotions") or ()),
        frozenset(fields.get("not") or ()),
        frozenset(fields.get("topics") or ()),
        fields.get("own") is True,
    )
    _check(form, f"{place} ({form.id})")
    return form


def _check(form: Form, place: str) -> None:
    """Whether a form keeps the rules; raises DataError with the place if not."""
    if form.part not in PARTS:
        raise DataError(f"{place}: unknown part {form.part!r}; accepted: {', '.join(PARTS)}.")
    strange = [
        *(name for name in form.moments if name not in MOMENTS),
        *sorted((form.emotions | form.never) - set(EMOTIONS)),
        *sorted(form.topics - set(names())),
    ]
    if strange:
        raise DataError(f"{place}: unknown moment, emotion or topic {', '.join(strange)}.")
    slots = _SLOT.findall(form.text)
    accepted = _SLOTS.get(form.part, (set(), {"who"}) if form.topics else (set(),))
    if len(slots) > 1 or set(slots) not in accepted:
        raise DataError(f"{place}: a form of part {form.part} cannot have the slots {slots}.")
    if form.text[-1] not in ".?!":
        raise DataError(f"{place}: no mark at the end.")


@lru_cache(maxsize=256)
def pool(part: str, moments: Sequence[str]) -> tuple[Form, ...]:
    """The forms of a part that fit one of the moments, whatever is told."""
    wanted = set(moments)
    return tuple(
        form for form in load_forms() if form.part == part and not form.topics and wanted.intersection(form.moments)
    )


@lru_cache(maxsize=256)
def topic_pool(part: str, topic: str, moments: Sequence[str]) -> tuple[Form, ...]:
    """The forms of a part that are for a topic and fit one of the moments."""
    wanted = set(moments)
    return tuple(
        form
        for form in load_forms()
        if form.part == part and topic in form.topics and wanted.intersection(form.moments)
    )


def fill(form: Form, **slots: str) -> str:
    """The form with its slot filled and a capital at the start of each sentence."""
    text = _SLOT.sub(lambda match: slots[match[1]], form.text)
    return capitalised(text)


def capitalised(text: str) -> str:
    """With a capital letter at the start."""
    return text[:1].upper() + text[1:]
