"""Everyday: self-written conversations as people type them, each with what is felt, why, and a fitting reply.

Made for this project because EmpatheticDialogues names its feelings and its crowd is one country's. JSON lines, one
conversation each, in ``everyday_texts/{train,valid,test}.jsonl`` of the package; the data card beside them says how it
was written, by whom, and how it was checked. Synthetic. Licence: CC BY 4.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from empatheia.errors import DataError
from empatheia.reading import Json, Problem, numbered_lines, parse_json, report
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Span
from empatheia.taxonomy import EMOTIONS, INTENTS, SIDES, Side
from empatheia_research.corpora.facts import CorpusFacts, Licence
from empatheia_research.corpora.loading import LoadedCorpus, canonical_split

NAME = "everyday"
FACTS = CorpusFacts(licence=Licence("CC BY 4.0", True, "Written for this project; the project is named.", "bundled"))
ANNOTATOR = "everyday/written"
Name = TypeVar("Name", bound=str)


@dataclass(frozen=True, slots=True)
class EverydayItem:
    """One conversation with its labels.

    Attributes:
        dialogue: Speaker first and last, roles alternate; ``emotion`` is the label at the last turn.
        acceptable: Other labels of the 32 that a careful reader accepts; none where nobody named one.
        side: How it feels to the speaker at the last turn.
        causes: The few words that caused the feeling, in speaker turns, in reading order.
        reply: What a good listener answers now; "" where nobody wrote one.
        avoid: What a careless listener might say and should not; "" where nobody wrote one.
        intent: Of the reply: one of the eight intents or neutral; "" without a reply.
        style: What is special about the text: ``irony``, ``understatement``, ``mixed``, ``negation``, ``fragment``,
            ``question``, ``smalltalk``, ``typos``, ``names_feeling``.
        topic: In a word or two.
        writer: Who wrote it; no writer is in two splits.
    """

    dialogue: Dialogue
    acceptable: tuple[str, ...]
    side: Side
    causes: tuple[Span, ...]
    reply: str
    avoid: str
    intent: str
    style: tuple[str, ...]
    topic: str
    writer: str

    @property
    def accepted(self) -> frozenset[str]:
        """Every label that counts as right."""
        return frozenset({str(self.dialogue.emotion), *self.acceptable})

    @property
    def names_feeling(self) -> bool:
        """Whether the speaker says a word of feeling."""
        return "names_feeling" in self.style


def root() -> Path:
    """The folder of the texts inside the package."""
    return Path(__file__).parent / "everyday_texts"


def items(split: str, root_folder: str | Path | None = None, strict: bool = False) -> tuple[EverydayItem, ...]:
    """Conversations of a split with all their labels.

    Args:
        split: ``train``, ``valid`` or ``test``.
        root_folder: Folder with the three files; None = those of the package.
        strict: Raise at the first line that cannot be used; else it is logged and left out.

    Raises:
        DataError: There is no such split or file, or ``strict`` and a line is bad.
    """
    return _read(_file(split, root_folder), canonical_split(split), strict)[0]


def load(split: str, root: str | Path | None = None, strict: bool = False) -> LoadedCorpus:
    """One split as every corpus gives it: conversations with emotions and cause spans; a written reply ends each.

    Args:
        split: ``train``, ``valid`` or ``test``.
        root: As ``root_folder`` of :func:`items`.
        strict: See :func:`items`.

    Raises:
        DataError: See :func:`items`.
    """
    path, name = _file(split, root), canonical_split(split)
    found, problems = _read(path, name, strict)
    return LoadedCorpus(
        NAME,
        name,
        path,
        tuple(_with_reply(item) for item in found),
        tuple(_annotation(item) for item in found if item.causes),
        problems,
    )


def _file(split: str, folder: str | Path | None) -> Path:
    path = (root() if folder is None else Path(folder)) / f"{canonical_split(split)}.jsonl"
    if not path.is_file():
        raise DataError(f"no file {path}; accepted: a folder with train.jsonl, valid.jsonl and test.jsonl.")
    return path


def _read(path: Path, split: str, strict: bool) -> tuple[tuple[EverydayItem, ...], tuple[Problem, ...]]:
    out, problems = [], []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            out.append(parse(parse_json(line), f"{split}/{number}", f"{NAME}/{split}"))
        except (ValueError, DataError) as problem:
            problems.append(Problem(str(path), number, f"{problem}; left out"))
    report(problems, strict)
    return tuple(out), tuple(problems)


def parse(record: Mapping[str, Json], id: str = "", source: str = NAME) -> EverydayItem:
    """One line of a file.

    Args:
        record: With ``turns``, ``emotion``, ``acceptable``, ``side``, ``causes`` ([turn, start, end] each) and, where
            somebody wrote them, ``reply``, ``avoid``, ``intent``, ``style``, ``topic``, ``writer``, ``id``.
        id: Of a record that has none.
        source: Of the dialogue.

    Raises:
        DataError: A field is missing or has a value that is not accepted; says which.
    """
    if not isinstance(record, Mapping):
        raise DataError(f"a {type(record).__name__} instead of an object")
    turns = _turns(record)
    emotion, side = _one(record, "emotion", EMOTIONS), _one(record, "side", SIDES)
    acceptable = _texts(record, "acceptable")
    for name in acceptable:
        _one({"acceptable": name}, "acceptable", EMOTIONS)
    reply = _text(record, "reply")
    causes = record.get("causes") or []
    if not isinstance(causes, list):
        raise DataError(f"causes is {str(causes)[:40]!r}; accepted: a list of [turn, start, end]")
    return EverydayItem(
        dialogue=Dialogue(_text(record, "id") or id, Dialogue.of(*turns).turns, emotion, source=source),
        acceptable=acceptable,
        side=side,
        causes=tuple(_span(value, turns) for value in causes),
        reply=reply,
        avoid=_text(record, "avoid"),
        intent=_one(record, "intent", INTENTS) if reply else "",
        style=_texts(record, "style"),
        topic=_text(record, "topic"),
        writer=_text(record, "writer"),
    )


def _turns(record: Mapping[str, Any]) -> list[str]:
    turns = record.get("turns")
    if not isinstance(turns, list) or not turns or not all(isinstance(t, str) and t.strip() for t in turns):
        raise DataError(f"turns is {str(turns)[:60]!r}; accepted: one or more texts, the speaker's first")
    if len(turns) % 2 == 0:
        raise DataError(f"{len(turns)} turns; accepted: an odd number, so that the speaker is the last")
    return turns


def _text(record: Mapping[str, Any], field: str) -> str:
    """A field that may be missing."""
    return str(record.get(field) or "")


def _one(record: Mapping[str, Any], field: str, accepted: Sequence[Name]) -> Name:
    value = record.get(field)
    if value not in accepted:
        raise DataError(f"{field} is {str(value)[:40]!r}; accepted: {', '.join(accepted)}")
    return cast(Name, value)


def _texts(record: Mapping[str, Any], field: str) -> tuple[str, ...]:
    value = record.get(field) or []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise DataError(f"{field} is {str(value)[:40]!r}; accepted: a list of texts")
    return tuple(value)


def _span(value: Any, turns: Sequence[str]) -> Span:
    is_three = isinstance(value, list) and len(value) == 3 and all(type(number) is int for number in value)
    turn, start, end = value if is_three else (-1, 0, 0)
    if not 0 <= turn < len(turns) or turn % 2 or not 0 <= start < end <= len(turns[turn]):
        raise DataError(f"causes has {str(value)[:40]}; accepted: [turn of the speaker, start, end] inside that turn")
    return Span(turn, start, end)


def _with_reply(item: EverydayItem) -> Dialogue:
    said = item.dialogue
    if not item.reply:
        return said
    texts = [turn.text for turn in said.turns]
    return Dialogue(said.id, Dialogue.of(*texts, item.reply).turns, said.emotion, said.situation, said.source)


def _annotation(item: EverydayItem) -> CauseAnnotation:
    target = len(item.dialogue.turns) - 1
    turns = tuple(sorted({span.turn for span in item.causes}))
    return CauseAnnotation(item.dialogue.id, target, turns, item.causes, ANNOTATOR, emotion=item.dialogue.emotion)
